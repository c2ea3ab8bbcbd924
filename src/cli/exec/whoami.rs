//! `rexec --whoami NAME --dir DIR -- COMMAND`: the plain client. It runs one program with the host's environment and
//! some set variables, and prints both outputs as one text.

use std::io;

use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE};
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::Direct;

use super::{ExecCall, variable};
use crate::cli::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::sys::background;
use crate::text::reason::reason;

pub(in crate::cli) const VERB: Verb = Verb {
    term: "--whoami",
    group: Group::Flag,
    summary: "run a program for the caller NAME, in the host's environment",
    text: "\
The program gets the host's environment and no standard input. Its output and
its errors come as one text without escape sequences, while it runs. rexec exec
is for people and scripts: it passes everything on as it is.
",
    codes: &[
        (124, "the timeout has ended the command"),
        (127, "no host runs, or the command was not found or could not be run"),
    ],
    examples: &["rexec --whoami Codex --dir \"$PWD\" --env RUST_LOG=debug -- cargo test"],
    call: &Call::<WhoamiCall> {
        options: &[
            Opt::name("--whoami NAME", |q, v| q.run.whoami = Some(v.raw()), ""),
            Opt::value("--dir DIR", |q, v| q.run.dir = Some(v.raw()), "the directory to run it in"),
            Opt::value("--env NAME=VALUE", |q, v| q.run.set.extend(variable(v)), "set a variable; may be repeated"),
            Opt::flag("--clear-env", |q| q.run.is_bare = true, "give it only the variables of --env"),
            Opt::flag("--read-stdin", |q| q.reads_stdin = true, "give it the standard input of rexec"),
            Opt::value(
                "--timeout TIME",
                |q, v| q.run.timeout = v.time().unwrap_or_default(),
                "end it after this time, as 90 or 1.5h; exit code 124",
            ),
        ],
        words: Words::line("NAME --dir DIR -- COMMAND...", Values::Program(&[]), |q, w| q.run.line.push(w.raw())),
        run: |WhoamiCall { mut run, reads_stdin }| {
            if run.whoami.is_none() {
                return Err(VERB.missing("a name"));
            }
            if run.dir.is_none() {
                return Err(VERB.missing("--dir"));
            }
            if run.line.is_empty() {
                return Err(VERB.missing("a command behind --"));
            }
            if !reads_stdin {
                background::read_nothing().map_err(|error| cannot_open(&error))?;
            }
            run.environment = if run.is_bare { Direct::Bare } else { Direct::Host };
            run.options.push(("REXEC_SANITIZE", "strip".into()));
            Err(run.become_shim().with_code(NOT_FOUND))
        },
    },
};

#[derive(Default)]
struct WhoamiCall {
    run: ExecCall,
    reads_stdin: bool,
}

/// Returns true if a command line that begins with this option belongs to this verb.
pub(in crate::cli) fn takes(long: &str) -> bool {
    VERB.call.options().iter().any(|option| option.is_named(&format!("--{long}")))
}

fn cannot_open(error: &io::Error) -> Notice {
    Notice::without_hint(OWN_FAILURE, format_args!("/dev/null cannot be opened: {}", reason(error)))
}
