//! Agents: their variables in the environment of their commands, and their places among the processes above a call.

use super::mark::{NamedProgram, ProcessStat};
use super::process::Pid;

/// Variables that name an agent, the more reliable ones first. An agent inside another one inherits the outer one's
/// variables. So variables that only an agent's own commands get rank before those of a session.
const KNOWN: [(&[u8], &str); 20] = [
    (b"CODEX_THREAD_ID=", "Codex"),
    (b"CODEX_CI=", "Codex"),
    (b"GEMINI_CLI=", "Gemini CLI"),
    (b"QWEN_CODE=", "Qwen Code"),
    // It is made from opencode, and sets OPENCODE, too.
    (b"KILO_PID=", "Kilo Code"),
    (b"OPENCODE=", "opencode"),
    (b"PI_CODING_AGENT=", "pi"),
    (b"COPILOT_CLI=", "Copilot CLI"),
    (b"CLINE_CONNECTOR_CLI_LAUNCH=", "Cline"),
    (b"LETTA_CONVERSATION_ID=", "Letta Code"),
    (b"CRUSH=", "Crush"),
    (b"GOOSE_TERMINAL=", "Goose"),
    (b"OR_APP_NAME=Aider", "Aider"),
    (b"MSWEA_", "mini-swe-agent"),
    (b"CLAUDECODE=", "Claude Code"),
    (b"AI_AGENT=claude-code", "Claude Code"),
    (b"GEMINI_SESSION_ID=", "Gemini CLI"),
    (b"QWEN_CODE_SESSION_ID=", "Qwen Code"),
    (b"VIBE_APP_SERVER_BIN=", "Mistral Vibe"),
    // Codex starts its hooks and its looks at the shell with its own environment only.
    (b"CODEX_", "Codex"),
];

/// Agents that set no variable.
const WITHOUT_VARIABLES: [&str; 2] = ["Continue", "Kimi Code"];

/// The most examined processes above a call.
const ANCESTORS_MAX: u32 = 64;

/// The name of the agent that `rexec run` has started, from `REXEC_RUN_AGENT`, after a number; empty if there is none.
#[must_use]
pub fn started(run: &[u8]) -> &[u8] {
    run.iter().position(|&byte| byte == b':').map_or(b"", |colon| &run[colon + 1..])
}

/// The process that `rexec run` has started, from `REXEC_RUN_AGENT`.
#[must_use]
pub fn started_process(run: &[u8]) -> Option<Pid> {
    let pid = run.split(|&byte| byte == b':').next()?;
    std::str::from_utf8(pid).ok()?.parse().ok().map(Pid::new)
}

/// The name of the agent that `rexec run` has started, if rexec knows it, or else the one of the most reliable variable
/// in an environment: inside another agent, variables of both are there.
pub fn known_name<'a>(run: &[u8], env: impl Iterator<Item = &'a [u8]>) -> Option<&'static str> {
    let names = || KNOWN.iter().map(|(_, name)| *name).chain(WITHOUT_VARIABLES);
    names().find(|name| name.as_bytes() == started(run)).or_else(|| surest(run, env).map(|at| KNOWN[at].1))
}

/// The place of an environment's most reliable variable in the table.
fn surest<'a>(run: &[u8], env: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    let rank = |at: &usize| (KNOWN[*at].1.as_bytes() != started(run), *at);
    env.filter_map(|entry| KNOWN.iter().position(|(prefix, _)| entry.starts_with(prefix))).min_by_key(rank)
}

/// The facts in a call's environment about the process of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentClues {
    /// The process that `rexec run` has started.
    started: Option<Pid>,
    /// The beginning of the most reliable variable that only an agent sets.
    variable: Option<&'static [u8]>,
}

impl AgentClues {
    /// The clues in an environment. `run` is the value of `REXEC_RUN_AGENT`.
    pub fn of<'a>(run: &[u8], env: impl Iterator<Item = &'a [u8]>) -> Self {
        Self { started: started_process(run), variable: surest(run, env).map(|at| KNOWN[at].0) }
    }

    /// Returns true if an agent is known to have made this call.
    #[must_use]
    pub fn names_agent(&self) -> bool {
        self.started.is_some() || self.variable.is_some()
    }

    /// The agent among the processes above this one, the nearest if there are several: by its name, by its number, or
    /// because its own environment lacks the variable that it sets for its children. Processes between have that
    /// variable. `has_variable` returns true if a process was started with a variable that begins so; `None` if that is
    /// hidden.
    pub fn agent_above(
        &self,
        own: ProcessStat,
        mut stat_of: impl FnMut(Pid) -> Option<ProcessStat>,
        mut has_variable: impl FnMut(Pid, &[u8]) -> Option<bool>,
    ) -> Option<ProcessStat> {
        let mut below = own;
        for _ in 0..ANCESTORS_MAX {
            let above = (below.parent.number() > 0).then(|| stat_of(below.parent)).flatten()?;
            // The parent has died meanwhile, and its number belongs to another process.
            if above.start > below.start {
                return None;
            }
            let is_first = above.pid.number() == 1;
            let mut has_set = |variable: &&[u8]| !has_variable(above.pid, variable).unwrap_or(is_first);
            let is_agent = match above.program {
                // The processes above a guard have nothing to do with those below it.
                NamedProgram::Guard => return None,
                NamedProgram::Agent => true,
                _ if Some(above.pid) == self.started => true,
                NamedProgram::Other => self.variable.as_ref().is_some_and(&mut has_set),
                NamedProgram::Between => false,
            };
            if is_agent {
                return Some(above);
            }
            below = above;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIM: ProcessStat = process(NamedProgram::Other, 60, 50);

    const fn process(program: NamedProgram, pid: i32, parent: i32) -> ProcessStat {
        let start = 100 + pid.unsigned_abs() as u64;
        ProcessStat { pid: Pid::new(pid), program, parent: Pid::new(parent), session: Pid::new(1), start }
    }

    /// The agent above the shim. The processes numbered 50, 40 and so on up to 10 are these; `having` have the variable.
    fn found(clues: &AgentClues, programs: [NamedProgram; 5], having: &[i32]) -> Option<i32> {
        let stat_of = |pid: Pid| {
            let place = (50 - pid.number()) / 10;
            let program = *programs.get(usize::try_from(place).ok()?)?;
            Some(process(program, pid.number(), pid.number() - 10))
        };
        let agent = clues.agent_above(SHIM, stat_of, |pid, variable| {
            assert_eq!(variable, b"CLAUDECODE=");
            Some(having.contains(&pid.number()))
        });
        agent.map(|agent| agent.pid.number())
    }

    fn clues(run: &str, env: &str) -> AgentClues {
        AgentClues::of(run.as_bytes(), [env.as_bytes()].into_iter())
    }

    #[test]
    fn the_agent_is_above_whatever_stands_between() {
        use NamedProgram::{Agent, Between, Guard, Other};
        let (none, set) = (clues("", "HOME=/h"), clues("", "CLAUDECODE=1"));
        assert_eq!(found(&none, [Between, Other, Agent, Other, Other], &[]), Some(30), "by its name");
        assert_eq!(found(&none, [Between, Other, Between, Other, Other], &[]), None, "no agent");
        assert_eq!(found(&set, [Between, Other, Other, Other, Other], &[50, 40]), Some(30), "by what it has set");
        assert_eq!(found(&set, [Between, Between, Other, Other, Other], &[50]), Some(30), "no shell sets it");
        assert_eq!(found(&set, [Other, Other, Other, Other, Other], &[50, 40, 30, 20, 10]), None, "a profile sets it");
        assert_eq!(found(&clues("40:x", ""), [Between, Between, Other, Other, Other], &[]), Some(40), "by its number");
        assert_eq!(found(&none, [Between, Guard, Agent, Other, Other], &[]), None, "beyond a guard");
    }

    #[test]
    fn a_number_that_another_process_has_got_is_not_followed() {
        let younger = |pid| Some(ProcessStat { start: 999, ..process(NamedProgram::Agent, pid, 1) });
        assert_eq!(clues("", "").agent_above(SHIM, |pid| younger(pid.number()), |_, _| None), None);
    }

    #[test]
    fn a_hidden_environment_counts_as_the_agents_but_not_that_of_the_first_process() {
        let chain = |pid: Pid| Some(process(NamedProgram::Other, pid.number(), 1));
        let above = |parent| {
            let own = ProcessStat { parent: Pid::new(parent), ..SHIM };
            clues("", "CLAUDECODE=1").agent_above(own, chain, |_, _| None).map(|agent| agent.pid.number())
        };
        assert_eq!((above(50), above(1)), (Some(50), None));
    }
}
