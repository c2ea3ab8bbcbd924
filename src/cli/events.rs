//! `rexec events`: a line for each thing that happens to the host's commands, from now on.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::awaited::how_ended;
use super::host_calls::HostCalls;
use super::output::VerbOutput;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use super::{cannot_write, chosen, service, shown_json};
use crate::core::end::Failure;
use crate::front::rpc::answers::{CursorNote, Subscribed};
use crate::front::rpc::client::HostLine;
use crate::front::rpc::events::{Event, event};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{RunEvent, SubscribeParams};
use crate::front::rpc::reply::put_event;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "events",
    group: Group::Live,
    summary: "print a line when a command starts, asks a person, or ends",
    text: "\
From now on, each command that starts, waits for a person's answer or for a
person's yes, or ends has a line, those of agents too. It ends with the host;
with N, which may be the name of a service, it tells of these commands, and
ends with them.

With --json each line is the event of JSON-RPC as the host sends it, see rexec
help protocol; exec.closed, which has no line otherwise, says that no output
follows. With --after too, events.cursor comes between: a later call with the
last cursor begins with what has happened since, and its first line says if
some of that is gone. The first call has --after now.
",
    codes: &[(3, "no such command"), NO_HOST],
    examples: &["rexec events", "rexec events --ports web", "rexec events --json | jq -r .method"],
    call: &Call::<EventsCall> {
        options: &[
            Opt::flag(
                "--ports",
                |q| q.tells_ports = true,
                "also when a command listens on a port; the host has to look",
            ),
            Opt::value(
                "--after CURSOR",
                |q, v| q.after = Some(v.text()),
                "with --json: what came behind this cursor; now begins",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("[N...]", Values::Runs, |q, w| q.runs.extend(chosen::given_number(w))),
        run: follow,
    },
};

#[derive(Default)]
struct EventsCall {
    runs: BTreeSet<u64>,
    tells_ports: bool,
    is_json: bool,
    after: Option<String>,
}

/// Columns of a command or a question. The rest is cut.
const COLUMNS: usize = 200;

fn follow(EventsCall { mut runs, tells_ports, is_json, after }: EventsCall) -> Result<u8, Notice> {
    if after.is_some() && (!is_json || !runs.is_empty()) {
        return Err(VERB.missing("--json with --after, and no N"));
    }
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    let mut events = vec![RunEvent::Start, RunEvent::Held, RunEvent::Prompt, RunEvent::Exit];
    events.extend(tells_ports.then_some(RunEvent::Port));
    let wanted = Some(runs.iter().copied().collect()).filter(|_| !runs.is_empty());
    let params = SubscribeParams { runs: wanted, events: Some(events), after, ..SubscribeParams::default() };
    let Subscribed { subscription, cursor, gone } = calls.call::<method::Subscribe>(&params)?;
    let is_for_all = runs.is_empty();
    let mut out = VerbOutput::standard();
    if let Some(cursor) = cursor {
        let mut line = Vec::new();
        put_event::<event::Cursor>(&CursorNote { subscription, cursor, gone }, &mut line);
        if !says(&shown_json(&line), &mut out)? {
            return Ok(exit_code::SUCCESS);
        }
    }
    while is_for_all || !runs.is_empty() {
        let Some(line) = calls.next_event()? else { break };
        let event = match HostLine::read(&line) {
            Some(HostLine::Event(event)) => Some(event),
            _ => None,
        };
        if let Some(Event::Closed(note)) = &event {
            runs.remove(&note.run);
        }
        let text = if is_json { Some(shown_json(&line)) } else { event.as_ref().and_then(told) };
        let Some(text) = text else { continue };
        if !says(&text, &mut out)? {
            break;
        }
    }
    Ok(exit_code::SUCCESS)
}

/// Prints a line. Returns false if nobody reads.
fn says(text: &str, out: &mut VerbOutput) -> Result<bool, Notice> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(|error| cannot_write(&error)),
    }
}

/// An event for people; `None` for one that says nothing to them.
fn told(event: &Event) -> Option<String> {
    let shown = |text: &str| escape_line(text, COLUMNS);
    Some(match event {
        Event::Started(run) => {
            let card = &run.facts.card;
            format!("{} {} started: {}\n", service::title(run), shown(&card.agent_name()), shown(&card.command))
        }
        Event::Prompt(note) => format!("#{} asks: {}\n", note.run, shown(&note.line)),
        Event::Port(note) => format!("#{} listens on port {}\n", note.run, note.port),
        Event::Exited(note) => {
            let end = &note.end;
            let why = end.error.map(|error| format!(": {}", Failure::told(error, end.by)));
            let ended = how_ended(end.exit, end.signal, end.duration_ms);
            format!("#{} {ended}{}\n", note.run, why.unwrap_or_default())
        }
        Event::Held(note) => format!("#{} asks whether it may run: {}\n", note.run, shown(&note.leaf)),
        Event::Decided(note) => {
            let decided = match (note.allow, note.next_ms) {
                (true, None) => "may run",
                (true, Some(_)) => "has ended; the next run of it may pass",
                (false, _) => "may not run",
            };
            format!("#{} {decided}\n", note.run)
        }
        Event::Output(_) | Event::Remark(_) | Event::Closed(_) | Event::Resized(_) | Event::Cursor(_) => {
            return None;
        }
    })
}
