//! A raw file: the output of a run that is too long for its record.
//!
//! A file has the beginning and the end of a run's output, each up to the cap. While the run lasts, the part behind the
//! beginning is a ring. It is put in order when the run ends. The newest output waits in memory for more, so that the
//! file is written in large pieces; [`RawFile::flush`] ends the wait.
//!
//! Invariant: a file that a record names without an error has every byte of the run's output but those that the record
//! omits.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::output_directory::{OutputDirectory, OutputFileKind, reference};

/// How much is written at once, bytes, and at multiples of it. That takes the kernel less than half the time that
/// pieces of 16 KiB at odd offsets take.
const WRITE_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct RawFile {
    file: File,
    name: String,
    /// How much the file keeps of the beginning, and how much of the end, bytes.
    cap: u64,
    /// How much output came so far, which may be more than the file holds.
    bytes: u64,
    /// The end of the output, which is not written yet.
    unwritten: Vec<u8>,
    /// How much output between the two parts never came, bytes.
    left_out: u64,
}

/// A record's facts about a raw file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// The path below the journal's directory.
    pub(super) reference: String,
    /// The file's length.
    pub(super) bytes: u64,
    /// How many bytes the file leaves out, and the offset at which they would stand.
    pub(super) omitted: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) enum RawRefusal {
    /// The directory has reached its quota. The file has the output's beginning.
    Quota,
    /// Writing failed, so the file is useless.
    Disk(io::Error),
}

impl RawFile {
    pub(super) fn create(directory: &mut OutputDirectory, seq: u64, cap: u64) -> io::Result<RawFile> {
        let (file, name) = directory.create(OutputFileKind::Raw(seq))?;
        Ok(RawFile { file, name, cap, bytes: 0, unwritten: Vec::new(), left_out: 0 })
    }

    /// Returns true if the first part is complete.
    pub(super) fn has_beginning(&self) -> bool {
        self.bytes >= self.cap
    }

    /// Counts output that the file will not have, and drops and counts what it has behind its beginning: the end
    /// follows.
    pub(super) fn leave_out(&mut self, bytes: u64, directory: &mut OutputDirectory) {
        let behind = self.bytes.saturating_sub(self.cap);
        if behind > 0 {
            directory.shrink(self.length() - self.cap);
            // Where that fails, what follows is written over it.
            let _ = self.file.set_len(self.cap);
            let kept = self.unwritten.len().saturating_sub(usize::try_from(behind).unwrap_or(usize::MAX));
            self.unwritten.truncate(kept);
            self.bytes = self.cap;
        }
        self.left_out += behind + bytes;
    }

    /// Appends to the file. After an error the caller must close or discard it.
    pub(super) fn write(&mut self, bytes: &[u8], directory: &mut OutputDirectory) -> Result<(), RawRefusal> {
        let (before, after) = (self.length(), self.file_bytes(self.bytes + bytes.len() as u64));
        if !directory.has_room(after - before) {
            return Err(RawRefusal::Quota);
        }
        self.unwritten.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        directory.grow(after - before);
        let rest = usize::try_from(self.bytes % WRITE_BYTES).unwrap_or(usize::MAX);
        match self.unwritten.len().checked_sub(rest) {
            None | Some(0) => Ok(()),
            Some(length) => self.place(length).map_err(RawRefusal::Disk),
        }
    }

    /// Returns true if some of the output is not written yet.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Writes the output that is not written yet. After an error the caller must close or discard the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.place(self.unwritten.len())?;
        self.unwritten = Vec::new();
        Ok(())
    }

    /// Writes the first of the unwritten bytes, after the written ones or, once the ring is full, over the oldest ones.
    fn place(&mut self, length: usize) -> io::Result<()> {
        let (mut from, mut bytes) = (self.bytes - self.unwritten.len() as u64, &self.unwritten[..length]);
        while !bytes.is_empty() {
            let (at, room) = match from.checked_sub(self.cap) {
                None => (from, self.cap - from),
                Some(behind) => (self.cap + behind % self.cap, self.cap - behind % self.cap),
            };
            let (now, rest) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.file.write_all_at(now, at)?;
            from += now.len() as u64;
            bytes = rest;
        }
        self.unwritten.drain(..length);
        Ok(())
    }

    /// The length of a file for this much output.
    fn file_bytes(&self, output: u64) -> u64 {
        output.min(self.cap.saturating_mul(2))
    }

    fn length(&self) -> u64 {
        self.file_bytes(self.bytes)
    }

    /// How much of the file's beginning is in order, how much behind it is not kept, and the last bytes, at most `most`
    /// of them. While the file grows, the part behind its beginning is written over.
    pub(super) fn so_far(&mut self, most: u64) -> io::Result<(u64, u64, Vec<u8>)> {
        self.flush()?;
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
    pub(super) fn close(mut self, directory: &mut OutputDirectory) -> io::Result<Kept> {
        let (reference, bytes) = (reference(&self.name), self.length());
        let omitted = self.bytes - bytes + self.left_out;
        if let Err(error) = self.flush().and_then(|()| if self.bytes > bytes { self.unroll() } else { Ok(()) }) {
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

    /// Removes the useless file.
    pub(super) fn discard(self, directory: &mut OutputDirectory) {
        directory.discard(&self.name, self.length());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::bounds::Bounds;
    use crate::recorder::home::JournalHome;

    /// Compares the file with all the output, whose bytes tell their places, for pieces, flushes and gaps of any size.
    #[test]
    fn a_file_has_the_beginning_and_the_end_however_it_was_written() {
        let home = std::env::temp_dir().join(format!("rexec-raw-{}", std::process::id()));
        let place = JournalHome::of_test(&home);
        let mut directory = OutputDirectory::new(place, "2026-05-21-09:42:18", &Bounds::default());
        let byte = |at: u64| u8::try_from(at % 251).unwrap();
        let mut dice = 88_172_645_463_325_252_u64;
        let mut below = |end: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % end
        };
        for seq in 0..20 {
            let cap = 1 + below(3 * WRITE_BYTES);
            let mut raw = RawFile::create(&mut directory, seq, cap).unwrap();
            // The places of the output that may be in the file.
            let (mut came, mut all) = (0, Vec::new());
            for _ in 0..below(40) {
                let piece = below(WRITE_BYTES);
                let bytes: Vec<u8> = (came..came + piece).map(byte).collect();
                raw.write(&bytes, &mut directory).unwrap();
                all.extend(came..came + piece);
                came += piece;
                match below(8) {
                    0 => raw.flush().unwrap(),
                    1 => {
                        let (_, _, last) = raw.so_far(5_000).unwrap();
                        assert!(last.iter().copied().eq(all[all.len() - last.len()..].iter().map(|&at| byte(at))));
                    }
                    2 if raw.has_beginning() => {
                        let gap = 1 + below(100);
                        raw.leave_out(gap, &mut directory);
                        all.truncate(usize::try_from(cap).unwrap());
                        came += gap;
                    }
                    _ => {}
                }
            }
            let kept = raw.close(&mut directory).unwrap();
            let cap = usize::try_from(cap).unwrap();
            let mut expected: Vec<u64> = all[..all.len().min(cap)].to_vec();
            expected.extend(&all[all.len().saturating_sub(cap).max(expected.len())..]);
            let there = std::fs::read(home.join(&kept.reference)).unwrap();
            assert!(there.iter().copied().eq(expected.iter().map(|&at| byte(at))), "run {seq}");
            let omitted = came - expected.len() as u64;
            assert_eq!((kept.bytes, kept.omitted.map_or(0, |(bytes, _)| bytes)), (there.len() as u64, omitted));
        }
        std::fs::remove_dir_all(&home).unwrap();
    }
}
