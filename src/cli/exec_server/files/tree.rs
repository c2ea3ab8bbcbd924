//! Trees of files: copies and removals. A symbolic link is copied and removed as a link.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Copies a file, or a directory with its contents. Entries that are neither of these nor links are skipped.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if found.is_file() {
        return fs::copy(from, to).map(|_| ());
    }
    if !found.is_dir() {
        return Ok(());
    }
    if is_below(to, from) {
        return Err(io::Error::other("the destination is inside of the source"));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns true if the nearest existing directory above a path is this one or below it.
fn is_below(path: &Path, directory: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory) else { return false };
    let nearest = path.ancestors().find_map(|above| fs::canonicalize(above).ok());
    nearest.is_some_and(|nearest| nearest.starts_with(&directory))
}

/// Removes a file, or a directory: with its contents, or only an empty one.
pub(super) fn remove(path: &Path, recursive: bool) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    if recursive { fs::remove_dir_all(path) } else { fs::remove_dir(path) }
}
