//! A settings file of the user's: read, and replaced in one step.
//!
//! Invariants: a symbolic link stays one, and its target is replaced; mode and owner stay; nobody sees half of a file;
//! a file changed by others since it was read is left alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use crate::sys::process;
use crate::text::reason::reason;

/// The size limit of a file. A longer one is refused.
const SETTINGS_FILE_BYTES_MAX: u64 = 4 << 20;

/// A file as it was read.
#[derive(Debug)]
pub(super) struct SettingsFile {
    /// As the agent names it.
    pub(super) path: PathBuf,
    /// The file that a link leads to, or the file itself.
    target: PathBuf,
    /// Its text; `None` where there is no file.
    pub(super) text: Option<String>,
}

impl SettingsFile {
    /// Reads the file, and checks that it may be changed.
    pub(super) fn open(path: PathBuf) -> Result<Self, Notice> {
        let shown = path.display().to_string();
        let target = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { target: path.clone(), path, text: None });
            }
            Err(error) => return Err(cannot("read", &path, &error)),
            Ok(_) => fs::canonicalize(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Notice::failed(
                    format_args!("{shown} is a link to a file that does not exist"),
                    "make that file, or remove the link",
                ),
                _ => cannot("read", &path, &error),
            })?,
        };
        let meta = fs::metadata(&target).map_err(|error| cannot("read", &path, &error))?;
        if !meta.is_file() {
            return Err(Notice::failed(format_args!("{shown} is not a regular file"), "nothing was changed"));
        }
        let text = read(&target).map_err(|error| cannot("read", &path, &error))?;
        // Root may write to any file, but the mode says what the user wants.
        if meta.permissions().readonly() {
            let problem = format_args!("{shown} is read-only (mode {:04o})", meta.mode() & 0o7777);
            return Err(Notice::failed(problem, "nothing was changed; chmod u+w lets rexec change it"));
        }
        if let Err(error) = OpenOptions::new().write(true).open(&target) {
            return Err(cannot("write", &path, &error));
        }
        let Some(text) = text else {
            return Err(Notice::failed(
                format_args!("{shown} is not a text in UTF-8, or is longer than {} MiB", SETTINGS_FILE_BYTES_MAX >> 20),
                "nothing was changed; see whether this is the right file",
            ));
        };
        Ok(Self { path, target, text: Some(text) })
    }

    /// Replaces the file's text, or removes the file. Returns the directories that had to be made, the innermost first.
    pub(super) fn replace(&self, text: Option<&str>) -> Result<Vec<PathBuf>, Notice> {
        let is_same = match read(&self.target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.text.is_none(),
            read => read.map_err(|error| cannot("read", &self.path, &error))?.is_some_and(|now| self.text == Some(now)),
        };
        if !is_same {
            let problem = format!("{} was changed in the meantime, and is as it was left", self.path.display());
            return Err(Notice::failed(problem, "run the command again"));
        }
        let failed = |error: io::Error| cannot("write", &self.path, &error);
        let Some(text) = text else {
            return fs::remove_file(&self.target).map(|()| Vec::new()).map_err(failed);
        };
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        let made: Vec<PathBuf> = parent.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
        fs::create_dir_all(parent).map_err(failed)?;
        self.swap(text).map_err(failed)?;
        Ok(made)
    }

    fn swap(&self, text: &str) -> io::Result<()> {
        let mut name = self.target.clone().into_os_string();
        name.push(format!(".rexec-{}", process::pid()));
        let new = PathBuf::from(name);
        // A killed process of this number may have left it behind.
        let _ = fs::remove_file(&new);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            if let Ok(meta) = fs::metadata(&self.target) {
                let own = file.metadata()?;
                if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
                    fchown(&file, Some(meta.uid()), Some(meta.gid()))?;
                }
                file.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.target)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }
}

/// The text of a file; `None` if it is too long or not UTF-8.
fn read(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SETTINGS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_short = bytes.len() as u64 <= SETTINGS_FILE_BYTES_MAX;
    Ok(String::from_utf8(bytes).ok().filter(|_| is_short))
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Notice {
    let problem = format_args!("cannot {verb} {}: {}", path.display(), reason(error));
    Notice::failed(problem, "nothing was changed in it")
}
