//! The places of the programs that were built or installed together with this one.

use std::path::{Path, PathBuf};

/// The path of a program beside this one, such as the host.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    find(&[Path::new(name)])
}

/// The shim: beside this program, where cargo puts it, or in `../lib/rexec`, where scripts/install.sh does.
pub(super) fn shim() -> Option<PathBuf> {
    find(&[Path::new("rexec-sh"), Path::new("../lib/rexec/rexec-sh")])
}

/// The preload, where the shim is.
pub(super) fn preload() -> Option<PathBuf> {
    const FILE: &str = "librexec_preload.so";
    find(&[Path::new(FILE), &Path::new("../lib/rexec").join(FILE)])
}

fn find(places: &[&Path]) -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    let found = places.iter().map(|place| here.with_file_name(place)).find(|place| place.is_file())?;
    // Without `..`, which a sandbox with other mounts may resolve in another way.
    found.canonicalize().ok()
}
