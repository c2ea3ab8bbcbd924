//! How the console asks for the human's attention while its window is out of sight: the window's title, the bell, a
//! notification on the desktop.
//!
//! Invariants: a terminal gets only sequences that its name stands for, but for the bell, which all know; the title from
//! before is put back; only [`SafeText`] is shown.

use crate::text::escape::escape_line;
use crate::text::safe_text::SafeText;

/// Saves the window's title on the terminal's stack, and takes it back (XTWINOPS 22 and 23, xterm).
const PUSH_TITLE: &[u8] = b"\x1b[22;2t";
const POP_TITLE: &[u8] = b"\x1b[23;2t";
const BELL: u8 = 7;
/// The longest title and the longest notification, columns.
const COLUMNS_MAX: usize = 120;

/// A sequence that shows a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notification {
    /// OSC 9: a text.
    Nine,
    /// OSC 777: a heading and a text.
    SevenSevenSeven,
}

/// A terminal's means to get attention.
#[derive(Debug, Default)]
pub struct Attention {
    takes_titles: bool,
    notification: Option<Notification>,
    title: Option<SafeText>,
}

impl Attention {
    /// A terminal by its TERM and its TERM_PROGRAM.
    #[must_use]
    pub fn of(term: &str, program: &str) -> Self {
        const TITLED: [&str; 16] = [
            "xterm",
            "tmux",
            "screen",
            "alacritty",
            "foot",
            "kitty",
            "wezterm",
            "konsole",
            "gnome",
            "vte",
            "rxvt",
            "ghostty",
            "contour",
            "mlterm",
            "st-",
            "iterm",
        ];
        let is_any_of = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
        let notification = match program {
            "iTerm.app" | "WezTerm" | "ghostty" => Some(Notification::Nine),
            "tmux" => None,
            _ if is_any_of(&["xterm-kitty", "xterm-ghostty", "wezterm"]) => Some(Notification::Nine),
            _ if is_any_of(&["foot", "rxvt"]) => Some(Notification::SevenSevenSeven),
            _ => None,
        };
        Self { takes_titles: is_any_of(&TITLED), notification, title: None }
    }

    pub fn entitle(&mut self, title: SafeText, out: &mut Vec<u8>) {
        if !self.takes_titles || self.title.as_ref() == Some(&title) {
            return;
        }
        if self.title.is_none() {
            out.extend_from_slice(PUSH_TITLE);
        }
        write_text(b"\x1b]2;", &title, out);
        self.title = Some(title);
    }

    /// Rings, and shows a notification if the terminal can.
    pub fn ring(&self, text: &SafeText, out: &mut Vec<u8>) {
        out.push(BELL);
        match self.notification {
            Some(Notification::Nine) => write_text(b"\x1b]9;", text, out),
            Some(Notification::SevenSevenSeven) => write_text(b"\x1b]777;notify;rexec;", text, out),
            None => {}
        }
    }

    /// Restores the title from before.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if self.title.take().is_some() {
            out.extend_from_slice(POP_TITLE);
        }
    }

    /// Takes back the title that a host had on this terminal when it was killed. Without one, this does nothing.
    pub fn clean_up(&self, out: &mut Vec<u8>) {
        if self.takes_titles {
            out.extend_from_slice(POP_TITLE);
        }
    }
}

fn write_text(start: &[u8], text: &SafeText, out: &mut Vec<u8>) {
    let text = escape_line(text, COLUMNS_MAX);
    [start, text.as_bytes(), &[BELL]].into_iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(act: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        act(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_title_is_written_when_it_changes_and_taken_back() {
        let mut xterm = Attention::of("xterm-256color", "");
        assert_eq!(written(|out| xterm.leave(out)), "");
        assert_eq!(written(|out| xterm.entitle("rexec: 1 run".into(), out)), "\x1b[22;2t\x1b]2;rexec: 1 run\x07");
        assert_eq!(written(|out| xterm.entitle("rexec: 1 run".into(), out)), "");
        assert_eq!(written(|out| xterm.entitle("rexec".into(), out)), "\x1b]2;rexec\x07");
        assert_eq!(written(|out| xterm.leave(out)), "\x1b[23;2t");
        assert_eq!(written(|out| Attention::of("linux", "").entitle("rexec".into(), out)), "");
    }

    #[test]
    fn each_terminal_gets_what_it_knows() {
        let rung = |term, program| {
            written(|out| Attention::of(term, program).ring(&SafeText::escaped("#4 a\x1b]0;\x07b"), out))
        };
        assert_eq!(rung("xterm-256color", ""), "\x07");
        assert_eq!(rung("tmux-256color", "tmux"), "\x07");
        for (term, program) in [("xterm-256color", "iTerm.app"), ("xterm-kitty", ""), ("xterm-ghostty", "ghostty")] {
            assert!(rung(term, program).starts_with("\x07\x1b]9;#4 a"), "{term}");
        }
        let foot = rung("foot", "");
        assert!(foot.starts_with("\x07\x1b]777;notify;rexec;#4 a") && foot.matches('\x1b').count() == 1, "{foot:?}");
    }
}
