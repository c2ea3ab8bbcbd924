//! `rexec answer N yes|no`: decides whether a command that rules hold may run.

use rexec_sh::protocol::notice::Notice;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::acted::Acted;
use super::chosen;
use super::host_calls::HostCalls;
use super::sheet::clock;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use super::when::time_shown;
use crate::front::rpc::answers::Answered;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::DecideParams;
use crate::text::reason::reason;

/// The most that is read of a token, bytes.
const TOKEN_BYTES_MAX: u64 = 256;

pub(super) const VERB: Verb = Verb {
    term: "answer",
    group: Group::Live,
    summary: "say whether a command that your rules hold may run",
    text: "\
Your rules (rexec help gate) can hold a command until you say yes or no. rexec
ps shows what asks. N is its number.

A command that nobody answered in time did not run, and its agent was told to
run it again later. For ten minutes you can still answer: rexec ps --asks lists
it. After yes, the next run of it passes, once and within ten minutes: the same
text in the same directory with the same values of the variables it names, by
the same agent in the same session. After no, it is off the list.

A process that belongs to an agent, or to a command of the host, cannot answer:
an agent must not decide for you. What an agent starts outside of its own
processes (in a terminal multiplexer, by a service manager) is not recognized.

With --token, any process may answer: the command of rexec-host --notify gets a
token on its standard input, good for one answer while rexec ps --asks lists
the command. So buttons on a phone can answer, here with the service ntfy.sh.
With away = \"wait\" in your rules, asks wait for you. With away = \"deny\" you
are told of what was refused, and a yes is for its next run. In ten minutes you
are told once of the same command, and of at most 8 commands of one agent and
32 in all; rexec ps --asks has the others, too.

  #!/bin/sh
  # rexec-host --notify ~/bin/ask-phone
  read -r token || exit 0                    # a prompt has none
  topic=https://ntfy.sh/a-long-name-that-nobody-guesses
  id=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
  yes=\"http, Yes, $topic-said, body=$id yes\"
  no=\"http, No, $topic-said, body=$id no\"
  curl -s -H \"Actions: $yes; $no\" -d \"$REXEC_MESSAGE\" \"$topic\"
  curl -sN --max-time 600 \"$topic-said/raw\" | while read -r of answer; do
      [ \"$of\" = \"$id\" ] || continue
      echo \"$token\" | rexec answer \"$REXEC_RUN\" \"$answer\" --token -
      break
  done
",
    codes: &[(1, "the command asks nothing, or this is an agent's process"), (3, "there is no such command"), NO_HOST],
    examples: &["rexec ps --asks", "rexec answer 45 yes", "rexec answer 45 no --why 'open a PR instead'"],
    call: &Call::<AnswerCall> {
        options: &[
            Opt::value(
                "--token FILE",
                |q, v| q.token = Some(v.raw().into()),
                "with the token that --notify got: of a file, or - for standard input",
            ),
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
    token: Option<PathBuf>,
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
    let token = call.token.as_deref().map(token).transpose()?;
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    let Answered { next_ms } = calls.call::<method::Decide>(&DecideParams { run: seq, allow, why: call.why, token })?;
    let result = match (allow, next_ms) {
        (true, None) => "allowed",
        (true, Some(_)) => "next",
        (false, _) => "refused",
    };
    let words = next_ms.map_or_else(String::new, next_words);
    super::with_output(|out| {
        Acted { seq, result, next_ms, ..Acted::default() }.say(call.is_json, &words, out);
        Ok(())
    })
}

/// The token in a file, or on standard input.
fn token(path: &Path) -> Result<String, Notice> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(TOKEN_BYTES_MAX).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut text)),
    };
    let hint = "the command of rexec-host --notify reads it from its standard input";
    read.map_err(|error| Notice::failed(format_args!("cannot read the token: {}", reason(&error)), hint))?;
    Ok(text.trim().to_owned())
}

/// What a yes does that came too late.
fn next_words(within_ms: u64) -> String {
    let clock = clock();
    let until = clock.local(clock.now.saturating_add_unsigned(within_ms)).map(time_shown).unwrap_or_default();
    format!("has ended; the next run of it may pass, until {until}")
}
