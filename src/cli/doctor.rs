//! `rexec doctor`: reports the parts that are set up, those that are not, and their fixes.

mod checks;
mod live;
mod permanent;
mod rules;
mod silent;

use std::io::{self, Write};

use rexec_sh::protocol::exit_code;
use serde::Serialize;

use super::look::Look;
use super::told;
use super::verb::{Call, Group, Opt, Verb, Words, json};

pub(super) const VERB: Verb = Verb {
    term: "doctor",
    group: Group::Agents,
    summary: "check the host, the links and the agents, and say what to do",
    text: "\
Each line begins with ok, note or broken. A note is something that you may
want; what is broken keeps commands from being seen, and has a line on what to
do. Agents that are not on PATH are left out. Where you have rules, a finding
names the agents whose commands they do not see.

With --live a command runs for each agent, as rexec run would make the agent
start it. No agent is started, because that needs its model. It names agents
that have run for a minute and start shells, of which none has come.
",
    codes: &[(1, "something is broken")],
    examples: &["rexec doctor", "rexec doctor --live"],
    call: &Call::<DoctorCall> {
        options: &[
            Opt::flag("--live", |q| q.is_live = true, "run a command as each agent would, and see whether it arrives"),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |call| {
            let findings = checks::all(call.is_live)?;
            let is_broken = findings.iter().any(|finding| finding.state == FindingState::Broken);
            super::with_output(|out| match call.is_json {
                true => super::put_json(findings.iter(), out),
                false => {
                    let columns = Look::of_output().columns;
                    super::written(findings.iter().try_for_each(|finding| finding.write(columns, out)))
                }
            })?;
            Ok(if is_broken { exit_code::FAILURE } else { exit_code::SUCCESS })
        },
    },
};

#[derive(Default)]
struct DoctorCall {
    is_live: bool,
    is_json: bool,
}

/// Columns of a finding's state, and of the name of its check.
const STATE_COLUMNS: usize = 8;
const CHECK_COLUMNS: usize = 22;
/// The width below which a terminal has no room for the finding beside both.
const NARROW_COLUMNS: usize = 64;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingState {
    Ok,
    Note,
    Broken,
}

#[derive(Debug, Serialize)]
pub(super) struct CheckResult {
    check: String,
    state: FindingState,
    /// The finding, in one line or more.
    found: String,
    /// The fix, if there is one.
    #[serde(skip_serializing_if = "str::is_empty")]
    fix: String,
}

impl CheckResult {
    fn new(state: FindingState, check: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check: check.into(), state, found: found.into(), fix: fix.into() }
    }

    fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(FindingState::Ok, check, found, "")
    }

    /// Writes the finding in lines of at most `columns`. On a narrow terminal, it stands below the check.
    fn write(&self, columns: usize, out: &mut impl Write) -> io::Result<()> {
        let state = match self.state {
            FindingState::Ok => "ok",
            FindingState::Note => "note",
            FindingState::Broken => "broken",
        };
        let is_narrow = columns < NARROW_COLUMNS;
        let indent = if is_narrow { STATE_COLUMNS } else { STATE_COLUMNS + CHECK_COLUMNS };
        let mut head = format!("{state:<STATE_COLUMNS$}{:<CHECK_COLUMNS$}", self.check);
        if is_narrow {
            writeln!(out, "{}", head.trim_end())?;
            head = " ".repeat(indent);
        }
        let fix = if self.fix.is_empty() { String::new() } else { format!("fix: {}", self.fix) };
        for line in self.found.lines().chain([fix.as_str()].into_iter().filter(|fix| !fix.is_empty())) {
            out.write_all(told::broken_behind(indent, &(head + line), columns).as_bytes())?;
            head = " ".repeat(indent);
        }
        Ok(())
    }
}
