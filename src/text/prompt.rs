//! The words of a prompt as the host's own lines show them, and whether they ask for a secret.

use super::escape::escape_line;
use super::redact::is_secret_name;
use super::sanitize::{Mode, Sanitizer};

/// The words of a prompt, from the last line that a command wrote: on one line of at most `columns_max` columns. Empty
/// where a full-screen program has drawn, because that is not a line.
#[must_use]
pub fn prompt_words(line: &[u8], columns_max: usize) -> String {
    if is_drawing(line) {
        return String::new();
    }
    escape_line(stripped(line).trim(), columns_max)
}

fn stripped(output: &[u8]) -> String {
    let (mut strip, mut text) = (Sanitizer::new(Mode::Strip), Vec::new());
    strip.push(output, &mut text);
    strip.finish(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The words in quotes, which a quote of the program's own cannot end.
#[must_use]
pub fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Words for secrets in other languages, and in prompts whose words name no variable.
const ASKED: [&str; 24] = [
    "passwort",
    "kennwort",
    "contraseña",
    "mot de passe",
    "senha",
    "palavra-passe",
    "wachtwoord",
    "hasło",
    "lösenord",
    "adgangskode",
    "passord",
    "salasana",
    "heslo",
    "jelszó",
    "parola",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "암호",
    "verification code",
    "one-time",
    "seed phrase",
    "mnemonic",
];

/// Returns true if a prompt asks for a secret, by the end of what a command has written: a secret's name stands in its
/// last line, or in the line before, where the last one has no letters.
#[must_use]
pub fn asks_for_secret(tail: &[u8]) -> bool {
    let text = stripped(tail);
    let mut lines = text.split(['\n', '\r']).rev().filter(|line| !line.trim().is_empty());
    let last = lines.next().unwrap_or_default();
    let line = if last.contains(char::is_alphanumeric) { last } else { lines.next().unwrap_or_default() };
    let lower = line.to_lowercase();
    if ASKED.iter().any(|word| lower.contains(word)) {
        return true;
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty()).collect();
    let is_key = |at: usize| matches!(words[at].to_lowercase().as_str(), "key" | "keys");
    // "Press any key"
    let is_pressed =
        |at: usize| at > 0 && matches!(words[at - 1].to_lowercase().as_str(), "any" | "a" | "enter" | "return");
    (0..words.len()).any(|at| {
        let is_name = is_secret_name(words[at].as_bytes()) && !(is_key(at) && is_pressed(at));
        is_name || (at > 0 && is_key(at) && !is_pressed(at) && is_secret_name(words[at - 1..=at].join("_").as_bytes()))
    })
}

/// Returns true if a CSI sequence moves the cursor to a row of the screen, or erases the screen.
fn is_drawing(line: &[u8]) -> bool {
    let sequences = memchr::memmem::find_iter(line, b"\x1b[").map(|at| &line[at + 2..]);
    let finals = sequences.filter_map(|rest| rest.iter().find(|byte| (b'@'..=b'~').contains(byte)));
    finals.into_iter().any(|last| matches!(last, b'H' | b'f' | b'd' | b'J' | b'r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_left() {
        assert_eq!(prompt_words(b"\x1b[1m[sudo] password for ann:\x1b[0m ", 40), "[sudo] password for ann:");
        assert_eq!(prompt_words("\u{202e}no? ".as_bytes(), 40), "\\u{202e}no?");
        assert_eq!(prompt_words(b"0123456789", 5), "0123…");
        assert_eq!(prompt_words(b"~\x1b[24;1H~", 40), "", "a screen");
        assert_eq!(quoted("a\" · \\b"), r#""a\" · \\b""#);
    }

    #[test]
    fn a_prompt_for_a_secret_is_known_by_its_words() {
        for asks in [
            "[sudo] password for ann: ",
            "Password:",
            "done\nEnter your API key\n> ",
            "Enter passphrase for key '/people/ann/.ssh/id': ",
            "GITHUB_TOKEN? ",
            "one\r\nPIN: ",
            "Passwort für ann: ",
            "\x1b[1mPassword\x1b[0m: ",
            "Enter your API key:\r\n\x1b[1m> \x1b[0m",
            "Password: \r\n\x1b[?2004h\x1b[C",
            "pass? ",
        ] {
            assert!(asks_for_secret(asks.as_bytes()), "{asks:?}");
        }
        for asks in ["name? ", "Press any key", "Password: \nContinue? [y/N] ", "", "> ", "a? ", "Are you sure? "] {
            assert!(!asks_for_secret(asks.as_bytes()), "{asks:?}");
        }
    }
}
