//! Masked output that is held back, and when it came. A prompt that names a password waits until it is clear what
//! follows it, and still has its own time in the recording.
//!
//! Invariant: this decides about times only. What is recorded is what the masks let pass.

use std::time::Duration;

/// The output that is held back, as it would pass if no more came, in pieces with their times.
#[derive(Debug, Default)]
pub(super) struct HeldText(Vec<(Duration, Vec<u8>)>);

impl HeldText {
    /// Splits the masked output that passes now into parts with their times. A part that was held back has the time at
    /// which it came.
    pub(super) fn parts<'a>(&mut self, mut masked: &'a [u8], now: Duration) -> Vec<(Duration, &'a [u8])> {
        let mut parts = Vec::new();
        for (at, piece) in &mut self.0 {
            let same = piece.iter().zip(masked).take_while(|(a, b)| a == b).count();
            let (part, rest) = masked.split_at(same);
            parts.push((*at, part));
            masked = rest;
            piece.drain(..same);
            if !piece.is_empty() {
                break;
            }
        }
        self.0.retain(|(_, piece)| !piece.is_empty());
        parts.push((now, masked));
        parts.retain(|(_, part)| !part.is_empty());
        parts
    }

    /// Returns true if nothing is known to be held back.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the output that is held back now.
    pub(super) fn hold(&mut self, held: &[u8], now: Duration) {
        let known: Vec<u8> = self.0.iter().flat_map(|(_, piece)| piece).copied().collect();
        let news = held.strip_prefix(known.as_slice()).unwrap_or_else(|| {
            // A mask has taken its place.
            self.0.clear();
            held
        });
        if !news.is_empty() {
            self.0.push((now, news.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(3)];

    #[test]
    fn what_was_held_back_keeps_its_time() {
        let mut held = HeldText::default();
        assert_eq!(held.parts(b"line\n", AT[0]), [(AT[0], b"line\n".as_slice())]);
        held.hold(b"Pass", AT[0]);
        held.hold(b"Password: ", AT[1]);
        let parts = held.parts(b"Password: done\n", AT[2]);
        assert_eq!(parts, [(AT[0], b"Pass".as_slice()), (AT[1], b"word: "), (AT[2], b"done\n")]);
        held.hold(b"", AT[2]);
        assert!(held.0.is_empty());
    }

    #[test]
    fn a_mask_has_the_time_at_which_it_was_decided() {
        let mut held = HeldText::default();
        held.hold(b"Password: hun", AT[0]);
        let masked = "Password: «redacted:Password»\n".as_bytes();
        let parts = held.parts(masked, AT[1]);
        assert_eq!(parts, [(AT[0], b"Password: ".as_slice()), (AT[1], &masked[10..])]);
        held.hold(b"", AT[1]);
        held.hold(b"key=", AT[1]);
        assert_eq!(held.parts(b"key", AT[2]), [(AT[1], b"key".as_slice())]);
        assert_eq!(held.parts(b"=1", AT[2]), [(AT[1], b"=".as_slice()), (AT[2], b"1")]);
    }
}
