//! The texts of files of rules that a person has accepted: `accepted/` in the journal's directory has one file for each,
//! whose first line is the path that it is about. The text itself follows, byte by byte.
//!
//! Invariants: a file is replaced as a whole, and only its owner may read it; two paths that would have the same name are
//! told apart by the first line, and the later one wins; there are at most [`limits::ACCEPTED_MAX`].

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::directory::{OpenDirectory, open_file};
use super::home::JournalHome;
use crate::journal::summary::checksum;
use crate::limits;

const FOLDER: &str = "accepted";
/// Stands before the path.
const HEAD: &[u8] = b"# accepted: ";
/// The most bytes of such a file: those of a file of rules, and of a path.
const FILE_BYTES_MAX: u64 = limits::RULES_FILE_BYTES_MAX as u64 + (8 << 10);

/// Where the accepted text of this path is kept.
#[must_use]
pub fn accepted_place(home: &Path, path: &Path) -> PathBuf {
    home.join(FOLDER).join(name(path))
}

fn name(path: &Path) -> String {
    format!("{:016x}.toml", checksum(path.as_os_str().as_bytes()))
}

/// The accepted text in what such a file has. `None` if it is about another path.
#[must_use]
pub fn accepted_text<'a>(kept: &'a [u8], path: &Path) -> Option<&'a [u8]> {
    let (about, text) = parts(kept)?;
    (about == path).then_some(text)
}

fn parts(kept: &[u8]) -> Option<(PathBuf, &[u8])> {
    let kept = kept.strip_prefix(HEAD)?;
    let end = memchr::memchr(b'\n', kept)?;
    Some((std::ffi::OsString::from_vec(kept[..end].to_vec()).into(), &kept[end + 1..]))
}

/// The accepted text of this path; `None` if there is none.
///
/// # Errors
/// It cannot be read.
pub fn read_accepted(home: &Path, uid: u32, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(folder) = folder(home, uid)? else { return Ok(None) };
    Ok(read(&folder, &name(path))?.and_then(|kept| accepted_text(&kept, path).map(<[u8]>::to_vec)))
}

/// All paths with their accepted texts, in the order of the paths.
///
/// # Errors
/// They cannot be read.
pub fn all_accepted(home: &Path, uid: u32) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let Some(folder) = folder(home, uid)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for entry in fs::read_dir(folder.path())?.take(2 * limits::ACCEPTED_MAX) {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let kept = read(&folder, &name)?.unwrap_or_default();
        all.extend(
            parts(&kept).filter(|(about, _)| self::name(about) == name).map(|(about, text)| (about, text.to_vec())),
        );
    }
    all.sort();
    Ok(all)
}

/// Keeps the text of this path as accepted.
///
/// # Errors
/// It cannot be written, there are too many, or the path has a line break.
pub fn accept(home: &Path, uid: u32, path: &Path, text: &[u8]) -> io::Result<()> {
    let about = path.as_os_str().as_bytes();
    if about.contains(&b'\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has a line break"));
    }
    let home = JournalHome { path: home.to_owned(), uid }.prepare().map_err(io::Error::other)?;
    match DirBuilder::new().mode(0o700).create(home.at(FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let folder = home.directory(FOLDER)?;
    let is_new = folder.at(name(path)).symlink_metadata().is_err();
    if is_new && fs::read_dir(folder.path())?.take(limits::ACCEPTED_MAX).count() == limits::ACCEPTED_MAX {
        return Err(io::Error::other(format!("{} files are accepted already", limits::ACCEPTED_MAX)));
    }
    folder.replace(&name(path), &[HEAD, about, b"\n", text].concat())
}

/// Forgets the accepted text of this path. The folder goes with the last one.
///
/// # Errors
/// The file cannot be removed.
pub fn forget_accepted(home: &Path, uid: u32, path: &Path) -> io::Result<()> {
    let Some(folder) = folder(home, uid)? else { return Ok(()) };
    match fs::remove_file(folder.at(name(path))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            // One that has others stays.
            let _ = fs::remove_dir(home.join(FOLDER));
            Ok(())
        }
    }
}

/// The folder; `None` if there is none, or no directory that may hold a journal.
fn folder(home: &Path, uid: u32) -> io::Result<Option<OpenDirectory>> {
    let Ok(home) = (JournalHome { path: home.to_owned(), uid }).open() else { return Ok(None) };
    match home.directory(FOLDER) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        folder => folder.map(Some),
    }
}

fn read(folder: &OpenDirectory, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match open_file(&folder.at(name), OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut kept = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut kept)?;
    Ok(Some(kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_text_is_kept_for_its_path_byte_by_byte_until_it_is_forgotten() {
        let home = std::env::temp_dir().join(format!("rexec-accepted-{}", std::process::id()));
        let uid = fs::metadata("/proc/self").unwrap().uid();
        let [one, other] = ["/p/.rexec.toml", "/q \u{1b}/\u{e9}"].map(Path::new);
        let text = |path| read_accepted(&home, uid, path).unwrap();
        assert_eq!((text(one), all_accepted(&home, uid).unwrap()), (None, Vec::new()));
        forget_accepted(&home, uid, one).unwrap();
        for wanted in [&b"\n# accepted: /x\n\xff"[..], b""] {
            accept(&home, uid, one, wanted).unwrap();
            accept(&home, uid, other, b"2").unwrap();
            assert_eq!((text(one).as_deref(), text(other).as_deref()), (Some(wanted), Some(&b"2"[..])));
            let all = vec![(one.to_owned(), wanted.to_vec()), (other.to_owned(), b"2".to_vec())];
            assert_eq!(all_accepted(&home, uid).unwrap(), all);
        }
        let kept = accepted_place(&home, one);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(accepted_text(&fs::read(&kept).unwrap(), other), None, "it is about another path");
        fs::rename(&kept, accepted_place(&home, other)).unwrap();
        assert_eq!((text(one), text(other)), (None, None));
        forget_accepted(&home, uid, other).unwrap();
        assert_eq!(all_accepted(&home, uid).unwrap(), Vec::new());
        assert!(accept(&home, uid, Path::new("/a\nb"), b"").is_err());
        fs::remove_dir_all(&home).unwrap();
    }
}
