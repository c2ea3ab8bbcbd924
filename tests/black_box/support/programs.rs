//! Where the programs are: the two binaries under test, the shim under its many names, and everyday programs.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit};

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

/// A program with nothing of the environment that the tests were started with: neither the settings of the user who runs
/// them, nor what a git hook or an agent says to its children, nor that user's own host.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", PATH).env("HOME", "/nonexistent").env("LANG", "C.UTF-8").env("TZ", "UTC0");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("REXEC_SOCKET", "/nonexistent/host.sock").stdin(Stdio::null());
    command
}

/// A directory with the shim and links to it: `bash`, `rexec-bash`, `sh`, `rexec-sh`, `rexec-zsh`.
pub(crate) fn shims() -> &'static Path {
    static SHIMS: OnceLock<PathBuf> = OnceLock::new();
    SHIMS.get_or_init(|| {
        super::warden::keep_descriptors_to_ourselves();
        let dir = host().with_file_name("test-shims");
        _ = fs::create_dir(&dir);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("the directory is ours");
        for name in ["bash", "rexec-bash", "sh", "rexec-sh", "rexec-zsh"] {
            // Several test processes may do this at once; a link that is there is as good as ours.
            _ = symlink(env!("CARGO_BIN_EXE_rexec-sh"), dir.join(name));
            assert!(dir.join(name).exists(), "no {name} in {}", dir.display());
        }
        dir
    })
}

/// Writes a program. Another process does it: a file that is open for writing here is also open in each child that another
/// test starts meanwhile, until that child executes its own program, and cannot be executed so long (ETXTBSY).
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    let mut shell = command("/bin/sh");
    let mut shell = shell.args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(path);
    shell = shell.stdin(Stdio::piped());
    let mut child = shell.spawn().expect("sh starts");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("it is read");
    assert!(child.wait().expect("it ends").success(), "{} is written", path.display());
}

/// Cargo builds the binaries of the package under test only; the preload is a package of its own, and examples are built
/// when all tests are.
pub(crate) fn build(what: &[&str]) {
    let place = place_of(host(), &known_triples());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--profile", place.profile]).args(what);
    cargo.arg("--target-dir").arg(place.target_dir);
    if let Some(triple) = place.triple {
        cargo.arg("--target").arg(triple);
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "building failed: {cargo:?}");
}

/// Where cargo put a binary, and so where it puts the others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Built<'a> {
    pub(crate) target_dir: &'a Path,
    /// What `--target`, or the configuration, said.
    pub(crate) triple: Option<&'a str>,
    pub(crate) profile: &'a str,
}

/// Reads a binary's path: `TARGET_DIR[/TRIPLE]/PROFILE/NAME`. Whoever made the target directory, and however it is
/// called, only a triple that rustc knows is one.
pub(crate) fn place_of<'a>(binary: &'a Path, triples: &[String]) -> Built<'a> {
    let dir = binary.parent().expect("a binary lies in a directory");
    let above = dir.parent().expect("a profile lies in the target directory");
    let name = |path: &'a Path| path.file_name().and_then(|name| name.to_str());
    let profile = match name(dir) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let triple = name(above).filter(|name| triples.iter().any(|known| known == name));
    let target_dir = if triple.is_some() { above.parent().expect("a target directory") } else { above };
    Built { target_dir, triple, profile }
}

/// The targets that rustc knows.
pub(crate) fn known_triples() -> Vec<String> {
    let beside_cargo = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc = if beside_cargo.exists() { beside_cargo } else { PathBuf::from("rustc") };
    let output = Command::new(rustc).args(["--print", "target-list"]).output().expect("rustc can be started");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A user without privileges, as a host's: ourselves, or another one if we are root. `None` if there is none.
pub(crate) fn plain_user() -> Option<Option<u32>> {
    if nix::unistd::geteuid().is_root() { another_user().map(Some) } else { Some(None) }
}

/// A user without privileges that nobody else is on this machine, as far as there are such: for tests of what the kernel
/// counts by user, such as descriptors that are on their way through sockets.
pub(crate) fn user_of_our_own() -> Option<Option<u32>> {
    plain_user().map(|user| user.map(|_| 60_100 + std::process::id() % 1_000))
}

/// A user without privileges that may run the programs under test: `None` unless we are root, and when a directory above
/// them is closed to others, which is said.
pub(crate) fn another_user() -> Option<u32> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let is_open = |path: &&Path| fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o001 != 0);
    let tests = std::env::current_exe().expect("a test is a file");
    match host().ancestors().chain(tests.ancestors()).find(|path| !is_open(path)) {
        None => Some(65534),
        Some(closed) => {
            skipped(&format!("{} is closed to other users, so nothing is tried as one", closed.display()));
            None
        }
    }
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

/// Whether a host that a test starts may have this many files open; says so aloud when it may not.
pub(crate) fn can_open(files: u64) -> bool {
    let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard);
    if most < files {
        skipped(&format!("a process may have {most} files open here (ulimit -Hn), which is less than {files}"));
    }
    most >= files
}

/// Tells the person who runs the tests what this test leaves out. Test output is captured, and that of a test that
/// passes is never shown, so the line goes past the capture; CI counts these lines.
pub(crate) fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a thread").to_owned();
    _ = writeln!(std::io::stderr(), "SKIPPED in {test}: {why}");
}
