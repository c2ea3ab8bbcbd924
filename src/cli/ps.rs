//! `rexec ps`: the commands that run, each in a line of its own, oldest first.

use std::io::{self, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::ask;
use crate::front::answer::{Answer, Listed};
use crate::sys::tree;
use crate::text::banner::duration;
use crate::text::ends::escape_ends;
use crate::text::escape::escape_line;
use rexec_sh::protocol::process::Pid;

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
pub fn ps(socket: &Path, out: &mut impl Write) -> Result<(), Notice> {
    let answer = ask::ask(socket, r#"{"action":"list"}"#)?.answer(Some(ask::PATIENCE))?;
    let Answer::List { runs } = answer else { return Err(ask::AskError::Unclear.into()) };
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
