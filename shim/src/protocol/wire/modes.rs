//! The modes of a terminal in a MODES frame.

use super::WireError;
use super::table::Field;

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

/// The number of special characters of a terminal.
pub const MODE_CHARACTERS: usize = 19;

impl<'a> Field<'a> for TerminalModes {
    fn put(&self, out: &mut Vec<u8>) {
        [self.input, self.output, self.local].iter().for_each(|flags| flags.put(out));
        self.characters.put(out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        let (input, output, local) = (Field::take(payload)?, Field::take(payload)?, Field::take(payload)?);
        Ok(Self { input, output, local, characters: Field::take(payload)? })
    }
}
