//! A directory of a test, removed with everything in it when the test is over.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::mkdtemp;

#[derive(Debug)]
pub(crate) struct TempDir {
    path: PathBuf,
}

/// What lies in a directory: path → permissions and content.
pub(crate) type Files = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

/// Where the directories are made. Not what TMPDIR says, whose path may be too long for a socket's name; no git project,
/// because a command in one belongs to it; and no place whose programs may not run.
fn root() -> &'static Path {
    static ROOT: OnceLock<&Path> = OnceLock::new();
    ROOT.get_or_init(|| {
        let is_free = |place: &Path| !place.ancestors().any(|above| above.join(".git").exists());
        let executes = |place| statvfs(place).is_ok_and(|data| !data.flags().contains(FsFlags::ST_NOEXEC));
        let places = ["/tmp", "/var/tmp"].map(Path::new);
        places.into_iter().find(|&place| is_free(place) && executes(place)).unwrap_or(places[0])
    })
}

impl TempDir {
    /// A directory of mode 0700 that belongs to `user`, or to us.
    pub(crate) fn new(user: Option<u32>) -> Self {
        let path = mkdtemp(&root().join("rx-XXXXXX")).expect("a directory for temporary files");
        if user.is_some() {
            chown(&path, user, user).expect("the directory is ours to give away");
        }
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes what is in it and returns what was there: files, links and special files, not directories.
    pub(crate) fn take_files(&self) -> Files {
        let mut files = Files::new();
        collect(&self.path, &self.path, &mut files);
        empty(&self.path);
        files
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        empty(&self.path);
        _ = fs::remove_dir(&self.path);
    }
}

fn collect(root: &Path, dir: &Path, files: &mut Files) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let (path, Ok(data)) = (entry.path(), entry.metadata()) else { continue };
        if data.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let content = if data.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let name = path.strip_prefix(root).expect("it lies below the root").as_os_str().as_bytes().to_vec();
        files.insert(name, (data.permissions().mode(), content));
    }
}

fn empty(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.metadata().is_ok_and(|data| data.is_dir()) {
            _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
            _ = fs::remove_dir_all(&path);
        } else {
            _ = fs::remove_file(&path);
        }
    }
}
