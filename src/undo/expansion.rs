//! The paths that an operand names, found in the file system as the shell's programs would find them.
//!
//! Invariants: a superset of what a shell's pattern matches; symbolic links are followed on the way, and never at the end. The
//! directories and the names that are looked at are bounded.

use std::collections::BTreeSet;
use std::time::Instant;

use super::name_pattern::matches;
use super::store::{join, split};
use super::{PathPattern, Step};
use crate::limits;
use crate::sys::folder::Folder;

/// Why not all paths were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// There are too many, or it took too long.
    TooMany,
    /// A directory may not be read.
    Forbidden,
}

/// The paths without links on the way that a pattern names from this directory, whether there is something or not; and why
/// they may be not all.
pub(super) fn paths(pattern: &PathPattern, from: &[u8], until: Instant) -> (BTreeSet<Vec<u8>>, Option<Cut>) {
    let begin: &[u8] = if pattern.is_absolute { b"/" } else { from };
    let mut search = Search { left: limits::KEPT_MATCHES_MAX, until, cut: None };
    let mut at = BTreeSet::from([begin.to_vec()]);
    for (index, step) in pattern.steps.iter().enumerate() {
        if let Step::Unless(directory) = step {
            let is_there = |path: &Vec<u8>| search.directory(path, b".").is_some();
            if paths(directory, from, until).0.iter().any(is_there) {
                return (BTreeSet::new(), search.cut);
            }
            continue;
        }
        let is_last = index + 1 == pattern.steps.len();
        at = at.iter().flat_map(|path| search.step(path, step, is_last)).collect();
    }
    (at, search.cut)
}

struct Search {
    /// The names that may still be looked at.
    left: usize,
    until: Instant,
    cut: Option<Cut>,
}

impl Search {
    fn step(&mut self, path: &[u8], step: &Step, is_last: bool) -> Vec<Vec<u8>> {
        match step {
            Step::Unless(_) => vec![path.to_vec()],
            Step::Name(name) if name == b"." || name.is_empty() => vec![path.to_vec()],
            Step::Name(name) if name == b".." => vec![split(path).0.to_vec()],
            Step::Name(name) if is_last => vec![join(path, name)],
            Step::Name(name) => self.directory(path, name).into_iter().collect(),
            Step::Matching(pattern) => {
                let names = self.names(path).into_iter().filter(|name| matches(pattern, name)).collect::<Vec<_>>();
                if is_last {
                    names.iter().map(|name| join(path, name)).collect()
                } else {
                    names.iter().filter_map(|name| self.directory(path, name)).collect()
                }
            }
            Step::Any => {
                let (mut found, mut ahead) = (vec![path.to_vec()], vec![path.to_vec()]);
                while let Some(next) = ahead.pop() {
                    for name in self.names(&next) {
                        let below = join(&next, &name);
                        let is_directory = Folder::enter(&below).is_ok();
                        if is_directory {
                            ahead.push(below.clone());
                        }
                        if is_directory || is_last {
                            found.push(below);
                        }
                    }
                }
                found
            }
        }
    }

    /// The directory of this name, behind links.
    fn directory(&mut self, path: &[u8], name: &[u8]) -> Option<Vec<u8>> {
        let folder = Folder::enter(path).and_then(|folder| folder.follow(name));
        match folder {
            Ok(folder) => folder.path(),
            Err(error) => {
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    self.cut = Some(Cut::Forbidden);
                }
                None
            }
        }
    }

    fn names(&mut self, path: &[u8]) -> Vec<Vec<u8>> {
        if self.left == 0 || Instant::now() > self.until {
            self.cut = Some(Cut::TooMany);
            return Vec::new();
        }
        match Folder::enter(path).and_then(|folder| folder.list()) {
            Ok(entries) => {
                if entries.len() > self.left {
                    self.cut = Some(Cut::TooMany);
                }
                let names = entries.into_iter().take(self.left).map(|entry| entry.name).collect::<Vec<_>>();
                self.left -= names.len();
                names
            }
            Err(error) => {
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    self.cut = Some(Cut::Forbidden);
                }
                Vec::new()
            }
        }
    }
}
