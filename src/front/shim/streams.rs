//! A command's output on its way into frames: each byte passes the filter of its stream of the caller.
//!
//! Invariant: held output of one stream is released before later bytes of the other, because the caller may have put
//! both into one file, where their order shows.

use std::time::Instant;

use rexec_sh::protocol::wire;

use crate::core::entry::{Received, Stream};
use crate::front::output_filter::OutputFilter;
use crate::limits;

#[derive(Debug)]
pub(super) struct CallerStreams {
    /// The stream for output to the command's terminal, if any.
    tty: Option<wire::CallerStream>,
    stdout: OutputFilter,
    stderr: OutputFilter,
    /// The bytes for the caller so far.
    received: u64,
}

impl CallerStreams {
    pub(super) fn new(tty: Option<wire::CallerStream>, [stdout, stderr]: [OutputFilter; 2]) -> Self {
        Self { tty, stdout, stderr, received: 0 }
    }

    /// The time at which [`CallerStreams::tick`] has something to release.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.stdout.deadline(), self.stderr.deadline()].into_iter().flatten().min()
    }

    /// Releases lines that have not changed for long enough.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.each(out, |filter, out| filter.tick(now, out));
    }

    /// Releases all held output.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        self.each(out, OutputFilter::release);
    }

    /// Takes the first bytes of `bytes`; returns their number. It stops early where few bytes have become many.
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
            // The command wrote to its controlling terminal, for a person. This caller has none.
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

    /// Releases everything at the output's end. Returns the number of bytes that full-screen programs drew and the
    /// caller does not get.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        self.each(out, OutputFilter::finish);
        self.stdout.withheld_bytes() + self.stderr.withheld_bytes()
    }

    /// The output for the caller so far.
    pub(super) fn received(&self) -> Received {
        Received { bytes: self.received, hidden: self.stdout.hidden() + self.stderr.hidden() }
    }

    fn each(&mut self, out: &mut Vec<u8>, mut act: impl FnMut(&mut OutputFilter, &mut Vec<u8>)) {
        for (filter, to) in [(&mut self.stdout, wire::CallerStream::Out), (&mut self.stderr, wire::CallerStream::Err)] {
            self.received += append(to, out, |out| act(filter, out));
        }
    }
}

/// Returns the number of bytes of output that `act` appended.
fn append(to: wire::CallerStream, out: &mut Vec<u8>, act: impl FnOnce(&mut Vec<u8>)) -> u64 {
    wire::append_output(to, out, act) as u64
}
