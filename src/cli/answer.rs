//! `rexec answer N yes|no`: decides whether a command that rules hold may run.

use rexec_sh::protocol::notice::Notice;

use super::acted::Acted;
use super::chosen;
use super::host_calls::HostCalls;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::DecideParams;

pub(super) const VERB: Verb = Verb {
    term: "answer",
    group: Group::Live,
    summary: "say whether a command that your rules hold may run",
    text: "\
Your rules (rexec help gate) can hold a command until you say yes or no. rexec
ps shows what asks. N is its number.

A process that belongs to an agent, or to a command of the host, cannot answer:
an agent must not decide for you. What an agent starts outside of its own
processes (in a terminal multiplexer, by a service manager) is not recognized.
",
    codes: &[(1, "the command asks nothing, or this is an agent's process"), (3, "there is no such command"), NO_HOST],
    examples: &["rexec answer 45 yes", "rexec answer 45 no --why 'open a PR instead'"],
    call: &Call::<AnswerCall> {
        options: &[
            Opt::value("--why TEXT", |q, v| q.why = Some(v.text()), "the reason for a no, for the agent"),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N yes|no", Values::Runs, |q, w| {
            if q.run.is_none() {
                q.run = Some(w.text());
            } else if q.answer.is_none() {
                q.answer = Some(w.text());
            } else {
                let word = w.text();
                w.refuse(VERB.too_much(&word));
            }
        }),
        run: answer,
    },
};

#[derive(Default)]
struct AnswerCall {
    run: Option<String>,
    answer: Option<String>,
    why: Option<String>,
    is_json: bool,
}

fn answer(call: AnswerCall) -> Result<u8, Notice> {
    let run = call.run.ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
    let allow = match call.answer.as_deref() {
        Some("yes" | "y") => true,
        Some("no" | "n") => false,
        Some(other) => return Err(VERB.none_of("yes|no", other, &["yes", "no"])),
        None => return Err(VERB.missing("an answer: yes or no")),
    };
    let seq = chosen::number(&VERB, &run)?;
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    calls.call::<method::Decide>(&DecideParams { run: seq, allow, why: call.why })?;
    let result = if allow { "allowed" } else { "refused" };
    super::with_output(|out| {
        Acted { seq, result, ..Acted::default() }.say(call.is_json, "", out);
        Ok(())
    })
}
