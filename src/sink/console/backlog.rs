//! A command's output that the console has not shown: the beginning, the end, and a count of what was between.
//!
//! Invariants: what is taken and what is counted is together what was pushed, byte for byte and line for line; the
//! memory is bounded, see [`Backlog::weight`]; a byte that is not kept is looked at once, for newlines.

use std::collections::VecDeque;

use memchr::{memchr_iter, memrchr_iter};

use crate::core::buffer_room::make_room;
use crate::core::entry::Stream;
use crate::limits::{CONSOLE_HEAD_BYTES, CONSOLE_TAIL_BYTES, CONSOLE_TAIL_LINES};
use crate::text::safe_text::SafeText;

/// What a piece takes beside its content, bytes.
const PIECE_OVERHEAD: usize = 64;
/// A piece of the beginning that is as long as this, bytes, is followed by another one. Long pieces that grow would be
/// copied again and again, and leave holes in the heap.
const PIECE_BYTES_MAX: usize = 16 << 10;

/// Consecutive output of one stream, or a remark of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BacklogPiece {
    /// `None` for a remark, which is neither a line nor bytes of the command's.
    pub(super) stream: Option<Stream>,
    pub(super) bytes: Vec<u8>,
    lines: usize,
}

/// An amount of output, for instance what is left out at one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gap {
    /// Newlines in it.
    pub lines: u64,
    pub bytes: u64,
}

/// The part of a backlog that is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BothEnds {
    pub(super) head: Vec<BacklogPiece>,
    pub(super) gap: Gap,
    pub(super) tail: Vec<BacklogPiece>,
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    head: Vec<BacklogPiece>,
    head_bytes: usize,
    head_lines: usize,
    /// Everything that follows goes to the tail.
    is_head_full: bool,
    gap: Gap,
    tail: VecDeque<BacklogPiece>,
    tail_bytes: usize,
    tail_lines: usize,
}

impl Backlog {
    /// Takes output. Keeps the first `head_lines_max` lines since the last [`Backlog::take`]. Returns how many newlines
    /// are in the output.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8], head_lines_max: usize) -> usize {
        let lines = count_lines(bytes);
        let fits = if self.is_head_full { 0 } else { self.fits_head(bytes, lines, head_lines_max) };
        let (head, tail) = bytes.split_at(fits);
        let head_lines = if tail.is_empty() { lines } else { count_lines(head) };
        if !head.is_empty() {
            self.head_lines += head_lines;
            self.head_bytes += head.len();
            match self.head.last_mut() {
                Some(last) if last.stream == Some(stream) && last.bytes.len() + head.len() <= PIECE_BYTES_MAX => {
                    last.append(head, head_lines);
                }
                _ => {
                    self.head.push(BacklogPiece::output(stream, head, head_lines));
                    self.head_bytes += PIECE_OVERHEAD;
                }
            }
        }
        self.is_head_full |= fits < bytes.len();
        self.push_tail(stream, tail, lines - head_lines);
        lines
    }

    /// Takes a remark of the host's, which is shown behind the output before it.
    pub(super) fn remark(&mut self, text: &SafeText) {
        let piece = BacklogPiece { stream: None, bytes: text.as_bytes().to_vec(), lines: 0 };
        if self.is_head_full {
            self.tail_bytes += piece.weight();
            self.tail.push_back(piece);
            self.shorten_tail();
        } else {
            self.head_bytes += piece.weight();
            self.head.push(piece);
        }
    }

    /// How many of these bytes still belong to the beginning: whole lines, unless a line is longer than all of it.
    fn fits_head(&self, bytes: &[u8], lines: usize, lines_max: usize) -> usize {
        let room = CONSOLE_HEAD_BYTES.saturating_sub(self.head_bytes).min(bytes.len());
        let Some(more) = lines_max.checked_sub(self.head_lines).filter(|&more| more > 0) else { return 0 };
        if room == bytes.len() && lines < more {
            return room;
        }
        match memchr_iter(b'\n', &bytes[..room]).nth(more - 1) {
            Some(newline) => newline + 1,
            None if room == bytes.len() => room,
            None => memchr::memrchr(b'\n', &bytes[..room]).map_or(room, |newline| newline + 1),
        }
    }

    fn push_tail(&mut self, stream: Stream, bytes: &[u8], lines: usize) {
        let (passed, kept) = bytes.split_at(tail_start(bytes));
        let kept_lines = if passed.is_empty() { lines } else { count_lines(kept) };
        if !passed.is_empty() {
            while let Some(piece) = self.tail.pop_front() {
                self.give_up(&piece);
            }
            (self.tail_bytes, self.tail_lines) = (0, 0);
            self.gap.add(passed.len(), lines - kept_lines);
        }
        if kept.is_empty() {
            return;
        }
        self.tail_bytes += kept.len();
        self.tail_lines += kept_lines;
        match self.tail.back_mut() {
            Some(last) if last.stream == Some(stream) && last.bytes.len() + kept.len() <= CONSOLE_TAIL_BYTES => {
                last.append(kept, kept_lines);
            }
            _ => {
                self.tail.push_back(BacklogPiece::output(stream, kept, kept_lines));
                self.tail_bytes += PIECE_OVERHEAD;
            }
        }
        self.shorten_tail();
    }

    /// Gives up the first pieces of the end, as long as enough follows.
    fn shorten_tail(&mut self) {
        while let Some(first) = self.tail.front() {
            let (bytes, lines) = (self.tail_bytes - first.weight(), self.tail_lines - first.lines);
            if bytes < CONSOLE_TAIL_BYTES && lines <= CONSOLE_TAIL_LINES {
                break;
            }
            let first = self.tail.pop_front().expect("it was just looked at");
            (self.tail_bytes, self.tail_lines) = (bytes, lines);
            self.give_up(&first);
        }
    }

    fn give_up(&mut self, piece: &BacklogPiece) {
        if piece.stream.is_some() {
            self.gap.add(piece.bytes.len(), piece.lines);
        }
    }

    /// Counts output that the console never got, and gives up the end that it keeps.
    pub(super) fn miss(&mut self, bytes: u64) {
        self.is_head_full = true;
        let tail = std::mem::take(&mut self.tail);
        tail.iter().for_each(|piece| self.give_up(piece));
        (self.tail_bytes, self.tail_lines) = (0, 0);
        self.gap.bytes += bytes;
    }

    /// Counts the beginning instead of keeping it.
    pub(super) fn give_up_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        head.iter().for_each(|piece| self.give_up(piece));
        (self.head_bytes, self.head_lines, self.is_head_full) = (0, 0, true);
    }

    /// The memory that all of it takes, bytes. The beginning takes somewhat more than
    /// [`CONSOLE_HEAD_BYTES`] at most, and the end somewhat more than [`CONSOLE_TAIL_BYTES`].
    pub(super) fn weight(&self) -> usize {
        self.head_bytes + self.tail_bytes
    }

    /// The output that is only counted, or kept because it may be the end. `None` while all of it fits the beginning.
    pub(super) fn flood(&self) -> Option<Gap> {
        let tail = self.tail.iter().filter(|piece| piece.stream.is_some());
        let tail: usize = tail.map(|piece| piece.bytes.len()).sum();
        self.is_head_full
            .then(|| Gap { lines: self.gap.lines + self.tail_lines as u64, bytes: self.gap.bytes + tail as u64 })
    }

    pub(super) fn has_remark(&self) -> bool {
        self.head.iter().chain(&self.tail).any(|piece| piece.stream.is_none())
    }

    /// Returns true if the beginning is not empty.
    pub(super) fn has_head(&self) -> bool {
        !self.head.is_empty()
    }

    /// Takes the beginning so far, with its number of lines.
    pub(super) fn take_head(&mut self) -> (Vec<BacklogPiece>, usize) {
        self.head_bytes = 0;
        (std::mem::take(&mut self.head), std::mem::take(&mut self.head_lines))
    }

    /// Returns true if there is nothing to show and nothing to count.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.gap == Gap::default()
    }

    /// The lines of output that wait, those included that are only counted. An unfinished one counts.
    pub(super) fn lines(&self) -> u64 {
        let mut newest_first = self.tail.iter().rev().chain(self.head.iter().rev());
        let last = newest_first.find(|piece| piece.stream.is_some());
        let is_unfinished = last.is_some_and(|piece| !piece.bytes.ends_with(b"\n"));
        self.gap.lines + (self.head_lines + self.tail_lines + usize::from(is_unfinished)) as u64
    }

    /// Takes the beginning and at most this many lines of the end.
    pub(super) fn take(&mut self, tail_lines_max: usize) -> BothEnds {
        let Self { head, mut gap, tail, is_head_full, .. } = std::mem::take(self);
        let mut tail = Vec::from(tail);
        // A tail that follows the head without a gap is shown whole when it is short.
        let cut = last_lines(&mut tail, tail_lines_max);
        (gap.lines, gap.bytes) = (gap.lines + cut.lines, gap.bytes + cut.bytes);
        debug_assert!(is_head_full || tail.is_empty(), "the tail begins behind the head");
        BothEnds { head, gap, tail }
    }

    /// Takes at most this many lines of the end, the beginning counted with the rest.
    pub(super) fn take_last(&mut self, lines_max: usize) -> BothEnds {
        let Self { head, mut gap, tail, .. } = std::mem::take(self);
        let mut pieces = Vec::from(tail);
        if gap == Gap::default() {
            pieces.splice(0..0, head);
        } else {
            let output = head.iter().filter(|piece| piece.stream.is_some());
            output.for_each(|piece| gap.add(piece.bytes.len(), piece.lines));
        }
        let cut = last_lines(&mut pieces, lines_max);
        (gap.lines, gap.bytes) = (gap.lines + cut.lines, gap.bytes + cut.bytes);
        BothEnds { head: Vec::new(), gap, tail: pieces }
    }
}

impl Gap {
    pub(super) fn add(&mut self, bytes: usize, lines: usize) {
        self.bytes += bytes as u64;
        self.lines += lines as u64;
    }
}

impl BacklogPiece {
    fn output(stream: Stream, bytes: &[u8], lines: usize) -> Self {
        Self { stream: Some(stream), bytes: bytes.to_vec(), lines }
    }

    fn weight(&self) -> usize {
        self.bytes.len() + PIECE_OVERHEAD
    }

    fn append(&mut self, bytes: &[u8], lines: usize) {
        make_room(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.lines += lines;
    }
}

/// The start of the part that the end may show: enough bytes or enough lines. The last line may have no end.
fn tail_start(bytes: &[u8]) -> usize {
    let least = bytes.len().saturating_sub(CONSOLE_TAIL_BYTES);
    memrchr_iter(b'\n', &bytes[least..]).nth(CONSOLE_TAIL_LINES + 1).map_or(least, |newline| least + newline + 1)
}

fn count_lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

/// Cuts pieces down to their last lines. An unfinished one counts as a line. Returns what was cut off.
fn last_lines(pieces: &mut Vec<BacklogPiece>, lines_max: usize) -> Gap {
    let is_unfinished = pieces.last().is_some_and(|piece| piece.stream.is_some() && !piece.bytes.ends_with(b"\n"));
    let total = pieces.iter().map(|piece| piece.lines).sum::<usize>() + usize::from(is_unfinished);
    let mut surplus = total.saturating_sub(lines_max);
    let mut gap = Gap { lines: surplus as u64, bytes: 0 };
    if surplus == 0 {
        return gap;
    }
    let mut kept = Vec::with_capacity(pieces.len());
    for mut piece in pieces.drain(..) {
        if surplus > 0 && piece.stream.is_some() {
            let cut =
                memchr_iter(b'\n', &piece.bytes).nth(surplus - 1).map_or(piece.bytes.len(), |newline| newline + 1);
            gap.bytes += cut as u64;
            surplus -= surplus.min(piece.lines);
            piece.bytes.drain(..cut);
            piece.lines = count_lines(&piece.bytes);
        }
        if !piece.bytes.is_empty() {
            kept.push(piece);
        }
    }
    gap.lines = gap.lines.min(total as u64);
    *pieces = kept;
    gap
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[BacklogPiece]) -> String {
        pieces.iter().map(|piece| String::from_utf8_lossy(&piece.bytes).into_owned()).collect()
    }

    fn numbers(from: u32, to: u32) -> String {
        (from..=to).map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn a_short_command_is_kept_whole() {
        let mut backlog = Backlog::default();
        backlog.push(Stream::Out, b"a\nb", 200);
        backlog.push(Stream::Err, b"c\n", 200);
        let excerpt = backlog.take(40);
        assert_eq!((text(&excerpt.head), excerpt.gap, excerpt.tail), ("a\nbc\n".to_owned(), Gap::default(), vec![]));
        assert!(backlog.is_empty());
    }

    #[test]
    fn a_remark_is_not_a_line_of_output() {
        let mut backlog = Backlog::default();
        backlog.remark(&"stopping: you asked".into());
        assert_eq!(backlog.lines(), 0);
        backlog.push(Stream::Out, b"a\nb", 200);
        backlog.remark(&"stopping: you asked".into());
        assert_eq!(backlog.lines(), 2, "the unfinished one counts");
    }

    #[test]
    fn of_a_flood_the_beginning_and_the_end_are_kept_however_it_is_split() {
        let all = numbers(1, 100_000);
        for size in [1, 7, 4_096, 65_536, all.len()] {
            let mut backlog = Backlog::default();
            for chunk in all.as_bytes().chunks(size) {
                assert_eq!(backlog.push(Stream::Out, chunk, 200), count_lines(chunk));
            }
            assert_eq!(backlog.lines(), 100_000);
            let excerpt = backlog.take(40);
            assert_eq!(text(&excerpt.head), numbers(1, 200), "{size}");
            assert_eq!(text(&excerpt.tail), numbers(99_961, 100_000), "{size}");
            let shown = text(&excerpt.head).len() + text(&excerpt.tail).len();
            assert_eq!((excerpt.gap.lines, excerpt.gap.bytes), (100_000 - 240, (all.len() - shown) as u64), "{size}");
        }
    }

    #[test]
    fn what_is_taken_and_what_is_counted_is_all_that_came() {
        let mut seed = 1_u64;
        let mut dice = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..300 {
            let (mut backlog, mut came, mut gone) = (Backlog::default(), (0, 0), (0, 0));
            for _ in 0..dice(60) {
                let length = [3, 50, 5_000, 70_000][dice(4)];
                let bytes: Vec<u8> = (0..length).map(|_| if dice(30) == 0 { b'\n' } else { b'x' }).collect();
                came = (came.0 + bytes.len() as u64, came.1 + count_lines(&bytes) as u64);
                backlog.push(if dice(3) == 0 { Stream::Err } else { Stream::Out }, &bytes, 200);
                if dice(10) == 0 {
                    let excerpt = if dice(2) == 0 { backlog.take(40) } else { backlog.take_last(20) };
                    add(&mut gone, &excerpt);
                }
            }
            add(&mut gone, &backlog.take(40));
            assert_eq!(gone, came);
        }
    }

    fn add(gone: &mut (u64, u64), excerpt: &BothEnds) {
        gone.0 += excerpt.gap.bytes;
        gone.1 += excerpt.gap.lines;
        for piece in excerpt.head.iter().chain(&excerpt.tail) {
            assert_eq!(piece.lines, count_lines(&piece.bytes));
            gone.0 += piece.bytes.len() as u64;
            gone.1 += piece.lines as u64;
        }
    }

    #[test]
    fn a_command_that_comes_back_shows_its_last_lines() {
        let mut backlog = Backlog::default();
        backlog.push(Stream::Out, numbers(1, 50).as_bytes(), 200);
        let excerpt = backlog.take_last(20);
        assert_eq!((text(&excerpt.tail), excerpt.gap.lines), (numbers(31, 50), 30));
        backlog.push(Stream::Out, b"prompt: ", 200);
        assert_eq!(text(&backlog.take_last(20).tail), "prompt: ");
    }
}
