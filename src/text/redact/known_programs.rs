//! Which options and arguments of well-known programs are secrets, as their manuals say. They have names that tell nothing,
//! such as `-k`, so only the program's name gives them away.

/// Options with a secret: blank-separated programs, and blank-separated options of theirs.
///
/// An option's value is the next word, or what follows `=`. Marks after an option change that: `?`, the value may also
/// follow at once; `*`, it follows at once; `:`, it is what follows the last colon of the next word; `,`, what follows the
/// first comma.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("openssl", "-k -K -pass -passin -passout -password -hmac -psk"),
    (
        "ldapsearch ldapadd ldapmodify ldapdelete ldapmodrdn ldapcompare ldapwhoami ldapexop ldappasswd ldapurl ldapvc",
        "-w?",
    ),
    ("ldappasswd", "-a? -s?"),
    ("zip unzip zipcloak zipnote zipsplit", "-P?"),
    ("7z 7za 7zr 7zz rar unrar", "-p* -hp*"),
    ("mysqlimport mysqlcheck mysqlshow mysqlbinlog mariadb-admin", "-p*"),
    ("mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles bsondump", "-p?"),
    ("sqlcmd bcp isql osql tsql fisql", "-P?"),
    ("cqlsh cypher-shell clickhouse-client snowsql mysqlsh influx neo4j-admin", "-p?"),
    ("influx", "-password -token -t?"),
    ("redis-cli", "--pass"),
    ("mosquitto_pub mosquitto_sub mosquitto_rr mosquitto_ctrl ipmitool", "-P?"),
    (
        "snmpget snmpgetnext snmpset snmpwalk snmpbulkget snmpbulkwalk snmptrap snmpstatus snmptable snmpdf",
        "-c? -A? -X?",
    ),
    ("ssh-keygen", "-N? -P?"),
    ("rdesktop smbmap crackmapexec netexec nxc evil-winrm hydra medusa ncftp ncftpget ncftpput", "-p?"),
    ("plink pscp psftp putty kitty", "-pw"),
    ("xfreerdp xfreerdp3 wfreerdp", "/p:*"),
    ("lftp", "-u,"),
    ("smbclient rpcclient net smbget", "--password"),
    ("keytool jarsigner", "-storepass -keypass -srcstorepass -deststorepass -srckeypass -destkeypass -new"),
    ("apksigner", "--ks-pass --key-pass"),
    ("curl", "-E: --cert: --proxy-cert: --pass --proxy-pass --tlspassword --proxy-tlspassword --oauth2-bearer"),
    ("aria2c", "--http-passwd --ftp-passwd --rpc-secret"),
    ("useradd usermod", "-p?"),
    ("nerdctl crane oc cf ibmcloud twine rabbitmqadmin", "-p"),
    ("vercel fly flyctl doctl", "-t?"),
    ("netlify", "--auth"),
    ("nuget dotnet", "-k -ApiKey"),
    ("consul nomad vault", "-token -secret-id -client-secret"),
    ("yt-dlp youtube-dl", "-p? -2?"),
    ("pdftotext pdfimages pdfinfo pdftoppm pdftocairo", "-upw -opw"),
    ("ccrypt ccencrypt ccdecrypt ccat", "-K?"),
    ("mcrypt mdecrypt", "-k?"),
    ("aescrypt steghide veracrypt truecrypt", "-p?"),
    ("security", "-p -w -P"),
    ("altool notarytool", "-p"),
    ("osslsigncode", "-pass"),
    ("x11vnc", "-passwd -viewpasswd"),
    ("jenkins-cli.jar jenkins-cli", "-auth:"),
    ("gh", "--body -b?"),
    ("ConvertTo-SecureString", "-String"),
];

/// Programs whose options are secrets only where this word stands, too.
pub(super) const ONLY_WITH: &[(&str, &str)] =
    &[("nerdctl crane oc cf ibmcloud", "login"), ("twine", "upload"), ("gh", "secret")];

/// Words with a secret behind them: programs, the word behind which it stands (`*` for the program itself), and which of
/// the words behind it, options left out, it is.
pub(super) const ARGUMENTS: &[(&str, &str, usize)] = &[
    ("openssl", "passwd", 1),
    ("rabbitmqctl", "add_user", 2),
    ("rabbitmqctl", "change_password", 2),
    ("rabbitmqctl", "authenticate_user", 2),
    ("wpa_passphrase", "*", 2),
    ("rclone", "obscure", 1),
    ("rclone", "pass", 1),
    ("vault", "login", 1),
    ("vault", "unwrap", 1),
    ("cargo", "login", 1),
    ("cf", "auth", 2),
    ("neo4j-admin", "set-initial-password", 1),
    ("bw", "unlock", 1),
    ("bw", "login", 2),
    ("mega-login", "*", 2),
    ("mysqladmin mariadb-admin", "password", 1),
    ("nmcli", "password", 1),
    ("nmcli", "wifi-sec.psk", 1),
    ("nmcli", "802-11-wireless-security.psk", 1),
    ("pdftk", "input_pw", 1),
    ("pdftk", "owner_pw", 1),
    ("pdftk", "user_pw", 1),
    ("qpdf", "--encrypt", 1),
    ("qpdf", "--encrypt", 2),
    ("nuget", "setapikey", 1),
    ("nuget", "setApiKey", 1),
    ("mc minio-mc", "set", 4),
    ("steamcmd", "+login", 2),
    ("redis-cli", "auth", 1),
    ("redis-cli", "AUTH", 1),
    ("redis-cli", "requirepass", 1),
    ("redis-cli", "masterauth", 1),
    ("ipmitool", "password", 2),
    ("net", "user", 2),
    ("passwd", "--stdin", 2),
    ("keyctl", "add", 3),
    ("keyctl", "update", 2),
    ("ConvertTo-SecureString", "*", 1),
    ("rexec", "send", 2),
];

/// Programs whose arguments are a secret only if they are no plain words: what `rexec send` types is mostly an answer.
pub(super) const TAKE_ANSWERS: &str = "rexec";

/// Programs whose last word is a password if one of their options has this letter.
pub(super) const LAST_IF: &[(&str, u8)] = &[("htpasswd", b'b'), ("mosquitto_passwd", b'b')];

/// Programs that take `user/password@place` or `domain/user:password@place` as an argument.
pub(super) const LOGINS: &str = "sqlplus rman exp imp expdp impdp sqlldr psexec.py wmiexec.py smbexec.py atexec.py \
     dcomexec.py secretsdump.py mssqlclient.py smbclient.py GetUserSPNs.py GetNPUsers.py lookupsid.py \
     impacket-psexec impacket-wmiexec impacket-smbexec impacket-atexec impacket-dcomexec impacket-secretsdump \
     impacket-mssqlclient impacket-smbclient impacket-GetUserSPNs impacket-GetNPUsers impacket-lookupsid";

/// Programs that read a password from their standard input.
pub(super) const READERS: &str = "chpasswd passwd smbpasswd kinit vncpasswd cryptsetup su";
/// Options with which programs read one.
pub(super) const READER_OPTIONS: [&[u8]; 10] = [
    b"--password-stdin",
    b"--passphrase-stdin",
    b"--with-token",
    b"--token-stdin",
    b"--auth-stdin",
    b"--passphrase-fd",
    b"--pinentry-mode",
    b"--stdin-password",
    b"--access-token-stdin",
    b"--key-stdin",
];
/// Commands that keep what they read as a secret have one of each.
pub(super) const KEEPERS: [&[&[u8]]; 2] = [&[b"secret", b"secrets"], &[b"set", b"put", b"create", b"add"]];
