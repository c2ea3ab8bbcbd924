//! A watch over every host of the tests: its one thread waits in poll(2) and its kin and nowhere else.
//!
//! One thread looks at all hosts every few milliseconds. A host is blocked where it sleeps in another system call (states
//! S and D) and has not had a processor since the look before. One that waits for a processor (state R), for a page of its
//! program (in no system call), or that a test has stopped, is not.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::procs::{self, Process};

/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(20);
/// A host that is blocked for so long twice in a row, in the same call, waits for something that it should not.
const SHORT: Duration = Duration::from_millis(50);
/// The longest time between the two.
const ROW: Duration = Duration::from_secs(1);
/// Once is enough of this.
const LONG: Duration = Duration::from_millis(500);

/// Where the kernel has a process wait for others that begin, execute a program or end: fork(2) for the lock on a mapped
/// file, such as the C library, and a look at /proc/PID/ns, /proc/PID/exe and the like for an execve(2) of that process,
/// which a busy machine may put off in its middle. Only [`CROWDED_LONG`] is too long there.
const CROWDED: &[&str] = &["dup_mmap", "proc_ns_readlink", "do_task_stat", "proc_pid_readlink", "proc_pid_get_link"];
const CROWDED_LONG: Duration = Duration::from_secs(5);

static WATCHED: Mutex<BTreeMap<i32, Watched>> = Mutex::new(BTreeMap::new());

/// What was seen of one host.
#[derive(Debug, Default)]
struct Watched {
    /// The sleep of the look before, and since when it lasts.
    sleep: Option<(Sleep, Instant)>,
    /// The number of the call of the last sleep that was over [`SHORT`], and when that was.
    before: Option<(String, Instant)>,
    fault: Option<String>,
}

/// A sleep outside of poll(2).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sleep {
    /// The system call with its arguments.
    call: String,
    /// Where in the kernel.
    place: String,
    /// How often it has had a processor.
    turns: String,
}

impl Sleep {
    fn number(&self) -> &str {
        self.call.split(' ').next().unwrap_or_default()
    }
}

/// Begins to watch a host.
pub(crate) fn begin(pid: i32) {
    let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if all.is_empty() {
        std::thread::spawn(watch);
    }
    all.insert(pid, Watched::default());
}

/// Ends it. Returns what was wrong.
pub(crate) fn end(pid: i32) -> Option<String> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid)?.fault
}

/// Looks as long as there are hosts.
fn watch() {
    loop {
        std::thread::sleep(PAUSE);
        let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return;
        }
        all.iter_mut().for_each(|(&pid, watched)| watched.look(sleep_of(pid), Instant::now()));
    }
}

impl Watched {
    fn look(&mut self, sleep: Option<Sleep>, now: Instant) {
        if let Some((over, since)) = self.sleep.take_if(|(over, _)| Some(&*over) != sleep.as_ref())
            && now - since >= SHORT + PAUSE
        {
            self.before = Some((over.number().to_owned(), now));
        }
        let Some(sleep) = sleep else { return };
        let (_, since) = self.sleep.get_or_insert_with(|| (sleep.clone(), now));
        let lasts = now - *since;
        let is_crowded = CROWDED.contains(&sleep.place.as_str());
        let is_second = self.before.as_ref().is_some_and(|(call, at)| call == sleep.number() && *since - *at < ROW);
        let is_too_long = match is_crowded {
            true => lasts >= CROWDED_LONG,
            false => lasts >= LONG || (lasts >= SHORT && is_second),
        };
        if is_too_long {
            let Sleep { call, place, .. } = &sleep;
            self.fault.get_or_insert_with(|| format!("blocked for {lasts:?} in the system call {call}, at {place}"));
        }
    }
}

/// The sleep of a process, if it sleeps in a system call that is not for sleeping.
fn sleep_of(pid: i32) -> Option<Sleep> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
    let turns = read("schedstat").ok()?;
    Process::of(pid).filter(|host| matches!(host.state, 'S' | 'D'))?;
    if procs::is_polling(pid) {
        return None;
    }
    let call = read("syscall").ok()?.trim().to_owned();
    // `running`, and −1 outside of a system call.
    call.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
    Some(Sleep { call, place: read("wchan").unwrap_or_default(), turns })
}

#[test]
fn a_process_that_sleeps_elsewhere_is_found_and_one_that_polls_is_not() {
    let sleeper = |program: &str, args: &[&str]| {
        let mut child = std::process::Command::new(program);
        child.args(args).stdin(std::process::Stdio::piped()).spawn().expect("it starts")
    };
    let mut blocked = sleeper("sleep", &["1000"]);
    let mut polling = sleeper("bash", &["-c", "read -t 1000 x"]);
    let pids = [&blocked, &polling].map(|child| child.id().cast_signed());
    super::waiting::wait_until("it polls", || procs::is_polling(pids[1]));
    pids.into_iter().for_each(begin);
    let is_found = |pid: i32| WATCHED.lock().expect("nobody panics")[&pid].fault.is_some();
    super::waiting::wait_until("it is found", || is_found(pids[0]));
    let found = pids.map(end);
    for child in [&mut blocked, &mut polling] {
        child.kill().expect("it lives");
        child.wait().expect("it is ours");
    }
    assert!(found[0].as_ref().is_some_and(|fault| fault.starts_with("blocked for")), "{found:?}");
    assert_eq!(found[1], None);
}
