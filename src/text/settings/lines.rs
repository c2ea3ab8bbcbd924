//! Ends of lines and indentation of a text.

/// The line ending of this text: that of its first line.
pub(super) fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The beginning of the line that contains this byte.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The beginning of the next line, or the end of the text.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// The blanks at the beginning of the line that contains this byte.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let start = line_start(text, at);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The text to insert before appended lines: the missing end of the last line, and an empty line.
pub(super) fn before_appended(text: &str) -> String {
    let end = line_end(text);
    if text.trim().is_empty() {
        String::new()
    } else if text.ends_with('\n') {
        end.to_owned()
    } else {
        end.repeat(2)
    }
}
