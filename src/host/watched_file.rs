//! A file of rules and the text of it that a person has accepted: looked at when a command is judged, and not too often.
//!
//! Invariants: nothing is looked at where that may wait; what was read a moment after it was written is read once more,
//! because the times of files are coarse.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::limits;
use crate::recorder;
use crate::sys::near_file::{Mounts, Place, Stamp, Unfit};
use crate::sys::process;
use crate::text::reason::reason;

/// What a file has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Nothing,
    Text(Vec<u8>),
    /// It is not read, for this reason.
    Unfit(String),
    /// It is a project's, and looking there may wait.
    Far,
}

/// What was read.
#[derive(Debug, Hash)]
pub(super) struct Texts {
    pub(super) file: Content,
    pub(super) accepted: Option<Vec<u8>>,
}

/// Where a file may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Behind links, too, and nobody else may write to it.
    Persons,
    /// The project's: its text is compared, whoever has written it.
    Projects,
}

#[derive(Debug)]
pub(super) struct WatchedFile {
    pub(super) path: PathBuf,
    whose: Whose,
    kept_at: PathBuf,
    looked_at: Option<Instant>,
    seen: [Seen; 2],
    /// The same was seen at the last two looks.
    is_settled: bool,
    /// Of what was read last.
    hash: Option<u64>,
}

impl WatchedFile {
    /// The file at this path, whose accepted text is kept in `home`.
    pub(super) fn new(path: PathBuf, whose: Whose, home: &Path) -> Self {
        let kept_at = recorder::accepted_place(home, &path);
        Self { path, whose, kept_at, looked_at: None, seen: [Seen::Nothing; 2], is_settled: false, hash: None }
    }

    pub(super) fn looked_at(&self) -> Option<Instant> {
        self.looked_at
    }

    /// The next look is due at once, and what it reads counts as new.
    pub(super) fn look_again(&mut self) {
        (self.looked_at, self.hash) = (None, None);
    }

    /// Looks, if that is due. Returns what was read if that is new.
    pub(super) fn look(&mut self, now: Instant) -> Option<Texts> {
        let is_due = self.looked_at.is_none_or(|at| now.saturating_duration_since(at) >= limits::RULE_FILES_LOOK);
        if !is_due {
            return None;
        }
        self.looked_at = Some(now);
        self.look_in(&Mounts::read())
    }

    /// Looks where that may wait, too.
    pub(super) fn look_at_start(&mut self) -> Option<Texts> {
        self.look_in(&Mounts::ignored())
    }

    fn look_in(&mut self, mounts: &Mounts) -> Option<Texts> {
        let file = match self.whose {
            Whose::Persons => mounts.look(&self.path),
            Whose::Projects => mounts.look_itself(&self.path),
        };
        let places = [file, mounts.look(&self.kept_at)];
        let [is_file_far, is_kept_far] = [0, 1].map(|at| matches!(places[at], Ok(Place::Far)));
        if is_kept_far || is_file_far && self.whose == Whose::Persons {
            return None;
        }
        let seen = [Seen::of(&places[0]), Seen::of(&places[1])];
        let is_same = self.hash.is_some() && seen == self.seen;
        if is_same && self.is_settled {
            return None;
        }
        (self.seen, self.is_settled) = (seen, is_same);
        let [file, kept] = places;
        let accepted = match content(kept, None, limits::RULES_FILE_BYTES_MAX + ACCEPTED_HEAD_BYTES) {
            Content::Text(kept) => recorder::accepted_text(&kept, &self.path).map(<[u8]>::to_vec),
            Content::Nothing | Content::Unfit(_) | Content::Far => None,
        };
        let (checked_for, most) = match self.whose {
            Whose::Persons => (Some(process::uid()), limits::RULES_FILE_BYTES_MAX),
            Whose::Projects => (None, limits::PROJECT_RULES_BYTES_MAX),
        };
        let texts = Texts { file: content(file, checked_for, most), accepted };
        let mut hasher = DefaultHasher::new();
        texts.hash(&mut hasher);
        let hash = Some(hasher.finish());
        let is_new = hash != self.hash;
        self.hash = hash;
        is_new.then_some(texts)
    }
}

/// What may stand before an accepted text, bytes.
const ACCEPTED_HEAD_BYTES: usize = 8 << 10;

/// What is seen of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Far,
    Unfit,
    File(Stamp),
}

impl Seen {
    fn of(place: &io::Result<Place>) -> Self {
        match place {
            Ok(Place::File(file)) => Self::File(file.stamp()),
            Ok(Place::Nothing) => Self::Nothing,
            Ok(Place::Far) => Self::Far,
            Ok(Place::Unfit(_)) | Err(_) => Self::Unfit,
        }
    }
}

/// `checked_for` is the user whose file it must be.
fn content(place: io::Result<Place>, checked_for: Option<u32>, most: usize) -> Content {
    let file = match place {
        Ok(Place::Nothing) => return Content::Nothing,
        Ok(Place::Far) => return Content::Far,
        Ok(Place::Unfit(unfit)) => return Content::Unfit(unfit.words().to_owned()),
        Ok(Place::File(file)) => file,
        Err(error) => return Content::Unfit(reason(&error)),
    };
    if let Some(unfit) = checked_for.and_then(|uid| Unfit::of(file.metadata(), uid)) {
        return Content::Unfit(unfit.words().to_owned());
    }
    match file.read(most) {
        Ok(Some(text)) => Content::Text(text),
        Ok(None) => Content::Unfit(format!("it has more than {most} bytes")),
        Err(error) => Content::Unfit(reason(&error)),
    }
}
