//! Choices for a command: by its caller in `REXEC_TTY` and `REXEC_SANITIZE`, and by the person who starts the host with
//! `--tty` and `--sanitize`, for callers that choose nothing.

/// The descriptors among 1 and 2 that are the command's terminal. It has a controlling terminal in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tty {
    /// Those that are terminals of its caller. A pipe stands for anything else.
    #[default]
    Auto,
    /// Descriptor 1; and 2, if its caller has one file for both, or terminals.
    Always,
    /// None.
    Never,
}

/// The treatment of the output on its way to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sanitize {
    Raw,
    /// Deletes escape sequences and control characters.
    Strip,
    /// Resolves redraws to the text that a person would see at the end.
    #[default]
    Collapse,
    /// Deletes escape sequences and the earlier states of rewritten lines. Everything else stays unchanged.
    Tidy,
}

impl Tty {
    /// Every choice, in the order of the wire's numbers.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];
    pub const WORDS: &'static str = "auto, always, never";

    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            b"auto" => Some(Self::Auto),
            b"always" => Some(Self::Always),
            b"never" => Some(Self::Never),
            _ => None,
        }
    }
}

impl Sanitize {
    /// Every choice, in the order of the wire's numbers.
    pub const ALL: [Self; 4] = [Self::Raw, Self::Strip, Self::Collapse, Self::Tidy];
    pub const WORDS: &'static str = "raw, strip, collapse, tidy";

    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            b"raw" => Some(Self::Raw),
            b"strip" => Some(Self::Strip),
            b"collapse" => Some(Self::Collapse),
            b"tidy" => Some(Self::Tidy),
            _ => None,
        }
    }
}

/// The size of a caller's part of its command's output, in `REXEC_BUDGET` and `--budget`: bytes, or `K` or `M` of them.
/// Zero means all of it.
#[must_use]
pub fn budget(word: &[u8]) -> Option<u32> {
    let (digits, unit) = match word.split_last()? {
        _ if matches!(word, b"off" | b"0") => return Some(0),
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (word, 1),
    };
    let number = digits.iter().try_fold(0_u32, |number, digit| {
        let value = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(value)
    });
    let size = number.filter(|_| !digits.is_empty())?.checked_mul(unit)?;
    (BUDGET_MIN..=BUDGET_MAX).contains(&size).then_some(size)
}

/// The smallest budget, bytes.
const BUDGET_MIN: u32 = 1 << 10;
/// The largest budget, bytes: the host keeps less than half of it in memory for each stream.
const BUDGET_MAX: u32 = 1 << 20;
pub const BUDGET_WORDS: &str = "a size from 1K to 1M, off";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_sizes() {
        let sizes = ["off", "0", "1K", "256K", "256k", "1M", "1048576", "1024"].map(|word| budget(word.as_bytes()));
        let kib = 1 << 10;
        let expected = [0, 0, kib, 256 * kib, 256 * kib, kib * kib, kib * kib, kib];
        assert_eq!(sizes, expected.map(Some));
        for word in ["", "K", "1", "1023", "2M", "1.5K", "-1K", "256KB", "9999999999999", "all"] {
            assert_eq!(budget(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn every_word_stands_for_a_choice() {
        let words = |words: &'static str| words.split(", ").map(str::as_bytes);
        assert_eq!(words(Tty::WORDS).filter_map(Tty::named).collect::<Vec<_>>(), Tty::ALL);
        assert_eq!(words(Sanitize::WORDS).filter_map(Sanitize::named).collect::<Vec<_>>(), Sanitize::ALL);
        assert_eq!((Tty::named(b""), Tty::named(b"AUTO"), Sanitize::named(b"all")), (None, None, None));
        let in_order = |numbers: &[u8]| numbers.iter().enumerate().all(|(at, &number)| usize::from(number) == at);
        assert!(in_order(&Tty::ALL.map(|tty| tty as u8)) && in_order(&Sanitize::ALL.map(|sanitize| sanitize as u8)));
    }
}
