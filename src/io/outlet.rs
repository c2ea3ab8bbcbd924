//! Bytes on their way out: a buffer in front of a descriptor that does not block.

use std::io;

/// The capacity that an empty outlet keeps, bytes. More is freed.
const KEPT_BYTES: usize = 16 << 10;

/// A queue of bytes.
#[derive(Debug, Default)]
pub struct Outlet {
    bytes: Vec<u8>,
    sent: usize,
}

/// The outcome of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Everything was written.
    Done,
    /// The descriptor has no room at the moment.
    Blocked,
}

impl Outlet {
    /// The buffer to append to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The buffer to append to, and the length up to which it may grow so that `high` bytes at most are queued.
    pub fn room(&mut self, high: usize) -> (&mut Vec<u8>, usize) {
        (&mut self.bytes, self.sent + high)
    }

    /// The number of queued bytes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending() == 0
    }

    /// Writes with this call until everything is written or it returns `None` for no room.
    ///
    /// # Errors
    /// The first error of `write`. The bytes that were not written stay queued.
    pub fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<Option<usize>>) -> io::Result<Flush> {
        while self.sent < self.bytes.len() {
            match write(&self.bytes[self.sent..])? {
                Some(length) => self.sent += length,
                None => {
                    self.compact();
                    return Ok(Flush::Blocked);
                }
            }
        }
        self.clear();
        Ok(Flush::Done)
    }

    /// Drops everything that is queued.
    pub fn clear(&mut self) {
        self.sent = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Moves the rest to the front once it is the smaller part. So each byte is moved once at most.
    fn compact(&mut self) {
        if self.sent >= self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_writes_blocks_and_errors_lose_nothing() {
        let mut outlet = Outlet::default();
        outlet.buffer().extend_from_slice(b"hello, world");
        let mut out = Vec::new();
        let mut script = [Some(3), None].into_iter();
        let flush = outlet.flush(|bytes| {
            let length = script.next().expect("the script is long enough");
            out.extend_from_slice(&bytes[..length.unwrap_or(0)]);
            Ok(length)
        });
        assert_eq!(flush.unwrap(), Flush::Blocked);
        assert_eq!(outlet.pending(), 9);
        assert!(outlet.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
        outlet.buffer().push(b'!');
        let flush = outlet.flush(|bytes| {
            out.push(bytes[0]);
            Ok(Some(1))
        });
        assert_eq!(flush.unwrap(), Flush::Done);
        assert_eq!(out, b"hello, world!");
        assert!(outlet.is_empty());
    }
}
