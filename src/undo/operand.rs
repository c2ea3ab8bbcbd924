//! What a command would destroy, as far as its text tells.
//!
//! Invariant: a superset. A command may leave alone what an operand names.

use super::finding::Finding;

/// Paths that a leaf would destroy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    pub path: PathPattern,
    pub loss: Loss,
    pub extent: Extent,
}

/// A path in which names may be patterns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathPattern {
    /// False if it begins in the command's directory.
    pub is_absolute: bool,
    pub steps: Vec<Step>,
}

impl PathPattern {
    /// The path as it may be written, with a backslash before each character of patterns in a name.
    #[must_use]
    pub fn shown(&self) -> Vec<u8> {
        let is_shown = |step: &&Step| !matches!(step, Step::Unless(_)) && **step != Step::here();
        let steps = self.steps.iter().filter(is_shown).map(|step| match step {
            Step::Name(name) => escaped(name),
            Step::Matching(pattern) => pattern.clone(),
            Step::Any => b"**".to_vec(),
            Step::Unless(_) => Vec::new(),
        });
        let path = steps.collect::<Vec<_>>().join(&b'/');
        match (self.is_absolute, path.is_empty()) {
            (true, _) => [b"/", &path[..]].concat(),
            (false, true) => b".".to_vec(),
            (false, false) => path,
        }
    }
}

fn escaped(name: &[u8]) -> Vec<u8> {
    let escape = |&byte: &u8| if b"*?[\\".contains(&byte) { vec![b'\\', byte] } else { vec![byte] };
    name.iter().flat_map(escape).collect()
}

/// A step of a path, from one directory into the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A name, also `..`; `.` at the end, where a link before it is followed.
    Name(Vec<u8>),
    /// All names that match: `*`, `?` and `[…]`, of which `*` and `?` match a leading dot, too.
    Matching(Vec<u8>),
    /// No step, or any number of them: `**`.
    Any,
    /// No step. The path is none if this is a directory: a `cd` leads there, and not here.
    Unless(PathPattern),
}

impl Step {
    pub(super) fn here() -> Self {
        Self::Name(b".".to_vec())
    }
}

/// What happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its name goes away, or gets another file.
    Name,
    /// Its bytes change in place.
    Bytes,
}

/// How far it reaches below the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    Itself,
    /// With all that is below it, if it is a directory.
    Tree,
    /// What find finds in it.
    Found(Finding),
    /// Some of what is below it, which the text does not name: it is copied if it is little, as most of it stays. The archive that
    /// it comes from is none of it.
    Below {
        archive: Option<PathPattern>,
        /// The steps of the archive's names that are left out, if these names tell what is replaced.
        strip: Option<usize>,
    },
    /// What this file of differences names, from the path on.
    Patched {
        diff: PathPattern,
    },
    /// What has the same name as something of these sources, which are copied into the path, or else onto it.
    Overlay {
        sources: PathPattern,
        is_inside: bool,
    },
}
