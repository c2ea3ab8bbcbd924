//! Standard output, as verbs write to it.
//!
//! Invariant: the output of a verb to a terminal passes [`TerminalText`]. A pipe or a file gets the bytes unchanged,
//! for a program. Only bytes that have passed one of the console's filters go through [`drawn`].

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::written;
use crate::text::terminal_text::TerminalText;

/// Standard output. [`Write::flush`] shows all written text at the latest.
#[derive(Debug)]
pub(super) struct VerbOutput {
    out: BufWriter<StdoutLock<'static>>,
    /// The filter, if the output is a terminal.
    filter: Option<TerminalText>,
}

impl VerbOutput {
    pub(super) fn standard() -> Self {
        let out = io::stdout();
        let filter = out.is_terminal().then(TerminalText::default);
        Self { out: BufWriter::new(out.lock()), filter }
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(mut filter) = self.filter.take() {
            let mut rest = String::new();
            filter.finish(&mut rest);
            self.out.write_all(rest.as_bytes())?;
        }
        self.out.flush()
    }
}

impl Write for VerbOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(filter) = &mut self.filter else { return self.out.write(bytes) };
        let mut shown = String::with_capacity(bytes.len());
        filter.push(bytes, &mut shown);
        self.out.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Standard output for bytes that have passed one of the console's filters.
pub(super) fn drawn() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes this text to standard output; returns the exit code.
pub(super) fn say(text: &str) -> Result<u8, Notice> {
    say_bytes(text.as_bytes())
}

/// Writes these bytes to standard output; returns the exit code.
pub(super) fn say_bytes(bytes: &[u8]) -> Result<u8, Notice> {
    with_output(|out| written(out.write_all(bytes)))
}

/// Runs `work` with standard output; returns the exit code.
pub(super) fn with_output(work: impl FnOnce(&mut VerbOutput) -> Result<(), Notice>) -> Result<u8, Notice> {
    let mut out = VerbOutput::standard();
    work(&mut out)?;
    written(out.finish())?;
    Ok(exit_code::SUCCESS)
}
