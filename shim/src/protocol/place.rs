//! Finds the host's socket, and checks that its directory can be trusted. The shim and the host must agree, so both
//! call these functions.
//!
//! Invariants: a directory is judged by lstat(2), never through a symbolic link; nothing is created or repaired here; a
//! path that does not fit a socket address is an error and never cut short.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest path that a socket address holds on Linux, bytes: `sun_path` less its NUL.
pub const PATH_BYTES_MAX: usize = 107;

/// Mode bits that let the group or others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Mode bits of the group and of others.
const OPEN_TO_OTHERS: u32 = 0o077;

/// The reason why a place for the socket cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceError {
    /// The directory does not exist.
    Missing,
    /// It is not a directory, or is a symbolic link to one.
    NotADirectory,
    /// It belongs to this other user.
    Foreign {
        /// Its owner.
        uid: u32,
    },
    /// Its mode lets others in.
    OpenToOthers {
        /// Its mode bits.
        mode: u32,
    },
    /// The path of the socket has this many bytes.
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It cannot be examined.
    Unreadable(ErrorKind),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "the directory does not exist"),
            Self::NotADirectory => write!(f, "it is not a directory (a symbolic link does not count as one)"),
            Self::Foreign { uid } => write!(f, "the directory belongs to another user (uid {uid})"),
            Self::OpenToOthers { mode } => {
                write!(f, "the directory is open to other users (mode {mode:04o}, 0700 is needed)")
            }
            Self::TooLong { bytes } => {
                write!(f, "the path has {bytes} bytes, a socket's may have {PATH_BYTES_MAX} at most")
            }
            Self::Unreadable(kind) => write!(f, "the directory cannot be examined: {kind}"),
        }
    }
}

impl std::error::Error for PlaceError {}

/// The path of the host's socket for this user: `explicit` (the value of `REXEC_SOCKET`) unless it is empty, else below
/// `/run/user/UID` if that is a directory of the user's that nobody else may write to, else below `/tmp`.
///
/// # Errors
/// [`PlaceError::TooLong`], which only an explicit path can cause.
pub fn socket_path(explicit: Option<&[u8]>, uid: u32) -> Result<PathBuf, PlaceError> {
    if let Some(path) = explicit.filter(|path| !path.is_empty()) {
        return match path.len() {
            bytes if bytes > PATH_BYTES_MAX => Err(PlaceError::TooLong { bytes }),
            _ => Ok(PathBuf::from(OsStr::from_bytes(path))),
        };
    }
    Ok(default_path("/run/user", uid))
}

fn default_path(runtime: &str, uid: u32) -> PathBuf {
    let mut digits = [0; 10];
    let uid_text = decimal(uid, &mut digits);
    let mut path = String::with_capacity(PATH_BYTES_MAX);
    path.extend([runtime, "/", uid_text]);
    let usable = fs::symlink_metadata(&path)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & WRITABLE_BY_OTHERS == 0);
    if usable {
        path.push_str("/rexec/host.sock");
    } else {
        path.clear();
        path.extend(["/tmp/rexec-", uid_text, "/host.sock"]);
    }
    PathBuf::from(path)
}

/// A number in decimal. The formatting machinery would cost every start of the shim thousands of instructions.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[at..]).expect("digits are ASCII")
}

/// The directory that holds a socket. Like [`Path::parent`], without `/` and `/.` at its end, after which lstat(2)
/// would follow a symbolic link; but in a few instructions.
#[must_use]
pub fn directory(socket: &Path) -> &Path {
    let bytes = socket.as_os_str().as_bytes();
    let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else { return Path::new(".") };
    let mut parent = &bytes[..slash];
    while let [shorter @ .., b'/'] | [shorter @ .., b'/', b'.'] = parent {
        parent = shorter;
    }
    Path::new(OsStr::from_bytes(if parent.is_empty() { b"/" } else { parent }))
}

/// The file whose lock, held for life, makes a process the host of this socket.
#[must_use]
pub fn lock_path(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

/// The FIFO for reports of shims that run their commands themselves: `report` beside `host.sock`, and `NAME.report`
/// beside a socket of another name.
#[must_use]
pub fn report_path(socket: &Path) -> PathBuf {
    beside(socket, "report")
}

/// The file with notes about commands that ran without a host: `unseen` beside `host.sock`, and `NAME.unseen` beside a
/// socket of another name.
#[must_use]
pub fn unseen_path(socket: &Path) -> PathBuf {
    beside(socket, "unseen")
}

fn beside(socket: &Path, what: &str) -> PathBuf {
    if socket.file_name().is_some_and(|name| name == "host.sock") {
        return socket.with_file_name(what);
    }
    let mut path = socket.as_os_str().to_owned();
    path.push(".");
    path.push(what);
    PathBuf::from(path)
}

/// Checks that a directory is one, is not a symbolic link, is this user's, and is closed to everybody else.
///
/// # Errors
/// The first of these that does not hold.
pub fn check_directory(directory: &Path, uid: u32) -> Result<(), PlaceError> {
    match fs::symlink_metadata(directory) {
        Ok(found) => judge(&found, uid),
        Err(error) => Err(match error.kind() {
            ErrorKind::NotFound => PlaceError::Missing,
            ErrorKind::NotADirectory => PlaceError::NotADirectory,
            kind => PlaceError::Unreadable(kind),
        }),
    }
}

fn judge(found: &Metadata, uid: u32) -> Result<(), PlaceError> {
    if !found.is_dir() {
        return Err(PlaceError::NotADirectory);
    }
    if found.uid() != uid {
        return Err(PlaceError::Foreign { uid: found.uid() });
    }
    match found.mode() & 0o7777 {
        mode if mode & OPEN_TO_OTHERS != 0 => Err(PlaceError::OpenToOthers { mode }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory of the test's own, removed at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("rexec-place-{}-{number}", std::process::id()));
            // One of an earlier process with this number may be there.
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            set_mode(&path, 0o700);
            Self(path)
        }

        fn uid(&self) -> u32 {
            fs::symlink_metadata(&self.0).unwrap().uid()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn an_explicit_path_wins_and_an_empty_one_does_not_count() {
        assert_eq!(socket_path(Some(b"/x/y.sock"), 7), Ok(PathBuf::from("/x/y.sock")));
        assert_eq!(socket_path(Some(b""), 7), socket_path(None, 7));
    }

    #[test]
    fn a_path_of_107_bytes_fits_and_one_of_108_does_not() {
        assert!(socket_path(Some(&[b'a'; 107]), 7).is_ok());
        assert_eq!(socket_path(Some(&[b'a'; 108]), 7), Err(PlaceError::TooLong { bytes: 108 }));
    }

    #[test]
    fn the_default_is_the_runtime_directory_only_when_it_is_ours_and_closed_to_writers() {
        let scratch = Scratch::new();
        let (runtime, uid) = (scratch.0.to_str().unwrap(), scratch.uid());
        let own = scratch.0.join(uid.to_string());
        let fallback = PathBuf::from(format!("/tmp/rexec-{uid}/host.sock"));
        assert_eq!(default_path(runtime, uid), fallback);
        fs::create_dir(&own).unwrap();
        set_mode(&own, 0o700);
        assert_eq!(default_path(runtime, uid), own.join("rexec/host.sock"));
        set_mode(&own, 0o755);
        assert_eq!(default_path(runtime, uid), own.join("rexec/host.sock"));
        set_mode(&own, 0o770);
        assert_eq!(default_path(runtime, uid), fallback);
        fs::remove_dir(&own).unwrap();
        symlink("/", &own).unwrap();
        assert_eq!(default_path(runtime, uid), fallback);
        assert_eq!(default_path("/proc", u32::MAX), PathBuf::from("/tmp/rexec-4294967295/host.sock"));
    }

    #[test]
    fn a_directory_is_refused_for_each_reason() {
        let scratch = Scratch::new();
        let (dir, uid) = (&scratch.0, scratch.uid());
        assert_eq!(check_directory(dir, uid), Ok(()));
        assert_eq!(check_directory(dir, uid + 1), Err(PlaceError::Foreign { uid }));
        assert_eq!(check_directory(&dir.join("none"), uid), Err(PlaceError::Missing));
        for mode in [0o755, 0o710, 0o701, 0o1777] {
            set_mode(dir, mode);
            assert_eq!(check_directory(dir, uid), Err(PlaceError::OpenToOthers { mode }));
        }
        set_mode(dir, 0o700);
        let (file, link) = (dir.join("file"), dir.join("link"));
        fs::write(&file, "").unwrap();
        symlink(dir, &link).unwrap();
        assert_eq!(check_directory(&file, uid), Err(PlaceError::NotADirectory));
        assert_eq!(check_directory(&link, uid), Err(PlaceError::NotADirectory));
        assert_eq!(check_directory(&file.join("below"), uid), Err(PlaceError::NotADirectory));
    }

    #[test]
    fn the_directory_and_the_lock_lie_beside_the_socket() {
        assert_eq!(directory(Path::new("/a/b.sock")), Path::new("/a"));
        assert_eq!(directory(Path::new("b.sock")), Path::new("."));
        for path in ["/b", "//b", "/./b", "/a//b", "/a/./b", "/a/.//./b", "a/b", "./b", "../b", "/a/../b", "/a/b.sock"]
        {
            let parent = Path::new(path).parent().map(Path::as_os_str);
            assert_eq!(directory(Path::new(path)).components().as_path().as_os_str(), parent.unwrap(), "{path}");
        }
        assert_eq!(directory(Path::new("/a/link/./b")).as_os_str(), "/a/link", "not what the link leads to");
        assert_eq!(lock_path(Path::new("/a/host.sock")), Path::new("/a/host.sock.lock"));
        assert_eq!(report_path(Path::new("/a/host.sock")), Path::new("/a/report"));
        assert_eq!(report_path(Path::new("/a/b")), Path::new("/a/b.report"));
    }

    #[test]
    fn every_error_is_one_sentence() {
        assert_eq!(
            PlaceError::OpenToOthers { mode: 0o755 }.to_string(),
            "the directory is open to other users (mode 0755, 0700 is needed)"
        );
        assert_eq!(PlaceError::Foreign { uid: 5 }.to_string(), "the directory belongs to another user (uid 5)");
    }
}
