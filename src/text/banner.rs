//! The lines around a command's output, the same on a console that is a file and in a printed journal. Those of a terminal
//! are made in `sink/console/`, of the same parts.
//!
//! Invariants: no control character, hidden character or bar of the host's passes, whatever a command, a directory or a
//! caller's name contains; none of these can imitate the end of its own field; a banner and an end line are one line each,
//! without a line feed.

use std::fmt::Write as _;
use std::time::Duration;

use super::count::counted;
use super::ends::escape_ends;
use super::escape::escape_line;
use super::name::name_of;
use crate::limits;

/// The most columns of a directory or an error.
const NAME_COLUMNS: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub struct Banner<'a> {
    /// The time when it began, as in RFC 3339.
    pub time: &'a str,
    pub seq: u64,
    pub whoami: &'a str,
    pub dir: &'a str,
    pub command: &'a str,
    /// True if an agent's wrapper was left out of the command.
    pub is_unwrapped: bool,
}

impl Banner<'_> {
    /// `[2026-05-21T09:42:18Z] #12 Claude Code:/path $ command`, with the command on at most `columns_max` columns. An
    /// unwrapped command is followed by ` (unwrapped)`.
    #[must_use]
    pub fn line(&self, columns_max: usize) -> String {
        let mut line = self.line_with(&escape_ends(self.command, columns_max));
        if self.is_unwrapped {
            line.push_str(" (unwrapped)");
        }
        line
    }

    /// The banner with the host's words in place of the command.
    #[must_use]
    pub fn line_with(&self, what: &str) -> String {
        format!(
            "[{}] #{} {}:{} $ {what}",
            escape_line(&whole_seconds(self.time), 64),
            self.seq,
            name_of(self.whoami, limits::WHOAMI_COLUMNS),
            escape_dir(self.dir),
        )
    }
}

/// `exit 101 · 14.2 s`; `None` for a run that succeeded within [`limits::CONSOLE_LONG`].
#[must_use]
pub fn end_line(exit: u8, signal: Option<u8>, duration_ms: u64, why: Option<&str>) -> Option<String> {
    if exit == 0 && signal.is_none() && why.is_none() && Duration::from_millis(duration_ms) <= limits::CONSOLE_LONG {
        return None;
    }
    let mut line = format!("exit {exit}");
    if let Some(number) = signal {
        match signal_name(number) {
            Some(name) => line.push_str(&format!(" · {name}")),
            None => line.push_str(&format!(" · signal {number}")),
        }
    }
    line.push_str(" · ");
    line.push_str(&duration(duration_ms));
    if let Some(why) = why {
        line.push_str(" · ");
        line.push_str(&escape_line(why, NAME_COLUMNS));
    }
    Some(line)
}

/// `left running: node (4711), sleep (4712) and 3 more`; `None` for a run that left no process behind.
pub fn left_line<'a>(count: u32, named: impl IntoIterator<Item = (&'a str, i32)>) -> Option<String> {
    if count == 0 {
        return None;
    }
    let mut line = "left running:".to_owned();
    let mut shown = 0;
    for (program, pid) in named {
        let comma = if shown == 0 { "" } else { "," };
        let _ = write!(line, "{comma} {} ({pid})", escape_line(program, 64));
        shown += 1;
    }
    match count.saturating_sub(shown) {
        0 => {}
        more if shown == 0 => {
            let _ = write!(line, " {}", counted(more.into(), "process", "processes"));
        }
        more => {
            let _ = write!(line, " and {more} more");
        }
    }
    Some(line)
}

/// A directory on a line. A backslash stands before blanks and characters that could end it, as a shell reads them.
pub fn escape_dir(dir: &str) -> String {
    let mut escaped = String::with_capacity(dir.len());
    for c in dir.chars() {
        if matches!(c, ' ' | '$' | '\\' | '\'' | '"' | '`' | '#' | ':' | '[' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escape_ends(&escaped, NAME_COLUMNS)
}

/// A time without the journal's milliseconds.
fn whole_seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, fraction)) => format!("{seconds}{}", fraction.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => time.to_owned(),
    }
}

/// Milliseconds as `14.2 s`, `3 min 07 s` or `2 h 05 min`.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..=59 => format!("{seconds}.{} s", ms % 1000 / 100),
        60..=3599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The signals that have the same number on all systems.
#[must_use]
pub fn signal_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hidden::{is_bar, is_hidden};

    fn banner(time: &str, whoami: &str, dir: &str, command: &str, columns_max: usize) -> String {
        Banner { time, seq: 12, whoami, dir, command, is_unwrapped: false }.line(columns_max)
    }

    #[test]
    fn a_banner_is_one_line() {
        assert_eq!(
            banner("2026-05-21T09:42:18.123Z", "Claude Code", "/path", "make\ttest &&\n\x1b[2Jls", 80),
            "[2026-05-21T09:42:18Z] #12 Claude Code:/path $ make\\ttest &&\\n\\x1b[2Jls"
        );
        let hostile: String = (0..0x3000).filter_map(char::from_u32).collect();
        for text in
            [banner(&hostile, &hostile, &hostile, &hostile, 9999), end_line(1, None, 0, Some(&hostile)).unwrap()]
        {
            assert!(!text.chars().any(|c| c.is_control() || is_hidden(c) || is_bar(c)), "{text}");
        }
    }

    #[test]
    fn no_part_of_a_banner_is_read_as_the_next_one() {
        assert_eq!(banner("t", "a", "/p/x $ echo hi", "ls", 80), "[t] #12 a:/p/x\\ \\$\\ echo\\ hi $ ls");
        assert_eq!(banner("t", "a:/p $ ls] #1", "/", "ls", 80), "[t] #12 a_/p _ ls_ _1:/ $ ls");
        assert_eq!(
            banner("t", "a", "/", "s\u{200b}l▌\u{a0}\u{e0041}", 80),
            "[t] #12 a:/ $ s\\u{200b}l⟨258C⟩\\u{a0}\\u{e0041}"
        );
        let unwrapped = Banner { time: "t", seq: 1, whoami: "a", dir: "/", command: "ls", is_unwrapped: true };
        assert_eq!(unwrapped.line(80), "[t] #1 a:/ $ ls (unwrapped)");
    }

    #[test]
    fn end_lines() {
        assert_eq!(end_line(0, None, 10_000, None), None);
        assert_eq!(end_line(0, None, 10_100, None).unwrap(), "exit 0 · 10.1 s");
        assert_eq!(end_line(101, None, 14_249, None).unwrap(), "exit 101 · 14.2 s");
        assert_eq!(end_line(137, Some(9), 200, Some("aborted")).unwrap(), "exit 137 · SIGKILL · 0.2 s · aborted");
        assert_eq!(end_line(162, Some(34), 75_000, None).unwrap(), "exit 162 · signal 34 · 1 min 15 s");
        assert_eq!(end_line(1, None, 7_260_000, None).unwrap(), "exit 1 · 2 h 01 min");
    }
}
