//! `rexec pause` and `rexec resume`: stop commands for a while, and let them go on.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Pid;

use super::acted::Acted;
use super::ask;
use super::chosen::{self, Chosen};
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use crate::front::answer::Answer;
use crate::front::run_state::RunState;
use crate::sys::tree::{self, Process};

pub(super) const PAUSE: Verb = Verb {
    term: "pause",
    group: Group::Live,
    summary: "stop all processes of commands for a while (SIGSTOP)",
    text: "\
Nothing is lost: rexec resume lets the same processes go on. The agent is not
told. Its own time limits go on, and when it gives up, the command ends.
Processes of other users, such as those below sudo, cannot be paused.
",
    codes: &[(1, "a command has a process that does not stop"), (3, "no such command runs"), NO_HOST],
    examples: &["rexec pause 12", "rexec pause -1", "rexec pause --all"],
    call: &Call::<Chosen> {
        options: &OPTIONS,
        words: Words::runs("N... | --agent AGENT | --all", Values::Runs, |q, w| {
            q.numbers.extend(chosen::given_number(w))
        }),
        run: |chosen| {
            let (chosen, socket) = (chosen.checked(&PAUSE)?, super::socket_path()?);
            let is_json = chosen.is_json;
            let numbers = chosen.numbers_of(&socket, |run| may_pause(run.state), "nothing runs that can be paused")?;
            super::with_output(|out| each(&numbers, |seq| pause(&socket, seq, is_json, out)))
        },
    },
};

pub(super) const RESUME: Verb = Verb {
    term: "resume",
    group: Group::Live,
    summary: "let paused commands go on (SIGCONT)",
    text: "\
Processes that were stopped before the pause stay stopped.
",
    codes: &[(1, "a command is not paused"), (3, "no such command runs"), NO_HOST],
    examples: &["rexec resume 12", "rexec resume --all"],
    call: &Call::<Chosen> {
        options: &OPTIONS,
        words: Words::runs("N... | --agent AGENT | --all", Values::Runs, |q, w| {
            q.numbers.extend(chosen::given_number(w))
        }),
        run: |chosen| {
            let (chosen, socket) = (chosen.checked(&RESUME)?, super::socket_path()?);
            let is_json = chosen.is_json;
            let numbers = chosen.numbers_of(&socket, |run| run.state == RunState::Paused, "nothing is paused")?;
            super::with_output(|out| each(&numbers, |seq| resume(&socket, seq, is_json, out)))
        },
    },
};

const OPTIONS: [Opt<Chosen>; 3] = [chosen::AGENT, chosen::ALL, json(|q| q.is_json = true)];

/// The time in which a process must stop.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

fn may_pause(state: RunState) -> bool {
    matches!(state, RunState::Running | RunState::Left)
}

/// Acts on all commands; returns the first failure.
fn each(numbers: &[u64], mut act: impl FnMut(u64) -> Result<(), Notice>) -> Result<(), Notice> {
    numbers.iter().map(|&seq| act(seq)).fold(Ok(()), Result::and)
}

fn question(socket: &Path, action: &str, seq: u64) -> Result<Answer, Notice> {
    let asked = ask::ask(socket, &format!(r#"{{"action":"{action}","seq":{seq}}}"#))?;
    Ok(asked.answer(Some(ask::PATIENCE))?)
}

fn pause(socket: &Path, seq: u64, is_json: bool, out: &mut impl Write) -> Result<(), Notice> {
    let Answer::Pause { guard, .. } = question(socket, "pause", seq)? else {
        return Err(ask::AskError::Unclear.into());
    };
    let going = still_going(Pid::new(guard));
    if let Some(process) = going.first() {
        let pids: Vec<i32> = going.iter().map(|process| process.pid.number()).collect();
        Acted { seq, result: "paused", pids: &pids, ..Acted::default() }.say(is_json, "", out);
        let problem = format_args!("#{seq} is paused, but {} ({}) goes on", process.program, process.pid);
        return Err(Notice::failed(problem, "it may belong to another user, as below sudo, or wait for a device"));
    }
    Acted { seq, result: "paused", ..Acted::default() }.say(is_json, "is paused", out);
    Ok(())
}

/// The processes below a guard that do not stop in time.
#[expect(clippy::disallowed_methods, reason = "a person waits for other processes to stop")]
fn still_going(guard: Pid) -> Vec<Process> {
    let until = Instant::now() + PATIENCE;
    loop {
        let all: Vec<Process> = tree::walk(guard).collect();
        let going: Vec<Process> = all.iter().copied().filter(|process| goes_on(process, &all)).collect();
        if going.is_empty() || Instant::now() >= until {
            return going;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Returns true if a process may still do something. A process whose child was stopped between vfork(2) and execve(2)
/// waits for that child and stops when it goes on.
fn goes_on(process: &Process, all: &[Process]) -> bool {
    let waits_for_child =
        || process.is_uninterruptible && all.iter().any(|child| child.parent == process.pid && child.is_stopped);
    !process.is_stopped && !waits_for_child()
}

fn resume(socket: &Path, seq: u64, is_json: bool, out: &mut impl Write) -> Result<(), Notice> {
    match question(socket, "resume", seq)? {
        Answer::Resume { .. } => {
            Acted { seq, result: "resumed", ..Acted::default() }.say(is_json, "goes on", out);
        }
        _ => return Err(ask::AskError::Unclear.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_waits_for_its_stopped_child_does_not_go_on() {
        let sleeps = tree::process(crate::sys::process::pid()).unwrap();
        let waits = Process { pid: Pid::new(2), is_uninterruptible: true, ..sleeps };
        let child = Process { pid: Pid::new(3), parent: waits.pid, is_stopped: true, ..sleeps };
        assert!(!goes_on(&waits, &[waits, child]) && !goes_on(&child, &[waits, child]));
        assert!(goes_on(&waits, &[waits, Process { is_stopped: false, ..child }]), "as one that waits for a disk");
        assert!(goes_on(&Process { is_uninterruptible: false, ..waits }, &[waits, child]));
    }
}
