//! What can be chosen for a command: by its caller in `REXEC_TTY` and `REXEC_SANITIZE`, and by the person who starts the
//! host with `--tty` and `--sanitize`, for callers that choose nothing.

/// Which of the command's descriptors 1 and 2 are its terminal. It has a controlling terminal in any case.
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

/// What is done to the output on its way to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sanitize {
    /// Nothing.
    Raw,
    /// Escape sequences and control characters are deleted.
    Strip,
    /// Redraws are resolved to what a person would see at the end.
    #[default]
    Collapse,
    /// Escape sequences and the earlier states of rewritten lines are deleted. Everything else stays as it is.
    Tidy,
}

impl Tty {
    /// Every choice, in the order of the wire's numbers.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];
    /// The words for them, for a person.
    pub const WORDS: &'static str = "auto, always, never";

    /// The choice that this word stands for.
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
    /// The words for them, for a person.
    pub const WORDS: &'static str = "raw, strip, collapse, tidy";

    /// The choice that this word stands for.
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

#[cfg(test)]
mod tests {
    use super::*;

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
