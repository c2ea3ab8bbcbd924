//! The notices for callers that the host cannot serve.

use rexec_sh::protocol::exit_code::{NO_SUCH_RUN, OWN_FAILURE};
use rexec_sh::protocol::notice::Notice;

use crate::core::engine::JobId;

/// There are too many commands, or too few descriptors or bytes for another one.
pub(super) const BUSY: Notice = Notice::fixed(
    OWN_FAILURE,
    "the host is busy: too many commands or too few descriptors",
    "run the command again in a moment",
);

/// A command came while the host ends.
pub(super) const ENDING: Notice =
    Notice::fixed(OWN_FAILURE, "the host is ending; nothing was run", "start rexec-host, then run the command again");

/// The caller's descriptors did not come although it sent some.
pub(super) const RELAYED: Notice = Notice::fixed(
    OWN_FAILURE,
    "this connection comes through a relay: nothing is run for it",
    "run rexec-host on the machine where the command is to run",
);

/// A request in JSON came without the descriptor that the host requires.
pub(super) const NO_PROOF: Notice = Notice::fixed(
    OWN_FAILURE,
    "the request brings no descriptor, so it may come through a relay: nothing is done for it",
    "use the rexec command on this machine, or start rexec-host without --require-descriptor",
);

/// A peer sent more descriptors than the protocol allows.
pub(super) const TOO_MANY_DESCRIPTORS: Notice = Notice::fixed(
    OWN_FAILURE,
    "more descriptors than a request may carry",
    "install rexec-sh and rexec-host of the same release",
);

/// A peer sent descriptors before its hello, or after its request.
pub(super) const MISPLACED_DESCRIPTORS: Notice = Notice::fixed(
    OWN_FAILURE,
    "descriptors where the protocol has none",
    "install rexec-sh and rexec-host of the same release",
);

/// A shim sent more keys than it may before an answer.
pub(super) const TOO_MANY_KEYS: Notice = Notice::fixed(
    OWN_FAILURE,
    "more keys than may be on their way",
    "install rexec-sh and rexec-host of the same release",
);

/// A peer's hello or request did not come in time.
pub(super) const TOO_SLOW: Notice = Notice::fixed(OWN_FAILURE, "the request took too long", "run the command again");

/// The notice for a number that no command has.
pub(super) fn not_there(job: JobId) -> Notice {
    Notice::new(NO_SUCH_RUN, format_args!("no command #{} runs", job.0), "rexec ps shows what runs")
}
