//! `rexec send N TEXT`: types a text or keys for a command.

use std::io::{self, Read};

use lexopt::prelude::{Long, Short, Value};
use rexec_sh::protocol::notice::Notice;

use super::acted::Acted;
use super::verb::{Group, JSON, NO_HOST, Values, Verb, VerbOption};
use super::{ask, chosen, run_reference};
use crate::front::SendRequest;
use crate::front::answer::Answer;
use crate::front::keys::{self, Instead, Key};
use crate::limits;
use crate::sys::signal;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    name: "send",
    short: None,
    group: Group::Live,
    arguments: "N TEXT...|-",
    values: Values::Runs,
    summary: "type a text or a key for a command",
    text: "\
Types TEXT and return at the terminal of command N, which must wait for an
answer: rexec ps says so, and with which words it asks. With - the text comes
from standard input, and return only if it has one: other programs do not see
a password there, as they see the words of a command line.
The journal has how many bytes were typed, and never which. A rexec send that
is itself a command of the host is in the journal with TEXT masked, unless TEXT
has nothing but words of letters. Give a secret by -.

N is a number, -1 for the newest command, or the name of a service. A command
of rexec exec --bg need not wait: with --tty TEXT is typed at its terminal,
with --keep-stdin it is written to its standard input. Others get a signal for
ctrl-c, ctrl-z and ctrl-\\.

KEY is ctrl-c (or another letter, also written ^C), ctrl-\\, enter, tab, space,
escape, backspace, up, down, left, right, home, end, page-up, page-down or
delete. Several keys are typed in their order, behind TEXT without return.
",
    options: &[
        VerbOption::flag("no-newline", "type no return behind TEXT").short('n'),
        VerbOption::taking("key", "KEY", Values::Words(&KEYS), "type this key; may be repeated").short('k'),
        VerbOption::flag("eof", "type ^D at the end, which ends the input of a program that reads lines"),
        VerbOption::flag("force", "type although the command does not wait"),
        JSON,
    ],
    codes: &[(1, "the command does not wait, or somebody else answers it"), (3, "no such command runs"), NO_HOST],
    examples: &[
        "rexec send 46 yes",
        "rexec send 46 - <password-file",
        "rexec send --eof 46",
        "rexec send web --key ctrl-c",
    ],
    run: |parser| {
        let (request, is_json) = request(parser)?;
        let asked = ask::ask(&super::socket_path()?, &request.line())?;
        match asked.answer(Some(ask::PATIENCE))? {
            Answer::Send { seq, bytes } => super::with_output(|out| {
                Acted { seq, result: "sent", bytes: Some(bytes), ..Acted::default() }.say(is_json, "", out);
                Ok(())
            }),
            _ => Err(ask::AskError::Unclear.into()),
        }
    },
};

/// The keys that a shell offers.
const KEYS: [&str; 16] = [
    "ctrl-c",
    "ctrl-d",
    "ctrl-z",
    "enter",
    "tab",
    "space",
    "escape",
    "backspace",
    "up",
    "down",
    "left",
    "right",
    "home",
    "end",
    "page-up",
    "page-down",
];

fn request(parser: &mut lexopt::Parser) -> Result<(SendRequest, bool), Notice> {
    let (mut is_json, mut keys) = (false, Vec::new());
    let (mut run, mut words, mut is_bare, mut eof, mut force) = (None, Vec::new(), false, false, false);
    while let Some(argument) = run_reference::next(parser, &VERB)? {
        match argument {
            Short('n') | Long("no-newline") => is_bare = true,
            Short('k') | Long("key") => keys.push(key(&VERB.value(parser)?)?),
            Long("eof") => eof = true,
            Long("force") => force = true,
            Long("json") => is_json = true,
            Value(word) if run.is_none() => run = Some(word.to_string_lossy().into_owned()),
            Value(word) => {
                let word = word.into_string();
                words.push(word.map_err(|word| VERB.not_valid("TEXT", &word.to_string_lossy(), "UTF-8 is needed"))?);
            }
            other => return Err(VERB.unexpected(other)),
        }
    }
    let run = run.ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
    let has_keys = !keys.is_empty();
    let mut text = match &words[..] {
        [] if eof || has_keys => String::new(),
        [] => return Err(VERB.missing("a text, - for standard input, --key, or --eof")),
        [only] if only == "-" => standard_input()?,
        words => words.join(" ") + if is_bare || eof || has_keys { "" } else { "\n" },
    };
    let signal = match keys[..] {
        [Key { instead: Instead::Signal(name), .. }] if text.is_empty() => signal::number(name),
        _ => None,
    };
    let ends = keys.pop_if(|key| key.instead == Instead::Eof).is_some();
    keys.iter().for_each(|key| text.push_str(key.text));
    let seq = chosen::number(&VERB, &run)?;
    Ok((SendRequest { seq, text, eof: eof || ends, force, signal }, is_json))
}

fn key(name: &str) -> Result<Key, Notice> {
    Key::named(name).ok_or_else(|| VERB.not_valid("--key", name, &format!("known keys: {}", keys::NAMES)))
}

fn standard_input() -> Result<String, Notice> {
    let most = u64::try_from(limits::ANSWER_BYTES).expect("it is small");
    let mut text = String::new();
    let read = io::stdin().lock().take(most + 1).read_to_string(&mut text);
    let hint = format_args!("text in UTF-8, of {most} bytes or less, as in: echo yes | rexec send 46 -");
    match read {
        Err(error) => Err(Notice::failed(format_args!("cannot read standard input: {}", reason(&error)), hint)),
        Ok(_) if text.len() > limits::ANSWER_BYTES => Err(Notice::usage("the text is too long", hint)),
        Ok(_) => Ok(text),
    }
}
