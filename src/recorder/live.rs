//! A run that has not ended, in the recorder.
//!
//! Invariants: beside the output that waits, a bounded part of it is in memory; all of it is masked before it reaches a
//! file or a record.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::bounds::Bounds;
use super::excerpt::Excerpt;
use super::held_text::HeldText;
use super::masks::Masks;
use super::output_directory::OutputDirectory;
use super::output_files::OutputFiles;
use super::raw::{RawFile, RawRefusal};
use super::timed_output::TimedOutput;
use super::waiting::{Waiting, WaitingOutput};
use crate::journal::frame::variables;
use crate::journal::record::{EndRecord, RecordedOutput, RunEnd, StartRecord};
use crate::journal::status::{OutputSoFar, RecorderStatus};
use crate::limits;
use crate::text::count;
use crate::text::reason::reason;

/// Longer pieces of output are no prompts, bytes.
const PROMPT_BYTES_MAX: usize = 4 << 10;
/// The most answers that wait for a prompt that is held back.
const ANSWERS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Live {
    /// The start with its secrets masked.
    pub(super) start: Rc<StartRecord>,
    masks: Masks,
    /// The output that has not been dealt with.
    waiting: WaitingOutput,
    /// How much of the next output is only context for reading what follows it, bytes.
    context: usize,
    /// How many bytes of output were dealt with, counted before they were masked.
    received: u64,
    /// Bytes of output that were lost with an earlier recorder.
    lost: u64,
    excerpt: Excerpt,
    /// The excerpt's text is not just the output's bytes: something was taken out or written over.
    is_cleaned: bool,
    raw: Raw,
    timed: TimedOutput,
    /// The output that the masks hold back.
    held: HeldText,
    /// The answers typed meanwhile, and when.
    answers: VecDeque<(Duration, String)>,
    /// When the last output came, from the run's start.
    last: Duration,
    /// How the run ended, while its record waits for its own output.
    pub(super) end: Option<RunEnd>,
    /// The answers to the host's questions that came in between the output.
    pub(super) reached: Vec<RecorderStatus>,
}

/// The raw file of a run.
#[derive(Debug)]
enum Raw {
    /// All of the masked output so far still fits the record.
    Unneeded(Vec<u8>),
    /// Raw files are switched off.
    Unwanted,
    Growing(RawFile),
    /// There is no file, or it lacks the output's end.
    Failed {
        reference: Option<String>,
        why: String,
    },
}

impl Live {
    /// Begins a run. `entries` are its variables, or only the secret ones, as they came in frames.
    pub(super) fn new(mut start: StartRecord, entries: &[u8], bounds: &Bounds) -> Live {
        let window = start.window.take().unwrap_or((limits::PTY_ROWS, limits::PTY_COLS));
        let mut masks = Masks::new(variables(entries), &start);
        let is_verbatim = std::mem::take(&mut start.relayed);
        let start = Rc::new(masks.start(start));
        let timed = TimedOutput::new(start.card.seq, bounds.record_cap, window, is_verbatim);
        let excerpt = Excerpt::new(window, bounds.head_bytes, bounds.tail_bytes);
        let (raw, waiting) = (Raw::Unneeded(Vec::new()), WaitingOutput::default());
        let (last, end, is_cleaned) = (Duration::ZERO, None, false);
        let (context, received, lost, reached) = (0, 0, 0, Vec::new());
        let (held, answers) = (HeldText::default(), VecDeque::new());
        Live {
            start,
            masks,
            waiting,
            context,
            received,
            lost,
            excerpt,
            is_cleaned,
            raw,
            timed,
            held,
            answers,
            last,
            end,
            reached,
        }
    }

    /// Counts bytes of output that were lost with an earlier recorder.
    pub(super) fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
        self.timed.lose(bytes);
    }

    /// Queues output of this time in pieces of this size.
    pub(super) fn enqueue(&mut self, stream: u8, at: Duration, bytes: &[u8], piece: usize, now: Instant) {
        self.waiting.push(stream, at, bytes, piece, now);
    }

    /// Queues the terminal's new size at this time.
    pub(super) fn resize(&mut self, at: Duration, window: (u16, u16)) {
        self.waiting.push_size(at, window);
    }

    /// Queues the recording's text about an answer.
    pub(super) fn answer(&mut self, at: Duration, text: String) {
        self.waiting.push_input(at, text);
    }

    /// Queues a question of the host's. Its answer follows when all that came before is dealt with.
    pub(super) fn mark(&mut self, mark: u64) {
        self.waiting.push_mark(mark);
    }

    /// Its output so far. `None` if not all of it is known.
    fn so_far(&mut self) -> Option<OutputSoFar> {
        let (file_bytes, left_out, mut lines) = match &mut self.raw {
            Raw::Unneeded(all) => (0, 0, all.clone()),
            Raw::Growing(file) => file.so_far(limits::LAST_OUTPUT_BYTES).ok()?,
            Raw::Unwanted | Raw::Failed { .. } => return None,
        };
        lines.extend(self.masks.held_back());
        let last = memchr::memrchr(b'\n', &lines).map_or(0, |newline| newline + 1);
        let last_line = lines.split_off(last);
        (self.lost == 0).then_some(OutputSoFar { file_bytes, left_out, lines, last_line })
    }

    /// Returns true if none of its output waits.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if only the end of what comes from now on matters: the beginning is in the record, in the raw file
    /// and in the recording.
    pub(super) fn has_beginning(&self, bounds: &Bounds) -> bool {
        let has_raw = matches!(&self.raw, Raw::Growing(file) if file.has_beginning());
        let is_bounded = bounds.raw_cap <= limits::RAW_CAP_BYTES;
        has_raw && is_bounded && self.timed.is_full() && self.excerpt.is_cut()
    }

    /// Lets output wait from now on, and some of it be left out.
    pub(super) fn keep_end(&mut self, bounds: &Bounds, now: Instant) {
        self.waiting.keep_end(bounds.raw_cap, now);
    }

    /// Since when nothing was left out although it may be. `None` if it may not be.
    pub(super) fn keeps_end_since(&self) -> Option<Instant> {
        self.waiting.keeps_end_since()
    }

    /// Leaves out nothing from now on. Returns how much output waits, bytes.
    pub(super) fn release_end(&mut self) -> usize {
        self.waiting.release_end()
    }

    /// Deals with the next piece of output. Returns its length in bytes.
    pub(super) fn work(&mut self, masked: &mut Vec<u8>, bounds: &Bounds, files: &mut OutputFiles) -> usize {
        match self.waiting.pop() {
            None => 0,
            Some(Waiting::Size(at, window)) => {
                self.timed.resize(window, at);
                0
            }
            Some(Waiting::Input(at, text)) => {
                self.answers.push_back((at, text));
                if self.held.is_empty() || self.answers.len() > ANSWERS_MAX {
                    self.record_answers(at);
                }
                0
            }
            Some(Waiting::Mark(mark)) => {
                let so_far = self.so_far();
                self.reached.push(RecorderStatus::Reached { mark, so_far });
                0
            }
            Some(Waiting::Output { stream, at, bytes }) => {
                let left_out = self.waiting.take_left_out();
                if left_out > 0 {
                    let held = self.masks.leave_out();
                    self.leave_out(held + left_out, &mut files.directory);
                    self.context = self.waiting.context(bytes.len(), bounds.raw_cap);
                }
                (self.last, self.received) = (at, self.received + left_out + bytes.len() as u64);
                masked.clear();
                self.masks.output(stream, &bytes, masked);
                if self.context > 0 {
                    self.context = self.context.saturating_sub(bytes.len());
                    self.leave_out(masked.len() as u64, &mut files.directory);
                } else {
                    self.keep(masked, bounds, files);
                }
                self.note_held(bytes.len());
                self.timed.flush(false, files);
                bytes.len()
            }
        }
    }

    /// Notes the output that the masks hold back after a piece of this length.
    fn note_held(&mut self, length: usize) {
        let may_be_prompt = self.masks.is_holding() && length <= PROMPT_BYTES_MAX;
        if may_be_prompt && self.context == 0 && !self.timed.is_full() {
            self.held.hold(&self.masks.held_back(), self.last);
        } else {
            self.held = HeldText::default();
            self.record_answers(Duration::MAX);
        }
    }

    /// Records the answers typed until then.
    fn record_answers(&mut self, until: Duration) {
        while self.answers.front().is_some_and(|(at, _)| *at <= until)
            && let Some((at, text)) = self.answers.pop_front()
        {
            self.timed.answer(&text, at);
        }
    }

    /// Counts output between the beginning and the end.
    fn leave_out(&mut self, bytes: u64, directory: &mut OutputDirectory) {
        self.excerpt.leave_out(bytes);
        self.timed.leave_out(bytes);
        if let Raw::Growing(file) = &mut self.raw {
            file.leave_out(bytes, directory);
        }
    }

    /// Returns true if output waits for its files.
    pub(super) fn has_unwritten(&self) -> bool {
        self.timed.has_lines() || matches!(&self.raw, Raw::Growing(file) if file.has_unwritten())
    }

    /// Writes the output that waits for its files.
    pub(super) fn flush(&mut self, files: &mut OutputFiles) {
        self.timed.flush(true, files);
        if let Raw::Growing(file) = &mut self.raw
            && let Err(error) = file.flush()
        {
            give_up(&mut self.raw, RawRefusal::Disk(error), &mut files.directory);
        }
    }

    /// Ends the run: deals with the output that was held back, and returns the complete record.
    pub(super) fn finish(
        mut self,
        end: RunEnd,
        masked: &mut Vec<u8>,
        bounds: &Bounds,
        files: &mut OutputFiles,
    ) -> EndRecord {
        masked.clear();
        self.masks.finish(masked);
        self.keep(masked, bounds, files);
        self.record_answers(Duration::MAX);
        self.excerpt.finish();
        // The last line can make the text longer than the record has room for.
        self.keep_raw(&[], bounds, &mut files.directory);
        let (mut end, mut output) = (end, RecordedOutput::default());
        // Output that the host skipped is missing in an unknown place. Output that was lost with an earlier recorder is
        // missing before all that this one has.
        let missing = end.bytes.saturating_sub(self.received);
        end.bytes = end.bytes.max(self.received);
        let mut text = self.excerpt.into_text();
        if self.is_cleaned {
            // Without the escape sequence in its middle, a secret can be recognized.
            text = text.masked(|text| self.masks.text(text), bounds.head_bytes, bounds.tail_bytes);
        }
        let omitted = text.omitted + missing;
        if omitted > 0 {
            output.omitted = Some(omitted);
            output.cut = Some(if text.omitted == 0 && self.lost > 0 { 0 } else { text.cut as u64 });
        }
        output.lost = (missing > 0).then_some(missing);
        output.text = text.text;
        output.secrets = self.masks.count();
        self.raw.close(missing, &mut files.directory, &mut output);
        self.timed.finish(files, &mut output);
        EndRecord { start: Rc::unwrap_or_clone(self.start), end, output }
    }

    fn keep(&mut self, masked: &[u8], bounds: &Bounds, files: &mut OutputFiles) {
        for (at, part) in self.held.parts(masked, self.last) {
            self.record_answers(at);
            self.timed.push(part, at);
        }
        self.excerpt.push(masked);
        self.is_cleaned = self.is_cleaned || memchr::memchr3(b'\x1b', b'\x08', b'\r', masked).is_some();
        self.keep_raw(masked, bounds, &mut files.directory);
    }

    /// Keeps masked output that the excerpt has already. Once the output or its text is longer than the record has room
    /// for, it goes to a raw file.
    fn keep_raw(&mut self, bytes: &[u8], bounds: &Bounds, directory: &mut OutputDirectory) {
        let Raw::Unneeded(all) = &mut self.raw else { return write_raw(directory, &mut self.raw, bytes) };
        all.extend_from_slice(bytes);
        if all.len() <= bounds.head_bytes + bounds.tail_bytes && !self.excerpt.is_cut() {
            return;
        }
        let all = std::mem::take(all);
        self.raw = match (bounds.raw_cap > 0).then(|| RawFile::create(directory, self.start.card.seq, bounds.raw_cap)) {
            None => Raw::Unwanted,
            Some(Ok(file)) => Raw::Growing(file),
            Some(Err(error)) => Raw::Failed { reference: None, why: reason(&error) },
        };
        write_raw(directory, &mut self.raw, &all);
    }
}

impl Raw {
    /// Closes the file, and notes its content in the record. `missing` bytes of the output never came.
    fn close(self, missing: u64, directory: &mut OutputDirectory, output: &mut RecordedOutput) {
        match self {
            Raw::Unneeded(_) | Raw::Unwanted => {}
            Raw::Growing(file) => match file.close(directory) {
                Ok(kept) => {
                    (output.raw, output.raw_bytes) = (Some(kept.reference), Some(kept.bytes));
                    (output.raw_omitted, output.raw_cut) = kept.omitted.unzip();
                    output.raw_error =
                        (missing > 0).then(|| format!("{} did not reach the journal", count::bytes(missing)));
                }
                Err(error) => output.raw_error = Some(reason(&error)),
            },
            Raw::Failed { reference, why } => (output.raw, output.raw_error) = (reference, Some(why)),
        }
    }
}

/// Appends to a growing raw file. Gives the file up if it cannot grow.
fn write_raw(directory: &mut OutputDirectory, raw: &mut Raw, bytes: &[u8]) {
    if let Raw::Growing(file) = raw
        && let Err(refusal) = file.write(bytes, directory)
    {
        give_up(raw, refusal, directory);
    }
}

fn give_up(raw: &mut Raw, refusal: RawRefusal, directory: &mut OutputDirectory) {
    let Raw::Growing(file) = std::mem::replace(raw, Raw::Unwanted) else { return };
    let (reference, why) = match refusal {
        RawRefusal::Quota => {
            let kept = file.close(directory).ok().map(|kept| kept.reference);
            (kept, "the rest was left out: raw files have no more room".to_owned())
        }
        RawRefusal::Disk(error) => {
            file.discard(directory);
            (None, reason(&error))
        }
    };
    *raw = Raw::Failed { reference, why };
}
