//! Where the programs are: the two binaries under test, the shim under its many names, and everyday programs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The search path of every call, whoever makes it.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The host.
pub(crate) fn host() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rexec-host"))
}

/// The supervisor's command.
pub(crate) fn rexec() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rexec"))
}

/// A directory with the shim and links to it: `bash`, `rexec-bash`, `sh`, `rexec-sh`, `rexec-zsh`.
pub(crate) fn shims() -> &'static Path {
    static SHIMS: OnceLock<PathBuf> = OnceLock::new();
    SHIMS.get_or_init(|| {
        super::warden::keep_descriptors_to_ourselves();
        build(&["-p", "rexec-sh"]);
        let dir = host().with_file_name("test-shims");
        _ = fs::create_dir(&dir);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("the directory is ours");
        for name in ["bash", "rexec-bash", "sh", "rexec-sh", "rexec-zsh"] {
            // Several test processes may do this at once; a link that is there is as good as ours.
            _ = symlink("../rexec-sh", dir.join(name));
            assert!(dir.join(name).exists(), "no {name} in {}", dir.display());
        }
        dir
    })
}

/// Cargo builds the binaries of the package under test only; the shim is a package of its own, and examples are built
/// when all tests are.
pub(crate) fn build(what: &[&str]) {
    let dir = host().parent().expect("a binary lies in a directory");
    let above = dir.parent().expect("a profile lies in the target directory");
    let profile = match dir.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--profile", profile]).args(what);
    if above.join("CACHEDIR.TAG").exists() {
        cargo.arg("--target-dir").arg(above);
    } else {
        let triple = above.file_name().expect("a triple");
        cargo.arg("--target").arg(triple).arg("--target-dir").arg(above.parent().expect("a target directory"));
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "building failed: {cargo:?}");
}

/// Where a program is on the search path of the calls.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|dir| Path::new(dir).join(name)).find(|path| path.exists())
}

/// Whether a program is on the search path of the calls; says so aloud when it is not.
pub(crate) fn has(name: &str) -> bool {
    let found = find(name).is_some();
    if !found {
        skipped(&format!("{name} is not installed"));
    }
    found
}

/// Tells the person who reads the test's output what was left out.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}
