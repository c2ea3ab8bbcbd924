//! `rexec answer N yes|no|always`: decides whether a command that rules hold may run.

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::acted::Acted;
use super::ask::AskError;
use super::host_calls::HostCalls;
use super::sheet::clock;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use super::when::time_shown;
use super::{chosen, person, told};
use crate::front::rpc::answers::Answered;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{AskParams, DecideParams};
use crate::text::escape::escape_text;
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

With always, as with the key a on the console, it may run, and so may what is
like it from now on: git push in this project by this agent, say. You read what
that is and are asked first; without a terminal, only --yes does it. rexec help
gate says what is proposed, rexec gate learned lists it. Of a command that has
ended, only that is saved.

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
    examples: &[
        "rexec ps --asks",
        "rexec answer 45 yes",
        "rexec answer 45 always",
        "rexec answer 45 no --why 'open a PR instead'",
    ],
    call: &Call::<AnswerCall> {
        options: &[
            Opt::value(
                "--token FILE",
                |q, v| q.token = Some(v.raw().into()),
                "with the token that --notify got: of a file, or - for standard input",
            ),
            Opt::value("--why TEXT", |q, v| q.why = Some(v.text()), "the reason for a no, for the agent"),
            Opt::flag("-y, --yes", |q| q.is_sure = true, "with always: do not ask"),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N yes|no|always", Values::Runs, |q, w| {
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
    is_sure: bool,
    is_json: bool,
}

fn answer(call: AnswerCall) -> Result<u8, Notice> {
    let run = call.run.as_deref().ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
    let allow = match call.answer.as_deref() {
        Some("yes" | "y") => true,
        Some("no" | "n") => false,
        Some("always") => return allow_always(chosen::number(&VERB, run)?, &call),
        Some(other) => return Err(VERB.none_of("yes|no|always", other, &["yes", "no", "always"])),
        None => return Err(VERB.missing("an answer: yes, no or always")),
    };
    let seq = chosen::number(&VERB, run)?;
    if call.is_sure {
        return Err(misplaced("--yes", "always"));
    }
    let token = call.token.as_deref().map(token).transpose()?;
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    let params = DecideParams { run: seq, allow, why: call.why, token, always: None };
    let Answered { next_ms } = calls.call::<method::Decide>(&params)?;
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

/// Lets a command run, or its next run, and saves what allows all that follow, once the person has read that.
fn allow_always(seq: u64, call: &AnswerCall) -> Result<u8, Notice> {
    let given = [("--why", call.why.is_some()), ("--token", call.token.is_some())];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(misplaced(option, "yes or no"));
    }
    person::check()?;
    let mut calls = HostCalls::connect(&super::socket_path()?)?;
    let asks = calls.call::<method::ListAsks>(&AskParams { run: Some(seq) })?.asks;
    let Some(ask) = asks.into_iter().next() else { return Err(AskError::Unclear.into()) };
    let always = ask.always.ok_or_else(|| {
        let why = ask.once.unwrap_or_default();
        let problem = format_args!("#{seq} can be allowed only once: {why}");
        Notice::failed(problem, format_args!("rexec answer {seq} yes"))
    })?;
    if !call.is_sure {
        told::tell(format_args!("#{seq} asks: {}", ask.leaf));
        let question = format_args!("Allow {always} from now on? [y/N] ");
        if !told::is_wanted(question, &format!("rexec answer {seq} always"))? {
            return super::say("nothing was changed\n").map(|_| exit_code::FAILURE);
        }
    }
    let params = DecideParams { run: seq, allow: true, why: None, token: None, always: Some(always.clone()) };
    let Answered { next_ms } = calls.call::<method::Decide>(&params)?;
    let what = if next_ms.is_some() { "has ended" } else { "may run" };
    let words = format!("{what}; allowed from now on: {always}");
    super::with_output(|out| {
        let acted = Acted { seq, result: "always", next_ms, always: Some(&always), ..Acted::default() };
        acted.say(call.is_json, &escape_text(&words), out);
        Ok(())
    })
}

fn misplaced(option: &str, answer: &str) -> Notice {
    Notice::usage(format_args!("answer: {option} goes with {answer}"), format_args!("usage: {}", VERB.usage()))
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
