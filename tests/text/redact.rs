//! Secrets are masked wherever the input is split, and nothing else is.

use rexec_host::text::redact::Redactor;

use crate::data::sides;
use crate::dice::{Dice, rounds};

const ENVIRONMENT: [(&str, &str); 12] = [
    ("API_KEY", "k9#f72hs!"),
    ("DB_PASSWORD", "correct horse battery"),
    ("DB_PASSWORD_OLD", "correct horse"),
    ("GITHUB_TOKEN", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
    ("SESSION_COOKIE", "sid=aaaaaaaaaaaaaaab"),
    ("MULTI_SECRET", "line one\nline two\n"),
    ("R2_ACCESS_KEY_ID", "aabaabaac"),
    ("SENTRY_DSN", "https://public@sentry.example/42"),
    ("PATH", "/usr/bin:/bin"),
    ("PWD", "/srv/me/project"),
    ("SHORT_KEY", "secret7"),
    ("UTF8_TOKEN", "пароль-日本"),
];

fn redactor() -> Redactor {
    Redactor::new(ENVIRONMENT)
}

fn redact<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut redactor = redactor();
    let mut out = Vec::new();
    for piece in pieces {
        redactor.push(piece, &mut out);
    }
    redactor.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn whole(text: &str) -> String {
    redact([text.as_bytes()])
}

/// Text with one secret, and the part that must not be left of it.
fn planted() -> Vec<(String, String)> {
    let mut secrets: Vec<(&str, String)> = Vec::new();
    for (name, value) in ENVIRONMENT {
        if !matches!(name, "PATH" | "PWD" | "SHORT_KEY") {
            secrets.push(("", value.to_owned()));
        }
    }
    let letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2fG4hJ6kL8n";
    for start in
        ["ghp_", "gho_", "ghs_", "ghu_", "github_pat_11ABCDEFG0", "glpat-", "npm_", "sk-", "sk-ant-api03-", "sk-proj-"]
    {
        secrets.push(("", format!("{start}{letters}")));
        secrets.push(("export X=", format!("{start}{letters}")));
    }
    secrets.push(("", "sk-abcdefghijklmnopqrstuvwxyz".to_owned()));
    for start in ["xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxr-"] {
        secrets.push(("", format!("{start}123456789012-123456789012-{letters}")));
    }
    secrets.push(("", "AKIAIOSFODNN7EXAMPLE".to_owned()));
    secrets.push(("key=", "ASIAIOSFODNN7EXAMPL2".to_owned()));
    secrets.push(("Bearer ", format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{letters}")));
    secrets.push(("https://me:", "hunter2hunter2".to_owned()));
    secrets.push(("postgres://app:", "s3cr3t@pw".to_owned()));
    let body = format!("{letters}{letters}\n").repeat(6);
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        secrets.push(("", format!("-----BEGIN {kind}PRIVATE KEY-----\n{body}QUJD=\n-----END {kind}PRIVATE KEY-----")));
    }
    let quoted = body.replace('\n', "\\n");
    secrets.push(("\"", format!("-----BEGIN PRIVATE KEY-----\\n{quoted}-----END PRIVATE KEY-----\\n")));
    let headed =
        format!("-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,00\r\n\r\n{body}");
    secrets.push(("", format!("{headed}-----END RSA PRIVATE KEY-----")));
    let after = |before: &str| if before.contains("://") { "@host/path" } else { "\nplain words\n" };
    secrets.into_iter().map(|(before, secret)| (format!("some {before}{secret}{}", after(before)), secret)).collect()
}

#[test]
fn planted_secrets_are_gone_at_every_split() {
    let planted = planted();
    assert!(planted.len() >= 40, "{}", planted.len());
    for (text, secret) in &planted {
        let expected = whole(text);
        assert!(expected.contains("«redacted:"), "{text:?}: {expected:?}");
        assert!(expected.starts_with("some "), "{expected:?}");
        assert!(expected.ends_with("\nplain words\n") || expected.ends_with("@host/path"), "{expected:?}");
        // No eight bytes in a row of the secret may be left.
        for part in secret.as_bytes().windows(8) {
            let part = String::from_utf8_lossy(part);
            assert!(!expected.contains(&*part), "{part:?} of {text:?} is left in {expected:?}");
        }
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            let split = redact([head, tail]);
            assert!(split == expected, "cut at {at}: {}", sides(split.as_bytes(), expected.as_bytes()));
        }
        let bytes = redact(text.as_bytes().chunks(1));
        assert!(bytes == expected, "byte by byte: {}", sides(bytes.as_bytes(), expected.as_bytes()));
    }
}

#[test]
fn masks_carry_the_name() {
    for (text, expected) in [
        ("a k9#f72hs! b", "a «redacted:API_KEY» b"),
        ("correct horse battery", "«redacted:DB_PASSWORD»"),
        ("correct horse batt", "«redacted:DB_PASSWORD_OLD» batt"),
        ("aabaabaabaac", "aab«redacted:R2_ACCESS_KEY_ID»"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "«redacted:GITHUB_TOKEN»"),
        ("https://u:k9#f72hs!@h/", "https://u:«redacted:API_KEY»@h/"),
        (
            "https://u:pw@h/ https://u@h/ http://h:80/@x",
            "https://u:«redacted:URL_PASSWORD»@h/ https://u@h/ http://h:80/@x",
        ),
        ("AKIAIOSFODNN7EXAMPLE.", "«redacted:AWS_KEY_ID»."),
        ("secret7 /usr/bin:/bin /srv/me/project", "secret7 /usr/bin:/bin /srv/me/project"),
        (
            "- name: DB_PASSWORD\n          value: S3cure-Pa55\n",
            "- name: DB_PASSWORD\n          value: «redacted:DB_PASSWORD»\n",
        ),
        ("x.pem:-----BEGIN RSA PRIVATE KEY-----\ny.pem: no", "x.pem:«redacted:PRIVATE_KEY»\ny.pem: no"),
    ] {
        assert_eq!(whole(text), expected, "{text}");
    }
    let mut redactor = redactor();
    let mut out = Vec::new();
    redactor.redact(b"echo k9#f72hs! k9#f72hs!", &mut out);
    assert_eq!(redactor.count(), 2);
}

/// Secrets behind a name, between ‹ and ›, as people and programs write them.
const NAMED: &str = r##"
export OPENAI_API_KEY=‹q7Zk2mXw9LpR4tVb›
DB_PASS=‹hunter22x› ./run
PGPASSWORD=‹s3cr-et.pw› psql -h db
PGPASS=‹s3cretpg9›
SSHPASS='‹pa ss w0rd›' sshpass -e ssh box
APIKEY=‹8f7e6d5c4b3a›
GITHUB_PAT=‹a8f7e6d5c4b3a291›
GCP_CREDENTIALS=‹c3JlZGVudGlhbHM5›
API_TOKENS=‹tok1x9,tok2y8›
SSH_PASSPHRASE="‹correct horse battery›"
APP_JWT=‹hdr9.body8.sig7›
BEARER=‹b3ar3rv4lue›
AUTHTOKEN=‹au7ht0kenv›
ROOT_PW=‹r00tpw›
CARD_PIN=‹4711›
PIN=‹90210›
POSTGRES_PASSWORD=‹mysecretpassword›
MYSQL_ROOT_PASSWORD=‹opensesame›
  - REDIS_PASSWORD=‹foobared›
environment: SECRET_KEY_BASE=‹0f1e2d3c4b5a69788796a5b4›
clientSecret=‹Xy7zQ2wE9rT5›
dbPassword = "‹swordfish-1›"
{"password": "‹correct horse battery staple›"}
{"password":"‹hunter22›","user":"ann"}
{'passwd': '‹hunter22›'}
"api_key": "‹7d8f9a0b1c2d3e4f›"
{"body":"{\"client_secret\":\"‹v8K3mP0xQz1w›\"}"}
"private_key": "‹MIIEvQIBADANBgkqhkiG9w0BAQ›"
"refreshToken" : "‹1x0Gf83hdKs9›"
  password: ‹hunter22›
  password: ‹opensesame›
password: "‹opensesame›"
  smtp_pass: '‹ab12cd34›'
secret: ‹k3yb0ardc4t›
api-key: ‹9s8d7f6g5h4j›
auth_token: ‹7h8j9k0l1m2n3b›
password = ‹hunter2hunter2›
aws_secret_access_key = ‹wJalrXUtnFEMI/K7MDENG/bPxRfiCY9›
aws_session_token=‹FwoGZXIvYXdzEBYaDHy9/abc+def==›
spring.datasource.password=‹p4ss!word›
Authorization: Bearer ‹abc123def456›
curl -H "Authorization: Bearer ‹swordfish›" https://example.org
curl -H 'authorization: basic ‹YW5uOmh1bnRlcjI=›' https://example.org
Authorization: token ‹0123456789abcdef0123›
> Proxy-Authorization: Basic ‹YW5uOng5›
"Authorization": "Bearer ‹t0ken.val-ue›"
AUTH_HEADER="Bearer ‹t0kenvalue›"
X-Api-Key: ‹abcdefgh›
-H "x-auth-token: ‹q1w2e3r4›"
PRIVATE-TOKEN: ‹a1b2c3d4e5›
Cookie: ‹sid=a1b2c3; theme=dark›
Set-Cookie: ‹session=abcdef123; Path=/; HttpOnly›
curl -b x -H 'Cookie: ‹a=b1; c=d2›' host
Bearer ‹a8f7e6d5c4b3a29101›
curl -u ann:‹hunter22› https://example.org
curl --user ann:‹opensesame› https://example.org
curl -uann:‹hunter22› https://example.org
tool --password ‹hunter22› run
tool --password=‹opensesame› run
tool --token ‹a1b2c3d4e5› run
tool --api-key ‹a1b2c3d4e5f6›
tool --client-secret '‹a1 b2 c3›' x
tool --db-password "‹letmein please›"
sshpass -p ‹hunter22› ssh box
sshpass -p '‹open sesame›' ssh box
mysql -uroot -p‹hunter22› db
redis-cli -h box -a ‹hunter22› ping
docker login -u ann -p ‹hunter22› registry
openssl rsa -passin pass:‹hunter22› -in x
GET /items?access_token=‹a1b2c3d4e5›&page=2
https://example.org/?page=2&api_key=‹a1b2c3d4e5f6›&x=1
https://example.org/cb?client_secret=‹abcdefghij›#top
postgres://app:‹hunter22›@db/app
https://‹a1b2c3d4e5f6a7b8c9d0›@git.example.org/x.git
https://x-access-token:‹a1b2c3d4e5›@github.com/a/b
DefaultEndpointsProtocol=https;AccountKey=‹Zm9vYmFyL2Jheis5OQ==›;EndpointSuffix=core
Server=db;Uid=ann;Pwd=‹hunter22›;Database=x
java -Ddb.password=‹hunter22› -jar x.jar
const apiKey = "‹a1b2c3d4e5f6›";
let password: &str = "‹hunter22›";
password := "‹opensesame›"
'password' => '‹hunter22›',
config["api_key"] = "‹a1b2c3d4e5f6›"
os.environ["DB_PASSWORD"] = "‹hunter22›"
aws configure set aws_secret_access_key ‹wJalrXUtnFEMI/K7MDENG/bPxRfiCY9›
npm config set //npm.example/:_authToken ‹7f3a9c1e5b2d4e8f›
machine api.example login ann password ‹Wh4tever99›
nmcli dev wifi connect home password ‹W1fi-Pa55›
setenv DB_PASSWORD ‹S3cure-Pa55›
set password "‹S3cure-Pa55›"
CREATE USER app WITH PASSWORD '‹S3cure-Pa55›';
the new password is ‹hunter2222›
Your new token is ‹kd93jd02ks84ld93kd93›
<password>‹S3cure-Pa55›</password>
<property name="password" value="‹S3cure-Pa55›"/>
{"name":"DB_PASSWORD","value":"‹S3cure-Pa55›"}
{ "Key": "API_TOKEN", "Value": "‹kd93jd02ks84›" }
X-Amz-Signature=‹fe5f80f77d5fa3beca038a248ff027d0›
SESSION_SECRET="‹keyboard cat 99›"
http -a ann:‹S3cure-Pa55› GET example.org
smbclient //srv/share -U 'ann%‹Smb!pw9›'
db.connect(user="ann", password="‹hunter22›")
␛[1;34mpassword␛[0m: ␛[32m"‹hunter22›"␛[0m
{"cmd":"export TOKEN=‹a1b2c3d4e5f6›\nls"}
https://hooks.slack.com/services/‹T00000000/B00000000/aB3dE5gH7jK9mN1pQ3sT5vW7›
https://discord.com/api/webhooks/‹123456789012345678/aB3dE5gH7jK9mN1pQ3sT5vW7›
bot 123456789:‹AAF3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2fG4h› started
‹MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2›
"##;

/// The starts of tokens, and the alphabets of what follows.
const STARTS: &str = "AIza hf_ sk_live_ rk_live_ sk_test_ sk- sk-proj- sk-ant-api03- pypi-AgEI SG. dckr_pat_ dop_v1_ xapp-1- \
                      xoxe-1- glrt- glpat- hvs. dapi lin_api_ figd_ AGE-SECRET-KEY-1 npm_ ghp_ gho_ github_pat_ shpat_ \
                      sq0csp- gsk_ xai- r8_ pplx- tvly- nvapi- ntn_ rubygems_ glsa_ sntrys_ NRAK- pul- tskey-auth- \
                      ATATT3x dp.pt. pscale_tkn_ sbp_ sb_secret_ nfp_ bkua_ CCIPAT_ CFPAT- GOCSPX- ya29. whsec_ LTAI";

/// Each text of [`NAMED`], its secret, and what is expected around the mask.
fn named() -> Vec<(String, String, [String; 2])> {
    let tokens = STARTS.split(' ').map(|start| {
        let body = if start.starts_with("AGE") { "A1".repeat(30) } else { "a1b2c3d4e5f60798".repeat(4) };
        format!("found ‹{start}{body}› here")
    });
    let lines = NAMED.lines().filter(|line| !line.is_empty()).map(|line| line.replace('␛', "\x1b"));
    let cut = |line: String| {
        let (before, rest) = line.split_once('‹').unwrap();
        let (secret, after) = rest.split_once('›').unwrap();
        (format!("{before}{secret}{after}\n"), secret.to_owned(), [before.to_owned(), format!("{after}\n")])
    };
    lines.chain(tokens).map(cut).collect()
}

#[test]
fn a_value_behind_a_secrets_name_is_masked_at_every_split() {
    let named = named();
    assert!(named.len() >= 140, "{}", named.len());
    let plain = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut redactor, mut out) = (Redactor::default(), Vec::new());
        pieces.for_each(|piece| redactor.push(piece, &mut out));
        redactor.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let mut left = Vec::new();
    for (text, secret, [before, after]) in &named {
        let expected = plain(&mut [text.as_bytes()].into_iter());
        let is_right = expected.starts_with(before) && expected.ends_with(after);
        if !expected.contains("«redacted:") || expected.contains(secret) || !is_right {
            left.push(format!("{text}  → {expected}"));
        }
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            let split = plain(&mut [head, tail].into_iter());
            assert!(split == expected, "{text} cut at {at}: {}", sides(split.as_bytes(), expected.as_bytes()));
        }
        let bytes = plain(&mut text.as_bytes().chunks(1));
        assert!(bytes == expected, "byte by byte: {}", sides(bytes.as_bytes(), expected.as_bytes()));
    }
    assert!(left.is_empty(), "{} are left:\n{}", left.len(), left.join("\n"));
}

/// What a day's work shows near the names of secrets.
const HARMLESS: &str = r##"
TOKEN_COUNT=3
password: string
password: string;
"token": null
"token": "string"
"password": { "type": "string" }
key: value
  key: ${{ runner.os }}-cargo-${{ hashFiles('**/Cargo.lock') }}
  restore-keys: ${{ runner.os }}-cargo-
  cache-key: v1-deps-2024
max_tokens: 4096
"max_tokens": 4096,
"input_tokens": 15234,
total_tokens=182734
author=
--author=ann
git log --author=ann
git log --author="Ann Example"
PWD=/srv/me/project
OLDPWD=/srv/me
src/session.rs:12:5: warning: unused
error: unexpected token: '}'
error: expected identifier, found token: `fn`
SyntaxError: Unexpected token < in JSON at position 0
keyboard: dvorak
KEYBOARD=dvorak-intl
ssh-keygen -p -f key
tool --pass-through env
passed: 12
test result: ok. 12 passed; 0 failed
--- PASS: TestLogin (0.03s)
PASS: tests/run.sh
PASS src/login.test.js
src/auth.rs:44
SECRET_NAME = "db-credentials"
SECRET_NAME=db-credentials
let token = Token::new(kind, span);
token = self.next_token()
let token = tokens[i];
token: Token,
token: &str,
pub token: Option<String>,
api_key = os.environ["API_KEY"]
api_key = os.getenv("API_KEY")
apiKey: process.env.API_KEY,
const token = process.env.TOKEN;
password = getpass.getpass()
password=password
password=user_password,
passwd=args.passwd
echo $TOKEN
TOKEN=$TOKEN
TOKEN=${API_KEY}
TOKEN="$(cat token.txt)"
token: ${{ secrets.GITHUB_TOKEN }}
API_KEY=<your-token>
API_KEY=your-api-key-here
API_KEY=your_api_key
API_KEY=xxx
API_KEY=xxxxxxxxxxxxxxxx
API_KEY=changeme
API_KEY=***
API_KEY=...
password: ********
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
Authorization: Bearer ${TOKEN}
-H "Authorization: Bearer $GITHUB_TOKEN"
-H "X-Api-Key: $KEY"
curl -u "$USER:$PASSWORD" https://example.org
curl -u user:$PASSWORD https://example.org
docker run -u 1000:1000 image
docker run --user root:root image
chown -R ann:ann .
git push -u origin main
tool --token <TOKEN>
tool --token TOKEN
  --password <PASSWORD>  Password of the user
  --password string   Password or token
  --token value   the token
-p, --password stdin
docker login --password-stdin
Use --token to authenticate
the --password flag is deprecated
pass --secret id=npm,src=.npmrc
tool --key-file server.pem
tool --private-key /etc/ssl/server.pem
key: server.pem
ssl_key = /etc/ssl/private/server.key
tokens: 1532
tokens: [a, b]
"tokens": ["a", "b"],
token_type=bearer
"token_type": "Bearer",
"tokenUrl": "https://example.org/token"
TOKEN_URL=https://example.org/oauth
password_file: /run/secrets/db
PASSWORD_FILE=/run/secrets/db
PASSWORD_MIN_LENGTH=12
session: main
session_timeout: 3600
SESSION_DRIVER=redis
"session": "default",
auth: none
auth: basic
--auth=basic
AUTH_METHOD=oidc
"auth": true,
authority: example.org
"author": "Ann Example <ann@example.org>",
authors = ["Ann Example"]
"cookie": "^0.5.0",
"js-tokens": "^4.0.0",
"jsonwebtoken": "9.0.2",
"passport-jwt": "^4.0.1",
cookie = "0.18"
secrecy = { version = "0.8" }
name = "tokenizers"
version = "1.2.3"
"keywords": ["auth", "token"],
"key": "F12",
"key": "Digit1",
"key": "user:42",
sort(key=lambda x: x.name)
sorted(items, key=len)
key=name
sort_key=created_at
primary_key: id
primary_key=True
foreign_key = "users.id"
keys: 12
for key in keys:
if key == "token":
if (password !== confirm) {
password != ""
x.password == y.password
password => password.length > 8
token => token.value
"password": "Password",
"password": "Enter your password",
"forgotPassword": "Forgot password?",
"invalidPassword": "Invalid password",
Invalid password: please try again
Password: 
Enter passphrase (empty for no passphrase): 
ann's password:
[sudo] password for ann: 
error: secret not found
error: no token provided
token: missing
password: required
password: incorrect
credentials: include,
POSTGRES_PASSWORD=${POSTGRES_PASSWORD:?required}
INFO auth: token refreshed for user 42
token refreshed
the password is stored hashed
password policy min_length=12
token 5 of 12
tokens 18k
password reset for user42@example.org
token bucket refill 10/s
fix(auth): token rotation #1234
<password> <host>
<input name="password" value="" />
{"name": "password", "value": null}
name: password
value: ${DB_PASSWORD}
credentials file /srv/ann/.aws/credentials2
access token expired at 2024-01-01T00:00:00Z
token user_id_2
cookie-set remember_me token123 --expires=1893456000
Token.Number: "#976806",
pub pw_passwd: *mut c_char,
credentials: "same-origin"
credential.helper=store
credential.helper=cache --timeout=3600
pin: 13
PIN=3
spin=true
opinion: good
compass: north
bypass: true
bypass=1
render_pass: 3
first_pass=true
pass_rate: 0.95
pass: 12, fail: 3
passes: 3
secret: false
secrets: inherit
secretName: db-credentials
secretKeyRef:
Secret: kube-system/default
"secret": null
api_key: null
api_key=None
token = None
token = ""
token: ''
auth = ()
password TEXT NOT NULL,
password VARCHAR(255),
password: z.string().min(8),
password: Joi.string().required(),
password: str
password: Optional[str] = None
password: text
type="password" name="password"
<input type="password" id="password">
apiKey?: string
csrf-token: 
public_key: ssh-ed25519
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ ann@box
PUBLIC_KEY=AAAAB3NzaC1yc2EAAAADAQAB
commit 3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a
index 3f2a9b8..7d6e5f4 100644
request_id=2f1c0000-aaaa-4bbb-8ccc-1234567890ab
trace: 4bf92f3577b34da6a3ce929d0e0e4736
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
2026-11-21T05:51:31.103Z INFO auth: user logged in
INFO session: opened
keepalive: 30s
key_repeat: 30ms
token_ttl=15m
token: 0x7ffd3c2a
secret/data/app
vault kv get secret/app
kubectl get secret db
kubectl create secret generic db --from-literal=a=b
gh secret set NAME
cat ~/.ssh/id_ed25519.pub
git config --get user.signingkey
npm token list
npm config get //registry.npmjs.org/:_authToken
std::env::var("TOKEN")
mod tokens;
use crate::auth::session;
fn password(&self) -> &str {
match token {
    Token::Word(word) => word,
(key, value)
{ key: 'value' }
{ token: "comment", regex: "#.*" }
map.get("key")
key | value
| key | value |
Key: Value
KEY=value
"##;

fn harmless() -> Vec<&'static str> {
    HARMLESS.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn what_stands_near_the_names_of_secrets_comes_through() {
    let lines = harmless();
    assert!(lines.len() >= 200, "{}", lines.len());
    let masked: Vec<String> = lines
        .iter()
        .map(|line| (line, whole(&format!("{line}\n"))))
        .filter(|(line, text)| *text != format!("{line}\n"))
        .map(|(line, text)| format!("{line}  → {text}"))
        .collect();
    assert!(masked.len() * 50 <= lines.len(), "{} of {}:\n{}", masked.len(), lines.len(), masked.join(""));
}

#[test]
fn thousands_of_values_that_begin_alike_cost_no_more_than_one() {
    let value = |n: usize| format!("the-same-long-start-of-every-value-{n:05}-and-its-end");
    let environment: Vec<(String, String)> = (0..4000).map(|n| (format!("V{n}_TOKEN"), value(n))).collect();
    let mut many = Redactor::new(environment.iter().map(|(name, value)| (name, value)));
    let text = format!("{}x ", &value(0)[..38]).repeat(25_000);
    let mut out = Vec::new();
    // Each value compared at each place would be 4 milliards of comparisons.
    many.push(text.as_bytes(), &mut out);
    many.push(format!("{}\n", value(17)).as_bytes(), &mut out);
    many.finish(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), format!("{text}«redacted:V17_TOKEN»\n"));
}

#[test]
fn an_argument_is_the_value_of_the_option_before_it() {
    for (arguments, expected) in [
        (&["tool", "--token", "abcdef"][..], "tool --token «redacted:token»"),
        (&["tool", "--password", "correct horse"], "tool --password «redacted:password»"),
        (&["curl", "-u", "ann:hunter22"], "curl -u ann:«redacted:PASSWORD»"),
        (&["sshpass", "-p", "hunter22", "ssh"], "sshpass -p «redacted:PASSWORD» ssh"),
        (&["mysql", "-phunter22", "db"], "mysql -p«redacted:PASSWORD» db"),
        (&["mysql", "-p", "database"], "mysql -p database"),
        (&["mkdir", "-p", "hunter22"], "mkdir -p hunter22"),
        (&["tool", "--token", "$TOKEN"], "tool --token $TOKEN"),
        (&["tool", "--token", "--verbose"], "tool --token --verbose"),
        (&["docker", "run", "-u", "1000:1000"], "docker run -u 1000:1000"),
    ] {
        let bytes: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
        let mut redactor = Redactor::default();
        let masked: Vec<String> = (0..bytes.len())
            .map(|at| {
                let mut out = Vec::new();
                redactor.redact_argument(&bytes[..at], bytes[at], &mut out);
                String::from_utf8(out).unwrap()
            })
            .collect();
        assert_eq!(masked.join(" "), expected);
    }
}

/// Things that look a little like secrets. At most one in fifty may be masked.
fn near_misses() -> Vec<String> {
    let hex = "0123456789abcdef0123456789abcdef01234567";
    let mut texts: Vec<String> = [
        "task-list-item-with-a-very-long-name-indeed",
        "sk-loading-spinner-container-2-wide-x",
        "sk-learn==1.4.2",
        "disk-usage-analyzer-1234567890123456",
        "risk-0123456789abcdefghijklmnop",
        "ghp_short",
        "ghp_",
        "github_pat_",
        "glpat-",
        "npm_config_registry=https://packages.example.org/",
        "npm_lifecycle_event",
        "AKIA",
        "AKIAlowercase1234567",
        "AKIA0123456789ABCDEFGHIJKLMNOP",
        "XAKIAIOSFODNN7EXAMPLE",
        "xoxo-hugs-and-kisses",
        "xoxb-",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.txt",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN RSA PUBLIC KEY-----",
        "-----BEGIN a test-----",
        "------------------------",
        "https://example.com:8080/a@b",
        "https://user@example.com/",
        "git@github.com:owner/repo.git",
        "ssh://git@github.com:22/owner/repo",
        "https://packages.example.org/@babel/core/-/core-7.24.0.tgz",
        "https://user:$TOKEN@example.com",
        "https://user:${PASSWORD}@example.com",
        "https://user:***@example.com",
        "http://[::1]:3000/",
        "std::collections::HashMap",
        "a::b://c",
        "time: 12:30:45",
        "/srv/me/project/src",
        "/usr/bin:/bin",
        "correct hors",
        "aabaabaa",
        "пароль",
        "sid=aaaaaaaaaaaaaaa",
        "Set the API_KEY and the DB_PASSWORD first",
        "export GITHUB_TOKEN=",
        "token = os.environ['TOKEN']",
        "password: ********",
        "secret_key_base: <%= ENV['SECRET_KEY_BASE'] %>",
        "skeleton sketch skip asks",
        "--privileged -----",
    ]
    .map(str::to_owned)
    .to_vec();
    for n in 0..50 {
        texts.push(format!("{}{n:02}  file-{n}.tar.gz", &hex[..38]));
        texts.push(format!("sha512-{}{n}==", "aZ09+/bY18cX27dW36eV45fU54gT63hS72iR81jQ90".repeat(2)));
        texts.push(format!("2f1c{n:04}-aaaa-4bbb-8ccc-1234567890ab"));
    }
    texts
}

#[test]
fn near_misses_come_through() {
    let texts = near_misses();
    assert!(texts.len() >= 200, "{}", texts.len());
    let masked: Vec<&String> = texts.iter().filter(|text| whole(text) != **text).collect();
    assert!(masked.is_empty(), "{masked:?}");
}

#[test]
fn bulk_text_comes_through() {
    let mut random = Dice::new(7);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64: Vec<u8> = (0..1 << 20).map(|_| alphabet[random.below(64)]).collect();
    let same = |text: &[u8]| assert!(redact(text.chunks(4096)).as_bytes() == text);
    same(&base64);
    for at in (76..base64.len()).step_by(77) {
        base64[at] = b'\n';
    }
    same(&base64);
    same(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap());
    let lock: String = (0..500)
        .map(|n| {
            let hash: String = (0..86).map(|_| char::from(alphabet[random.below(64)])).collect();
            format!(
                "    \"node_modules/@scope/package-{n}\": {{\n      \"version\": \"7.{n}.1\",\n      \"resolved\": \
                 \"https://packages.example.org/@scope/package-{n}/-/package-{n}-7.{n}.1.tgz\",\n      \"integrity\": \
                 \"sha512-{hash}==\",\n      \"engines\": {{ \"node\": \">=6.9.0\" }}\n    }},\n"
            )
        })
        .collect();
    same(lock.as_bytes());
}

#[test]
fn any_split_gives_the_same_and_no_value_is_left() {
    let planted = planted();
    let fragments = [
        "sk-",
        "ghp_",
        "eyJ",
        "AKIA",
        "-----",
        "BEGIN ",
        "PRIVATE KEY",
        "://",
        ":",
        "@",
        "\n",
        "\\",
        "n",
        " ",
        "aab",
        "correct horse",
        "xoxb-",
        ".",
        "A",
        "a1b2c3d4e5f6g7h8i9j0",
    ];
    rounds(1500, |random| {
        let mut text = String::new();
        for _ in 0..random.below(12) {
            match random.below(3) {
                0 => {
                    let (planted, _) = &planted[random.below(planted.len())];
                    let cut = random.below(planted.len() + 1);
                    text.push_str(if random.below(2) == 0 { planted } else { planted.get(cut..).unwrap_or("") });
                }
                _ => (0..random.below(6)).for_each(|_| text.push_str(fragments[random.below(fragments.len())])),
            }
        }
        let expected = whole(&text);
        let split = redact(random.pieces(text.as_bytes()));
        assert!(split == expected, "{text:?} {}", sides(split.as_bytes(), expected.as_bytes()));
        assert!(!expected.contains("k9#f72hs!"), "{text:?}");
    });
}

#[test]
fn what_is_held_back_is_bounded() {
    for flood in ["sk-a-", "eyJaaaa", "https://a:b", "-----BEGIN A", "ghp_x ", "-", "x://", "AKIA"] {
        let mut redactor = redactor();
        let mut out = Vec::new();
        let text = format!("{flood}{}", &flood[..flood.len() / 2 + 1].repeat(20_000));
        redactor.push(text.as_bytes(), &mut out);
        assert!(out.len() + 4096 > text.len(), "{flood}: {} of {}", out.len(), text.len());
    }
}
