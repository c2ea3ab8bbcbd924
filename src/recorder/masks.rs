//! Masks the secrets of a run before the journal keeps anything: in the fields of its start and in its output.
//!
//! Output is masked as raw bytes, each stream by itself, before it goes to the excerpt, the raw file and the recording. So
//! a secret is found however it was cut into frames. Bytes that may begin a secret are held back, and the output of other
//! streams waits for them, up to a bound. The excerpt's text is masked once more, because it has lost what was written
//! over. A secret that is written to two streams in turns is not found.
//!
//! Invariants: the secrets are in memory only, and are dropped with the run; a field that was cut to its bound shows no
//! part of a secret at the cut.

use crate::text::encode::{base64, from_base64};
use crate::text::redact::{Redactor, StreamRedactor, is_secret_name, masked};

use crate::journal::record::StartRecord;

const ELLIPSIS: char = '…';

/// The maskers of one run.
#[derive(Debug, Clone)]
pub(super) struct Masks {
    text: Redactor,
    output: StreamRedactor,
}

impl Masks {
    /// Makes the maskers of a run with these variables, or the secrets of them.
    pub(super) fn new<'a>(variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, start: &StartRecord) -> Masks {
        let arguments: Vec<&[u8]> = start.exec.iter().map(String::as_bytes).collect();
        let text = Redactor::of_command(variables, &arguments);
        Masks { output: StreamRedactor::new(&text), text }
    }

    /// Masks the secrets in every field of the start that the host did not fill itself.
    pub(super) fn start(&mut self, mut start: StartRecord) -> StartRecord {
        let is_cut = start.clipped;
        for (name, text) in start.card.texts_mut() {
            match name {
                "time" => {}
                "command" => self.command(text, is_cut),
                _ => self.field(text, is_cut),
            }
        }
        self.arguments(&mut start.exec, is_cut);
        for (name, value) in &mut start.envs {
            if is_secret_name(name.as_bytes()) && !value.is_empty() {
                *value = masked(name.as_bytes());
            } else {
                self.field(value, is_cut);
            }
        }
        start.exec_b64 = start.exec_b64.and_then(|arguments| self.arguments_b64(&arguments));
        start.dir_b64 = start.dir_b64.and_then(|dir| self.base64_field(&dir));
        // A mask can be longer than the secret.
        start.fitted().unwrap_or(start)
    }

    fn command(&mut self, text: &mut String, is_cut: bool) {
        let mut out = Vec::with_capacity(text.len());
        match text.strip_suffix(ELLIPSIS).filter(|_| is_cut) {
            Some(beginning) => {
                self.text.redact_cut_command(beginning.as_bytes(), &mut out);
                out.extend_from_slice(ELLIPSIS.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => self.text.redact_command(text.as_bytes(), &mut out),
        }
        *text = utf8(out);
    }

    fn arguments(&mut self, exec: &mut [String], is_cut: bool) {
        let whole: Vec<&[u8]> = exec.iter().map(String::as_bytes).collect();
        let masked = self.text.redact_arguments(&whole);
        for (argument, masked) in exec.iter_mut().zip(masked) {
            if is_cut && argument.ends_with(ELLIPSIS) {
                self.command(argument, is_cut);
            } else {
                *argument = utf8(masked);
            }
        }
    }

    fn arguments_b64(&mut self, encoded: &[String]) -> Option<Vec<String>> {
        let arguments: Vec<Vec<u8>> = encoded.iter().map(|argument| from_base64(argument)).collect::<Option<_>>()?;
        let whole: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        Some(self.text.redact_arguments(&whole).iter().map(|masked| base64(masked)).collect())
    }

    fn field(&mut self, text: &mut String, is_cut: bool) {
        let mut out = Vec::with_capacity(text.len());
        match text.strip_suffix(ELLIPSIS).filter(|_| is_cut) {
            Some(beginning) => {
                self.text.redact_cut(beginning.as_bytes(), &mut out);
                out.extend_from_slice(ELLIPSIS.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => self.text.redact(text.as_bytes(), &mut out),
        }
        *text = utf8(out);
    }

    fn base64_field(&mut self, field: &str) -> Option<String> {
        let mut out = Vec::new();
        self.text.redact(&from_base64(field)?, &mut out);
        Some(base64(&out))
    }

    /// Takes the next bytes of a stream, and appends the masked output that no longer waits.
    pub(super) fn output(&mut self, stream: u8, bytes: &[u8], out: &mut Vec<u8>) {
        self.output.push(stream, bytes, out);
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.text.redact(text.as_bytes(), &mut out);
        utf8(out)
    }

    /// How many secrets were masked so far, output included.
    pub(super) fn count(&self) -> u64 {
        self.output.count() + self.text.count()
    }

    /// Notes that output is left out here. Drops what is held back, too, which may be the first part of a secret.
    /// Returns how many bytes that was.
    pub(super) fn leave_out(&mut self) -> u64 {
        let mut held = Vec::new();
        self.output.finish(&mut held);
        held.len() as u64
    }

    /// Returns true if some output is held back.
    pub(super) fn is_holding(&self) -> bool {
        self.output.is_holding()
    }

    /// The output that is held back or waits, as it would be kept if no more came.
    pub(super) fn held_back(&self) -> Vec<u8> {
        self.output.held_back()
    }

    /// Ends the output: appends all that was held back or waited.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.output.finish(out);
    }
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
