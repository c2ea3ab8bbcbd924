//! The beginning of a report: the command that this process runs itself, and its sandbox.

use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;

use nix::libc;
use rexec_sh::protocol::environment::Rules;
use rexec_sh::protocol::options::{ShimOptions, given};
use rexec_sh::protocol::place;
use rexec_sh::protocol::process::Signal;
use rexec_sh::protocol::report::{
    BEGINNING_BYTES_MAX, Beginning, REPORTED_ENV_BYTES, RunMark, ShimPlace, ValueMasks, marked_run, reported_variable,
};
use rexec_sh::protocol::wire::{Attributes, Extras, encode_run};

use crate::ShimCall;
use crate::collect::project;
use crate::inside;
use crate::reporter::Reporter;
use crate::sys::{self, bit};

/// The most examined ancestors.
const ANCESTORS_MAX: u32 = 64;
/// The bytes of `/proc/self/stat` that are read.
const STAT_BYTES: usize = 1024;
/// Fields of `/proc/self/stat` from the state, the third, to the start, the twenty-second.
const START_PLACE: usize = 19;

/// The reporter of this call's command.
#[derive(Debug)]
pub(crate) enum Reporting {
    /// This process.
    Own(Box<Reporter>),
    /// A shim above it, which reports all output below.
    Above,
    /// Nobody: no host takes reports.
    Nobody,
}

/// Begins a report on this call.
pub(crate) fn begin(call: &ShimCall<'_>, lacks_sockets: bool, may_be_inside: bool) -> Reporting {
    if is_below_reporter() {
        return Reporting::Above;
    }
    tell(call, lacks_sockets, may_be_inside).map_or(Reporting::Nobody, |reporter| Reporting::Own(Box::new(reporter)))
}

/// Returns true if a reported command has started this process: a variable says so, and its shim is in sight.
pub(crate) fn is_in_reported_run(options: &ShimOptions<'_>) -> bool {
    marked_run(given(options.reported)) != RunMark::default() && is_below_reporter()
}

/// The environment of the reported command: as in the host, and the entry with its mark. Shims below it that cannot see
/// this process must not report it a second time.
pub(crate) fn environment<'s>(rules: &'s Rules<'_>, env: &[&'s CStr], entry: &'s CStr) -> Vec<&'s CStr> {
    let mut env = rules.apply(env.iter().copied());
    env.push(entry);
    env
}

/// Reports the beginning. `None` if no host takes it.
fn tell(call: &ShimCall<'_>, lacks_sockets: bool, may_be_inside: bool) -> Option<Reporter> {
    if !shares_namespace_with_children() {
        return None;
    }
    let socket = place::socket_path(call.options.socket.map(CStr::to_bytes), sys::effective_uid()).ok()?;
    let masks = ValueMasks::of(call.env.iter().map(|entry| entry.to_bytes()));
    let mut reporter = Reporter::open(&socket, &masks)?;
    let place = place_of_this(lacks_sockets, may_be_inside);
    let beginning = encode(call, ShimPlace { mark: reporter.mark(), ..place }, &masks)?;
    let before = sys::block_signals(bit(Signal::PIPE));
    let is_told = reporter.begin(&beginning);
    if !is_told {
        // A reader that has just left has caused a SIGPIPE, which is not for the shell.
        let _ = sys::signal_descriptor(bit(Signal::PIPE)).map(|pending| sys::next_signal(&pending));
    }
    sys::restore_mask(before);
    is_told.then_some(reporter)
}

/// Returns true if this process's children are in its own pid namespace. After unshare(2) the first child would be the
/// init of another one; the shell must not be that.
fn shares_namespace_with_children() -> bool {
    let inode = |path| sys::status_at(path).ok().map(|status| status.inode);
    inode(c"/proc/self/ns/pid") == inode(c"/proc/self/ns/pid_for_children")
}

/// Returns true if a process above is this program, too. It reports the output of this one.
fn is_below_reporter() -> bool {
    let Ok(own) = sys::status_at(c"/proc/self/exe") else { return false };
    let mut pid = sys::parent();
    for _ in 0..ANCESTORS_MAX {
        let Some(stat) = (pid.number() > 1).then(|| inside::stat_of(pid)).flatten() else { return false };
        let path = CString::new(format!("/proc/{pid}/exe")).expect("a number has no NUL");
        if sys::status_at(&path).is_ok_and(|program| program.is_same_file(&own)) {
            return true;
        }
        pid = stat.parent;
    }
    false
}

fn encode(call: &ShimCall<'_>, place: ShimPlace, masks: &ValueMasks) -> Option<Vec<u8>> {
    let rules = Rules::new(call.shell.to_bytes(), given(call.options.env_drop));
    let mut room = REPORTED_ENV_BYTES;
    // An agent's sandbox calls the shell again by the configured path. The host compares the two.
    let set = call.env.iter().copied().filter(|entry| entry.to_bytes().starts_with(b"CLAUDE_CODE_SHELL="));
    let named = |entry: &CStr| CString::new(reported_variable(entry.to_bytes())).expect("a part of a C string");
    let env: Vec<CString> = set.chain(rules.apply(call.env.iter().copied())).map(named).collect();
    let env = env.iter().map(CString::as_c_str).filter(|entry| {
        let bytes = entry.to_bytes_with_nul().len();
        let fits = bytes <= room;
        room -= if fits { bytes } else { 0 };
        fits
    });
    let mut frame = Vec::with_capacity(16 << 10);
    let names = (given(call.options.whoami), call.shell);
    let extras = Extras { project: project(), ..Extras::default() };
    let attributes = Attributes { extras, ..Attributes::default() };
    let masked = |argument: &&CStr| CString::new(masks.masked(argument.to_bytes())).expect("made of C strings");
    let argv: Vec<CString> = call.argv.iter().map(masked).collect();
    encode_run(&attributes, names, argv.iter().map(CString::as_c_str), env, &mut frame).ok()?;
    let dir = std::env::current_dir().unwrap_or_default();
    let within = marked_run(given(call.options.reported));
    let place = ShimPlace { within, ..place };
    let beginning = Beginning { place, dir: dir.as_os_str().as_encoded_bytes(), frame: &frame };
    let mut bytes = Vec::with_capacity(frame.len() + 256);
    beginning.encode(&mut bytes);
    (bytes.len() <= BEGINNING_BYTES_MAX).then_some(bytes)
}

fn place_of_this(lacks_sockets: bool, may_be_inside: bool) -> ShimPlace {
    let (no_new_privs, has_filter) = sys::confinement();
    ShimPlace {
        namespace: sys::status_at(c"/proc/self/ns/pid").map_or(0, |status| status.inode),
        pid: sys::own_pid().number(),
        began: own_start().unwrap_or(0),
        lacks_sockets,
        is_read_only: sys::is_directory_read_only(),
        no_new_privs,
        has_filter,
        may_be_inside,
        ..ShimPlace::default()
    }
}

fn own_start() -> Option<u64> {
    let file = sys::open(c"/proc/self/stat", libc::O_RDONLY).ok()?;
    let mut text = [0; STAT_BYTES];
    let length = sys::read(file.as_raw_fd(), &mut text).ok()?;
    // The name before the last parenthesis may hold anything.
    let close = text[..length].iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(text.get(close + 1..length)?).ok()?.split_ascii_whitespace().nth(START_PLACE)?.parse().ok()
}
