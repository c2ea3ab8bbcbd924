//! A block of lines of rexec's between two marks, in a file of other lines such as a shell profile.

use super::lines::{before_appended, line_end, line_start, next_line};
use super::{SettingEdit, SettingsError, Splice};

/// The line before the block.
pub const OPEN: &str = "# >>> rexec init >>>";
/// The line behind it.
pub const CLOSE: &str = "# <<< rexec init <<<";

/// Where the block is, with its marks and the end of its last line.
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

/// The lines of the block, if the text has one.
///
/// # Errors
/// The block has no end.
pub fn lines(text: &str) -> Result<Option<Vec<&str>>, SettingsError> {
    let inside = |lines: &str| lines.lines().count().saturating_sub(2);
    Ok(find(text)?.map(|block| {
        let block = &text[block];
        block.lines().skip(1).take(inside(block)).collect()
    }))
}

/// Makes these the lines of the block, which is appended if the text has none. `None` if they are there.
///
/// # Errors
/// The block has no end.
pub fn set(text: &str, lines: &[String]) -> Result<Option<SettingEdit>, SettingsError> {
    let end = line_end(text);
    let all = [&[OPEN.to_owned()], lines, &[CLOSE.to_owned()]].concat();
    let block: String = all.iter().map(|line| format!("{line}{end}")).collect();
    let splice = match find(text)? {
        Some(range) if text[range.clone()].trim_end() == block.trim_end() => return Ok(None),
        Some(range) => Splice::replace(text, range, block),
        None => Splice::insert(text.len(), before_appended(text) + &block),
    };
    Ok(Some(SettingEdit { splices: vec![splice], was: None, made: 0 }))
}

/// The text without the block; `None` if it has none. `edit` is what has put it there.
///
/// # Errors
/// The block has no end.
pub fn unset(text: &str, edit: &SettingEdit) -> Result<Option<String>, SettingsError> {
    let Some(block) = find(text)? else { return Ok(None) };
    // What the edit has put before the block goes with it, if it is still there.
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
        let lines = vec!["alias gemini='rexec run -- gemini'".to_owned()];
        for text in ["", "a\n", "a", "a\r\nb\r\n", "\n\n", "# >>> rexec init >>> not\n"] {
            let edit = set(text, &lines).unwrap().unwrap();
            let with = super::super::applied(text, &edit.splices).unwrap();
            assert_eq!(set(&with, &lines).unwrap(), None, "{text:?}");
            assert_eq!(super::lines(&with).unwrap().unwrap(), lines);
            assert_eq!(unset(&with, &edit).unwrap().as_deref(), Some(text));
            let more = format!("x\n{with}y\n");
            let kept = unset(&more, &edit).unwrap().unwrap();
            assert!(kept.starts_with(&format!("x\n{text}")) && kept.ends_with("\ny\n"), "{kept:?}");
        }
        assert_eq!(unset("a\n", &SettingEdit::default()).unwrap(), None);
        assert_eq!(set("a\n# >>> rexec init >>>\n", &lines).unwrap_err().line, 2);
    }
}
