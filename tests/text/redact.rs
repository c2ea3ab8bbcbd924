//! The redactor masks secrets however the input is split, and masks nothing else.

mod near_misses;

use rexec_host::text::redact::Redactor;

use crate::data::sides;
use crate::dice::{Dice, rounds};
use near_misses::near_misses;

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

/// Texts with one secret each, and the secret.
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
    assert_eq!(planted.len(), 47);
    for (text, secret) in &planted {
        let expected = whole(text);
        assert!(expected.contains("«redacted:"), "{text:?}: {expected:?}");
        assert!(expected.starts_with("some "), "{expected:?}");
        assert!(expected.ends_with("\nplain words\n") || expected.ends_with("@host/path"), "{expected:?}");
        // No eight consecutive bytes of the secret may be left.
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

/// Secrets after a name, marked by ‹ and ›, as people and programs write them.
const NAMED: &str = include_str!("../data/masks/named.txt");

/// The starts of tokens.
const STARTS: &str = "AIza hf_ sk_live_ rk_live_ sk_test_ sk- sk-proj- sk-ant-api03- pypi-AgEI SG. dckr_pat_ dop_v1_ xapp-1- \
                      xoxe-1- glrt- glpat- hvs. dapi lin_api_ figd_ AGE-SECRET-KEY-1 npm_ ghp_ gho_ github_pat_ shpat_ \
                      sq0csp- gsk_ xai- r8_ pplx- tvly- nvapi- ntn_ rubygems_ glsa_ sntrys_ NRAK- pul- tskey-auth- \
                      ATATT3x dp.pt. pscale_tkn_ sbp_ sb_secret_ nfp_ bkua_ CCIPAT_ CFPAT- GOCSPX- ya29. whsec_ LTAI";

/// Each text of [`NAMED`], its secret, and the text around the mask.
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
    assert_eq!(named.len(), 161);
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
    assert!(left.is_empty(), "{} are not masked:\n{}", left.len(), left.join("\n"));
}

/// Lines without secrets, of which many have a secret's name.
const HARMLESS: &str = include_str!("../data/masks/harmless.txt");

fn harmless() -> Vec<&'static str> {
    HARMLESS.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn lines_without_a_secret_come_through() {
    let lines = harmless();
    assert_eq!(lines.len(), 250);
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
    // To compare each value at each place would take 4 billion comparisons.
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
        let masked = redactor.redact_arguments(&bytes).join(&b' ');
        assert_eq!(String::from_utf8(masked).unwrap(), expected);
    }
}

#[test]
fn near_misses_come_through() {
    let texts = near_misses();
    assert_eq!(texts.len(), 200);
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
fn the_bytes_held_back_are_bounded() {
    for flood in ["sk-a-", "eyJaaaa", "https://a:b", "-----BEGIN A", "ghp_x ", "-", "x://", "AKIA"] {
        let mut redactor = redactor();
        let mut out = Vec::new();
        let text = format!("{flood}{}", &flood[..flood.len() / 2 + 1].repeat(20_000));
        redactor.push(text.as_bytes(), &mut out);
        assert!(out.len() + 4096 > text.len(), "{flood}: {} of {}", out.len(), text.len());
    }
}

/// Commands in which the program's name gives the secrets away, and commands without one.
const COMMANDS: &str = include_str!("../data/masks/commands.txt");

#[test]
fn a_known_programs_secrets_are_masked_in_commands() {
    for line in COMMANDS.lines() {
        let line = &line.replace('␤', "\n");
        let command = line.replace(['‹', '›'], "");
        let (mut expected, mut rest) = (String::new(), line.as_str());
        while let Some((before, behind)) = rest.split_once('‹') {
            let (_, after) = behind.split_once('›').unwrap();
            (expected, rest) = (expected + before + "«redacted»", after);
        }
        expected += rest;
        let plain = |text: Vec<u8>| {
            let text = String::from_utf8(text).unwrap();
            let parts: Vec<&str> =
                text.split("«redacted:").map(|part| part.split_once('»').map_or(part, |(_, rest)| rest)).collect();
            parts.join("«redacted»")
        };
        let mut out = Vec::new();
        Redactor::default().redact_command(command.as_bytes(), &mut out);
        assert_eq!(plain(out), expected);
        let arguments: Vec<&[u8]> = vec![b"bash", b"-c", command.as_bytes()];
        let masked = Redactor::default().redact_arguments(&arguments).pop().unwrap();
        assert_eq!(plain(masked), expected);
        if !line.contains(['\'', '"', '|', ';', '<', '$', '&', '\n']) {
            let arguments: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            assert_eq!(plain(Redactor::default().redact_arguments(&arguments).join(&b' ')), expected);
        }
    }
}

#[test]
fn a_secret_of_the_command_is_masked_in_its_output() {
    let none: [(&str, &str); 0] = [];
    for (command, output, expected) in [
        ("DB_PASS=hunter22x ./run", "connected with hunter22x\n", "connected with «redacted:DB_PASS»\n"),
        ("zip -P zipsecret1 a", "+ zip -P zipsecret1 a", "+ zip -P «redacted:PASSWORD» a"),
        ("curl -u ann:s3cr3tpw9 x", "auth s3cr3tpw9", "auth «redacted:PASSWORD»"),
        ("POSTGRES_PASSWORD=postgres psql", "database postgres", "database postgres"),
        ("tool --token short1", "short1", "short1"),
    ] {
        let mut redactor = Redactor::of_command(none, &[b"sh", b"-c", command.as_bytes()]).fresh();
        let mut out = Vec::new();
        redactor.redact(output.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
