//! Lengths of time as people write them: `500ms`, `1h30m`, `2d`.

use std::time::Duration;

/// A length of time: numbers with their units; `None` if the text is something else.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => 0.001,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 7.0 * 86_400.0,
            _ => return None,
        };
        rest = &rest[letters..];
        total = total.checked_add(Duration::try_from_secs_f64(number * unit).ok()?)?;
    }
    (!text.is_empty()).then_some(total)
}
