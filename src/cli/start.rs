//! `rexec --start-host`: the host in this terminal, as rexec-host starts it.

use std::ffi::OsString;

use super::host;
use super::verb::{Call, Group, Values, Verb, Words};

pub(super) const VERB: Verb = Verb {
    term: "-s, --start-host",
    group: Group::Flag,
    summary: "start the host in this terminal; the same as rexec-host",
    text: "\
The host takes the terminal until you end it. What follows --start-host goes to
rexec-host: rexec-host --help lists its options.
",
    codes: &[(0, "it was ended by a key, a signal or a closed window"), (1, "it could not start or go on")],
    examples: &["rexec --start-host", "rexec -s --grace 10"],
    call: &Call::<Vec<OsString>> {
        options: &[],
        words: Words::all("[OPTIONS]", Values::Nothing, |words, w| words.push(w.raw())),
        run: |words| host::read_and_run(&mut lexopt::Parser::from_args(words)),
    },
};
