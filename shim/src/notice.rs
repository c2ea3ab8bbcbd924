//! The shim's own messages, always on stderr.

use nix::libc;
use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::{Hello, WireError};

use crate::sys;

/// Writes a notice to stderr, until stderr takes no more.
pub(crate) fn tell(notice: &Notice) {
    let text = notice.to_string();
    let mut rest = text.as_bytes();
    while let Ok(written @ 1..) = sys::write(libc::STDERR_FILENO, rest) {
        rest = &rest[written..];
    }
}

/// The notice about bytes that a rexec-host of this release would not send.
#[cold]
pub(crate) fn misunderstood(error: &WireError) -> Notice {
    const HINT: &str = "install rexec-sh and rexec-host of the same release, then restart rexec-host";
    match error {
        WireError::Version { newest, oldest } => {
            let ours = Hello::OURS.versions();
            let theirs = Hello { newest: *newest, oldest: *oldest }.versions();
            let problem =
                format_args!("rexec-sh speaks protocol {ours} and rexec-host {theirs}, so the command did not run");
            Notice::new(OWN_FAILURE, problem, HINT)
        }
        WireError::NotRexec => Notice::new(
            OWN_FAILURE,
            "what listens on the host's socket is not rexec-host",
            "stop it, start rexec-host in a terminal, then run the command again",
        ),
        error => Notice::new(
            OWN_FAILURE,
            format_args!("rexec-host cannot be understood ({error}); whether the command finished is unknown"),
            HINT,
        ),
    }
}
