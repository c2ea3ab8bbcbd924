//! Whatever is masked of a command, the programs that the reader of shell text finds in it stay.

use rexec_host::script;
use rexec_host::text::redact::Redactor;

use super::command;
use crate::dice::rounds;

/// What may seem to begin a secret, or to be the middle of one.
const LURES: [&str; 30] = [
    "echo 'Password: '",
    ": 'password='",
    ": \"token=\"",
    "read -p 'Secret: ' x",
    "DB_TOKEN=",
    "X_PASSWORD=ab12cd34",
    "export API_KEY='abc123def456'",
    "echo \"password=ab12cd34\"",
    "tool --token",
    "tool --password ab12cd34",
    "curl -u ann:hunter22 http://h/",
    "curl -H 'Authorization: Bearer ab12cd34ef56ab12cd34'",
    "curl http://ann:hunter22@h/",
    "curl 'http://ann:hunter22",
    "echo -----BEGIN' 'PRIVATE KEY-----",
    "cat <<E\npassword: ab12cd34\nE",
    "chpasswd <<'E'\nann:ab12cd34\nE",
    "mysql -phunter22",
    "echo s3cret12 | sudo -S true",
    "# password: ",
    "# the token is '",
    "x=$'token=\\'ab12cd34'",
    "echo $(echo password=ab12)cd34",
    "echo `echo token:`ab12cd34",
    "(( x<<2 )); password=ab12cd34",
    "psql \"password='ab12cd34' host=h\"",
    "for token in ab12cd34",
    "case $x in password=ab12cd34",
    "a=([token]=ab12cd34)",
    "echo token=\\",
];
const JOINTS: [&str; 16] =
    ["; ", ";", " && ", "&&", " || ", "|", "\n", "&", " ", "", "\r\n", " \\\n", ";\t", "\n\n", "'", "\""];
/// Commands that run `payload…`, with a number that is its own.
const HIDDEN: [&str; 30] = [
    "payload%x c",
    "/tmp/payload%x",
    "'payload%x' c",
    "$(payload%x)",
    "`payload%x`",
    "bash -c 'payload%x; reboot'",
    "bash <<E\npayload%x\nE\n",
    "eval payload%x c",
    "{ payload%x; }",
    "( payload%x )",
    "if payload%x; then reboot; fi",
    "> token payload%x",
    "A=b payload%x=1 c",
    "sudo -u token payload%x arg",
    "cat <(payload%x)",
    "((1)); payload%x",
    "((payload%x) || payload%x c)",
    "echo $[1<<2]\npayload%x c",
    "a[1<<2]=3\npayload%x c",
    "echo $((1<<2\n)); payload%x",
    "for ((i=1<<2; i; i--)); do payload%x; done",
    "\"$(case x in a) echo password: ; payload%x c;; esac)\"",
    "echo \"$(echo 'token: '; payload%x c)\"",
    "env -i DB_TOKEN= payload%x c",
    "x() { payload%x; }; x",
    "[[ $token = ab12cd34 ]] && payload%x",
    "coproc payload%x c",
    "! payload%x c",
    "X=payload%x; $X c",
    "timeout 5 nice -n 3 payload%x c",
];

/// The names that `text` runs.
fn programs(text: &str) -> Vec<String> {
    let leaves = script::leaves(text.as_bytes(), &|_| None).leaves;
    let names = leaves.iter().map(|leaf| String::from_utf8_lossy(&leaf.program).into_owned());
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/');
    names.filter(|name| name.contains("payload") && is_plain(name)).collect()
}

#[test]
fn no_program_of_a_command_is_masked_with_its_secrets() {
    let mut masks = 0;
    let mut hidden = Vec::new();
    let mut names = 0;
    rounds(4_000, |random| {
        let mut text = String::new();
        for at in 0..=random.below(4) {
            for list in [&LURES[..], &JOINTS, &HIDDEN, &JOINTS] {
                let nth =
                    if list == JOINTS && random.below(4) > 0 { random.below(7) } else { random.below(list.len()) };
                text.push_str(&list[nth].replace('%', &at.to_string()));
            }
        }
        let seen = command(&text);
        masks += usize::from(seen != text);
        let arguments = Redactor::default().redact_arguments(&[b"bash", b"-c", text.as_bytes()]);
        let programs = programs(&text);
        names += programs.len();
        for seen in [seen, String::from_utf8_lossy(&arguments[2]).into_owned()] {
            if let Some(name) = programs.iter().find(|name| !seen.contains(name.as_str())) {
                hidden.push(format!("{name}: {text:?}\n → {seen:?}"));
            }
        }
    });
    assert!(masks > 500 && names > 3_000, "{masks}, {names}");
    hidden.sort_by_key(String::len);
    hidden.dedup();
    hidden.truncate(12);
    assert!(hidden.is_empty(), "{}", hidden.join("\n"));
}
