//! A run that has not ended, as the recorder knows it.
//!
//! Invariants: a bounded part of its output is in memory, and what may be the beginning of a secret; nothing of it
//! reaches a file or a record that was not masked before; its start and its end do not wait for other runs' output.

use std::collections::VecDeque;
use std::rc::Rc;

use super::Bounds;
use super::excerpt::Excerpt;
use super::masks::Masks;
use super::raw::{RawFile, RawRefusal, RawStore};
use crate::journal::record::{EndRecord, RecordedOutput, RunEnd, StartRecord};
use crate::limits;
use crate::text::count;
use crate::text::reason::reason;

/// A run that has not ended.
#[derive(Debug)]
pub(super) struct Live {
    /// As it is kept.
    pub(super) start: Rc<StartRecord>,
    masks: Masks,
    /// Output that came and was not dealt with: the stream and the bytes.
    waiting: VecDeque<(u8, Vec<u8>)>,
    /// All bytes of output that came, as they were before the masks.
    received: u64,
    /// Bytes of output that a recorder before this one took with it.
    lost: u64,
    excerpt: Excerpt,
    /// Its text is not the output's bytes: something was taken out or written over.
    is_cleaned: bool,
    raw: Raw,
    /// It has ended; its record waits for its own output.
    pub(super) end: Option<RunEnd>,
}

#[derive(Debug)]
enum Raw {
    /// All of the output so far, which needs no file yet.
    Unneeded(Vec<u8>),
    /// None is kept of any run.
    Unwanted,
    Growing(RawFile),
    /// Not there, or not whole.
    Failed {
        reference: Option<String>,
        why: String,
    },
}

impl Live {
    /// A run that begins, with these secrets, as they came in frames.
    pub(super) fn new(mut start: StartRecord, secrets: &[u8], bounds: &Bounds) -> Live {
        let window = start.window.take().unwrap_or((limits::PTY_ROWS, limits::PTY_COLS));
        let mut masks = Masks::new(secrets);
        let start = Rc::new(masks.start(start));
        let excerpt = Excerpt::new(window, bounds.head_bytes, bounds.tail_bytes);
        let (raw, waiting) = (Raw::Unneeded(Vec::new()), VecDeque::new());
        Live { start, masks, waiting, received: 0, lost: 0, excerpt, is_cleaned: false, raw, end: None }
    }

    /// A recorder that died took so many bytes of its output with it.
    pub(super) fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Output that will be dealt with in its turn, in pieces of this size.
    pub(super) fn enqueue(&mut self, stream: u8, bytes: &[u8], piece: usize) {
        for bytes in bytes.chunks(piece) {
            match self.waiting.back_mut() {
                Some((same, waiting)) if *same == stream && waiting.len() + bytes.len() <= piece => {
                    waiting.extend_from_slice(bytes);
                }
                _ => self.waiting.push_back((stream, bytes.to_vec())),
            }
        }
    }

    /// Whether none of its output waits.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Deals with the next piece of its output; gives how long that was.
    pub(super) fn work(&mut self, masked: &mut Vec<u8>, bounds: &Bounds, store: &mut RawStore) -> usize {
        let Some((stream, bytes)) = self.waiting.pop_front() else { return 0 };
        self.received += bytes.len() as u64;
        masked.clear();
        self.masks.output(stream, &bytes, masked);
        self.keep(masked, bounds, store);
        bytes.len()
    }

    /// The record of the whole run.
    pub(super) fn finish(
        mut self,
        end: RunEnd,
        masked: &mut Vec<u8>,
        bounds: &Bounds,
        store: &mut RawStore,
    ) -> EndRecord {
        masked.clear();
        self.masks.finish(masked);
        self.keep(masked, bounds, store);
        self.excerpt.finish();
        // A last line that was held back can make the text longer than the record has room for.
        self.keep_raw(&[], bounds, store);
        let (mut end, mut output) = (end, RecordedOutput::default());
        // What the host left out on its way here is missing somewhere, nobody knows where; what died with a recorder is
        // missing before what this one has.
        let missing = end.bytes.saturating_sub(self.received);
        end.bytes = end.bytes.max(self.received);
        let mut text = self.excerpt.into_text();
        if self.is_cleaned {
            // Without the escape sequence in its middle, a secret is one again.
            text = text.masked(|text| self.masks.text(text), bounds.head_bytes, bounds.tail_bytes);
        }
        let omitted = text.omitted + missing;
        if omitted > 0 {
            output.omitted = Some(omitted);
            output.cut = Some(if text.omitted == 0 && self.lost > 0 { 0 } else { text.cut as u64 });
        }
        output.lost = (missing > 0).then_some(missing);
        output.text = text.text;
        match self.raw {
            Raw::Unneeded(_) | Raw::Unwanted => {}
            Raw::Growing(file) => match store.close(file) {
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
        EndRecord { start: Rc::unwrap_or_clone(self.start), end, output }
    }

    fn keep(&mut self, masked: &[u8], bounds: &Bounds, store: &mut RawStore) {
        self.excerpt.push(masked);
        self.is_cleaned |= memchr::memchr3(b'\x1b', b'\x08', b'\r', masked).is_some();
        self.keep_raw(masked, bounds, store);
    }

    /// Takes masked output that the excerpt has already, and puts it into a raw file once it is more than the record has
    /// room for, or its text is.
    fn keep_raw(&mut self, bytes: &[u8], bounds: &Bounds, store: &mut RawStore) {
        let Raw::Unneeded(all) = &mut self.raw else { return write_raw(store, &mut self.raw, bytes) };
        all.extend_from_slice(bytes);
        if all.len() <= bounds.head_bytes + bounds.tail_bytes && !self.excerpt.is_cut() {
            return;
        }
        let all = std::mem::take(all);
        self.raw = match store.is_wanted().then(|| store.create(self.start.seq)) {
            None => Raw::Unwanted,
            Some(Ok(file)) => Raw::Growing(file),
            Some(Err(error)) => Raw::Failed { reference: None, why: reason(&error) },
        };
        write_raw(store, &mut self.raw, &all);
    }
}

/// Appends to a raw file that is being written; gives it up when it takes no more.
fn write_raw(store: &mut RawStore, raw: &mut Raw, bytes: &[u8]) {
    let Raw::Growing(file) = raw else { return };
    let Err(refusal) = store.write(file, bytes) else { return };
    let Raw::Growing(file) = std::mem::replace(raw, Raw::Unwanted) else { return };
    let (reference, why) = match refusal {
        RawRefusal::Quota => {
            let kept = store.close(file).ok().map(|kept| kept.reference);
            (kept, "the rest was left out: raw files have no more room".to_owned())
        }
        RawRefusal::Disk(error) => {
            store.discard(file);
            (None, reason(&error))
        }
    };
    *raw = Raw::Failed { reference, why };
}
