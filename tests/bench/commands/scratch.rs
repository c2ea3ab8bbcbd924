//! A private folder for sockets, journals and input files, removed with the program.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with mode 0700, removed on drop.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    folders: AtomicU32,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rexec-bench-{}-{number}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, folders: AtomicU32::new(0) })
    }

    /// A new folder in it, short of name because a socket's path has 107 bytes at most.
    pub(crate) fn folder(&self) -> io::Result<PathBuf> {
        let path = self.path.join(self.folders.fetch_add(1, Ordering::Relaxed).to_string());
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is left to do about a folder that cannot be removed.
        drop(fs::remove_dir_all(&self.path));
    }
}
