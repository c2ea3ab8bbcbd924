//! The redactor masks secrets however the input is split, and masks nothing else.

mod near_misses;
mod shapes;
mod what_runs;

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
fn a_mask_does_not_change_what_is_a_sequence() {
    // The line feed, which ends the title, is part of the value; what follows is shown by a terminal.
    let text = b"\x1b]line one\nline two, k9#f72hs! and k9#f72hs!\x07";
    for pieces in [1, 3, text.len()] {
        let masked = redact(text.chunks(pieces));
        assert_eq!(masked.matches("redacted:API_KEY").count(), 2, "{masked:?}");
        assert!(masked.contains("redacted:MULTI_SECRET") && !masked.contains("k9#"), "{masked:?}");
    }
}

#[test]
fn what_may_be_no_sequence_is_searched_whole() {
    let text = b"ls\x1bPASSWORD=k9x72hsq more";
    for pieces in [1, 4, text.len()] {
        let masked = redact(text.chunks(pieces));
        assert_eq!(masked, "ls\x1bPASSWORD=«redacted:PASSWORD» more", "{pieces}");
    }
}

#[test]
fn a_long_value_with_a_colour_at_each_byte_is_masked_whole() {
    let value: Vec<u8> = (0..4000).map(|at| b"abcdefghijklmnopqrstuvwxyz0123456789"[(at * 7 + at / 36) % 36]).collect();
    for colour in ["\x1b[31m", "\x1b[38;2;100;100;100m"] {
        let shown = value.iter().flat_map(|byte| [&[*byte][..], colour.as_bytes()].concat());
        let text: Vec<u8> = b"a ".iter().copied().chain(shown).chain(*b" z\n").collect();
        for pieces in [1000, 8 << 10, text.len()] {
            let mut redactor = Redactor::new([("A_TOKEN", &value[..])]);
            let mut out = Vec::new();
            text.chunks(pieces).for_each(|piece| redactor.push(piece, &mut out));
            redactor.finish(&mut out);
            let shown = String::from_utf8_lossy(&out).replace(colour, "");
            assert_eq!(shown, "a «redacted:A_TOKEN» z\n", "{pieces}");
        }
    }
}

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

fn command(text: &str) -> String {
    let mut out = Vec::new();
    Redactor::default().redact_command(text.as_bytes(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_command_that_is_cut_anywhere_ends_with_no_part_of_a_value() {
    let parts = [
        "TOKEN=",
        "token: ",
        "--password ",
        "'",
        "\"",
        "Authorization: Bearer ",
        "https://me:",
        "@host/",
        "\x1b[1m",
        "\n",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "ghp_",
        "echo ",
        " | cat",
        "eyJ",
        ".",
        "aB3dE5gH7jK9",
    ];
    let is_known = |(name, _): &(&str, &str)| !matches!(*name, "PATH" | "PWD" | "SHORT_KEY");
    let values: Vec<&str> = ENVIRONMENT.into_iter().filter(is_known).map(|(_, value)| value).collect();
    rounds(80, |dice| {
        let text: String = (0..2 + dice.below(4))
            .map(|_| if dice.below(3) == 0 { values[dice.below(values.len())] } else { parts[dice.below(parts.len())] })
            .collect();
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut out = Vec::new();
            redactor().redact_cut_command(&text.as_bytes()[..at], &mut out);
            let out = String::from_utf8(out).unwrap();
            let begins = |value: &&&str| {
                let ends_both = |begin: &str| text[..at].ends_with(begin) && out.ends_with(begin);
                value.char_indices().skip(4).any(|(length, _)| ends_both(&value[..length]))
            };
            assert_eq!(values.iter().find(begins), None, "{text:?} cut at {at}: {out:?}");
        }
    });
}

/// Commands in which something looks like a secret's name, and the programs that they run behind it; behind `≈ `, calls in
/// another language or in a file that the command writes.
const HIDDEN_REST: &str = include_str!("../data/masks/hidden_rest.txt");

#[test]
fn what_a_command_runs_is_shown_whatever_is_masked_around_it() {
    for line in HIDDEN_REST.lines() {
        let (line, is_text) = line.strip_prefix("≈ ").map_or((line, false), |line| (line, true));
        let line = line.replace('␤', "\n");
        let text = line.replace(['‹', '›'], "");
        let words = |line: &str| -> Vec<String> {
            line.split('‹').skip(1).map(|part| part.split_once('›').unwrap().0.to_owned()).collect()
        };
        let arguments = [&b"bash"[..], b"-c", text.as_bytes()];
        // The caller's own variables, too, mask no name of a program.
        let hostile = ["; touch X", "payload123x c", "eboot", "touch"].map(|value| ("A_TOKEN", value.to_owned()));
        let redactors = [Redactor::default(), Redactor::new(hostile)];
        for mut redactor in redactors.into_iter().take(if is_text { 1 } else { 2 }) {
            let mut out = Vec::new();
            redactor.redact_command(text.as_bytes(), &mut out);
            for masked in [out, redactor.redact_arguments(&arguments).pop().unwrap()] {
                let masked = String::from_utf8(masked).unwrap();
                let mut rest = masked.as_str();
                for word in words(&line) {
                    let at = rest.find(&word).unwrap_or_else(|| panic!("{word} of {text} is hidden: {masked}"));
                    rest = &rest[at + word.len()..];
                }
            }
        }
    }
}

/// Whoever sets the environment of an agent could choose a value that is text of its commands.
#[test]
fn the_value_of_a_variable_hides_nothing_that_joins_the_words_of_a_command() {
    for (command, values, expected) in [
        ("true; touch /path", &["; touch /path"][..], "true; touch ‹0›"),
        ("X=touch; $X /path", &["X=touch; $X /path"], "X=touch; $X ‹0›"),
        ("X='touch -c'; ${X} /path", &["X='touch -c'; ${X} /path"], "X='touch‹0›'; ${X} ‹0›"),
        ("export X+=touch; \"$X\" /path", &["export X+=touch; \"$X"], "export X+=touch; \"$X\" /path"),
        ("true && touch /path", &["&& touch /path"], "true && touch ‹0›"),
        ("true\ntouch /path\nls", &["\ntouch /path\n"], "true\ntouch ‹0›\nls"),
        ("cat x | tee /path", &["x | tee /path"], "cat ‹0› | tee ‹0›"),
        ("echo hi >/path 2>&1", &["hi >/path"], "echo ‹0› >‹0› 2>&1"),
        ("echo `touch /path`", &["`touch /path`"], "echo `touch ‹0›`"),
        ("echo $(touch /path)", &["$(touch /path)"], "echo $(touch ‹0›)"),
        ("echo 'ab'; touch '/path' c", &["b'; touch '/path'"], "echo 'a‹0›'; touch '‹0›' c"),
        ("'to'uch /path", &["'to'uch /path"], "'to'uch ‹0›"),
        ("t\\ou\"\"ch /path", &["t\\ou\"\"ch"], "t\\ou\"\"ch /path"),
        ("/usr/bin/touch /path", &["/usr/bin/touch"], "/usr/bin/touch /path"),
        ("eval 'X=touch; $X /path'", &["X=touch; $X /path"], "eval 'X=touch; $X ‹0›'"),
        ("ssh h \"true; touch /path\"", &["\"true; touch /path\""], "ssh h \"true; touch ‹0›\""),
        ("bash <<E\ntouch /path\nE\nls", &["E\ntouch /path\nE\nls"], "bash <<‹0›\ntouch ‹0›\nE\nls"),
        // Values that overlap are one, but in each word by itself.
        ("a; touch /path/x; b", &["; touch /path", "/path/x; b"], "a; touch ‹0›; b"),
        // What is one word of the shell is one secret.
        ("run 'correct; horse && battery' x", &["correct; horse && battery"], "run '‹0›' x"),
        ("run \"correct | horse\"", &["correct | horse"], "run \"‹0›\""),
        ("curl h/correct-horse/x", &["correct-horse"], "curl h/‹0›/x"),
        ("X=correct-horse ./run", &["correct-horse"], "X=‹0› ./run"),
        ("run correct\\ horse", &["correct\\ horse"], "run ‹0›"),
        ("echo 'two\nlines' | run", &["two\nlines"], "echo '‹0›' | run"),
        ("cat <<E >f\ntwo; lines\nE", &["two; lines"], "cat <<E >f\n‹0›\nE"),
        ("echo YWJjZGVmZ2hpamts=", &["YWJjZGVmZ2hpamts="], "echo ‹0›"),
        ("run '{\"a\": \"b; c\"}'", &["{\"a\": \"b; c\"}"], "run '‹0›'"),
    ] {
        let names = ["A_TOKEN", "B_TOKEN"];
        let mut redactor = Redactor::new(names.into_iter().zip(values.iter().map(|value| (*value).to_owned())));
        let expected = expected.replace("‹0›", "«redacted:A_TOKEN»");
        let mut out = Vec::new();
        redactor.redact_command(command.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let arguments = redactor.redact_arguments(&[b"bash", b"-c", command.as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&arguments[2]), expected);
    }
}

/// Commands as agents run them every day.
const EVERYDAY: &str = include_str!("../data/everyday/commands.txt");

#[test]
fn a_prompt_for_a_secret_hides_nothing_of_the_commands_behind_it() {
    let known = COMMANDS.lines().map(|line| line.replace('␤', "\n").replace(['‹', '›'], ""));
    let commands: Vec<String> = EVERYDAY.lines().map(str::to_owned).chain(known).collect();
    assert!(commands.len() > 500, "{} commands", commands.len());
    for before in ["echo 'Password: '; ", ": \"token=\" && ", "read -p 'Secret: ' x\n", "DB_PASS=hunter22x;"] {
        for text in &commands {
            assert_eq!(command(&format!("{before}{text}")), format!("{}{}", command(before), command(text)));
            if !text.contains('\'') {
                let inner = command(&format!("bash -c '{text}'"));
                let inner = inner.strip_prefix("bash -c '").unwrap();
                let both = command(&format!("bash -c '{}{text}'", before.replace('\'', "'\\''")));
                assert!(both.ends_with(inner), "{before}{text}: {both}, not {inner}");
            }
        }
    }
}

/// Texts that nest as much as their length allows.
#[test]
fn a_command_is_masked_in_a_time_that_grows_with_its_length() {
    let deep = |open: &str, close: &str| format!("{}x{}", open.repeat(20_000), close.repeat(20_000));
    let texts = [
        deep("$(", ")"),
        deep("\"$(", ")\""),
        deep("bash -c \"$(", ")\""),
        deep("eval '", "'"),
        deep("`", "`"),
        deep("${x:-", "}"),
        "cat <<E\n$(\nE\n".repeat(10_000),
        format!("{}{}", "bash -c \"$(".repeat(30), "echo 'Password: '; touch X; ".repeat(4_000)),
        "password='a ".repeat(10_000),
        "echo 'Password: '; ".repeat(6_000),
        format!("'{}'", "'password=' ".repeat(10_000)),
    ];
    for text in texts {
        assert!(command(&text).len() >= text.len() / 2, "{}", &text[..20]);
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
