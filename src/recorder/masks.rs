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
use crate::text::redact::{Redactor, is_secret_name, masked};

use crate::journal::record::StartRecord;

const ELLIPSIS: char = '…';
/// Output of other streams that waits for the bytes held back of one, bytes. Beyond it that output goes first, so the
/// order of the streams is lost.
const WAITING_BYTES_MAX: usize = 4 << 10;

/// The maskers of one run.
#[derive(Debug, Clone)]
pub struct Masks {
    text: Redactor,
    /// One per stream, with the stream's number. There are at most three.
    streams: Vec<(u8, Redactor)>,
    /// The index of the stream of which bytes are held back.
    holder: Option<usize>,
    /// The other streams' masked output since then.
    waiting: Vec<u8>,
}

impl Masks {
    /// Makes the maskers of a run with these variables, or the secrets of them.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, start: &StartRecord) -> Masks {
        let arguments: Vec<&[u8]> = start.exec.iter().map(String::as_bytes).collect();
        let text = Redactor::of_command(variables, &arguments);
        Masks { text, streams: Vec::new(), holder: None, waiting: Vec::new() }
    }

    /// The start with its secrets masked: every field that others than the host have filled.
    #[must_use]
    pub fn start(&mut self, mut start: StartRecord) -> StartRecord {
        let is_cut = start.clipped;
        for text in [&mut start.dir, &mut start.whoami, &mut start.shell, &mut start.why, &mut start.name] {
            self.field(text, is_cut);
        }
        self.command(&mut start.command, is_cut);
        for id in [&mut start.agent, &mut start.agent_version, &mut start.session, &mut start.call, &mut start.role] {
            self.field(id, is_cut);
        }
        if let Some(sandbox) = &mut start.sandbox {
            self.field(sandbox, is_cut);
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
        let at = self.streams.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            self.streams.push((stream, self.text.fresh()));
            self.streams.len() - 1
        });
        if self.holder.is_some_and(|holder| holder != at) {
            self.streams[at].1.push(bytes, &mut self.waiting);
            if self.waiting.len() > WAITING_BYTES_MAX {
                self.release(out);
            }
            return;
        }
        let before = out.len();
        self.streams[at].1.push(bytes, out);
        // Any output means that the bytes held back are decided.
        if out.len() > before || !self.streams[at].1.is_holding() {
            self.release(out);
        } else {
            self.holder = Some(at);
        }
    }

    /// Appends the output that waited. From now on output waits for the first stream of which bytes are held back.
    fn release(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.waiting);
        self.holder = self.streams.iter().position(|(_, redactor)| redactor.is_holding());
    }

    /// Masks a text that is complete.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.text.redact(text.as_bytes(), &mut out);
        utf8(out)
    }

    /// How many secrets were masked so far.
    pub(super) fn count(&self) -> u64 {
        self.streams.iter().map(|(_, redactor)| redactor.count()).sum::<u64>() + self.text.count()
    }

    /// Output is left out here. So is what is held back, which may be the first part of a secret: returns how many bytes.
    pub(super) fn leave_out(&mut self) -> u64 {
        let mut held = Vec::new();
        self.finish(&mut held);
        self.holder = None;
        held.len() as u64
    }

    /// What was held back or waits, as it would be kept if no more output came.
    pub(super) fn held_back(&self) -> Vec<u8> {
        let mut held = Vec::new();
        self.clone().finish(&mut held);
        held
    }

    /// Ends the output: appends all that was held back or waited.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(holder) = self.holder {
            self.streams[holder].1.finish(out);
        }
        out.append(&mut self.waiting);
        self.streams.iter_mut().for_each(|(_, redactor)| redactor.finish(out));
    }
}

fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masked output of these writes.
    fn kept(writes: &[(u8, &str)]) -> String {
        let mut masks = Masks::new([], &StartRecord::default());
        let mut out = Vec::new();
        writes.iter().for_each(|(stream, text)| masks.output(*stream, text.as_bytes(), &mut out));
        masks.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bytes_that_are_held_back_keep_their_place() {
        assert_eq!(kept(&[(2, "three"), (1, "one\n")]), "threeone\n");
        assert_eq!(kept(&[(2, "to"), (1, "one"), (2, " much"), (1, "\n")]), "to muchone\n");
        assert_eq!(kept(&[(2, "to"), (1, "one"), (2, "m"), (1, "!")]), "tomone!");
        assert_eq!(kept(&[(1, "e"), (2, "7"), (0, "8\n"), (1, "\n")]), "e\n78\n");
        let long = "0123456789abcde\n".repeat(WAITING_BYTES_MAX / 16 + 1);
        assert!(kept(&[(2, "e"), (1, &long), (1, "last\n")]) == format!("{long}elast\n"));
    }

    #[test]
    fn a_secret_is_found_whatever_other_streams_write_meanwhile() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        for at in 1..token.len() {
            let (first, rest) = token.split_at(at);
            for other in ["other\n", "gh", &"x".repeat(2 * WAITING_BYTES_MAX)] {
                let kept = kept(&[(1, first), (2, other), (1, rest), (1, "\n"), (2, "\n")]);
                assert!(kept.contains("«redacted:") && !kept.contains("aB3"), "{at}: {kept}");
            }
        }
    }
}
