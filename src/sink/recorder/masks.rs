//! What is masked of a run before the journal keeps it: the fields of its start, and its output.
//!
//! Output is masked as raw bytes and stream by stream, before excerpt and raw file, so that a secret is found however
//! it was cut into frames. What may be the beginning of one is held back, and other streams' output passes by. A secret
//! with an escape sequence in its middle, or one that is written to two streams in turns, is not found.
//!
//! Invariants: the secrets are in memory only, and go with the run; a field that was cut to its bound shows no part of
//! a secret at the cut.

use crate::text::encode::{base64, from_base64};
use crate::text::redact::{Redactor, is_secret_name, masked};

use super::super::record::{Start, secrets};

const ELLIPSIS: char = '…';

/// The maskers of one run.
#[derive(Debug)]
pub(super) struct Masks {
    text: Redactor,
    /// By the number of the stream; there are at most three.
    streams: Vec<(u8, Redactor)>,
}

impl Masks {
    /// For a run with these secrets, as they came in frames.
    pub(super) fn new(entries: &[u8]) -> Masks {
        Masks { text: Redactor::new(secrets(entries)), streams: Vec::new() }
    }

    /// The start as it may be kept.
    pub(super) fn start(&mut self, mut start: Start) -> Start {
        let is_cut = start.clipped;
        for text in [&mut start.command, &mut start.dir, &mut start.whoami, &mut start.shell] {
            self.field(text, is_cut);
        }
        start.exec.iter_mut().for_each(|argument| self.field(argument, is_cut));
        for (name, value) in &mut start.envs {
            if is_secret_name(name.as_bytes()) && !value.is_empty() {
                *value = masked(name.as_bytes());
            } else {
                self.field(value, is_cut);
            }
        }
        start.exec_b64 = start.exec_b64.and_then(|twins| twins.iter().map(|twin| self.twin(twin)).collect());
        start.dir_b64 = start.dir_b64.and_then(|twin| self.twin(&twin));
        // Masks can be longer than what they stand for.
        start.fitted().unwrap_or(start)
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
        *text = String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    }

    fn twin(&mut self, twin: &str) -> Option<String> {
        let mut out = Vec::new();
        self.text.redact(&from_base64(twin)?, &mut out);
        Some(base64(&out))
    }

    /// The next bytes of a stream: appends what may be kept.
    pub(super) fn output(&mut self, stream: u8, bytes: &[u8], out: &mut Vec<u8>) {
        let at = self.streams.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            self.streams.push((stream, self.text.fresh()));
            self.streams.len() - 1
        });
        self.streams[at].1.push(bytes, out);
    }

    /// The run has ended: appends what was held back.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        self.streams.iter_mut().for_each(|(_, redactor)| redactor.finish(out));
    }
}
