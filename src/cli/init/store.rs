//! The folder in the user's data that `rexec init` makes: the links, and the record of what it has changed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use crate::cli::run::links;
use crate::front::init_record::InitRecord;
use crate::sys::{file, process};
use crate::text::reason::reason;

const RECORD: &str = "init.json";

/// The state of the links: a setting may still name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Named,
    Unnamed,
}

/// The places of the links and of the record.
#[derive(Debug)]
pub(in crate::cli) struct InitStore {
    pub(in crate::cli) home: PathBuf,
    folder: PathBuf,
}

impl InitStore {
    pub(in crate::cli) fn of_user() -> Result<Self, Notice> {
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let Some(home) = set("HOME") else {
            return Err(Notice::failed("there is no home folder: HOME is not set", "set HOME to an absolute path"));
        };
        let data = set("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        Ok(Self { home, folder: data.join("rexec") })
    }

    pub(in crate::cli) fn links(&self) -> PathBuf {
        self.folder.join("shells")
    }

    /// Reads the record. Without a file nothing has been changed.
    pub(in crate::cli) fn record(&self) -> Result<InitRecord, Notice> {
        let path = self.folder.join(RECORD);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(InitRecord::default()),
            text => text.map_err(|error| self.failed(&error))?,
        };
        InitRecord::read(&text).ok_or_else(|| {
            let problem = format!("{} cannot be understood", path.display());
            Notice::failed(problem, "it was written by another version of rexec, or changed by hand")
        })
    }

    /// Makes or repairs the links, and writes the record.
    pub(super) fn keep(&self, record: &mut InitRecord, shim: &Path) -> Result<(), Notice> {
        let missing = self.folder.ancestors().take_while(|path| !path.exists());
        let missing: Vec<String> = missing.map(|path| path.to_string_lossy().into_owned()).collect();
        if record.directories.is_empty() {
            record.directories = missing;
        }
        let kept = file::make_private_directory(&self.folder)
            .and_then(|()| links::fill(&self.links(), shim))
            .and_then(|()| self.write(record));
        kept.map_err(|error| self.failed(&error))
    }

    /// Writes the record. If it is empty and nothing names the links, the links and the folder go, too.
    pub(super) fn give_up(&self, record: &InitRecord, links: Links) -> Result<(), Notice> {
        if !record.files.is_empty() || links == Links::Named {
            return self.write(record).map_err(|error| self.failed(&error));
        }
        links::remove(&self.links());
        match fs::remove_file(self.folder.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.failed(&error)),
            _ => {}
        }
        for directory in &record.directories {
            // A directory that contains files of others stays.
            let _ = fs::remove_dir(directory);
        }
        Ok(())
    }

    fn write(&self, record: &InitRecord) -> io::Result<()> {
        let path = self.folder.join(RECORD);
        let new = self.folder.join(format!("{RECORD}.{}", process::pid()));
        let mut file = fs::File::create(&new)?;
        file.write_all(record.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    }

    fn failed(&self, error: &io::Error) -> Notice {
        let problem = format_args!("cannot use {}: {}", self.folder.display(), reason(error));
        Notice::failed(problem, "rexec init keeps its links and its record there")
    }
}
