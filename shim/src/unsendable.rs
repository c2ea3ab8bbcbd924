//! Which descriptor of a caller's the kernel does not let through a socket. It refuses an io_uring there, and tells only
//! that one of all is wrong.

use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;

use crate::sys;

/// Why these descriptors cannot be sent, if it is one of those behind the first: that one is a directory, which can be sent
/// if any can.
pub(crate) fn notice(descriptors: &[RawFd], error: Errno) -> Option<Notice> {
    let (directory, others) = descriptors.split_first()?;
    if !can_be_sent(*directory) {
        return None;
    }
    let refused = others.iter().copied().find(|&fd| !can_be_sent(fd))?;
    let file = std::fs::read_link(format!("/proc/self/fd/{refused}"));
    let file = file.map(|file| format!(" ({})", file.display())).unwrap_or_default();
    let problem = format_args!("descriptor {refused}{file} cannot be sent to rexec-host: {}", error.desc());
    Some(match refused {
        libc::STDIN_FILENO => {
            let hint = "nothing was run; give the command another standard input, as in </dev/null";
            Notice::new(OWN_FAILURE, problem, hint)
        }
        _ => {
            let hint =
                format_args!("nothing was run; close it for the command, as in {refused}>&-, or mark it close-on-exec");
            Notice::new(OWN_FAILURE, problem, hint)
        }
    })
}

/// Tries it with a socket of this process's own. What was sent is closed with that.
fn can_be_sent(fd: RawFd) -> bool {
    let Ok((near, _far)) = sys::socket_pair() else { return false };
    sys::send_with_descriptors(near.as_raw_fd(), &[0], &[fd]).is_ok()
}
