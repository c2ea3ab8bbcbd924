//! `rexec --stop-host`: ends the host, wherever it runs.

use std::time::Duration;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Pid;

use super::ask;
use super::verb::{Call, Group, NO_HOST, Opt, Verb, Words};
use crate::front::answer::Answer;
use crate::sys::background;

pub(super) const VERB: Verb = Verb {
    term: "--stop-host",
    group: Group::Flag,
    summary: "end the host, also one in the background",
    text: "\
A host with commands that run, or that left processes behind, goes on unless
you add --force: then they get SIGTERM, and SIGKILL when their grace is over.
Agents live on; their commands fail until a host runs again.
",
    codes: &[(0, "the host has ended"), (1, "commands run, or it has not ended in time"), NO_HOST],
    examples: &["rexec --stop-host", "rexec --stop-host --force"],
    call: &Call::<bool> {
        options: &[Opt::flag("--force", |is_forced| *is_forced = true, "end the commands that run, too")],
        words: Words::NONE,
        run: |is_forced| {
            let socket = super::socket_path()?;
            let question = format!(r#"{{"action":"stop","force":{is_forced}}}"#);
            let Answer::Stop { pid } = ask::ask(&socket, &question)?.answer(Some(ask::PATIENCE))? else {
                return Err(ask::AskError::Unclear.into());
            };
            let host = Pid::new(i32::try_from(pid).unwrap_or_default());
            if !background::has_ended_within(host, END) {
                return Err(Notice::failed(format_args!("the host {pid} is still ending"), "rexec status shows it"));
            }
            super::say(&format!("the host {pid} has ended\n")).map(|_| exit_code::SUCCESS)
        },
    },
};

/// The time in which a host must end.
const END: Duration = Duration::from_secs(20);
