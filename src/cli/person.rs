//! Who may change which rules count, and what is kept: a person, and no agent for itself.
//!
//! A host that runs decides that, as for `rexec answer`. Without one, this process looks at those above it.

use std::os::unix::process::parent_id;

use rexec_sh::protocol::agent_programs::named_by_program;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Pid;

use super::ask::AskError;
use super::enclosing;
use super::host_calls::{CallError, HostCalls};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::NoParams;
use crate::limits;
use crate::sys::tree;

/// Checks that this process is a person's own.
///
/// # Errors
/// It belongs to an agent or to a command of a host, as far as that is seen.
pub(super) fn check() -> Result<(), Notice> {
    check_that("changes rules")
}

/// The same for something else. `does` says what no agent does.
///
/// # Errors
/// As [`check`].
pub(super) fn check_that(does: &str) -> Result<(), Notice> {
    let refused = |whose: &str| {
        let problem = format_args!("this process belongs to {whose}, and no agent {does} for its user");
        Err(Notice::failed(problem, "the user does it, in a terminal of their own"))
    };
    if enclosing::is_inside() {
        return if is_persons_command() { Ok(()) } else { refused("a command of a host") };
    }
    if let Some(agent) = agent_above() {
        return refused(agent);
    }
    tell_host()
}

/// Has a host that runs read the rules again. It refuses that to an agent.
///
/// # Errors
/// It refuses, or does not answer.
pub(super) fn tell_host() -> Result<(), Notice> {
    match HostCalls::connect(&super::socket_path()?) {
        Err(CallError::Ask(AskError::NoHost { .. })) => Ok(()),
        calls => Ok(calls?.call::<method::RereadRules>(&NoParams {}).map(|_| ())?),
    }
}

/// Returns true if the host whose command this is says that it runs for the person, who has said yes to it.
fn is_persons_command() -> bool {
    let Some(mut calls) = super::socket_path().ok().and_then(|socket| HostCalls::connect(&socket).ok()) else {
        return false;
    };
    let is_above = enclosing::host().is_some_and(|host| calls.host() == Some(host));
    is_above && calls.call::<method::RereadRules>(&NoParams {}).is_ok()
}

/// The agent that this process was started by, if one of those above it has an agent's name.
fn agent_above() -> Option<&'static str> {
    let process = |pid: Pid| (pid.number() > 1).then(|| tree::process(pid)).flatten();
    let parent = process(Pid::new(parent_id().try_into().ok()?));
    let above = std::iter::successors(parent, |below| process(below.parent)).take(limits::DECIDER_ANCESTORS_MAX);
    above.into_iter().find_map(|process| named_by_program(&process.program.to_string()))
}
