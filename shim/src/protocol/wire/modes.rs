//! The modes of a terminal, as a MODES frame carries them.

use super::WireError;

/// The modes of a terminal (termios(3)) that a command can leave behind. Speed and character size are the line's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalModes {
    /// `c_iflag`.
    pub input: u32,
    /// `c_oflag`.
    pub output: u32,
    /// `c_lflag`.
    pub local: u32,
    /// `c_cc`, as many as the kernel has.
    pub characters: [u8; MODE_CHARACTERS],
}

/// How many special characters a terminal has.
pub const MODE_CHARACTERS: usize = 19;

impl TerminalModes {
    const BYTES: usize = 12 + MODE_CHARACTERS;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, flags) in bytes.chunks_exact_mut(4).zip([self.input, self.output, self.local]) {
            place.copy_from_slice(&flags.to_le_bytes());
        }
        bytes[12..].copy_from_slice(&self.characters);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| WireError::Malformed("modes of a wrong size"))?;
        let flags = |at| u32::from_le_bytes(*bytes[at..].first_chunk().expect("12 bytes are flags"));
        let characters = *bytes[12..].first_chunk().expect("the rest are characters");
        Ok(Self { input: flags(0), output: flags(4), local: flags(8), characters })
    }
}
