//! A direct call: `rexec exec` and `rexec --whoami` became this program, and the host runs a program instead of a
//! shell.
//!
//! Invariant: a program that a sandbox or a fallback runs in this process is started by the real shell, which searches
//! for the program and reports a wrong name as a shell does.

use std::ffi::CStr;

use rexec_sh::protocol::direct::DirectCall;
use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE};
use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::options::ShimOptions;

use crate::collect::StandardStreams;
use crate::lifeline::Lifeline;
use crate::report::Reporting;
use crate::{Attempt, ShimCall, choices, local_run, report, shell};

/// Carries out the call. Returns only if something failed.
pub(crate) fn start(call: DirectCall<'_>, env: &[&'static CStr], options: ShimOptions<'static>) -> Notice {
    let notice = attempt(call, env, options);
    // The plain client has one code for every failure outside the command.
    if call.is_plain_client() { notice.with_code(NOT_FOUND) } else { notice }
}

fn attempt(call: DirectCall<'_>, env: &[&'static CStr], options: ShimOptions<'static>) -> Notice {
    let found = shell::find(Shell::Sh, options.shell, env).and_then(|shell| Ok((shell, choices(&options)?)));
    let (shell, choices) = match found {
        Ok(found) => found,
        Err(notice) => return notice,
    };
    let mut standard = StandardStreams::inspect();
    let shim_call = ShimCall { argv: call.argv, env, options, kind: Shell::Sh, shell, direct: Some(call) };
    let mut lifeline = Lifeline::find(env, &options);
    let lacks_sockets = match shim_call.attempt(&mut standard, choices, &mut lifeline) {
        Ok(never) => match never {},
        Err(Attempt::Absent(notice)) if !choices.fallback || call.is_plain_client() => return notice,
        Err(Attempt::Failed(notice)) => return notice,
        Err(Attempt::Locally { .. } | Attempt::Told) if call.is_plain_client() || call.timeout_ms > 0 => {
            return NOT_HERE;
        }
        Err(Attempt::Locally { lacks_sockets }) => lacks_sockets,
        Err(Attempt::Absent(_) | Attempt::Told) => false,
    };
    let words = [shell, c"-c", c"exec \"$@\"", shell].into_iter().chain(call.argv.iter().copied());
    let words: Vec<&CStr> = words.collect();
    if choices.reports
        && let Reporting::Own(reporter) = report::begin(&shim_call, lacks_sockets, false)
    {
        let (entry, rules) = (reporter.entry(shim_call.options.socket), shim_call.rules());
        let env = report::environment(&rules, env, &entry);
        local_run::run(*reporter, &standard, lifeline, || shell::become_shell(shell, &words, &env));
    }
    shell::become_shell(shell, &words, &shim_call.rules().apply_in_place(env))
}

const NOT_HERE: Notice = Notice::fixed(
    OWN_FAILURE,
    "the host cannot run this command: its caller is in a sandbox, or in a directory that the host may not enter",
    "run the command without rexec, or start rexec-host with --allow-sandboxed",
);
