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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(0, "command", "commands"), "0 commands");
        assert_eq!(counted(1, "process", "processes"), "1 process");
        assert_eq!(bytes(2), "2 bytes");
    }
}
