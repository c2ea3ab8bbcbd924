//! Gives the commands in a project the project's variables that they lack, and those that name its ports.
//!
//! Invariants: what a caller has set stays as it is; only what a person's own client has defined is given, because an agent
//! could otherwise choose what another one's commands run with. Nothing is given to a command that names its project session,
//! which has them already, to one whose caller gave a whole environment, and to an agent's look at its shell, whose snapshot
//! would outlive the project.

use std::ffi::{CStr, CString};

use rexec_sh::protocol::wire;

use crate::front::command::Command;
use crate::front::projects::ProjectSession;
use crate::text::redact::split_entry;

pub(super) fn give(known: &ProjectSession, command: &mut Command) {
    if !known.is_given || command.project.is_some() || command.is_bare || command.line.is_probe {
        return;
    }
    let ports = known.port_variables();
    let own = known.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // A variable of the project's is not one of its ports, even if it is called so.
    let ports =
        ports.iter().map(|(name, port)| (*name, port.as_str())).filter(|(name, _)| !known.env.contains_key(*name));
    let missing: Vec<CString> = {
        let run = command.run();
        let set: Vec<&[u8]> = run.iter().flat_map(|run| run.env.iter()).map(CStr::to_bytes).collect();
        let is_set =
            |name: &str| set.iter().any(|entry| split_entry(entry).is_some_and(|(own, _)| own == name.as_bytes()));
        let entry = |(name, value): (&str, &str)| CString::new(format!("{name}={value}")).ok();
        own.chain(ports).filter(|(name, _)| !is_set(name)).filter_map(entry).collect()
    };
    for entry in missing {
        // A frame that has no room is near the bound on all arguments, and its command more important.
        if wire::add_variable(&entry, &mut command.frame).is_ok() {
            command.added.push(entry);
        }
    }
}
