//! A command's output on its way into frames: each byte through the filter of the caller's stream that it is for.
//!
//! Invariant: what is held back of one stream is released before later bytes of the other, because the caller may have
//! put both into one file, where their order shows.

use std::time::Instant;

use rexec_sh::protocol::wire;

use crate::core::entry::Stream;
use crate::front::output_filter::{OutputFilter, ReceivedOutput};
use crate::limits;

/// The caller's two streams.
#[derive(Debug)]
pub(super) struct CallerStreams {
    /// The stream that gets what the command writes to its terminal, if any.
    tty: Option<wire::CallerStream>,
    stdout: OutputFilter,
    stderr: OutputFilter,
    /// What the caller got so far, bytes.
    received: u64,
}

impl CallerStreams {
    pub(super) fn new(tty: Option<wire::CallerStream>, [stdout, stderr]: [OutputFilter; 2]) -> Self {
        Self { tty, stdout, stderr, received: 0 }
    }

    /// When [`CallerStreams::tick`] has something to release.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.stdout.deadline(), self.stderr.deadline()].into_iter().flatten().min()
    }

    /// Releases lines that have not changed for long enough.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.each(out, |filter, out| filter.tick(now, out));
    }

    /// Releases everything that is held back.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        self.each(out, OutputFilter::release);
    }

    /// Takes the first bytes of `bytes`; returns how many. It stops early where few bytes have become many.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8], now: Instant, out: &mut Vec<u8>) -> usize {
        let to = match stream {
            Stream::Tty => self.tty,
            Stream::Out => Some(wire::CallerStream::Out),
            Stream::Err => Some(wire::CallerStream::Err),
        };
        let (stdout, stderr) =
            ((&mut self.stdout, wire::CallerStream::Out), (&mut self.stderr, wire::CallerStream::Err));
        let ((filter, to), (other, other_to)) = match to {
            Some(wire::CallerStream::Out) => (stdout, stderr),
            Some(wire::CallerStream::Err) => (stderr, stdout),
            // Words for a person, at a terminal that the caller does not have.
            None => return bytes.len(),
        };
        self.received += append(other_to, out, |out| other.release(out));
        if filter.is_none() {
            wire::encode_output(to, bytes, out);
            self.received += bytes.len() as u64;
            return bytes.len();
        }
        let mut taken = 0;
        self.received += append(to, out, |out| {
            let full_at = out.len() + limits::FILTERED_BYTES;
            for piece in bytes[..bytes.len().min(limits::FILTERED_BYTES)].chunks(limits::FILTERED_PIECE_BYTES) {
                filter.push(piece, now, out);
                taken += piece.len();
                if out.len() > full_at {
                    break;
                }
            }
        });
        taken
    }

    /// Releases everything at the output's end; returns the bytes that full-screen programs drew and the caller does not
    /// get.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        self.each(out, OutputFilter::finish);
        self.stdout.withheld_bytes() + self.stderr.withheld_bytes()
    }

    /// What the caller got so far.
    pub(super) fn received(&self) -> ReceivedOutput {
        ReceivedOutput { bytes: self.received, hidden: self.stdout.hidden() + self.stderr.hidden() }
    }

    fn each(&mut self, out: &mut Vec<u8>, mut act: impl FnMut(&mut OutputFilter, &mut Vec<u8>)) {
        for (filter, to) in [(&mut self.stdout, wire::CallerStream::Out), (&mut self.stderr, wire::CallerStream::Err)] {
            self.received += append(to, out, |out| act(filter, out));
        }
    }
}

/// Returns how many bytes of output `act` appended.
fn append(to: wire::CallerStream, out: &mut Vec<u8>, act: impl FnOnce(&mut Vec<u8>)) -> u64 {
    wire::append_output(to, out, act) as u64
}
