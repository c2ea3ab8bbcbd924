//! What stands at a path now.
//!
//! Invariant: symbolic links are followed nowhere. The directory of the last path stays open, for the next one.

use std::io;

use super::store::split;
use crate::sys::folder::{Facts, Folder};

/// The longest way from the open directory to one below it, bytes. Longer ones begin at the root again.
const WAY_BYTES_MAX: usize = 1 << 10;

#[derive(Debug, Default)]
pub(super) struct Present {
    /// The directory of the last path, if it could be entered.
    near: Option<(Vec<u8>, Folder)>,
}

impl Present {
    /// Enters a directory.
    pub(super) fn enter(&mut self, directory: &[u8]) -> io::Result<&Folder> {
        let near = match self.near.take() {
            Some((near, folder)) if near == directory => folder,
            Some((near, folder)) => {
                let way = directory.strip_prefix(&near[..]).and_then(|rest| rest.strip_prefix(b"/"));
                let entered = match way.filter(|way| (1..WAY_BYTES_MAX).contains(&way.len())) {
                    Some(way) => folder.inner(way),
                    None => Folder::enter(directory),
                };
                if entered.is_err() {
                    self.near = Some((near, folder));
                }
                entered?
            }
            None => Folder::enter(directory)?,
        };
        Ok(&self.near.insert((directory.to_vec(), near)).1)
    }

    /// What stands at a path; `None` if nothing does.
    pub(super) fn look(&mut self, path: &[u8]) -> io::Result<Option<Facts>> {
        let (directory, name) = split(path);
        match self.enter(directory).and_then(|folder| folder.look(name)) {
            Ok(facts) => Ok(Some(facts)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Enters the deepest directory that is there of this directory and those above it; returns the paths of the others, the
    /// highest first.
    pub(super) fn approach<'p>(&mut self, directory: &'p [u8]) -> io::Result<Vec<&'p [u8]>> {
        let (mut at, mut missing) = (directory, Vec::new());
        loop {
            match self.enter(at) {
                Ok(_) => break,
                Err(error) if is_missing(&error) && at != b"/" => {
                    missing.push(at);
                    at = split(at).0;
                }
                Err(error) => return Err(error),
            }
        }
        missing.reverse();
        Ok(missing)
    }

    /// Forgets the open directory, which may have been moved.
    pub(super) fn forget(&mut self) {
        self.near = None;
    }
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
