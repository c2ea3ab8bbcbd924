//! Counts in words.

/// A number with its noun in the singular or the plural: `1 command`, `2 commands`.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A number of bytes: `1 byte`, `2 bytes`.
#[must_use]
pub fn bytes(number: u64) -> String {
    counted(number, "byte", "bytes")
}

/// A number with a blank between each three digits: `3 000 000`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// The note at the end of a line that leaves out this many bytes.
#[must_use]
pub fn left_out(bytes: u64) -> String {
    format!(" ⋯ +{} bytes", grouped(bytes))
}

/// A number of bytes, rounded where it is long: `532 bytes`, `21.9 MB`.
#[must_use]
pub fn size(number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.into_iter().find(|&(unit, _)| number >= unit) {
        Some((unit, name)) => format!("{}.{} {name}", number / unit, number % unit / (unit / 10)),
        None => bytes(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(0, "command", "commands"), "0 commands");
        assert_eq!(counted(1, "process", "processes"), "1 process");
        assert_eq!(bytes(2), "2 bytes");
        assert_eq!([size(1), size(999), size(21_988_000)], ["1 byte", "999 bytes", "21.9 MB"]);
    }
}
