//! Running agents that start shells, none of which has come to the host: those that `rexec run` has started, and others
//! by the names of their programs.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use rexec_sh::protocol::agent_programs::named_by_program;
use rexec_sh::protocol::process::Pid;

use super::{CheckResult, FindingState};
use crate::front::answer::{HostStatus, StartedAgent};
use crate::host::has_shells;
use crate::limits;
use crate::sys::tree::{self, Process};
use crate::sys::{process, usage};
use crate::text::agent_name::agent_name;
use crate::text::banner::duration;

const NOT_CAUGHT: &str =
    "rexec help agents says what is seen of which agent; tools in place of the shell: rexec help mcp";
const NOT_STARTED: &str = "end it and start it by rexec run";

/// A finding for each of them. `host` knows the callers of all commands.
pub(super) fn all(host: &HostStatus) -> Vec<CheckResult> {
    let all: HashMap<Pid, Process> = tree::all().map(|process| (process.pid, process)).collect();
    let is_own = |process: &&Process| {
        std::fs::metadata(format!("/proc/{}", process.pid)).is_ok_and(|data| data.uid() == process::uid())
    };
    let mut own: Vec<&Process> = all.values().filter(is_own).collect();
    own.sort_by_key(|process| process.start);
    own.into_iter().filter_map(|process| of_process(process, &all, host)).collect()
}

fn of_process(process: &Process, all: &HashMap<Pid, Process>, host: &HostStatus) -> Option<CheckResult> {
    let is_started = |process: &Process| {
        let is_it = |started: &&StartedAgent| (started.pid, started.start) == (process.pid.number(), process.start);
        host.started.iter().find(is_it)
    };
    let started = is_started(process);
    let by_program = |process: &Process| named_by_program(&process.program.to_string());
    let has_come = |name: &str| host.agents_today.iter().any(|agent| *agent == agent_name(name, 1, ""));
    let (name, fix) = match started {
        Some(started) if started.has_run => return None,
        Some(started) => (agent_name(&started.name, 1, ""), NOT_CAUGHT),
        None => {
            let name = by_program(process)?;
            // An agent may be several processes; the first one stands for all.
            let is_below = |above: &Process| by_program(above) == Some(name) || is_started(above).is_some();
            if has_come(name) || ancestors(process, all).any(is_below) {
                return None;
            }
            (agent_name(name, 1, ""), NOT_STARTED)
        }
    };
    let age = usage::age(process.start);
    if age < limits::SILENT_AGENT_AGE || process.is_zombie || !has_shells(process.pid) {
        return None;
    }
    let age = duration(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let found = format!("it has run for {age} and starts shells, of which none has come to the host");
    Some(CheckResult::new(FindingState::Note, format!("{name}, process {}", process.pid), found, fix))
}

/// The processes above one, nearest first.
fn ancestors<'a>(process: &Process, all: &'a HashMap<Pid, Process>) -> impl Iterator<Item = &'a Process> {
    let above = |process: &Process| all.get(&process.parent);
    std::iter::successors(above(process), move |process| above(process)).take(limits::ANCESTORS_MAX)
}
