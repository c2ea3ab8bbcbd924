//! Secrets of many kinds, in output and in commands, and lines that look a little like them.

use rexec_host::text::redact::Redactor;
use rexec_host::text::sanitize::{Mode, Sanitizer};

use super::{command, redact};
use crate::data::sides;
use crate::dice::rounds;

/// Kind, where it stands (`out` or `cmd`), and a text with a secret between ‹ and ›. ␤ stands for a line feed, ␉ for a tab,
/// ␛ for an escape; ¦ is nothing, and keeps what searches repositories for secrets from finding one here.
const SHAPES: &str = include_str!("../../data/masks/shapes.txt");

struct Planted {
    kind: &'static str,
    is_command: bool,
    before: String,
    secret: String,
    after: String,
}

fn planted() -> Vec<Planted> {
    let one = |line: &'static str| {
        let mut fields = line.splitn(3, '\t');
        let kind = fields.next().unwrap();
        let place = fields.next().unwrap();
        let text = fields.next().unwrap().replace('¦', "").replace('␤', "\n").replace('␉', "\t").replace('␛', "\x1b");
        let (before, rest) = text.split_once('‹').unwrap_or_else(|| panic!("{line}"));
        let (secret, after) = rest.split_once('›').unwrap_or_else(|| panic!("{line}"));
        let [before, secret, after] = [before, secret, after].map(str::to_owned);
        Planted { kind, is_command: place == "cmd", before, secret, after }
    };
    SHAPES.lines().map(one).collect()
}

/// What is left without escape sequences.
fn shown(text: &str) -> String {
    let mut sanitizer = Sanitizer::new(Mode::Strip);
    let mut out = Vec::new();
    sanitizer.push(text.as_bytes(), &mut out);
    sanitizer.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn masked(pieces: &[&[u8]]) -> String {
    let mut redactor = Redactor::default();
    let mut out = Vec::new();
    pieces.iter().for_each(|piece| redactor.push(piece, &mut out));
    redactor.finish(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn secrets_of_many_kinds_are_masked_in_output_at_every_split() {
    let all = planted();
    let mut kinds: Vec<&str> = all.iter().map(|planted| planted.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(all.len() >= 211 && kinds.len() >= 80, "{} secrets of {} kinds", all.len(), kinds.len());
    let mut left = Vec::new();
    for Planted { kind, before, secret, after, .. } in all.iter().filter(|planted| !planted.is_command) {
        let text = format!("{before}{secret}{after}\n");
        let whole = masked(&[text.as_bytes()]);
        let seen = shown(&whole);
        let secret = shown(secret);
        let is_right = seen.starts_with(&shown(before)) && seen.ends_with(&format!("{}\n", shown(after)));
        if !seen.contains("«redacted:") || seen.contains(secret.trim_end()) || !is_right {
            left.push(format!("{kind}: {text}  → {whole}"));
        }
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(masked(&[head, tail]), whole, "{kind}, cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(masked(&bytes), whole, "{kind}, byte by byte");
    }
    assert!(left.is_empty(), "{} are not masked:\n{}", left.len(), left.join("\n"));
}

#[test]
fn secrets_of_many_kinds_are_masked_in_commands() {
    let mut left = Vec::new();
    for Planted { kind, before, secret, after, .. } in planted().iter().filter(|planted| planted.is_command) {
        let text = format!("{before}{secret}{after}");
        let arguments = [&b"bash"[..], b"-c", text.as_bytes()];
        let argument = Redactor::default().redact_arguments(&arguments).pop().unwrap();
        for seen in [command(&text), String::from_utf8(argument).unwrap()] {
            let is_right = seen.starts_with(before.as_str()) && seen.ends_with(after.as_str());
            if !seen.contains("«redacted:") || seen.contains(secret.as_str()) || !is_right {
                left.push(format!("{kind}: {text}  → {seen}"));
            }
        }
    }
    assert!(left.is_empty(), "{} are not masked:\n{}", left.len(), left.join("\n"));
}

/// Lines without a secret.
const NEAR: &str = include_str!("../../data/masks/near.txt");

#[test]
fn lines_that_look_a_little_like_secrets_come_through() {
    let lines: Vec<&str> = NEAR.lines().collect();
    assert!(lines.len() >= 200, "{} lines", lines.len());
    let changed = |line: &&str| {
        let seen = masked(&[format!("{line}\n").as_bytes()]);
        (seen != format!("{line}\n")).then(|| format!("{line}  → {seen}"))
    };
    let changed: Vec<String> = lines.iter().filter_map(changed).collect();
    assert!(changed.is_empty(), "{}:\n{}", changed.len(), changed.join(""));
    // All in one, where one line may seem to belong to the next.
    assert_eq!(masked(&[NEAR.as_bytes()]), NEAR);
}

#[test]
fn escape_sequences_neither_hide_a_secret_nor_change_what_is_masked() {
    const SEQUENCES: [&str; 8] = [
        "\x1b[1m",
        "\x1b[0;38;5;12m",
        "\x1b[K",
        "\x1b[?25l",
        "\x1b(B",
        "\x1b]8;;http://x\x1b\\",
        "\x1b]0;t\x07",
        "\x1b[m",
    ];
    for Planted { kind, before, secret, after, .. } in planted().iter().filter(|planted| !planted.is_command) {
        let text = shown(&format!("{before}{secret}{after}\n"));
        let expected = masked(&[text.as_bytes()]);
        for (at, _) in text.char_indices() {
            let sequence = SEQUENCES[at % SEQUENCES.len()];
            let coloured = format!("{}{sequence}{}", &text[..at], &text[at..]);
            let seen = masked(&[coloured.as_bytes()]);
            assert_eq!(shown(&seen), shown(&expected), "{kind} at {at}");
            assert!(seen.contains(sequence), "{kind} at {at}: {seen:?}");
        }
        // One before each character.
        let coloured: String = text.chars().flat_map(|c| ['\x1b', '[', '3', '1', 'm', c]).collect();
        assert_eq!(shown(&masked(&[coloured.as_bytes()])), shown(&expected), "{kind}");
    }
}

#[test]
fn text_with_escape_sequences_and_no_secret_comes_through() {
    for text in [
        "\x1b[1mplain\x1b[0m and \x1b]0;title\x07more\x1b[2;3H there\x1b[\n\x1b\x1b[5",
        "tok\x1b[1men\x1b[0m kinds\x1b[3C, pass\x1b[Aed \x1bM\x1b7\x1b8 \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        "\x1bPq#0;2;0;0;0#0~~\x1b\\ sixel \x1b]never ended",
        "key\x1b[1m\x1b[2m\x1b[3m",
    ] {
        let text = text.as_bytes();
        for at in 0..=text.len() {
            assert_eq!(masked(&[&text[..at], &text[at..]]).as_bytes(), text, "cut at {at}");
        }
        assert_eq!(masked(&text.chunks(1).collect::<Vec<_>>()).as_bytes(), text);
    }
    // Sequences without end are held back up to a bound.
    let flood = format!("my token{}", "\x1b[1m".repeat(60_000));
    let mut redactor = Redactor::default();
    let mut out = Vec::new();
    redactor.push(flood.as_bytes(), &mut out);
    assert!(out.len() + (136 << 10) > flood.len(), "{} of {}", out.len(), flood.len());
    redactor.finish(&mut out);
    assert_eq!(out.len(), flood.len());
}

/// Large pieces are searched at once and pass unchanged where nothing is secret; small ones are not.
#[test]
fn coloured_output_is_masked_alike_however_much_of_it_comes_at_once() {
    const FRAGMENTS: [&str; 22] = [
        "\x1b[1;31merror\x1b[0m: ",
        "\x1b[38;2;1;22;133mwarn\x1b[m\x1b[K",
        "\x1b[32m.\x1b[0m",
        "\x1b[2K\r",
        "\x1b[3;4H",
        "\x1b[1A",
        "\x1b(B",
        "\x1b7",
        "\x1b",
        "\x1b[",
        "\x1b[31",
        "\x1b]8;;http://h/x\x1b\\link\x1b]8;;\x07",
        "\x1b]0;title",
        "\x1b[1mtok",
        "pass\x1b[0mword: ",
        "sk-",
        "correct \x1b[1mho",
        "\n",
        "some words that nobody has to read twice, ",
        "é",
        "a b ",
        "0123456789abcdef",
    ];
    let planted: Vec<Planted> = planted().into_iter().filter(|planted| !planted.is_command).collect();
    let mut masks = 0;
    let mut unmasked = 0;
    rounds(300, |random| {
        let mut text = String::new();
        let len = 1 << random.below(16);
        let secrets = random.below(3);
        while text.len() < len {
            let Planted { before, secret, after, .. } = &planted[random.below(planted.len())];
            match random.below(100) {
                0 if secrets > 0 => text.extend([before.as_str(), secret, after]),
                1 if secrets > 0 => text.extend([before.as_str(), "\x1b[1m", secret, "\x1b[0m"]),
                2 if secrets > 0 => text.extend(secret.chars().flat_map(|c| ["\x1b[31m".to_owned(), c.to_string()])),
                _ => text.push_str(FRAGMENTS[random.below(FRAGMENTS.len())]),
            }
        }
        let small = redact(text.as_bytes().chunks(100));
        for pieces in [vec![text.as_bytes()], text.as_bytes().chunks(4096).collect(), random.pieces(text.as_bytes())] {
            let large = redact(pieces);
            assert!(large == small, "{text:?} {}", sides(large.as_bytes(), small.as_bytes()));
        }
        (masks, unmasked) = (masks + usize::from(small != text), unmasked + usize::from(small == text));
    });
    assert!(masks > 0 && unmasked > 0, "{masks} and {unmasked}");
}

#[test]
fn what_a_sequence_carries_is_masked_too() {
    let link = "\x1b]8;;https://ann:hunter22@h/\x1b\\here\x1b]8;;\x1b\\\n";
    assert_eq!(masked(&[link.as_bytes()]), link.replace("hunter22", "«redacted:URL_PASSWORD»"));
}

#[test]
fn a_private_key_is_masked_whatever_stands_before_and_behind_its_lines() {
    let line = |at: usize| "MIIEvQ7kX0bZ+pL/".repeat(5)[at..at + 64].to_owned();
    let mut body: Vec<String> = (0..6).map(line).collect();
    body.insert(0, ["-----BEGIN ", "PRIVATE KEY-----"].concat());
    body.push(["-----END ", "PRIVATE KEY-----"].concat());
    for (before, behind) in [
        ("", ""),
        ("-", ""),
        ("+", ""),
        ("  \"", "\","),
        ("> ", ""),
        ("# ", ""),
        ("app_1  | ", ""),
        ("12:", ""),
        ("'", "\\n' +"),
    ] {
        let text: String = body.iter().map(|line| format!("{before}{line}{behind}\n")).collect();
        let whole = masked(&[text.as_bytes(), b"the end\n"]);
        assert!(!whole.contains("bZ+p") && whole.contains("«redacted:"), "{before:?}: {whole}");
        assert!(whole.ends_with("the end\n"), "{before:?}: {whole}");
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(masked(&[head, tail, b"the end\n"]), whole, "{before:?}, cut at {at}");
        }
    }
}
