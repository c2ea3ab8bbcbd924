//! What the threads of a chaos share, and the two saboteurs: one stops the host and kills spare guards, the other stops
//! guards and kills or stops the recorder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::caller::Attack;
use super::enemy::FORGED;
use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::procs::{self, Process};
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

/// How often what happened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) calls: AtomicUsize,
    pub(crate) shims: AtomicUsize,
    pub(crate) guards: AtomicUsize,
    pub(crate) agents: AtomicUsize,
    pub(crate) people: AtomicUsize,
    pub(crate) spares: AtomicUsize,
    pub(crate) stops: AtomicUsize,
    pub(crate) stopped_guards: AtomicUsize,
    pub(crate) recorders: AtomicUsize,
    /// What the enemy did.
    pub(crate) attacks: AtomicUsize,
}

#[derive(Debug)]
pub(crate) struct Chaos {
    pub(crate) seed: u64,
    pub(crate) host: i32,
    pub(crate) socket: PathBuf,
    pub(crate) counts: Counts,
    is_over: AtomicBool,
    faults: Mutex<Vec<String>>,
    /// Runs that nobody disturbed, by the name that the journal has for them, with their codes.
    codes: Mutex<BTreeMap<String, i32>>,
    /// Directories of errands that were attacked: nobody knows how long they are used.
    places: Mutex<Vec<Arc<TempDir>>>,
}

impl Chaos {
    pub(crate) fn new(host: &Host, seed: u64) -> Self {
        Self {
            seed,
            host: host.pid(),
            socket: host.socket(),
            counts: Counts::default(),
            is_over: AtomicBool::new(false),
            faults: Mutex::default(),
            codes: Mutex::default(),
            places: Mutex::default(),
        }
    }

    pub(crate) fn count(&self, attack: Attack) {
        let count = match attack {
            Attack::Shim => &self.counts.shims,
            Attack::Guard => &self.counts.guards,
            Attack::Agent => &self.counts.agents,
            Attack::Person => &self.counts.people,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn fault(&self, what: &str) {
        self.faults.lock().expect("no thread panics").push(what.to_owned());
    }

    pub(crate) fn fault_unless(&self, is_right: bool, what: impl FnOnce() -> String) {
        if !is_right {
            self.fault(&what());
        }
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.lock().expect("no thread panics").clone()
    }

    pub(crate) fn expect_in_journal(&self, tag: &str, code: i32) {
        self.codes.lock().expect("no thread panics").insert(tag.to_owned(), code);
    }

    /// A directory that stays until everything is over.
    pub(crate) fn place(&self) -> Arc<TempDir> {
        let place = Arc::new(TempDir::new(None));
        self.places.lock().expect("no thread panics").push(Arc::clone(&place));
        place
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.is_over.load(Relaxed)
    }

    /// Ends it once the time is over and everything has happened at least once, or something is wrong.
    pub(crate) fn watch(&self, time: Duration, most: Duration) {
        let start = Instant::now();
        let all = &self.counts;
        let counts = [
            &all.shims,
            &all.guards,
            &all.agents,
            &all.people,
            &all.stops,
            &all.stopped_guards,
            &all.recorders,
            &all.attacks,
        ];
        loop {
            let is_due = start.elapsed() >= time && counts.iter().all(|count| count.load(Relaxed) > 0);
            if is_due || start.elapsed() >= most || self.faults().len() > 5 {
                return self.end();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Stops the host for a moment, again and again, and at times kills its guards in reserve meanwhile.
    pub(crate) fn sabotage(&self) {
        let mut dice = Dice::new(self.seed);
        let host = Pid::from_raw(self.host);
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(dice.below(400) as u64));
            kill(host, Signal::SIGSTOP).expect("the host runs");
            std::thread::sleep(Duration::from_millis([1, 10, 100, 500][dice.below(4)]));
            if dice.below(2) == 0 {
                self.kill_spares();
            }
            kill(host, Signal::SIGCONT).expect("the host runs");
            self.counts.stops.fetch_add(1, Relaxed);
        }
    }

    /// Stops guards, whatever they are about to do, and leaves some of them to their host. The recorder is stopped for a
    /// moment and killed, unless `REXEC_CHAOS_RECORDER=0`. Nobody may feel this, and nothing may be missing in the journal.
    pub(crate) fn harass(&self, host: &Host) {
        let mut dice = Dice::new(self.seed.wrapping_add(77));
        let mut left_stopped = Vec::new();
        let strikes_recorder = std::env::var_os("REXEC_CHAOS_RECORDER").is_none_or(|value| value != "0");
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(dice.below(150) as u64));
            let children = procs::children(self.host);
            let named = |name: &'static str| children.iter().filter(move |child| child.comm == name);
            if strikes_recorder && dice.below(40) == 0 {
                for recorder in named("rexec-recorder") {
                    if dice.below(2) == 0 {
                        recorder.signal(Signal::SIGSTOP);
                        std::thread::sleep(Duration::from_millis(dice.below(500) as u64));
                    }
                    host.kill_recorder(recorder);
                    self.counts.recorders.fetch_add(1, Relaxed);
                }
            }
            let guards: Vec<Process> = named("rexec-guard").filter(|_| dice.below(3) == 0).cloned().collect();
            guards.iter().for_each(|guard| guard.signal(Signal::SIGSTOP));
            self.counts.stopped_guards.fetch_add(guards.len(), Relaxed);
            std::thread::sleep(Duration::from_millis([0, 1, 20, 200][dice.below(4)]));
            if dice.below(2) == 0 {
                guards.iter().for_each(|guard| guard.signal(Signal::SIGCONT));
            } else {
                left_stopped.extend(guards);
            }
        }
        // One that only watches what an ended command left is given no order that would continue it.
        left_stopped.iter().for_each(|guard| guard.signal(Signal::SIGCONT));
    }

    /// Kills the guards that have nothing to do: they sleep until they get a message, which one that has a whole command
    /// does no more. Those that wait to be told to begin stay alive, because the stopped host may be about to tell them,
    /// and has let go of what another guard would need. Once the spares are dead, and not merely dying, the host knows
    /// better than to give them a command: nobody may feel this.
    fn kill_spares(&self) {
        if Process::of(self.host).is_none_or(|host| host.state != 'T') {
            return;
        }
        let is_spare = |child: &Process| child.comm == "rexec-guard" && procs::waits_for_message(child.pid);
        let spares: Vec<Process> = procs::children(self.host).into_iter().filter(is_spare).collect();
        spares.iter().for_each(|spare| spare.signal(Signal::SIGKILL));
        let are_dead = || spares.iter().all(|spare| !spare.is_alive());
        self.fault_unless(waiting::until_true(PATIENCE, are_dead), || format!("SIGKILL does not end {spares:#?}"));
        self.counts.spares.fetch_add(spares.len(), Relaxed);
    }

    /// Says which runs the journal has not as their callers saw them, and which have not one end there, whatever was done
    /// to them.
    pub(crate) fn misreported(&self, host: &Host) -> Vec<String> {
        let journal = host.journal();
        let ends: BTreeMap<&str, i64> =
            journal.of_type("end").filter_map(|end| Some((end["whoami"].as_str()?, end["exit"].as_i64()?))).collect();
        let codes = self.codes.lock().expect("no thread panics");
        let wrong = codes.iter().filter(|(tag, code)| ends.get(tag.as_str()) != Some(&i64::from(**code)));
        let wrong = wrong.map(|(tag, code)| format!("{tag}: {code}, in the journal {:?}", ends.get(tag.as_str())));
        let mut counts: BTreeMap<u64, usize> =
            journal.of_type("start").filter_map(|r| Some((r["seq"].as_u64()?, 0))).collect();
        for seq in journal.of_type("end").filter_map(|end| end["seq"].as_u64()) {
            *counts.entry(seq).or_default() += 1;
        }
        let unended = counts.iter().filter(|(_, count)| **count != 1);
        let unended = unended.map(|(seq, count)| format!("#{seq} has {count} ends in the journal"));
        let believed = journal.of_type("start").filter(|start| start["command"] == FORGED);
        wrong.chain(unended).chain(believed.map(|start| format!("a forged report is believed: {start}"))).collect()
    }
}
