//! Secrets of many kinds, in output and in commands, and lines that look a little like them.

use rexec_host::text::redact::Redactor;
use rexec_host::text::sanitize::{Mode, Sanitizer};

use super::command;

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
