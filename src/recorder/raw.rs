//! A raw file: the output of a run that is too long for its record.
//!
//! A file has the beginning and the end of a run's output, each up to the cap. While the run lasts, the part behind the
//! beginning is a ring. It is put in order when the run ends.
//!
//! Invariant: a file that a record names without an error has every byte of the run's output but those that the record
//! omits.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::output_directory::{OutputDirectory, OutputFileKind, reference};

/// One run's raw file.
#[derive(Debug)]
pub(super) struct RawFile {
    file: File,
    name: String,
    /// How much the file keeps of the beginning, and how much of the end, bytes.
    cap: u64,
    /// How much output came so far, which may be more than the file holds.
    bytes: u64,
    /// How much output between the two parts never came, bytes.
    left_out: u64,
}

/// What a record says about a raw file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// The path below the journal's directory.
    pub(super) reference: String,
    /// The file's length.
    pub(super) bytes: u64,
    /// How many bytes the file leaves out, and the offset at which they would stand.
    pub(super) omitted: Option<(u64, u64)>,
}

/// Why a raw file cannot grow.
#[derive(Debug)]
pub(super) enum RawRefusal {
    /// The directory has reached its quota. What the file has is the output's beginning.
    Quota,
    /// Writing failed, so the file is useless.
    Disk(io::Error),
}

impl RawFile {
    /// Makes an empty file for this run.
    pub(super) fn create(directory: &mut OutputDirectory, seq: u64, cap: u64) -> io::Result<RawFile> {
        let (file, name) = directory.create(OutputFileKind::Raw(seq))?;
        Ok(RawFile { file, name, cap, bytes: 0, left_out: 0 })
    }

    /// Whether the first part is complete.
    pub(super) fn has_beginning(&self) -> bool {
        self.bytes >= self.cap
    }

    /// Counts output that the file will not have, and what it has behind its beginning: what follows is the end.
    pub(super) fn leave_out(&mut self, bytes: u64, directory: &mut OutputDirectory) {
        let behind = self.bytes.saturating_sub(self.cap);
        if behind > 0 {
            directory.shrink(self.length() - self.cap);
            // Where that fails, what follows is written over it.
            let _ = self.file.set_len(self.cap);
            self.bytes = self.cap;
        }
        self.left_out += behind + bytes;
    }

    /// Appends to the file. After an error the caller must close or discard it.
    pub(super) fn write(&mut self, bytes: &[u8], directory: &mut OutputDirectory) -> Result<(), RawRefusal> {
        let more = self.file_bytes(self.bytes + bytes.len() as u64) - self.length();
        if !directory.has_room(more) {
            return Err(RawRefusal::Quota);
        }
        let before = self.length();
        let placed = self.place(bytes);
        directory.grow(self.length() - before);
        placed.map_err(RawRefusal::Disk)
    }

    /// Writes bytes behind the others or, once the ring is full, over the oldest ones.
    fn place(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (at, room) = match self.bytes.checked_sub(self.cap) {
                None => (self.bytes, self.cap - self.bytes),
                Some(behind) => (self.cap + behind % self.cap, self.cap - behind % self.cap),
            };
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.file.write_all_at(now, at)?;
            self.bytes += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// The length of a file for this much output.
    fn file_bytes(&self, output: u64) -> u64 {
        output.min(self.cap.saturating_mul(2))
    }

    fn length(&self) -> u64 {
        self.file_bytes(self.bytes)
    }

    /// How much of the file's beginning is in order, how much behind it is not kept, and the last bytes, at most `most` of
    /// them. As long as the file grows, what is behind its beginning is written over.
    pub(super) fn so_far(&self, most: u64) -> io::Result<(u64, u64, Vec<u8>)> {
        let behind = self.bytes.saturating_sub(self.cap);
        let has_ring = behind > 0 || self.left_out > 0;
        let length = most.min(if has_ring { behind.min(self.cap) } else { self.bytes });
        let mut last = vec![0; usize::try_from(length).unwrap_or(0)];
        let from = self.bytes - length;
        if !has_ring {
            self.file.read_exact_at(&mut last, from)?;
            return Ok((from, 0, last));
        }
        let at = (from - self.cap) % self.cap;
        let whole = usize::try_from(self.cap - at).unwrap_or(usize::MAX).min(last.len());
        let (first, rest) = last.split_at_mut(whole);
        self.file.read_exact_at(first, self.cap + at)?;
        self.file.read_exact_at(rest, self.cap)?;
        Ok((self.cap, self.left_out + behind - length, last))
    }

    /// Closes the file and puts its ring in order.
    pub(super) fn close(self, directory: &mut OutputDirectory) -> io::Result<Kept> {
        let (reference, bytes) = (reference(&self.name), self.length());
        let omitted = self.bytes - bytes + self.left_out;
        if self.bytes > bytes
            && let Err(error) = self.unroll()
        {
            self.discard(directory);
            return Err(error);
        }
        let cap = self.cap;
        directory.close(self.file, &self.name, bytes);
        Ok(Kept { reference, bytes, omitted: (omitted > 0).then_some((omitted, cap)) })
    }

    /// Turns the ring so that its oldest byte comes first.
    fn unroll(&self) -> io::Result<()> {
        let oldest = (self.bytes - self.cap) % self.cap;
        if oldest == 0 {
            return Ok(());
        }
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let mut ring = vec![0; usize::try_from(self.cap).map_err(too_large)?];
        self.file.read_exact_at(&mut ring, self.cap)?;
        ring.rotate_left(usize::try_from(oldest).map_err(too_large)?);
        self.file.write_all_at(&ring, self.cap)
    }

    /// Removes the file, which is useless.
    pub(super) fn discard(self, directory: &mut OutputDirectory) {
        directory.discard(&self.name, self.length());
    }
}
