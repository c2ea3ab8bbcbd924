//! What the caller is told when shim and host do not speak the same language.

use rexec_sh::protocol::wire::{self, WireError};

use crate::report::{FAILED, Report};

/// The report on bytes that are not what the host should have sent.
#[cold]
pub(crate) fn report(error: &WireError) -> Report {
    const HINT: &str = "install rexec-sh and rexec-host of the same release, then restart rexec-host";
    match error {
        WireError::Version { newest, oldest } => {
            let (ours, theirs) = (versions(wire::VERSION_MIN, wire::VERSION), versions(*oldest, *newest));
            let problem =
                format_args!("rexec-sh speaks protocol {ours} and rexec-host {theirs}, so the command did not run");
            Report::new(FAILED, problem, HINT)
        }
        WireError::NotRexec => Report::new(
            FAILED,
            "what listens on the host's socket is not rexec-host",
            "stop it, start rexec-host in a terminal, then run the command again",
        ),
        error => Report::new(
            FAILED,
            format_args!("rexec-host cannot be understood ({error}); whether the command finished is unknown"),
            HINT,
        ),
    }
}

fn versions(oldest: u16, newest: u16) -> String {
    if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
}
