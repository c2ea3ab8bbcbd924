//! Commands that destroy what cannot be kept for undo, as far as their text tells: a person may want to be asked.
//!
//! Invariants: nothing is looked up; the host reads no long call. What only keeping itself finds out, such as a file that is too
//! large, does not ask.

use super::rules::{is_long, value};
use crate::front::command::{Command, Concern};
use crate::undo::{self, Losses};

/// What of a command in this directory is not kept. `keeps` says that the host keeps what it can.
pub(super) fn concern(command: &Command, directory: &[u8], keeps: bool) -> Option<Concern> {
    let run = command.run()?;
    let unkept = |what: &str| Some(Concern::Unkept { what: what.to_owned() });
    if is_long(command) {
        // An agent's look at its shell is long, and comes with each session.
        let is_look = command.line.is_probe || command.is_for_program;
        return if is_look { None } else { unkept("is too long to tell what it destroys") };
    }
    let losses = undo::losses_of_call(&command.exec, &|name| value(command, directory, name));
    let Losses { operands, repositories, unknown, .. } = losses;
    let has_known = !operands.is_empty() || !repositories.is_empty();
    let is_unwanted = run.attributes.extras.keeps_nothing;
    match unknown.first() {
        _ if is_unwanted && (has_known || !unknown.is_empty()) => {
            unkept("destroys files, of which REXEC_UNDO=off keeps nothing")
        }
        Some(program) => unkept(&format!("destroys files with {}, and the text does not tell which", shown(program))),
        None if !keeps && has_known => unkept("destroys files, and this host can keep nothing"),
        None => None,
    }
}

fn shown(program: &[u8]) -> String {
    String::from_utf8_lossy(program).into_owned()
}
