//! The output of one run on its way into numbered chunks: filtered as its caller chose, whole characters, large pieces.
//!
//! Invariants: the bytes of one stream keep their order; held output of one stream is released before later bytes of
//! the other; output of one moment becomes one chunk, up to [`limits::RPC_CHUNK_BYTES`].

use std::time::{Duration, Instant};

use super::gathered::GatheredOutput;
use super::ring::OutputRing;
use crate::core::entry::Stream;
use crate::front::output_filter::OutputFilter;
use crate::limits;
use crate::text::whole::without_torn_end;

/// The output gathered for an answer at the end.
#[derive(Debug)]
pub enum Gathering {
    Nothing,
    /// Everything in one text.
    Together(GatheredOutput),
    /// Standard output and standard error.
    Apart(Box<[GatheredOutput; 2]>),
}

#[derive(Debug)]
pub struct KeptOutput {
    ring: OutputRing,
    /// The filters of standard output, which is the terminal's in mode pty, and of standard error.
    filters: [OutputFilter; 2],
    has_terminal: bool,
    /// True if characters stay whole.
    is_text: bool,
    /// The output of one stream for the next chunk.
    open: Vec<u8>,
    open_stream: Stream,
    open_at: Duration,
    /// The first bytes of an incomplete character, of each stream.
    torn: [Vec<u8>; 2],
    gathering: Gathering,
    /// The end of the output.
    end: Vec<u8>,
}

impl KeptOutput {
    /// Nothing yet. `has_terminal`: the output is on the run's terminal.
    #[must_use]
    pub fn new(filters: [OutputFilter; 2], has_terminal: bool, is_text: bool, gathering: Gathering) -> Self {
        Self {
            ring: OutputRing::default(),
            filters,
            has_terminal,
            is_text,
            open: Vec::new(),
            open_stream: Stream::Out,
            open_at: Duration::ZERO,
            torn: [Vec::new(), Vec::new()],
            gathering,
            end: Vec::new(),
        }
    }

    #[must_use]
    pub fn ring(&self) -> &OutputRing {
        &self.ring
    }

    /// Drops the oldest chunks until the rest weighs `most` bytes or less.
    pub fn shed(&mut self, most: usize) {
        self.ring.shed(most);
    }

    /// Takes the gathered output; nothing of it is kept.
    pub fn take_gathering(&mut self) -> Gathering {
        std::mem::replace(&mut self.gathering, Gathering::Nothing)
    }

    /// The memory that the chunks take, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.ring.weight()
    }

    /// The last line that is not blank, or its end.
    #[must_use]
    pub fn last_line(&self) -> String {
        let lines = self.end.split(|&byte| byte == b'\n').rev();
        let last = lines.map(<[u8]>::trim_ascii).find(|line| !line.is_empty()).unwrap_or_default();
        String::from_utf8_lossy(last).into_owned()
    }

    /// Takes a stream's output at this time after the start. [`KeptOutput::close_chunk`] makes chunks of it at the
    /// latest.
    pub fn push(&mut self, stream: Stream, bytes: &[u8], at: Duration, now: Instant) {
        let place = usize::from(stream == Stream::Err);
        if stream == Stream::Tty && !self.has_terminal {
            // The command wrote to its controlling terminal, for a person. This caller has none.
            return;
        }
        let other = 1 - place;
        self.filtered(other, |filter, out| filter.release(out));
        self.open_at = at;
        if self.filters[place].is_none() {
            bytes.chunks(limits::RPC_CHUNK_BYTES).for_each(|piece| self.append(place, piece));
        } else {
            for piece in bytes.chunks(limits::FILTERED_PIECE_BYTES) {
                self.filtered(place, |filter, out| filter.push(piece, now, out));
            }
        }
    }

    /// The time at which [`KeptOutput::tick`] has output to release.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.filters.iter().filter_map(OutputFilter::deadline).min()
    }

    /// Releases lines that have not changed for long enough.
    pub fn tick(&mut self, now: Instant) {
        for place in [0, 1] {
            self.filtered(place, |filter, out| filter.tick(now, out));
        }
        self.close_chunk();
    }

    /// Releases the held output, because the run's shell has ended.
    pub fn release(&mut self) {
        for place in [0, 1] {
            self.filtered(place, |filter, out| filter.release(out));
        }
        self.close_chunk();
    }

    /// Ends the output.
    pub fn finish(&mut self) {
        for place in [0, 1] {
            self.filtered(place, |filter, out| filter.finish(out));
            self.close_chunk();
            let torn = std::mem::take(&mut self.torn[place]);
            self.is_text = false;
            self.append(place, &torn);
            self.close_chunk();
        }
        self.filters = [OutputFilter::default(), OutputFilter::default()];
    }

    fn filtered(&mut self, place: usize, act: impl FnOnce(&mut OutputFilter, &mut Vec<u8>)) {
        let mut out = Vec::new();
        act(&mut self.filters[place], &mut out);
        self.append(place, &out);
    }

    fn append(&mut self, place: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let stream = match (place, self.has_terminal) {
            (0, true) => Stream::Tty,
            (0, false) => Stream::Out,
            _ => Stream::Err,
        };
        if stream != self.open_stream || self.open.len() + bytes.len() > limits::RPC_CHUNK_BYTES {
            self.close_chunk();
            self.open_stream = stream;
        }
        if self.open.is_empty() {
            self.open.append(&mut self.torn[place]);
        }
        self.open.extend_from_slice(bytes);
    }

    /// Makes a chunk of the output so far.
    pub fn close_chunk(&mut self) {
        let mut bytes = std::mem::take(&mut self.open);
        if bytes.is_empty() {
            return;
        }
        if self.is_text {
            let whole = without_torn_end(&bytes).len();
            self.torn[usize::from(self.open_stream == Stream::Err)] = bytes.split_off(whole);
        }
        if bytes.is_empty() {
            return;
        }
        match &mut self.gathering {
            Gathering::Nothing => {}
            Gathering::Together(all) => all.push(&bytes),
            Gathering::Apart(both) => both[usize::from(self.open_stream == Stream::Err)].push(&bytes),
        }
        self.note_end(&bytes);
        let at_ms = u64::try_from(self.open_at.as_millis()).unwrap_or(u64::MAX);
        self.ring.push(self.open_stream, bytes.into(), at_ms);
    }

    fn note_end(&mut self, bytes: &[u8]) {
        let most = 2 * limits::ROSTER_TEXT_BYTES;
        self.end.extend_from_slice(&bytes[bytes.len().saturating_sub(most)..]);
        self.end.drain(..self.end.len().saturating_sub(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::budget::Budget;
    use crate::text::sanitize::Mode;

    fn texts(output: &KeptOutput) -> Vec<(Stream, String)> {
        let chunks = output.ring().after(0);
        chunks.map(|chunk| (chunk.stream, String::from_utf8(chunk.bytes.to_vec()).unwrap_or("?".to_owned()))).collect()
    }

    #[test]
    fn characters_stay_whole_and_streams_in_order() {
        let now = Instant::now();
        let bytes = "aé€😀b".as_bytes();
        for at in 1..bytes.len() {
            let filters = [OutputFilter::default(), OutputFilter::default()];
            let mut output = KeptOutput::new(filters, false, true, Gathering::Nothing);
            output.push(Stream::Out, &bytes[..at], Duration::ZERO, now);
            output.close_chunk();
            output.push(Stream::Err, b"!", Duration::ZERO, now);
            output.push(Stream::Out, &bytes[at..], Duration::ZERO, now);
            output.push(Stream::Tty, b"for a person", Duration::ZERO, now);
            output.push(Stream::Out, &[0xc3], Duration::ZERO, now);
            output.finish();
            let all = texts(&output);
            assert_eq!(all.last(), Some(&(Stream::Out, "?".to_owned())), "a character that never ends: {all:?}");
            let out: String = all[..all.len() - 1]
                .iter()
                .filter(|(stream, _)| *stream == Stream::Out)
                .map(|(_, text)| &**text)
                .collect();
            assert_eq!(out, "aé€😀b", "{at}");
        }
    }

    #[test]
    fn output_is_filtered_and_gathered_apart() {
        let filter = || OutputFilter::new(Mode::Tidy, None);
        let budget = Budget::new(1_000, 0);
        let gathered = || GatheredOutput::new(100, budget.share());
        let both = Gathering::Apart(Box::new([gathered(), gathered()]));
        let (mut output, now) = (KeptOutput::new([filter(), filter()], false, true, both), Instant::now());
        output.push(Stream::Out, b"10%\r\x1b[1m100%", Duration::ZERO, now);
        output.push(Stream::Err, b"oops\n", Duration::from_millis(7), now);
        output.finish();
        assert_eq!(texts(&output), [(Stream::Out, "100%".to_owned()), (Stream::Err, "oops\n".to_owned())]);
        let Gathering::Apart(both) = output.take_gathering() else { panic!("apart") };
        assert_eq!([both[0].text(), both[1].text()], ["100%", "oops\n"]);
        assert_eq!(output.ring().after(1).next().map(|chunk| chunk.at_ms), Some(7));
    }
}
