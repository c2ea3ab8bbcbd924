//! `rexec --check-host`: tells whether a host answers.

use std::path::Path;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::HOST_NOT_FOUND;

use super::ask;
use super::verb::{Call, Group, NO_HOST, Verb, Words};
use crate::front::answer::Answer;

pub(super) const VERB: Verb = Verb {
    term: "-c, --check-host",
    group: Group::Flag,
    summary: "say HOST RUNNING (exit 0) or HOST NOT FOUND (exit 127)",
    text: "\
A host runs when it answers on the socket. rexec status says more.
",
    codes: &[(0, "a host runs"), NO_HOST],
    examples: &["rexec --check-host"],
    call: &Call::<()> {
        options: &[],
        words: Words::NONE,
        run: |()| {
            if is_running(&super::socket_path()?) {
                return super::say("HOST RUNNING\n");
            }
            super::say(HOST_NOT_FOUND).map(|_| exit_code::NOT_FOUND)
        },
    },
};

/// Returns true if a host of this user answers a ping on this socket.
pub(super) fn is_running(path: &Path) -> bool {
    let answer = ask::ask(path, r#"{"action":"ping"}"#).and_then(|asked| asked.answer(Some(ask::PATIENCE)));
    matches!(answer, Ok(Answer::Pong { .. }))
}
