//! `rexec send N TEXT`: types a text or keys for a command.

use std::io::{self, Read};

use rexec_sh::protocol::notice::Notice;

use super::acted::Acted;
use super::verb::{Call, Given, Group, NO_HOST, Opt, Values, Verb, Words, json};
use super::{ask, chosen};
use crate::front::SendRequest;
use crate::front::answer::Answer;
use crate::front::keys::{self, Instead, Key};
use crate::limits;
use crate::sys::signal;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    term: "send",
    group: Group::Live,
    summary: "type a text or a key for a command",
    text: "\
Types TEXT and return at the terminal of command N, which must wait for an
answer: rexec ps says so, and with which words it asks. With - the text comes
from standard input, and return only if it has one: other programs do not see
a password there, as they see the words of a command line.
The journal has how many bytes were typed, and never which.

N is a number, -1 for the newest command, or the name of a service. A command
of rexec exec --bg need not wait: with --tty TEXT is typed at its terminal,
with --keep-stdin it is written to its standard input. Others get a signal for
ctrl-c, ctrl-z and ctrl-\\.

KEY is ctrl-c (or another letter, also written ^C), ctrl-\\, enter, tab, space,
escape, backspace, up, down, left, right, home, end, page-up, page-down or
delete. Several keys are typed in their order, behind TEXT without return.
",
    codes: &[(1, "the command does not wait, or somebody else answers it"), (3, "no such command runs"), NO_HOST],
    examples: &[
        "rexec send 46 yes",
        "rexec send 46 - <password-file",
        "rexec send --eof 46",
        "rexec send web --key ctrl-c",
    ],
    call: &Call::<SendCall> {
        options: &[
            Opt::flag("-n, --no-newline", |q| q.is_bare = true, "type no return behind TEXT"),
            Opt::word("-k, --key KEY", &KEYS, |q, v| q.keys.extend(key(v)), "type this key; may be repeated"),
            Opt::flag(
                "--eof",
                |q| q.eof = true,
                "type ^D at the end, which ends the input of a program that reads lines",
            ),
            Opt::flag("--force", |q| q.is_forced = true, "type although the command does not wait"),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N TEXT...|-", Values::Runs, |q, w| match &q.run {
            None => q.run = Some(w.text()),
            Some(_) => q.words.extend(text(w)),
        }),
        run: |call| {
            let is_json = call.is_json;
            let asked = ask::ask(&super::socket_path()?, &call.request()?.line())?;
            match asked.answer(Some(ask::PATIENCE))? {
                Answer::Send { seq, bytes } => super::with_output(|out| {
                    Acted { seq, result: "sent", bytes: Some(bytes), ..Acted::default() }.say(is_json, "", out);
                    Ok(())
                }),
                _ => Err(ask::AskError::Unclear.into()),
            }
        },
    },
};

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

#[derive(Default)]
struct SendCall {
    run: Option<String>,
    words: Vec<String>,
    keys: Vec<Key>,
    is_bare: bool,
    eof: bool,
    is_forced: bool,
    is_json: bool,
}

impl SendCall {
    fn request(mut self) -> Result<SendRequest, Notice> {
        let run = self.run.ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
        let has_keys = !self.keys.is_empty();
        let mut text = match &self.words[..] {
            [] if self.eof || has_keys => String::new(),
            [] => return Err(VERB.missing("a text, - for standard input, --key, or --eof")),
            [only] if only == "-" => standard_input()?,
            words => words.join(" ") + if self.is_bare || self.eof || has_keys { "" } else { "\n" },
        };
        let signal = match self.keys[..] {
            [Key { instead: Instead::Signal(name), .. }] if text.is_empty() => signal::number(name),
            _ => None,
        };
        let ends = self.keys.pop_if(|key| key.instead == Instead::Eof).is_some();
        self.keys.iter().for_each(|key| text.push_str(key.text));
        let seq = chosen::number(&VERB, &run)?;
        Ok(SendRequest { seq, text, eof: self.eof || ends, force: self.is_forced, signal })
    }
}

fn text(given: &mut Given<'_>) -> Option<String> {
    let text = given.raw().into_string();
    given.check(text.map_err(|word| VERB.not_valid("TEXT", &word.to_string_lossy(), "UTF-8 is needed")))
}

fn key(given: &mut Given<'_>) -> Option<Key> {
    given.parsed(&format!("known keys: {}", keys::NAMES), Key::named)
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
