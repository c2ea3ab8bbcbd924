//! Finds in a command's output that a program could not listen on a port, because another one already does (EADDRINUSE,
//! bind(2)), and on which port that may have been.
//!
//! Programs say it in words of their own, and some do not name the port, so every number near those words is a
//! candidate, and so is every number in the command. The caller finds out which of them is held.
//!
//! Invariant: the kept output is bounded, and only a small part of a flood is searched.

use memchr::memmem;

use super::escape::escape_line;
use super::name::name_of;
use crate::limits;

/// The common part of all messages: `Address already in use`, `Port 3000 is in use`, `Connection in use`.
const WORDS: &[u8] = b" in use";
/// The name of the error, where a program does not translate it.
const NAME: &[u8] = b"EADDRINUSE";
/// Bytes kept before the words, and after them. Node.js names the port again in the ten lines below.
const NEAR_BYTES: usize = 1_024;
/// Bytes searched at the end of a piece of output.
const SEARCHED_BYTES: usize = 16 << 10;
/// The width of a program's name, columns. The kernel keeps 15 bytes.
const PROGRAM_COLUMNS: usize = 32;
const CANDIDATES_MAX: usize = 16;

/// The messages about addresses in use in the output of one command.
#[derive(Debug, Default)]
pub struct BindFailure {
    /// The output around the last such words; empty if there were none.
    near: Vec<u8>,
    /// Bytes of output to come that are still near those words.
    following: usize,
}

impl BindFailure {
    /// Takes the command's next output.
    pub fn push(&mut self, bytes: &[u8]) {
        // A program that writes more than this at once after those words has not failed by them.
        let from = bytes.len().saturating_sub(SEARCHED_BYTES);
        // Not from the end: only the search forwards looks at many bytes at once.
        let last = |words| memmem::find_iter(&bytes[from..], words).last().map(|at| from + at);
        if let Some(at) = last(WORDS).max(last(NAME)) {
            let end = bytes.len().min(at + NEAR_BYTES);
            self.near.clear();
            self.near.extend_from_slice(&bytes[at.saturating_sub(NEAR_BYTES)..end]);
            self.following = NEAR_BYTES - (end - at);
        } else if self.following > 0 {
            let next = &bytes[..bytes.len().min(self.following)];
            self.near.extend_from_slice(next);
            self.following -= next.len();
        }
    }

    /// The ports that the message may be about, those in the output first. None if no address was in use.
    #[must_use]
    pub fn candidates(&self, command: &[u8]) -> Vec<u16> {
        let mut found: Vec<u16> = Vec::new();
        if self.near.is_empty() {
            return found;
        }
        for port in numbers(&self.near).chain(numbers(command)) {
            if !found.contains(&port) && found.len() < CANDIDATES_MAX {
                found.push(port);
            }
        }
        found
    }
}

/// `port 3000 is held by #7 Claude Code (node, process 4711)`, for the human and for the caller. Neither name can end
/// the line.
#[must_use]
pub fn holder_line(port: u16, run: u64, whoami: &str, (program, pid): &(String, i32)) -> String {
    let whoami = name_of(whoami, limits::WHOAMI_COLUMNS);
    format!("port {port} is held by #{run} {whoami} ({}, process {pid})", escape_line(program, PROGRAM_COLUMNS))
}

/// The numbers in a text that can be ports. Digits within a word or a version are none.
fn numbers(text: &[u8]) -> impl Iterator<Item = u16> {
    text.split(|&byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))).filter_map(|word| {
        let word = word.strip_suffix(b".").unwrap_or(word);
        let digits = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().filter(|&port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_the_words_of_many_programs() {
        for (output, command, port) in [
            ("Error: listen EADDRINUSE: address already in use :::3000\n    at Server (node:net:1817:16)", "", 3000),
            ("listen tcp 127.0.0.1:8080: bind: address already in use\n", "", 8080),
            ("[emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)", "", 80),
            ("Address already in use - bind(2) for \"127.0.0.1\" port 4567 (Errno::EADDRINUSE)", "", 4567),
            ("Address already in use\nPort 5000 is in use by another program.", "", 5000),
            ("Web server failed to start. Port 8081 was already in use.\n", "", 8081),
            ("while attempting to bind on address ('127.0.0.1', 8000): address already in use", "", 8000),
            ("[ERROR] Connection in use: ('127.0.0.1', 8001)", "", 8001),
            ("Port 5173 is in use, trying another one...", "", 5173),
            ("OSError: [Errno 98] Address already in use\n", "python3 -m http.server 8123", 8123),
            ("Error: That port is already in use.\n", "python manage.py runserver 127.0.0.1:8000", 8000),
            ("Os { code: 98, kind: AddrInUse, message: \"Address already in use\" }", "PORT=9000 cargo run", 9000),
        ] {
            let mut failure = BindFailure::default();
            failure.push(output.as_bytes());
            let found = failure.candidates(command.as_bytes());
            assert!(found.contains(&port), "{output}: {found:?}");
        }
    }

    #[test]
    fn what_comes_in_pieces_is_near_and_other_output_is_not() {
        let mut failure = BindFailure::default();
        failure.push(b"listening on 1234\n");
        assert!(failure.candidates(b"serve 80").is_empty(), "nothing is in use");
        failure.push(b"Error: listen EADDRINUSE\n");
        failure.push(b"  port: 3000\n}\n");
        failure.push(&[b'.'; 2_000]);
        failure.push(b"7777\n");
        assert_eq!(failure.candidates(b"v1.22 x86 -p 3001 70000 0"), [3000_u16, 3001]);
        assert!(failure.near.len() <= 2 * NEAR_BYTES);
        let many: String = (1..100).map(|port| format!("{port} ")).collect();
        failure.push(format!("{many} in use").as_bytes());
        assert_eq!(failure.candidates(b"").len(), CANDIDATES_MAX);
        let line = holder_line(80, 7, "a\nb", &("x\x1by".to_owned(), 9));
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}
