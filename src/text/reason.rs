//! System errors in words.

/// The text of an error without the number that the standard library appends: `No space left on device`.
#[must_use]
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}
