//! Paths without `.` and `..`, as they read where no step is a link. The disk is not asked.

use std::path::{Component, Path, PathBuf};

/// The path from a directory. One that is absolute stands for itself.
#[must_use]
pub fn plain_path(mut directory: PathBuf, path: &Path) -> PathBuf {
    for step in path.components() {
        match step {
            Component::ParentDir => _ = directory.pop(),
            Component::CurDir => {}
            other => directory.push(other),
        }
    }
    directory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_back_are_taken() {
        for (directory, path, plain) in
            [("/a/b", "../c/./d", "/a/c/d"), ("/a", "/b/../c", "/c"), ("/", "../../x", "/x"), ("/a", ".", "/a")]
        {
            assert_eq!(plain_path(directory.into(), Path::new(path)), Path::new(plain), "{directory} {path}");
        }
    }
}
