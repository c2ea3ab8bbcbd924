//! The clocks of a host under test: they advance with the kernel's, and a test can set them while the host runs.

use std::fs;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use super::host::{Host, PLAIN, Setup};
use super::programs;
use super::temp::TempDir;

/// The file with the offsets, in the host's directory, which it never leaves.
const FILE: &str = "clock";

/// How a host whose clocks can be set is started; `None` where that cannot be done, which is said.
pub(crate) fn setup() -> Option<Setup> {
    static WRAPPER: OnceLock<Option<[&str; 3]>> = OnceLock::new();
    let wrapper = WRAPPER.get_or_init(|| {
        let preload = format!("LD_PRELOAD={}", preload()?.display());
        Some(["env", preload.leak(), "REXEC_TEST_CLOCK=clock"])
    });
    Some(Setup { wrapper: wrapper.as_ref()?, ..PLAIN })
}

/// The library that stands between a program and the kernel's clocks.
fn preload() -> Option<PathBuf> {
    let library = programs::host().with_file_name("examples").join("libjumping_clock.so");
    if cfg!(target_feature = "crt-static") {
        programs::skipped("a host that is linked statically takes its time from the kernel alone");
        return None;
    }
    programs::build(&["--example", "jumping-clock"]);
    assert!(library.exists(), "no {}", library.display());
    // The variable's value is a list, separated by blanks and colons.
    if !library.to_string_lossy().contains([' ', ':']) {
        return Some(library);
    }
    let folder = fs::File::open(library.parent().expect("it lies in a folder")).expect("the folder");
    // Open as long as this process lives.
    let descriptor = folder.into_raw_fd();
    Some(format!("/proc/{}/fd/{descriptor}/libjumping_clock.so", std::process::id()).into())
}

/// How far a host's clocks are from the kernel's, seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offset {
    /// Of the wall's clock.
    pub(crate) wall: i64,
    /// Of the clock for durations, which is never set back.
    pub(crate) monotonic: u64,
}

/// Sets the clocks of the host that lives, or will live, in this directory.
pub(crate) fn set(home: &TempDir, Offset { wall, monotonic }: Offset) {
    let (file, next) = (home.join(FILE), home.join("clock.next"));
    fs::write(&next, format!("{wall} {monotonic}")).expect("a file");
    // In one step: a host may be reading it.
    fs::rename(next, file).expect("a file that is replaced");
}

/// Lets so much time have passed for a host, beside what has passed for everybody. Whoever sleeps is not woken by it.
pub(crate) fn pass(host: &Host, time: Duration) {
    set(&host.home, Offset { wall: 0, monotonic: time.as_secs() });
}
