//! The signals that the process of all tests ignores, and with it what the tests start.

use std::sync::Once;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Lets these signals end what the tests start. nohup(1) makes a program ignore SIGHUP, and `&` in a script makes it
/// ignore SIGINT and SIGQUIT; children inherit that.
#[expect(unsafe_code, reason = "signal(2)")]
pub(crate) fn undo_ignored() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for ignored in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
            // SAFETY: this restores the default action and installs no handler.
            unsafe { signal(ignored, SigHandler::SigDfl) }.expect("a signal that exists");
        }
    });
}
