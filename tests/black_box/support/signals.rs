//! The signals that the process of all tests ignores, and with it what the tests start.

use std::sync::Once;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Lets these signals end what the tests start. nohup(1) makes a program ignore SIGHUP, and `&` in a script makes it
/// ignore SIGINT and SIGQUIT, and `trap ''` any other; children inherit that.
#[expect(unsafe_code, reason = "signal(2)")]
pub(crate) fn undo_ignored() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        // These have handlers of the standard library's, or are ignored by it, which gives programs the default back.
        let kept = [Signal::SIGPIPE, Signal::SIGSEGV, Signal::SIGBUS];
        for ignored in Signal::iterator().filter(|signal| !kept.contains(signal)) {
            // SAFETY: this restores the default action and installs no handler. SIGKILL and SIGSTOP have no other.
            _ = unsafe { signal(ignored, SigHandler::SigDfl) };
        }
    });
}
