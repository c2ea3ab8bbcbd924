//! `rexec --check-host`: whether a host answers.

use std::path::Path;

use super::ask;
use crate::front::answer::Answer;

/// Whether a host of this user answers a ping on this socket.
#[must_use]
pub fn is_running(path: &Path) -> bool {
    let answer = ask::ask(path, r#"{"action":"ping"}"#).and_then(|asked| asked.answer(Some(ask::PATIENCE)));
    matches!(answer, Ok(Answer::Pong { .. }))
}
