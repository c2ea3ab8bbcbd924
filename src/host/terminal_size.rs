//! The size of a command's terminal.

use crate::limits;
use crate::sys::pty;

/// The size that the human chose; else the console's, and at least one at which programs do not cut what an agent needs.
pub(super) fn terminal_size(chosen: Option<(u16, u16)>, console: Option<pty::Size>) -> pty::Size {
    match (chosen, console) {
        (Some((cols, rows)), _) => pty::Size { rows, cols },
        (None, None) => pty::Size { rows: limits::PTY_ROWS, cols: limits::PTY_COLS },
        (None, Some(console)) => {
            let rows = console.rows.clamp(limits::PTY_ROWS, limits::WINDOW_ROWS_MAX);
            pty::Size { rows, cols: console.cols.clamp(limits::PTY_COLS, limits::WINDOW_COLS_MAX) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_as_large_as_the_console_and_no_smaller_than_an_agent_needs() {
        let size = |cols, rows| pty::Size { rows, cols };
        let least = size(limits::PTY_COLS, limits::PTY_ROWS);
        assert_eq!(terminal_size(None, None), least);
        assert_eq!(terminal_size(None, Some(size(80, 24))), least);
        assert_eq!(terminal_size(None, Some(size(200, 24))), size(200, limits::PTY_ROWS));
        assert_eq!(terminal_size(None, Some(size(80, 60))), size(limits::PTY_COLS, 60));
        let most = size(limits::WINDOW_COLS_MAX, limits::WINDOW_ROWS_MAX);
        assert_eq!(terminal_size(None, Some(size(5_000, 5_000))), most);
        assert_eq!(terminal_size(Some((20, 10)), Some(size(200, 60))), size(20, 10), "a person knows better");
    }
}
