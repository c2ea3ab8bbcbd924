//! `rexec send N TEXT`: types a text for a command that waits for an answer.

use std::io::{self, Read};

use lexopt::prelude::{Long, Short, Value};
use rexec_sh::protocol::notice::Notice;

use super::acted::Acted;
use super::verb::{Group, JSON, NO_HOST, Values, Verb, VerbOption};
use super::{ask, chosen};
use crate::front::SendRequest;
use crate::front::answer::Answer;
use crate::limits;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    name: "send",
    short: None,
    group: Group::Live,
    arguments: "N TEXT...|-",
    values: Values::Runs,
    summary: "answer a command that waits for input",
    text: "\
Types TEXT and return at the terminal of command N, which must wait for an
answer: rexec ps says so, and with which words it asks. With - the text comes
from standard input, and return only if it has one: other programs do not see
a password there, as they see the words of a command line.
The journal has how many bytes were typed, and never which.
",
    options: &[
        VerbOption::flag("no-newline", "type no return behind TEXT").short('n'),
        VerbOption::flag("eof", "type ^D at the end, which ends the input of a program that reads lines"),
        VerbOption::flag("force", "type although the command does not wait"),
        JSON,
    ],
    codes: &[(1, "the command does not wait, or somebody else answers it"), (3, "no such command runs"), NO_HOST],
    examples: &["rexec send 46 yes", "rexec send 46 - <password-file", "rexec send --eof 46"],
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

fn request(parser: &mut lexopt::Parser) -> Result<(SendRequest, bool), Notice> {
    let mut is_json = false;
    let (mut seq, mut words, mut is_bare, mut eof, mut force) = (None, Vec::new(), false, false, false);
    while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
        match argument {
            Short('n') | Long("no-newline") => is_bare = true,
            Long("eof") => eof = true,
            Long("force") => force = true,
            Long("json") => is_json = true,
            Value(word) if seq.is_none() => seq = Some(chosen::number(&VERB, &word.to_string_lossy())?),
            Value(word) => {
                let word = word.into_string();
                words.push(word.map_err(|word| VERB.not_valid("TEXT", &word.to_string_lossy(), "UTF-8 is needed"))?);
            }
            other => return Err(VERB.unexpected(other)),
        }
    }
    let seq = seq.ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
    let text = match &words[..] {
        [] if eof => String::new(),
        [] => return Err(VERB.missing("a text, - for standard input, or --eof")),
        [only] if only == "-" => standard_input()?,
        words => words.join(" ") + if is_bare || eof { "" } else { "\n" },
    };
    Ok((SendRequest { seq, text, eof, force }, is_json))
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
