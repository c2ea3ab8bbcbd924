//! A block of lines of rexec's between two marks, in a file of other lines.

use super::lines::{line_end, line_start, next_line};
use super::{SettingEdit, SettingsError, Splice};

/// The line before the block.
pub(super) const OPEN: &str = "# >>> rexec init >>>";
/// The line after it.
pub(super) const CLOSE: &str = "# <<< rexec init <<<";

/// Finds the block, with its marks and the end of its last line.
fn find(text: &str) -> Result<Option<std::ops::Range<usize>>, SettingsError> {
    let is_line = |at: usize, mark: &str| {
        line_start(text, at) == at && text[at + mark.len()..next_line(text, at)].trim().is_empty()
    };
    let mark = |from: usize, mark: &'static str| {
        text[from..].match_indices(mark).map(|(at, _)| from + at).find(|at| is_line(*at, mark))
    };
    let Some(open) = mark(0, OPEN) else { return Ok(None) };
    match mark(open, CLOSE) {
        Some(close) => Ok(Some(open..next_line(text, close))),
        None => Err(SettingsError::at(text, open, format!("the block that begins here has no line `{CLOSE}`"))),
    }
}

/// Returns true if the text has a whole block.
#[must_use]
pub fn is_in(text: &str) -> bool {
    find(text).is_ok_and(|block| block.is_some())
}

/// Appends a block with these lines. No empty line precedes it, because a text above may own that.
pub(super) fn appended(text: &str, lines: &str) -> Splice {
    let end = line_end(text);
    let is_line = text.trim_start_matches('\u{feff}').is_empty() || text.ends_with('\n');
    let before = if is_line { "" } else { end };
    Splice::insert(text.len(), format!("{before}{OPEN}\n{lines}{CLOSE}\n").replace("\r\n", "\n").replace('\n', end))
}

/// The text without the block; `None` if it has none. `edit` has put it there.
///
/// # Errors
/// The block has no end.
pub fn unset(text: &str, edit: &SettingEdit) -> Result<Option<String>, SettingsError> {
    let Some(block) = find(text)? else { return Ok(None) };
    // The addition of the edit before the block goes with it, if it is still there.
    let added = edit.splices.first().map_or("", |splice| splice.added.as_str());
    let lead = added.find(OPEN).map_or("", |at| &added[..at]);
    let before = &text[..block.start];
    let behind = &text[block.end..];
    let before = before.strip_suffix(lead).unwrap_or(before);
    // Two lines never become one.
    let is_joined = !behind.is_empty() && !before.is_empty() && !before.ends_with('\n');
    Ok(Some([before, if is_joined { line_end(text) } else { "" }, behind].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_comes_and_goes_without_a_trace() {
        for text in ["", "a\n", "a", "a\r\nb\r\n", "\n\n", "# >>> rexec init >>> not\n"] {
            let splice = appended(text, "alias gemini='rexec run -- gemini'\n");
            let with = splice.apply(text).unwrap();
            assert!(is_in(&with) && !is_in(text), "{text:?}");
            let edit = SettingEdit { splices: vec![splice], ..SettingEdit::default() };
            assert_eq!(unset(&with, &edit).unwrap().as_deref(), Some(text));
            let more = format!("x\n{with}y\n");
            let kept = unset(&more, &edit).unwrap().unwrap();
            assert!(kept.starts_with(&format!("x\n{text}")) && kept.ends_with("\ny\n"), "{kept:?}");
        }
        assert_eq!(unset("a\n", &SettingEdit::default()).unwrap(), None);
        assert_eq!(unset("a\n# >>> rexec init >>>\n", &SettingEdit::default()).unwrap_err().line, 2);
    }
}
