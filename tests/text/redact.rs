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
        ("x.pem:-----BEGIN RSA PRIVATE KEY-----\ny.pem: no", "x.pem:«redacted:PRIVATE_KEY»\ny.pem: no"),
    ] {
        assert_eq!(whole(text), expected, "{text}");
    }
    let mut redactor = redactor();
    let mut out = Vec::new();
    redactor.redact(b"echo k9#f72hs! k9#f72hs!", &mut out);
    assert_eq!(redactor.count(), 2);
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
    let same = |text: &[u8]| assert_eq!(redact(text.chunks(4096)).as_bytes(), text);
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
