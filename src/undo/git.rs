//! Asks git which files a command of git would destroy.
//!
//! Invariants: git is the one that the command would run, in its directory and with its environment. What it is asked takes no
//! lock, refreshes no index, and runs neither hooks nor watchers.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Instant;

use super::repository::{Listing, RepositoryLoss};
use super::store::join;
use crate::limits;
use crate::sys::folder::Folder;
use crate::sys::query;

/// Git, as a command calls it.
pub(super) struct Git<'a> {
    pub loss: &'a RepositoryLoss,
    pub directory: &'a [u8],
    pub environment: &'a [(OsString, OsString)],
    pub until: Instant,
}

/// Where a repository lies.
pub(super) struct Places {
    /// The top of the work tree.
    pub top: Vec<u8>,
    /// The directories of git's own files: that of the work tree, and that of the repository, if it is another one.
    pub own: Vec<Vec<u8>>,
}

impl Places {
    /// The logs to which git adds a line in place with nearly each command: of HEAD and of its branch.
    pub(super) fn logs(&self) -> Vec<Vec<u8>> {
        let (Some(own), Some(common)) = (self.own.first(), self.own.last()) else { return Vec::new() };
        let head = Folder::enter(own).and_then(|folder| folder.read(b"HEAD")).and_then(|(file, _)| {
            let mut head = Vec::new();
            file.take(limits::GIT_HEAD_BYTES_MAX).read_to_end(&mut head).map(|_| head)
        });
        let head = head.unwrap_or_default();
        let branch = head.strip_prefix(b"ref: ").and_then(|name| name.strip_suffix(b"\n"));
        let is_name =
            |name: &&[u8]| name.starts_with(b"refs/") && name.split(|byte| *byte == b'/').all(|step| step != b"..");
        let of_branch = branch.filter(is_name).map(|name| join(&join(common, b"logs"), name));
        [join(own, b"logs/HEAD")].into_iter().chain(of_branch).collect()
    }

    /// The list of what was stashed, which git changes in place, too.
    pub(super) fn stashes(&self) -> Option<Vec<u8>> {
        self.own.last().map(|common| join(common, b"logs/refs/stash"))
    }
}

impl Git<'_> {
    /// `None` if git finds no repository: then the command destroys nothing.
    pub(super) fn places(&self) -> io::Result<Option<Places>> {
        let mut words: Vec<&[u8]> = vec![b"rev-parse", b"--path-format=absolute", b"--git-dir", b"--git-common-dir"];
        if self.loss.all_listings().next().is_some() {
            words.push(b"--show-toplevel");
        }
        let said = match self.ask(&words) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::NotFound) => return Ok(None),
            said => said?,
        };
        let lines: Vec<_> = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        // A name may have the end of a line in it.
        if lines.len() != words.len() - 2 || lines.iter().any(|line| !line.starts_with(b"/")) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let top = lines.get(2).copied().unwrap_or_default().to_vec();
        let mut own = vec![lines[0].to_vec(), lines[1].to_vec()];
        own.dedup();
        Ok(Some(Places { top, own }))
    }

    /// The names that a listing has, below the top of the work tree, each with a zero behind it. A directory that is wholly
    /// meant ends in a slash.
    pub(super) fn list(&self, listing: &Listing) -> io::Result<Vec<u8>> {
        let mut words = listing.call();
        let options: &[&[u8]] = match listing {
            Listing::Changed { .. } => {
                &[b"-z", b"--no-renames", b"--no-ext-diff", b"--no-textconv", b"--ignore-submodules=all"]
            }
            Listing::Untracked { .. } => &[b"-z", b"--full-name", b"--directory"],
            Listing::Tracked { .. } => &[b"-z", b"--full-name"],
        };
        words.splice(1..1, options.iter().copied());
        if !words.contains(&&b"--"[..]) {
            words.push(b"--");
        }
        match self.ask(&words) {
            Err(error) if error.kind() == io::ErrorKind::Other && listing.is_guess() => Ok(Vec::new()),
            said => said,
        }
    }

    fn ask(&self, words: &[&[u8]]) -> io::Result<Vec<u8>> {
        let mut call = Command::new(OsStr::from_bytes(&self.loss.program));
        // A trace would be written behind that of the command.
        let environment = self.environment.iter().filter(|(name, _)| !name.as_bytes().starts_with(b"GIT_TRACE"));
        call.env_clear().envs(environment.map(|(name, value)| (name, value)));
        call.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")]);
        call.current_dir(OsStr::from_bytes(self.directory));
        call.args(self.loss.globals.iter().map(|word| OsStr::from_bytes(word)));
        call.args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
        // Git diff would write the index, whatever is said of locks.
        call.args(["-c", "diff.autoRefreshIndex=false"]);
        call.args(words.iter().map(|word| OsStr::from_bytes(word)));
        query::answer(call, self.until, limits::GIT_ANSWER_BYTES_MAX)
    }
}
