//! `rexec --whoami NAME --dir DIR -- COMMAND`: the plain client. It runs one program with the host's environment, in which
//! some variables are set, and prints both outputs as one text.

use std::ffi::OsString;
use std::io;

use lexopt::prelude::{Long, Short, Value};
use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::Direct;

use super::super::verb::{Group, Values, Verb, VerbOption};
use super::{ExecCall, raw, variable};
use crate::cli::help;
use crate::sys::background;
use crate::text::reason::reason;

pub(in crate::cli) const VERB: Verb = Verb {
    name: "--whoami",
    short: None,
    group: Group::Flag,
    arguments: "NAME --dir DIR -- COMMAND...",
    values: Values::Program(&[]),
    summary: "run a program for the caller NAME, in the host's environment",
    text: "\
The program gets the host's environment and no standard input. Its output and
its errors come as one text without escape sequences, while it runs. rexec exec
is for people and scripts: it passes everything on as it is.
",
    options: &[
        VerbOption::taking("dir", "DIR", Values::Nothing, "the directory to run it in"),
        VerbOption::taking("env", "NAME=VALUE", Values::Nothing, "set a variable; may be repeated"),
        VerbOption::flag("clear-env", "give it only the variables of --env"),
        VerbOption::flag("read-stdin", "give it the standard input of rexec"),
        VerbOption::taking("timeout", "TIME", Values::Nothing, "end it after this time, as 90 or 1.5h; exit code 124"),
    ],
    codes: &[
        (124, "the timeout has ended the command"),
        (127, "no host runs, or the command was not found or could not be run"),
    ],
    examples: &["rexec --whoami Codex --dir \"$PWD\" --env RUST_LOG=debug -- cargo test"],
    // The option that the table looks for may stand behind others, so the line is read from its beginning.
    run: |_| match read(&mut lexopt::Parser::from_env())? {
        None => help::say(&help::verb_help(&VERB)),
        Some(call) => Err(call.become_shim().with_code(NOT_FOUND)),
    },
};

/// Whether a command line that begins with this option is this verb's.
pub(in crate::cli) fn takes(long: &str) -> bool {
    long == "whoami" || VERB.options.iter().any(|option| option.long == long)
}

/// Reads the command line; `None` if it asks for help.
fn read(parser: &mut lexopt::Parser) -> Result<Option<ExecCall>, Notice> {
    let mut call = ExecCall::new(Direct::Host);
    let (mut whoami, mut reads_stdin) = (None, false);
    while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
        match argument {
            Long("help") | Short('h') => return Ok(None),
            Long("whoami") => whoami = name(parser)?,
            Long("dir") => call.dir = Some(raw(&VERB, parser)?),
            Long("env") => call.set.push(variable(&VERB, parser)?),
            Long("clear-env") => call.environment = Direct::Bare,
            Long("read-stdin") => reads_stdin = true,
            Long("timeout") => call.timeout = VERB.time("--timeout", parser)?,
            Value(word) => {
                call.line.push(word);
                call.line.extend(parser.raw_args().map_err(|error| VERB.wrong(&error))?);
            }
            other => return Err(VERB.unexpected(other)),
        }
    }
    let whoami = whoami.ok_or_else(|| VERB.missing("a name"))?;
    if call.dir.is_none() {
        return Err(VERB.missing("--dir"));
    }
    if call.line.is_empty() {
        return Err(VERB.missing("a command behind --"));
    }
    call.whoami = Some(whoami);
    call.options.push(("REXEC_SANITIZE", "strip".into()));
    if !reads_stdin {
        background::read_nothing().map_err(|error| cannot_open(&error))?;
    }
    Ok(Some(call))
}

/// The name. One that is missing must not swallow the next option.
fn name(parser: &mut lexopt::Parser) -> Result<Option<OsString>, Notice> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let is_missing = parser.try_raw_args().is_some_and(|words| words.as_slice().first().is_some_and(is_option));
    if is_missing { Ok(None) } else { raw(&VERB, parser).map(Some) }
}

fn cannot_open(error: &io::Error) -> Notice {
    Notice::without_hint(OWN_FAILURE, format_args!("/dev/null cannot be opened: {}", reason(error)))
}
