//! Whose the processes are that a command would signal. A judge asks this (`judges.rs`), because a look at other processes
//! may wait.
//!
//! Others' are: this host and its guards, the agent that calls and all that it runs below, other agents, and commands of
//! other agents and sessions. Processes that no agent is above are nobody's.
//!
//! Invariants: a finder gets no shell and no variable of the command, and is taken from the system's folders; at most
//! [`limits::VICTIMS_MAX`] processes are looked at.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rexec_sh::protocol::process::Pid;

use super::callers::Callers;
use crate::gate::{Aim, Answer, Finder, Processes};
use crate::limits;
use crate::sys::tree;

/// Where the programs lie that find processes.
const FOLDERS: [&str; 5] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/// A run, as its guard stands for it.
#[derive(Debug)]
pub(super) struct GuardedRun {
    pub(super) number: u64,
    pub(super) agent: String,
    /// The agent and session that signal have started it.
    pub(super) is_own: bool,
}

/// What is known around a command that signals processes.
#[derive(Debug)]
pub(super) struct Victims<'a> {
    host: Pid,
    guards: BTreeMap<Pid, GuardedRun>,
    callers: &'a Callers,
    /// The process that has asked for the command.
    shim: Option<Pid>,
    /// The agent that it is of, and all that is above that.
    above: Vec<Pid>,
    /// The first of others' that was found.
    hit: RefCell<Option<String>>,
}

impl<'a> Victims<'a> {
    /// `shim` has asked for the command, and `agent` is the process that stands for its agent.
    pub(super) fn new(
        guards: BTreeMap<Pid, GuardedRun>,
        callers: &'a Callers,
        shim: Option<Pid>,
        agent: Option<Pid>,
    ) -> Self {
        let host = Pid::new(std::process::id().cast_signed());
        Self { host, guards, callers, shim, above: agent.map(with_above).unwrap_or_default(), hit: RefCell::default() }
    }

    /// One process of others that would be hit, as it is shown.
    pub(super) fn take_hit(&self) -> Option<String> {
        self.hit.take()
    }

    /// Whose a process is. `None` if it is the command's own, or nobody's.
    fn owner(&self, pid: Pid) -> Option<String> {
        let this = tree::process(pid)?;
        let shown = |whose: &str| Some(format!("{whose} (process {pid}, {})", this.program));
        if self.above.first() == Some(&pid) {
            return shown("the agent that runs it");
        }
        if self.above.contains(&pid) {
            return shown("what its agent runs below");
        }
        let mut agent = None;
        let mut next = this;
        for _ in 0..limits::DECIDER_ANCESTORS_MAX {
            if Some(next.pid) == self.shim {
                return None;
            }
            if let Some(run) = self.guards.get(&next.pid) {
                return match run {
                    run if next.pid == pid => shown(&format!("the guard of #{}", run.number)),
                    run if run.is_own => None,
                    run => shown(&format!("#{} of {}", run.number, run.agent)),
                };
            }
            if next.pid == self.host {
                return shown("rexec-host");
            }
            if self.above.contains(&next.pid) {
                break;
            }
            agent = agent.or_else(|| self.callers.agent_in(&next));
            let Some(parent) = tree::process(next.parent).filter(|parent| parent.pid.number() > 1) else { break };
            next = parent;
        }
        shown(&agent?)
    }

    /// The processes that are meant. `None` if that cannot be found out.
    fn meant(&self, aim: &Aim) -> Option<Vec<Pid>> {
        match aim {
            Aim::Number(number) if *number > 0 => Some(vec![Pid::new(*number)]),
            Aim::Number(group) => {
                let group = group.checked_neg()?;
                let all = tree::all().filter(|process| process.group.number() == group);
                Some(all.map(|process| process.pid).take(limits::VICTIMS_MAX).collect())
            }
            Aim::Everything => Some(vec![self.host]),
            Aim::Finder(finder) => found_by(finder),
            Aim::Unknown => None,
        }
    }
}

impl Processes for Victims<'_> {
    fn are_others_among(&self, aims: &[Aim]) -> Answer {
        Answer::any(aims.iter().map(|aim| match self.meant(aim) {
            None => Answer::Perhaps,
            Some(meant) => match meant.into_iter().find_map(|pid| self.owner(pid)) {
                Some(owner) => {
                    self.hit.borrow_mut().get_or_insert(owner);
                    Answer::Yes
                }
                None => Answer::No,
            },
        }))
    }
}

/// A process and all above it, but the first of all.
fn with_above(pid: Pid) -> Vec<Pid> {
    let parent = |pid: &Pid| tree::process(*pid).map(|process| process.parent).filter(|parent| parent.number() > 1);
    std::iter::successors(Some(pid), parent).take(limits::DECIDER_ANCESTORS_MAX).collect()
}

/// The numbers of the processes that a finder prints.
#[expect(
    clippy::disallowed_methods,
    reason = "it is no command, and a judge, which is killed when it takes long, waits for it"
)]
fn found_by(finder: &Finder) -> Option<Vec<Pid>> {
    let path = FOLDERS.iter().map(|folder| Path::new(folder).join(finder.program)).find(|path| path.exists())?;
    let mut call = Command::new(path);
    call.args(finder.arguments.iter().map(|word| OsStr::from_bytes(word))).env_clear();
    let mut child = call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut output = Vec::new();
    child.stdout.take()?.take(limits::VICTIMS_BYTES_MAX).read_to_end(&mut output).ok()?;
    let _ = child.kill();
    let _ = child.wait();
    let output = String::from_utf8_lossy(&output);
    let lines = output.lines();
    // pgrep -l writes names behind the numbers, lsof -t and pgrep a number to a line, pidof and fuser all in one.
    let words = lines.flat_map(|line| match finder.program {
        "pidof" | "fuser" => line.split_whitespace().collect(),
        _ => line.split_whitespace().take(1).collect::<Vec<_>>(),
    });
    let numbers = words.filter_map(|word| word.parse().ok().map(Pid::new)).take(limits::VICTIMS_MAX);
    Some(numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    fn finder(program: &'static str, arguments: &[&str]) -> Aim {
        Aim::Finder(Finder { program, arguments: arguments.iter().map(|word| word.as_bytes().to_vec()).collect() })
    }

    /// A shell with a child, both of which end when it is dropped.
    struct Shell(std::process::Child);

    impl Shell {
        #[expect(clippy::disallowed_methods, reason = "a test")]
        fn new() -> Self {
            let mut command = Command::new("sh");
            let shell = Self(command.args(["-c", "cat; :"]).stdin(Stdio::piped()).spawn().expect("sh starts"));
            assert!(process::comes_true_within(limits::JUDGE_WAIT, || !tree::children(shell.pid()).is_empty()));
            shell
        }

        fn pid(&self) -> Pid {
            Pid::new(self.0.id().cast_signed())
        }

        fn child(&self) -> Pid {
            tree::children(self.pid())[0]
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    #[test]
    fn guards_commands_agents_and_what_is_above_them_are_told_apart() {
        let own = tree::process(Pid::new(std::process::id().cast_signed())).expect("it runs");
        let (mine, foreign, shim) = (Shell::new(), Shell::new(), Shell::new());
        let run = |number, is_own| GuardedRun { number, agent: "codex".to_owned(), is_own };
        let guards = BTreeMap::from([(mine.pid(), run(3, true)), (foreign.pid(), run(4, false))]);
        let callers = Callers::default();
        let victims = Victims::new(guards, &callers, Some(shim.pid()), Some(own.parent));
        let hit = |aim: &Aim| {
            let answer = victims.are_others_among(std::slice::from_ref(aim));
            (answer, victims.take_hit().map(|hit| hit.split(" (").next().unwrap_or_default().to_owned()))
        };
        let yes = |whose: &str| (Answer::Yes, Some(whose.to_owned()));
        let number = |pid: Pid| Aim::Number(pid.number());
        assert_eq!(hit(&number(mine.pid())), yes("the guard of #3"));
        assert_eq!(hit(&number(mine.child())), (Answer::No, None));
        assert_eq!(hit(&number(foreign.child())), yes("#4 of codex"));
        assert_eq!(hit(&number(shim.pid())), (Answer::No, None));
        assert_eq!(hit(&number(shim.child())), (Answer::No, None));
        assert_eq!(hit(&number(own.parent)), yes("the agent that runs it"));
        assert_eq!(hit(&number(own.pid)), yes("rexec-host"));
        assert_eq!(hit(&Aim::Number(-own.group.number())).0, Answer::Yes);
        assert_eq!(hit(&Aim::Everything), yes("rexec-host"));
        let by_parent = |parent: &Shell| finder("pgrep", &["-x", "-P", &parent.pid().to_string(), "--", "cat"]);
        assert_eq!(hit(&by_parent(&foreign)), yes("#4 of codex"));
        assert_eq!(hit(&by_parent(&mine)), (Answer::No, None));
        assert_eq!(hit(&finder("pgrep", &["-x", "--", "no-such-name"])), (Answer::No, None));
        assert_eq!(hit(&Aim::Unknown), (Answer::Perhaps, None));
        assert_eq!(hit(&finder("no-such-finder", &[])), (Answer::Perhaps, None));
        assert_eq!(hit(&Aim::Number(i32::MAX)), (Answer::No, None));
    }
}
