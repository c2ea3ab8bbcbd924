//! `rexec --start-host`: the host in this terminal, as rexec-host starts it.

use super::host;
use super::verb::{Group, Values, Verb};

pub(super) const VERB: Verb = Verb {
    name: "--start-host",
    short: Some('s'),
    group: Group::Flag,
    arguments: "[OPTIONS]",
    values: Values::Nothing,
    summary: "start the host in this terminal; the same as rexec-host",
    text: "\
The host takes the terminal until you end it. What follows --start-host goes to
rexec-host: rexec-host --help lists its options.
",
    options: &[],
    codes: &[(0, "it was ended by a key, a signal or a closed window"), (1, "it could not start or go on")],
    examples: &["rexec --start-host", "rexec -s --grace 10"],
    run: host::run,
};
