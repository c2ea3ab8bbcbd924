//! The agents that `rexec run` has started: which of them live, and whose commands come.
//!
//! If an agent starts shells and none of them comes here, the console says so once, and the status line names the agent
//! until one comes or the agent ends.
//!
//! Invariants: an agent is looked at while none of its commands has come, one agent in a turn; a look reads a bounded
//! number of files of /proc, of which none may wait (`sys/looker.rs`).

use std::time::Instant;

use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::process::Pid;

use super::screen::Screen;
use crate::front::answer;
use crate::limits;
use crate::sys::tree;

/// The number of agents that the host checks for life when a new one begins.
const LOOKED_AT: usize = 2;

#[derive(Debug)]
struct StartedAgent {
    pid: Pid,
    start: u64,
    name: String,
    commands: Commands,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commands {
    /// One has come.
    Come,
    /// None has come, and the console has not said so.
    Awaited { look_at: Instant },
    /// It has started shells and none of them came, as the console has said.
    Missed { look_at: Instant },
}

impl Commands {
    fn look_at(self) -> Option<Instant> {
        match self {
            Self::Come => None,
            Self::Awaited { look_at } | Self::Missed { look_at } => Some(look_at),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct StartedAgents(Vec<StartedAgent>);

impl StartedAgents {
    /// An agent of this name begins in this process.
    pub(super) fn add(&mut self, pid: Pid, name: String, now: Instant) {
        let start = tree::process(pid).map(|process| process.start);
        // The same process may begin another agent.
        self.0.retain(|agent| agent.pid != pid);
        // The host looks at so few of the others that nobody can keep it busy with looking.
        for _ in 0..self.0.len().min(LOOKED_AT) {
            let oldest = self.0.remove(0);
            if oldest.is_alive() {
                self.0.push(oldest);
            }
        }
        if let Some(start) = start.filter(|_| self.0.len() < limits::AGENTS_AWAITED_MAX) {
            let commands = Commands::Awaited { look_at: now + limits::SILENT_AGENT_AGE };
            self.0.push(StartedAgent { pid, start, name, commands });
        }
    }

    /// A command comes from the agent that was started in this process, or from one of this name.
    pub(super) fn hear(&mut self, started: Option<Pid>, whoami: &str) {
        // An agent may strip from its commands what names its process.
        let is_its = |agent: &&mut StartedAgent| started.map_or(agent.name == whoami, |pid| agent.pid == pid);
        self.0.iter_mut().filter(is_its).for_each(|agent| agent.commands = Commands::Come);
    }

    /// The name of the agent that was started in this process.
    pub(super) fn name_of(&self, pid: Pid) -> Option<&str> {
        let agent = self.0.iter().find(|agent| agent.pid == pid)?;
        agent.is_alive().then_some(agent.name.as_str())
    }

    pub(super) fn are_any_alive(&self) -> bool {
        self.0.iter().any(StartedAgent::is_alive)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|agent| agent.commands.look_at()).min()
    }

    /// The names of those whose shells did not come.
    pub(super) fn silent(&self) -> impl Iterator<Item = &str> {
        let is_told = |agent: &&StartedAgent| matches!(agent.commands, Commands::Missed { .. });
        self.0.iter().filter(is_told).map(|agent| agent.name.as_str())
    }

    /// All whose end no look has found yet.
    pub(super) fn list(&self) -> Vec<answer::StartedAgent> {
        let of = |agent: &StartedAgent| answer::StartedAgent {
            pid: agent.pid.number(),
            start: agent.start,
            name: agent.name.clone(),
            has_run: agent.commands == Commands::Come,
        };
        self.0.iter().map(of).collect()
    }

    /// Looks at an agent whose commands do not come, and says so on the screen.
    pub(super) fn tick(&mut self, screen: &mut Screen, now: Instant) {
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        if let Some((pid, name)) = self.look(now, has_shells) {
            screen.say_if_room(format!(
                "… {name} (process {pid}) starts shells, and none of its commands comes here: rexec help agents"
            ));
        }
        screen.touch_status(now);
    }

    /// Looks at one if that is due. `has_shells` returns true if a process has started shells. Returns the process and
    /// the name of an agent whose shells did not come.
    fn look(&mut self, now: Instant, has_shells: impl Fn(Pid) -> bool) -> Option<(Pid, String)> {
        let is_due = |agent: &StartedAgent| agent.commands.look_at().is_some_and(|at| at <= now);
        let at = self.0.iter().position(is_due)?;
        let agent = &mut self.0[at];
        if !agent.is_alive() {
            self.0.remove(at);
            return None;
        }
        let look_at = now + limits::SILENT_AGENT_LOOK_EVERY;
        let is_told = matches!(agent.commands, Commands::Missed { .. });
        let is_missed = is_told || has_shells(agent.pid);
        agent.commands = if is_missed { Commands::Missed { look_at } } else { Commands::Awaited { look_at } };
        (is_missed && !is_told).then(|| (agent.pid, agent.name.clone()))
    }
}

impl StartedAgent {
    fn is_alive(&self) -> bool {
        // One that may not be looked at now has no start.
        let is_same = |process: &tree::Process| process.start == self.start || process.start == 0;
        tree::process(self.pid).is_some_and(|process| is_same(&process) && !process.is_zombie)
    }
}

/// Returns true if a process has started a shell that is not rexec's.
pub fn has_shells(agent: Pid) -> bool {
    let is_shell = |name: &[u8]| Shell::named(name).is_some() && !name.starts_with(b"rexec-");
    tree::has_below(agent, limits::SILENT_AGENT_READS_MAX, is_shell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    #[test]
    fn those_that_have_ended_make_room() {
        let mut agents = StartedAgents::default();
        let gone = |number| StartedAgent {
            pid: Pid::new(i32::MAX - number),
            start: 1,
            name: String::new(),
            commands: Commands::Come,
        };
        agents.0.extend((0..8).map(gone));
        let parent = tree::process(process::pid()).unwrap().parent;
        for pid in [process::pid(), parent, process::pid(), parent] {
            agents.add(pid, "kimi".into(), Instant::now());
        }
        assert!(agents.0.len() == 2 && agents.are_any_alive(), "{agents:?}");
    }

    #[test]
    fn an_agent_whose_commands_do_not_come_is_told_of_once_until_one_does() {
        let (now, me) = (Instant::now(), process::pid());
        let mut agents = StartedAgents::default();
        agents.add(me, "kimi".into(), now);
        agents.add(me, "Kimi Code".into(), now);
        let mut look = |after: u64, has_shells: bool| {
            let now = now + std::time::Duration::from_secs(after);
            let told = agents.look(now, |pid| pid == me && has_shells).map(|(_, name)| name);
            (told, agents.silent().count())
        };
        assert_eq!(look(59, true), (None, 0), "it is young");
        assert_eq!(look(60, false), (None, 0));
        assert_eq!(look(61, true), (None, 0), "it was looked at");
        assert_eq!(look(75, true), (Some("Kimi Code".into()), 1));
        assert_eq!(look(100, true), (None, 1));
        agents.hear(Some(Pid::new(1)), "Kimi Code");
        assert_eq!(agents.silent().count(), 1, "another one of that name");
        agents.hear(Some(me), "x");
        assert_eq!((agents.silent().count(), agents.deadline(), agents.list()[0].has_run), (0, None, true));
        agents.add(me, "Codex".into(), now);
        agents.hear(None, "Codex");
        assert_eq!(agents.deadline(), None, "by its name");
    }
}
