//! `rexec ps`: the commands that run, each in a line of its own, oldest first.

use std::io::{self, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::chosen;
use super::verb::{Group, JSON, NO_HOST, Values, Verb};
use crate::front::answer::Listed;
use crate::sys::tree;
use crate::text::banner::duration;
use crate::text::ends::escape_ends;
use crate::text::escape::escape_line;
use rexec_sh::protocol::process::Pid;

pub(super) const VERB: Verb = Verb {
    name: "ps",
    short: None,
    group: Group::Live,
    arguments: "",
    values: Values::Nothing,
    summary: "show the commands that run, wait, or left processes behind",
    text: "\
Each command has one line: number, state, age, caller and text. The line below
it names its processes and their process ids. The states:

  queued    it waits for its start
  running   its shell runs
  stopping  it was told to end
  left      its shell has ended; processes that it started go on
",
    options: &[JSON],
    codes: &[NO_HOST],
    examples: &["rexec ps"],
    run: |parser| {
        let [is_json] = VERB.flags(parser, ["json"])?;
        super::with_output(|out| ps(&super::socket_path()?, is_json, out))
    },
};

/// Columns of a command that are shown. The rest is cut.
const COMMAND_COLUMNS: usize = 120;
/// Columns of a caller's name that are shown. The rest is cut.
const NAME_COLUMNS: usize = 20;
/// Processes of a command that are named. The others are counted.
const PROCESSES_NAMED_MAX: usize = 4;

/// Writes the commands that run.
///
/// # Errors
/// The host cannot be asked, or the list cannot be written.
pub fn ps(socket: &Path, is_json: bool, out: &mut impl Write) -> Result<(), Notice> {
    let runs = chosen::runs(socket)?;
    if is_json {
        return super::put_json(runs.iter(), out);
    }
    super::written(write_all(&runs, out))
}

fn write_all(runs: &[Listed], out: &mut impl Write) -> io::Result<()> {
    if runs.is_empty() {
        return writeln!(out, "nothing runs");
    }
    writeln!(out, "{:>6}  {:<8}  {:>9}  {:<NAME_COLUMNS$}  COMMAND", "#", "STATE", "AGE", "CALLER")?;
    for run in runs {
        let caller = escape_line(&run.whoami, NAME_COLUMNS);
        let command = escape_ends(&run.command, COMMAND_COLUMNS);
        let (seq, state, age) = (run.seq, run.state.word(), duration(run.age_ms));
        writeln!(out, "{seq:>6}  {state:<8}  {age:>9}  {caller:<NAME_COLUMNS$}  {command}")?;
        let guarded = run.guard.into_iter().flat_map(|guard| tree::walk(Pid::new(guard)));
        let orphans = run.orphans.iter().filter_map(|&pid| tree::process(Pid::new(pid)));
        let processes: Vec<_> = guarded.chain(orphans).collect();
        if !processes.is_empty() {
            let named = processes.iter().take(PROCESSES_NAMED_MAX);
            let named: Vec<String> = named.map(|process| format!("{} ({})", process.program, process.pid)).collect();
            let more = match processes.len().saturating_sub(PROCESSES_NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(out, "{:>6}  {}{more}", "", named.join(", "))?;
        }
    }
    Ok(())
}
