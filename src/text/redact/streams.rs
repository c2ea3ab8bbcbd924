//! The masker of a run's output, which comes on several streams.
//!
//! Each stream is masked by itself. Bytes that may begin a secret are held back, and the output of other streams waits for
//! them, up to a bound: so the order of the streams stays. A secret that is written to two streams in turns is not found.

use super::Redactor;

/// Output of other streams that waits for the bytes held back of one, bytes. Beyond it that output goes first, so the
/// order of the streams is lost.
const WAITING_BYTES_MAX: usize = 4 << 10;

/// The maskers of a run's streams.
#[derive(Debug, Clone, Default)]
pub struct StreamRedactor {
    /// The secrets.
    fresh: Redactor,
    /// One per stream, with the stream's number. There are at most three.
    streams: Vec<(u8, Redactor)>,
    /// The index of the stream of which bytes are held back.
    holder: Option<usize>,
    /// The other streams' masked output since then.
    waiting: Vec<u8>,
}

impl StreamRedactor {
    /// A masker of the secrets that this one knows.
    #[must_use]
    pub fn new(redactor: &Redactor) -> Self {
        Self { fresh: redactor.fresh(), ..Self::default() }
    }

    /// Takes the next bytes of a stream, and appends the masked output that no longer waits.
    pub fn push(&mut self, stream: u8, bytes: &[u8], out: &mut Vec<u8>) {
        let at = self.streams.iter().position(|(number, _)| *number == stream).unwrap_or_else(|| {
            self.streams.push((stream, self.fresh.fresh()));
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

    /// Returns true if some of the last bytes are held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.holder.is_some()
    }

    /// What is held back or waits, as it would go on if no more came.
    #[must_use]
    pub fn held_back(&self) -> Vec<u8> {
        let mut held = Vec::new();
        self.clone().finish(&mut held);
        held
    }

    /// Ends the output: appends all that was held back or waited.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(holder) = self.holder.take() {
            self.streams[holder].1.finish(out);
        }
        out.append(&mut self.waiting);
        self.streams.iter_mut().for_each(|(_, redactor)| redactor.finish(out));
    }

    /// The number of masks written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.streams.iter().map(|(_, redactor)| redactor.count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masked output of these writes.
    fn kept(writes: &[(u8, &str)]) -> String {
        let mut masks = StreamRedactor::default();
        let mut out = Vec::new();
        writes.iter().for_each(|(stream, text)| masks.push(*stream, text.as_bytes(), &mut out));
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
