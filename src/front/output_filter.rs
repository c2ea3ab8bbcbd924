//! The filter of a command's output on its way to the caller: it masks secrets, then deletes escape sequences and
//! redraws, then trims the output to the caller's budget; each step is optional.

use std::time::Instant;

use rexec_sh::protocol::choice::Sanitize;

use super::command::Command;
use super::trimmer::Trimmer;
use crate::limits;
use crate::text::redact::Redactor;
use crate::text::sanitize::{Mode, Sanitizer};

#[derive(Debug, Default)]
pub struct OutputFilter {
    redactor: Option<Redactor>,
    sanitizer: Option<Sanitizer>,
    masked: Vec<u8>,
    trimmer: Option<Trimmer>,
    /// Output on its way to the trimmer.
    clean: Vec<u8>,
}

impl OutputFilter {
    /// A filter that masks with the redactor, if there is one, and then sanitizes in this mode.
    #[must_use]
    pub fn new(mode: Mode, redactor: Option<Redactor>) -> Self {
        let sanitizer = (mode != Mode::Raw).then(|| Sanitizer::settling(mode, limits::REDRAW_HOLD));
        Self { redactor, sanitizer, ..Self::default() }
    }

    /// The filters of descriptors 1 and 2: as the caller chose, else by the host's options. `on_pipes`: the command's
    /// output is on pipes only. `window` is the size of its screen in rows and columns.
    #[must_use]
    pub fn both(
        command: &Command,
        on_pipes: bool,
        hosts_choice: Sanitize,
        window: (u16, u16),
        secrets: Option<&Redactor>,
    ) -> [Self; 2] {
        let chosen = |is_tty: bool| match command.sanitize {
            // An agent's own look at the shell: Codex separates its parts with NUL bytes.
            _ if command.is_for_program => Sanitize::Raw,
            Some(chosen) => chosen,
            // A person looks at the caller's terminal.
            None if is_tty || hosts_choice == Sanitize::Raw => Sanitize::Raw,
            // A program means its output to a pipe for a pipe: hardly anything in it must go.
            None if on_pipes => Sanitize::Tidy,
            None => hosts_choice,
        };
        let mode = |is_tty| match chosen(is_tty) {
            Sanitize::Raw => Mode::Raw,
            Sanitize::Strip => Mode::Strip,
            Sanitize::Tidy => Mode::Tidy,
            Sanitize::Collapse => Mode::Collapse { rows: window.0, cols: window.1 },
        };
        [command.stdio.stdout_tty, command.stdio.stderr_tty]
            .map(|is_tty| Self::new(mode(is_tty), secrets.map(Redactor::fresh)))
    }

    /// The filter with a trimmer after it, unless the caller gets the output unchanged: then a program reads it, or a
    /// terminal shows it.
    #[must_use]
    pub fn within(self, trimmer: Trimmer) -> Self {
        let trimmer = self.sanitizer.is_some().then_some(trimmer);
        Self { trimmer, ..self }
    }

    /// Lets the filter append output, and trims that.
    fn trimmed(&mut self, out: &mut Vec<u8>, append: impl FnOnce(&mut Self, &mut Vec<u8>)) {
        if self.trimmer.is_none() {
            return append(self, out);
        }
        let mut clean = std::mem::take(&mut self.clean);
        append(self, &mut clean);
        if let Some(trimmer) = &mut self.trimmer {
            trimmer.push(&clean, out);
        }
        clean.clear();
        self.clean = clean;
    }

    /// Returns true if the bytes pass unchanged.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.redactor.is_none() && self.sanitizer.is_none()
    }

    /// Takes bytes, and appends the caller's output that is due now.
    pub fn push(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        self.trimmed(out, |filter, out| filter.clean(bytes, now, out));
    }

    fn clean(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        let bytes = match &mut self.redactor {
            None => bytes,
            Some(redactor) => {
                self.masked.clear();
                redactor.push(bytes, &mut self.masked);
                &self.masked
            }
        };
        match &mut self.sanitizer {
            None => out.extend_from_slice(bytes),
            Some(sanitizer) => sanitizer.push_at(bytes, now, out),
        }
    }

    /// The time at which [`OutputFilter::tick`] has something to release.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.sanitizer.as_ref()?.deadline()
    }

    /// Appends lines that have not changed for long enough.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.trimmed(out, |filter, out| {
            filter.sanitizer.iter_mut().for_each(|sanitizer| sanitizer.tick(now, out));
        });
    }

    /// Appends the held output. Call it before output of the command's other stream, which came later.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        self.trimmed(out, |filter, out| {
            filter.sanitizer.iter_mut().for_each(|sanitizer| sanitizer.release(out));
        });
    }

    /// Appends all held output, at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.trimmed(out, Self::clean_rest);
        if let Some(trimmer) = &mut self.trimmer {
            trimmer.finish(out);
        }
    }

    fn clean_rest(&mut self, out: &mut Vec<u8>) {
        let mut rest = Vec::new();
        if let Some(redactor) = &mut self.redactor {
            redactor.finish(&mut rest);
        }
        match &mut self.sanitizer {
            None => out.append(&mut rest),
            Some(sanitizer) => {
                sanitizer.push(&rest, out);
                sanitizer.finish(out);
            }
        }
    }

    /// The number of masked secrets.
    #[must_use]
    pub fn hidden(&self) -> u64 {
        self.redactor.as_ref().map_or(0, Redactor::count)
    }

    /// Bytes that full-screen programs drew and the caller did not get.
    #[must_use]
    pub fn withheld_bytes(&self) -> u64 {
        self.sanitizer.as_ref().map_or(0, Sanitizer::withheld_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_that_is_redrawn_is_given_once_it_has_stood_still() {
        let mut filter = OutputFilter::new(Mode::Collapse { rows: 48, cols: 160 }, None);
        let (mut now, mut given) = (Instant::now(), Vec::new());
        for frame in 0..8 {
            filter.push(format!("\r{frame} of 8").as_bytes(), now, &mut given);
            assert!(filter.deadline().is_some_and(|at| at > now));
            now += limits::REDRAW_HOLD - Duration::from_millis(1);
            filter.tick(now, &mut given);
            assert_eq!(given, b"", "frame {frame}");
        }
        filter.tick(now + limits::REDRAW_HOLD, &mut given);
        assert_eq!(given, b"7 of 8");
        assert_eq!(filter.deadline(), None);
    }
}
