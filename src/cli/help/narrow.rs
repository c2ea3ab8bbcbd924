//! Help on a terminal that is narrower than its lines: paragraphs are filled anew, other lines are broken between words.
//!
//! Invariant: every word stays, in its order.

use crate::cli::look::columns_of;
use crate::cli::told::broken_behind;

/// The columns for which the help is written.
const COLUMNS: usize = 80;
/// The columns that an explanation needs beside its term. With fewer it stands below.
const BESIDE_MIN: usize = 20;

/// Lines of the help that belong together.
#[derive(Debug)]
struct Paragraph {
    /// The indentation of its lines after the first one, in the help.
    indent_before: Option<usize>,
    /// The same indentation on the terminal.
    indent: usize,
    text: String,
}

/// The help on a terminal of this width.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    if columns >= COLUMNS {
        return text.to_owned();
    }
    let (mut fitted, mut open) = (String::new(), None::<Paragraph>);
    for line in text.lines() {
        let trimmed = line.trim_start();
        let blanks = line.len() - trimmed.len();
        let begins = trimmed.is_empty() || trimmed.starts_with(['#', '|']) || trimmed.starts_with("* ");
        if let Some(paragraph) = open.as_mut().filter(|known| !begins && known.indent_before == Some(blanks)) {
            paragraph.text = [&paragraph.text, " ", trimmed].concat();
            continue;
        }
        close(open.take(), columns, &mut fitted);
        open = Some(begun(line, blanks, columns, &mut fitted));
    }
    close(open, columns, &mut fitted);
    fitted
}

/// The paragraph that begins with this line. A term without room for its explanation is written at once.
fn begun(line: &str, blanks: usize, columns: usize, fitted: &mut String) -> Paragraph {
    let text = line.to_owned();
    let trimmed = &line[blanks..];
    if trimmed.starts_with("* ") {
        return Paragraph { indent_before: Some(blanks + 2), indent: blanks + 2, text };
    }
    if let Some(gap) = trimmed.find("  ") {
        let explanation = trimmed[gap..].trim_start();
        let at = columns_of(line) - columns_of(explanation);
        let indent_before = Some(at);
        if at + BESIDE_MIN <= columns {
            return Paragraph { indent_before, indent: at, text };
        }
        fitted.push_str(&broken_behind(blanks + 2, line[..blanks + gap].trim_end(), columns));
        let indent = blanks + 4;
        return Paragraph { indent_before, indent, text: " ".repeat(indent) + explanation };
    }
    match blanks {
        0 if trimmed.is_empty() || trimmed.starts_with(['#', '|']) => {
            Paragraph { indent_before: None, indent: 2, text }
        }
        0 => Paragraph { indent_before: Some(0), indent: 0, text },
        blanks => Paragraph { indent_before: None, indent: blanks + 2, text },
    }
}

fn close(open: Option<Paragraph>, columns: usize, fitted: &mut String) {
    if let Some(Paragraph { indent, text, .. }) = open {
        fitted.push_str(&broken_behind(indent, &text, columns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help::PAGES;

    #[test]
    fn every_line_of_every_page_fits_and_no_word_is_lost() {
        for page in &PAGES {
            assert_eq!(fitted(page.text, 80), page.text);
            for columns in [40, 60, 79] {
                let shown = fitted(page.text, columns);
                for line in shown.lines() {
                    // A long word behind a term of one or two.
                    let has_one_word = line.split_whitespace().count() <= 3;
                    assert!(columns_of(line) <= columns || has_one_word, "{} at {columns}: {line}", page.name);
                }
                assert!(shown.split_whitespace().eq(page.text.split_whitespace()), "{} at {columns}", page.name);
            }
        }
    }

    #[test]
    fn paragraphs_are_filled_and_explanations_stand_behind_their_terms() {
        let text = "One two three four five six seven\neight.\n\nNine.\n\n* A point of some length\n  and its end.\n\n    127  \
                    not found, or it is no\n         program\n    a-long-word-of-all  what it says\n";
        let expected = "One two three four five six\nseven eight.\n\nNine.\n\n* A point of some length and\n  its end.\n\n    \
                        127  not found, or it is no\n         program\n    a-long-word-of-all\n        what it says\n";
        assert_eq!(fitted(text, 31), expected);
    }
}
