//! What a person does not want kept: patterns of names, of directories' names, and of whole paths.
//!
//! In a pattern `*` is any text, `|` is between patterns of which one must match, as in rules. One with `/` in front is a
//! path's, one with `/` behind it is a directory's.

use super::store::split;
use crate::gate::Glob;

/// Such patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceptions(Vec<Exception>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Exception {
    glob: Glob,
    is_path: bool,
    /// It is for directories alone.
    is_directory: bool,
}

impl Exceptions {
    #[must_use]
    pub fn of(patterns: &[String]) -> Self {
        let exception = |pattern: &String| {
            let named = pattern.strip_suffix('/');
            let glob = Glob::new(named.unwrap_or(pattern));
            Exception { glob, is_path: pattern.starts_with('/'), is_directory: named.is_some() }
        };
        Self(patterns.iter().map(exception).collect())
    }

    /// Returns true if what is at this path is excepted, whatever is above it.
    #[must_use]
    pub fn have(&self, path: &[u8], is_directory: bool) -> bool {
        let matches = |exception: &Exception| {
            let text = if exception.is_path { path } else { split(path).1 };
            (is_directory || !exception.is_directory) && exception.glob.matches(text)
        };
        self.0.iter().any(matches)
    }

    /// Returns true if it is, or if it lies in a directory that is.
    #[must_use]
    pub fn cover(&self, path: &[u8], is_directory: bool) -> bool {
        let ends = path.iter().enumerate().filter(|(at, byte)| *at > 0 && **byte == b'/').map(|(at, _)| at);
        !self.0.is_empty()
            && (self.have(path, is_directory) || ends.into_iter().any(|end| self.have(&path[..end], true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_for_names_directories_and_paths() {
        let patterns = ["*.iso|*.img", "build/", "/home/u/VMs/", "/var/lib/*.db"].map(str::to_owned);
        let exceptions = Exceptions::of(&patterns);
        for (path, is_directory, wanted) in [
            ("/a/b.iso", false, true),
            ("/a/b.img", true, true),
            ("/a/b.iso/c", false, true),
            ("/a/iso", false, false),
            ("/p/build", true, true),
            ("/p/build", false, false),
            ("/p/build/x/y", false, true),
            ("/p/builds/x", false, false),
            ("/home/u/VMs", true, true),
            ("/home/u/VMs/disk", false, true),
            ("/home/v/VMs/disk", false, false),
            ("/var/lib/a/b.db", false, true),
            ("/srv/var/lib/b.db", false, false),
        ] {
            assert_eq!(exceptions.cover(path.as_bytes(), is_directory), wanted, "{path}");
        }
        assert!(!Exceptions::default().cover(b"/a", false));
    }
}
