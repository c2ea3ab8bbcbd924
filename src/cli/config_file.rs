//! A person's file of options and rules, `config.toml`.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::{quoted, told};
use crate::gate::{Loaded, RulesError, TextPlace, load};
use crate::limits;
use crate::sys::near_file::Unfit;
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The columns of a sentence about a place in the file.
const SENTENCE_COLUMNS: usize = 400;

/// Where the person's file stands. `None` if there is no home.
pub(super) fn own_path() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(folder.join("rexec/config.toml"))
}

/// A file that was read, and is right.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) text: Vec<u8>,
    pub(super) loaded: Loaded,
}

impl ConfigFile {
    /// The person's file; `None` if they have none. Refuses one that somebody else may have written.
    pub(super) fn own() -> Result<Option<Self>, Notice> {
        let Some(path) = own_path() else { return Ok(None) };
        let unfit = fs::metadata(&path).ok().and_then(|data| Unfit::of(&data, process::uid()));
        let Some(unfit) = unfit else { return Self::read(path, "mend it, or take it away") };
        let hint = match unfit {
            Unfit::NoRegularFile => "take it away",
            Unfit::OfOthers => "copy it, so that it is yours, or name another folder in XDG_CONFIG_HOME",
            Unfit::OpenToAll => "chmod o-w it, once you have read it",
        };
        Err(Notice::failed(format_args!("cannot use {}: {}", quoted(&path), unfit.words()), hint))
    }

    /// The file of this name.
    pub(super) fn named(path: &Path) -> Result<Self, Notice> {
        let hint = "name a file of rules with --rules";
        Self::read(path.to_owned(), hint)?
            .ok_or_else(|| Notice::failed(format_args!("cannot read {}: there is no such file", quoted(path)), hint))
    }

    fn read(path: PathBuf, hint: &str) -> Result<Option<Self>, Notice> {
        let bytes = match bytes(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let problem = format_args!("cannot read {}: {}", quoted(&path), reason(&error));
                return Err(Notice::failed(problem, hint));
            }
        };
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let shown = |error: &RulesError| escape_line(&format!("{}:{error}", path.display()), SENTENCE_COLUMNS);
        let loaded = load(&bytes, &name).map_err(|error| Notice::failed(shown(&error), &error.hint))?;
        loaded.warnings.iter().for_each(|warning| told::put(Notice::failed(shown(warning), &warning.hint)));
        Ok(Some(Self { path, text: bytes, loaded }))
    }

    /// The notice on what stands at a place of the file.
    pub(super) fn wrong(&self, place: TextPlace, problem: &str, hint: &str) -> Notice {
        let TextPlace { line, column } = place;
        let problem = escape_line(&format!("{}:{line}:{column}: {problem}", self.path.display()), SENTENCE_COLUMNS);
        Notice::failed(problem, hint)
    }
}

/// The bytes of a file, one more than it may have if there are more.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limits::RULES_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
