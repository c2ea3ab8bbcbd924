//! One caller: it runs errands one after the other, and kills some of them on the way.
//!
//! What it expects of an errand depends on what was done to that errand, and never on how long anything took.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::errand::{Errand, LEFT_OVER};
use super::sabotage::Chaos;
use crate::support::call::{Calling, Outcome, Target};
use crate::support::dice::Dice;
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::Ended;

/// A hang guard. The promise is 2.5 s on an idle machine, and a host that is not stopped.
const GONE: Duration = PATIENCE;
/// The code of a run whose end nobody knows.
const UNKNOWN: i32 = 125;
const SHIM_KILLED: Ended = Ended::Signal(Signal::SIGKILL as i32);

/// What is done to an errand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attack {
    Shim,
    Guard,
    /// The program that called the shim.
    Agent,
    /// Nothing is killed from outside: a person ends the command.
    Person,
}

#[derive(Debug)]
pub(crate) struct Caller<'a> {
    chaos: &'a Chaos,
    dice: Dice,
    number: usize,
    count: usize,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(chaos: &'a Chaos, number: usize) -> Self {
        let dice = Dice::new(chaos.seed.wrapping_mul(31).wrapping_add(number as u64 + 1));
        Self { chaos, dice, number, count: 0 }
    }

    fn next_tag(&mut self) -> String {
        self.count += 1;
        format!("chaos-{}-{}", self.number, self.count)
    }

    /// One errand more, with everything that may happen to it.
    pub(crate) fn round(&mut self) {
        match self.dice.below(13) {
            0 => self.doomed(Attack::Shim),
            1 => self.doomed(Attack::Guard),
            2 => self.doomed(Attack::Agent),
            3 => self.doomed(Attack::Person),
            4 => self.disturbed(Attack::Shim),
            5 => self.disturbed(Attack::Guard),
            _ => {
                let errand = Errand::roll(&mut self.dice);
                self.undisturbed(&errand);
            }
        }
    }

    fn start(&self, errand: &Errand, tag: &str, home: &TempDir) -> Calling {
        self.chaos.counts.calls.fetch_add(1, Relaxed);
        errand.call(home, tag).start(Target::Shim(&self.chaos.socket)).expect("the shim starts")
    }

    fn finish(&self, errand: &Errand, tag: &str, calling: &mut Calling) -> Option<Outcome> {
        let outcome = calling.finish(PATIENCE);
        if outcome.is_none() {
            let tree = procs::descendants(self.chaos.host);
            self.chaos
                .fault(&format!("{tag} hangs: {errand:?}\nit: {:#?}\nthe host: {tree:#?}", calling.warden.tree()));
            calling.warden.clear();
        }
        outcome
    }

    /// Nobody touches this one.
    pub(crate) fn undisturbed(&mut self, errand: &Errand) {
        let (tag, home) = (self.next_tag(), TempDir::new(None));
        let mut calling = self.start(errand, &tag, &home);
        if let Some(outcome) = self.finish(errand, &tag, &mut calling) {
            self.judge(errand, &tag, &home, outcome, false);
        }
    }

    /// Something is killed while an errand runs that would end by itself: its outcome was there before, and is right,
    /// or it is the one of the attack.
    fn disturbed(&mut self, attack: Attack) {
        let (errand, tag, home) = (Errand::roll(&mut self.dice), self.next_tag(), self.chaos.place());
        let mut calling = self.start(&errand, &tag, &home);
        std::thread::sleep(Duration::from_micros(self.dice.below(30_000) as u64));
        let is_guard = attack == Attack::Guard;
        let is_hit = !is_guard || self.kill_guard(&tag);
        if !is_guard {
            calling.warden.signal(Signal::SIGKILL);
        }
        let Some(outcome) = self.finish(&errand, &tag, &mut calling) else { return };
        let is_lost = if is_guard { is_hit && is_lost(&errand, &outcome) } else { outcome.ended == SHIM_KILLED };
        // What it leaves in the background lives on if its shell had ended.
        self.expect_gone(&tag, &errand, attack, LEFT_OVER);
        if is_lost {
            self.chaos.count(attack);
        } else {
            self.judge(&errand, &tag, &home, outcome, is_hit);
        }
        self.chaos.fault_unless(calling.warden.is_empty_within(LEFT_OVER), || format!("{tag}: {:?}", calling.warden));
    }

    /// Something of a command is killed that would never end: all of it must go.
    fn doomed(&mut self, attack: Attack) {
        let (errand, tag, home) = (Errand::endless(&mut self.dice), self.next_tag(), self.chaos.place());
        let mut calling = match attack {
            Attack::Agent => self.agent(&errand, &tag, &home),
            _ => self.start(&errand, &tag, &home),
        };
        if !self.is_ready(&errand, &tag, &home, &calling) {
            return;
        }
        match attack {
            Attack::Shim | Attack::Agent => calling.warden.signal(Signal::SIGKILL),
            Attack::Guard => {
                // A process that is just executing a program shows no environment.
                let is_hit = waiting::until_true(PATIENCE, || self.kill_guard(&tag));
                self.chaos.fault_unless(is_hit, || format!("{tag} has no guard: {errand:?}"));
            }
            Attack::Person => self.ask_to_end(&tag),
        }
        if let Some(outcome) = self.finish(&errand, &tag, &mut calling) {
            let is_right = match attack {
                Attack::Shim | Attack::Agent => outcome.ended == SHIM_KILLED,
                Attack::Guard => is_lost(&errand, &outcome),
                // By TERM, or by KILL after its grace.
                Attack::Person => matches!(outcome.ended, Ended::Signal(15 | 9)),
            };
            self.chaos.fault_unless(is_right, || format!("{tag}, {attack:?} killed: {errand:?} ended {outcome:?}"));
            self.chaos.count(attack);
        }
        self.expect_gone(&tag, &errand, attack, GONE);
        self.chaos.fault_unless(calling.warden.is_empty_within(GONE), || {
            format!("{tag}, {attack:?} killed, leaves beside the host {:#?}", calling.warden.tree())
        });
    }

    /// Waits until a command is far enough to be killed: it says so to its caller, or into its agent's file.
    fn is_ready(&self, errand: &Errand, tag: &str, home: &TempDir, calling: &Calling) -> bool {
        let told = || {
            let stdout = calling.stdout.as_ref().expect("a pipe");
            let (is_over, told) = (stdout.has_ended(), stdout.so_far());
            (is_over, [told, fs::read(home.join("out")).unwrap_or_default()].concat())
        };
        let answer = waiting::until(PATIENCE, || match told() {
            (_, told) if memchr::memmem::find(&told, b"ready\n").is_some() => Some(true),
            (is_over, _) => is_over.then_some(false),
        });
        if answer != Some(true) {
            let (said, tree) = (told().1.escape_ascii().to_string(), calling.warden.tree());
            self.chaos.fault(&format!("{tag} never became ready: {errand:?} said {said}; {tree:#?}"));
        }
        answer == Some(true)
    }

    /// A shell in the place of an agent, which calls the shim and waits. Nobody reads what it writes.
    fn agent(&self, errand: &Errand, tag: &str, home: &TempDir) -> Calling {
        self.chaos.counts.calls.fetch_add(1, Relaxed);
        let shim = programs::shims().join("bash");
        // It is known for an agent by its name.
        let program = home.join("claude");
        let text = format!("#!/bin/bash\n'{}' -c \"$SCRIPT\" > out 2>&1 & wait\n", shim.display());
        programs::write(&program, text.as_bytes());
        let script = format!("unset REXEC_INSIDE; exec {}", program.display());
        let call = errand.call(home, tag);
        let call = crate::support::call::Call { argv: vec![b"bash".to_vec(), b"-c".to_vec(), script.into()], ..call };
        let socket = format!("REXEC_SOCKET={}", self.chaos.socket.display());
        let call = call.env(&socket).env(&format!("SCRIPT={}", errand.script()));
        call.start(Target::Real).expect("the agent starts")
    }

    /// Compares with the real shell. What comes later of an errand whose guard was killed may not come.
    fn judge(&self, errand: &Errand, tag: &str, home: &TempDir, outcome: Outcome, is_hit: bool) {
        let code = outcome.code();
        let seen = errand.seen(outcome, home, !is_hit);
        match errand.fault(&seen, home, !is_hit) {
            Some(fault) => {
                let attack = if is_hit { "attacked" } else { "let be" };
                self.chaos.fault(&format!("{tag}, {attack}: {errand:?}\n   {fault}"));
            }
            None => self.chaos.expect_in_journal(tag, code),
        }
    }

    /// Kills the guard that has this errand; whether there was one. It is stopped first, because it may be done with the
    /// errand by now and have another caller's: while it stands still, what is its child stays so.
    fn kill_guard(&self, tag: &str) -> bool {
        let with_shell = |guard: Process| {
            let shell = procs::children(guard.pid).into_iter().find(|child| is_tagged(child, tag))?;
            Some((guard, shell))
        };
        let found = procs::children(self.chaos.host).into_iter().find_map(with_shell);
        let Some((guard, shell)) = found else { return false };
        guard.signal(Signal::SIGSTOP);
        waiting::until_true(PATIENCE, || Process::of(guard.pid).is_none_or(|now| matches!(now.state, 'T' | 'Z')));
        let is_hit =
            procs::children(guard.pid).iter().any(|child| (child.pid, child.start) == (shell.pid, shell.start));
        guard.signal(if is_hit { Signal::SIGKILL } else { Signal::SIGCONT });
        is_hit
    }

    /// Finds the errand in the list of what runs, and ends it by its number.
    fn ask_to_end(&self, tag: &str) {
        let rexec = |args: &[&str]| {
            let mut command = programs::command(programs::rexec());
            let output = command.args(args).env_clear().env("REXEC_SOCKET", &self.chaos.socket).output();
            let output = output.expect("rexec can be executed");
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            (output.status.success(), text)
        };
        let (_, list) = rexec(&["ps"]);
        let line = list.lines().find(|line| line.split([' ', ':']).any(|word| word == tag));
        let number = line.map(|line| line.trim_start_matches([' ', '#']).split(' ').next().unwrap_or_default());
        let (is_ended, text) = rexec(&["kill", number.unwrap_or_default()]);
        self.chaos.fault_unless(is_ended, || format!("rexec kill {number:?} of {tag} said {text}; the list: {list}"));
    }

    fn expect_gone(&self, tag: &str, errand: &Errand, attack: Attack, within: Duration) {
        let left = || procs::descendants(self.chaos.host).into_iter().filter(|process| is_tagged(process, tag));
        if !waiting::until_true(within, || left().next().is_none()) {
            self.chaos.fault(&format!("{tag}, {attack:?} killed: {errand:?} leaves {:#?}", left().collect::<Vec<_>>()));
        }
    }
}

/// Whether this is what a caller gets whose guard was killed.
fn is_lost(errand: &Errand, outcome: &Outcome) -> bool {
    let is_told = errand.lets_go() || outcome.err().contains("rexec: ") || outcome.out().contains("rexec: ");
    outcome.ended == Ended::Code(UNKNOWN) && is_told
}

/// Whether a process was started for this errand, by its environment.
fn is_tagged(process: &Process, tag: &str) -> bool {
    let entry = format!("TAG={tag}");
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    process.is_alive() && environment.split(|&byte| byte == 0).any(|found| found == entry.as_bytes())
}
