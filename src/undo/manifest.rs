//! The manifest of a run: what was kept of what its command may destroy, a line of JSON for each path.
//!
//! Invariants: the first line is the [`Head`]. A line stands for what had been done when it was written, so that a file cut off at
//! any place tells the truth about what it has. No line has contents of a file, or the command.

use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text::encode::{base64, from_base64};

/// The version of the form. Files of others are not read.
pub const VERSION: u32 = 1;

/// A line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    Head(Head),
    Item(Item),
    Around(Around),
    /// A path that is not kept.
    Missed(Missed),
    /// The last line: all that was to be kept has been looked at.
    Done {
        /// True once what was not destroyed has been taken out.
        settled: bool,
        /// The bytes of what was destroyed and is kept.
        #[serde(default)]
        bytes: u64,
        /// True if what kept it was ended before it had kept all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_cut: bool,
    },
}

/// Whose manifest it is, and where the objects are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub v: u32,
    pub session: String,
    pub run: u64,
    /// When it was begun, seconds since 1970.
    pub time: u64,
    pub agent: String,
    /// Where the command began.
    pub dir: Bytes,
    /// The number of the restore before which this was kept. `None`: it was kept before a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<u32>,
    /// The directories of the objects. An [`Object`] names one by its index.
    pub places: Vec<Bytes>,
}

/// A path as it was before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Absolute. Its directory has no symbolic links, and neither `.` nor `..`.
    pub path: Bytes,
    pub kind: Kind,
    /// The permissions, with the bits for set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Seconds and nanoseconds since 1970.
    pub mtime: (i64, u32),
    pub dev: u64,
    pub ino: u64,
    /// The number of its links before it was kept.
    pub links: u64,
    /// True for what comes back with other files and is not worth a restore alone: git's index, and its logs of references, which
    /// each of its commands changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aside: bool,
    /// Names and values of extended attributes, for what has no object with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<(Bytes, Bytes)>,
    /// `None` for directories. Several names of one inode have the same object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Object>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// What keeps a file: PLACE/RUN/N/M, with N and M from [`Object::path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// The index of its directory in [`Head::places`].
    pub place: usize,
    pub number: u64,
    pub way: Way,
}

/// How an object has the bytes of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It is the inode itself, for names that go away.
    Link,
    /// It shares the file's blocks until one of them changes.
    Clone,
    Copy,
}

/// A directory that is not kept itself. Its time changes when names in it go away, and when they come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    pub path: Bytes,
    /// Before the command, as all times here.
    pub mtime: (i64, u32),
    /// After the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<(i64, u32)>,
}

/// A path that is not kept, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    pub path: Bytes,
    pub why: Why,
    /// The size and the time of what may stay there and change: a file, or a directory in which names go away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<(u64, (i64, u32))>,
}

/// Why a path is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The text does not tell the path. What is given is the word as it is written.
    Unknown,
    /// Nothing can be linked there, and it is too large to be copied.
    TooLarge,
    /// It may not be read.
    Forbidden,
    /// It is a cache, or the person has excepted it.
    Excepted,
    /// Keeping took too long.
    TooLate,
    /// There is no room for it on the disk.
    NoRoom,
    /// It was to be wiped.
    Wiped,
    /// It lies in the store, or the store in it, and no other place can be had.
    InStore,
    /// The system refused it for another reason.
    Failed,
}

impl Object {
    /// The most objects in one directory.
    pub const GROUP: u64 = 4096;

    /// The path below the directory of the run in its place: `N/M`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.number / Self::GROUP, self.number % Self::GROUP)
    }
}

/// Bytes that are mostly text: a JSON string if they are UTF-8, else `{"b64": …}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenBytes<'a> {
    Text(std::borrow::Cow<'a, str>),
    Encoded { b64: String },
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => WrittenBytes::Text(text.into()),
            Err(_) => WrittenBytes::Encoded { b64: base64(&self.0) },
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(match WrittenBytes::deserialize(from)? {
            WrittenBytes::Text(text) => text.into_owned().into_bytes(),
            WrittenBytes::Encoded { b64 } => from_base64(&b64).ok_or_else(|| serde::de::Error::custom("no base64"))?,
        }))
    }
}

impl Line {
    /// The line, with its end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("all of it can be written as JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a line without its end. `None` if it is not one.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// The lines of a manifest, up to one that cannot be read.
#[derive(Debug)]
pub(super) struct Lines<R>(BufReader<R>);

impl<R: Read> Lines<R> {
    pub(super) fn of(manifest: R) -> Self {
        Self(BufReader::with_capacity(256 << 10, manifest))
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let mut line = Vec::new();
        (&mut self.0).take(limits::MANIFEST_LINE_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
        Line::decode(line.strip_suffix(b"\n")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_as_it_was_written() {
        let item = Item {
            path: Bytes(b"/home/u/\xff\n".to_vec()),
            kind: Kind::File,
            mode: 0o4755,
            uid: 1,
            gid: 2,
            size: 3,
            mtime: (-1, 999_999_999),
            dev: 4,
            ino: u64::MAX,
            links: 1,
            is_aside: true,
            xattrs: vec![(Bytes(b"user.a".to_vec()), Bytes(vec![0, 255]))],
            object: Some(Object { place: 0, number: 4097, way: Way::Link }),
        };
        let missed = Missed { path: Bytes(b"$x/*".to_vec()), why: Why::Unknown, was: Some((1, (2, 3))) };
        for line in [Line::Item(item), Line::Missed(missed), Line::Done { settled: true, bytes: 5, is_cut: true }] {
            let written = line.encode();
            assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(Line::decode(&written[..written.len() - 1]), Some(line));
        }
        assert_eq!(Object { place: 0, number: 4097, way: Way::Copy }.path(), "1/1");
        assert_eq!(Line::decode(b"{\"line\":\"ite"), None);
    }
}
