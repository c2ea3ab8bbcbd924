//! Leaves a note about a command that runs without a host.
//!
//! Invariants: the command is neither delayed nor failed by it, whatever happens to the note; it follows no symbolic
//! link; only a regular file of this user's that is closed to others gets a note.

use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rexec_sh::protocol::agents::{known_name, started};
use rexec_sh::protocol::options::given;
use rexec_sh::protocol::place::{self, PlaceError};
use rexec_sh::protocol::unseen::{FILE_BYTES_MAX, UnseenNote, UnseenReason};

use crate::ShimCall;
use crate::sys::{self, bit};

/// The number of attempts to open a file that a host takes at the same moment.
const TRIES: u32 = 3;

#[cold]
pub(crate) fn leave(call: &ShimCall<'_>, reason: UnseenReason) {
    let uid = sys::effective_uid();
    let Ok(socket) = place::socket_path(call.options.socket.map(CStr::to_bytes), uid) else { return };
    let directory = place::directory(&socket);
    match place::check_directory(directory, uid) {
        Ok(()) => {}
        // Before the first host of this boot.
        Err(PlaceError::Missing) if given(call.options.socket).is_empty() && make(directory) => {}
        Err(_) => return,
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let at = u64::try_from(at).unwrap_or(0);
    let pids = (sys::own_pid().number(), sys::parent().number());
    let line = UnseenNote { at, reason, pids, name: name(call) }.line();
    add(&place::unseen_path(&socket), uid, &line);
}

/// The caller's name, as a host would show it.
fn name<'a>(call: &ShimCall<'a>) -> &'a [u8] {
    let (whoami, run) = (given(call.options.whoami), given(call.options.run_agent));
    let known = || known_name(run, call.env.iter().map(|entry| entry.to_bytes()));
    if whoami.is_empty() { known().map_or_else(|| started(run), str::as_bytes) } else { whoami }
}

fn add(path: &Path, uid: u32, line: &[u8]) {
    let Ok(path) = CString::new(path.to_owned().into_os_string().into_vec()) else { return };
    // A file that may not grow ends its writer by SIGXFSZ.
    let before = sys::block_signals(bit(sys::XFSZ));
    for _ in 0..TRIES {
        let Ok(file) = sys::open_to_append(&path) else { break };
        // A file that a host has read has no name any more, and a new one is made.
        let Some(bytes) = sys::lock_shared(&file).then(|| sys::private_file_size(&file, uid)).flatten() else {
            continue;
        };
        if bytes < FILE_BYTES_MAX && sys::write(file.as_raw_fd(), line).is_err() {
            // The signal is not for the shell.
            let _ = sys::signal_descriptor(bit(sys::XFSZ)).map(|pending| sys::next_signal(&pending));
        }
        break;
    }
    sys::restore_mask(before);
}

fn make(directory: &Path) -> bool {
    CString::new(directory.to_owned().into_os_string().into_vec()).is_ok_and(|path| sys::make_private_directory(&path))
}
