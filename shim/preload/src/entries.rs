//! The environment that a program gets: nothing of what `rexec run` has set for the agent, but for rexec's shell and for the
//! agent's own programs.
//!
//! Invariants: the caller's own entries stay in their order, and what the caller has set itself is not rexec's.

use std::ffi::CStr;

use rexec_sh::protocol::run_changes::{AGENTS, OWN, PRELOAD, SET};

use crate::start::{Start, name};

/// Who gets an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver<'a> {
    /// The shim, in the place of a shell. It gets these entries too, which tell of the shell.
    Shim(&'a [&'a CStr]),
    /// A program of the agent's own.
    Own,
    /// Any other program.
    Other,
}

/// Calls `put` with each entry that the receiver gets.
pub fn for_receiver<'a>(
    receiver: Receiver<'a>,
    start: &'a Start,
    given: impl Iterator<Item = &'a CStr> + Clone,
    mut put: impl FnMut(&'a CStr),
) {
    let has = |wanted: &[u8]| given.clone().any(|entry| name(entry.to_bytes()) == wanted);
    let preloads = |entry: &CStr| entry.to_bytes().strip_prefix(b"LD_PRELOAD=") != Some(start.value("LD_PRELOAD"));
    // An own program with preloads of the agent's choice would hand on what it does not undo.
    let is_other = given.clone().any(|entry| name(entry.to_bytes()) == b"LD_PRELOAD" && preloads(entry));
    let receiver = if receiver == Receiver::Own && is_other { Receiver::Other } else { receiver };
    for entry in given.clone() {
        match (receiver, fate(receiver, start, entry.to_bytes())) {
            (Receiver::Own, _) | (_, Fate::Stays) => put(entry),
            (_, Fate::Gone) => {}
            (_, Fate::Own(own)) => put(own),
        }
    }
    let is_lacked = |entry: &&'a CStr| {
        let bytes = entry.to_bytes();
        match receiver {
            Receiver::Own => true,
            Receiver::Shim(_) => bytes.starts_with(b"REXEC_") && !is_plumbing(name(bytes)),
            Receiver::Other => false,
        }
    };
    start.entries().filter(is_lacked).filter(|entry| !has(name(entry.to_bytes()))).for_each(&mut put);
    if let Receiver::Shim(told) = receiver {
        told.iter().filter(|entry| !has(name(entry.to_bytes()))).for_each(|entry| put(entry));
    }
}

enum Fate<'a> {
    Stays,
    Gone,
    /// The user's own entry takes its place.
    Own(&'a CStr),
}

fn fate<'a>(receiver: Receiver<'_>, start: &'a Start, entry: &[u8]) -> Fate<'a> {
    let name = name(entry);
    if is_plumbing(name) {
        return Fate::Gone;
    }
    let is_shims = matches!(receiver, Receiver::Shim(_)) && name.starts_with(b"REXEC_");
    match start.undone(entry).filter(|_| !is_shims) {
        None if !is_shims && AGENTS.iter().any(|agents| name == agents.as_bytes()) && start.has(entry) => Fate::Gone,
        None => Fate::Stays,
        Some(None) => Fate::Gone,
        Some(Some(own)) => Fate::Own(own),
    }
}

/// Whether an entry says no more than how the agent was started.
fn is_plumbing(name: &[u8]) -> bool {
    name.starts_with(OWN.as_bytes()) || PRELOAD.iter().chain([&SET]).any(|own| name == own.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN_ENTRIES: [&CStr; 10] = [
        c"HOME=/root",
        c"LD_PRELOAD=/x/librexec_preload.so",
        c"REXEC_RUN_SET=LD_PRELOAD",
        c"REXEC_RUN_AGENT=7:kimi",
        c"REXEC_WHOAMI=kimi",
        c"REXEC_SOCKET=/x/host.sock",
        c"REXEC_PRELOAD_LINKS=/x/shells",
        c"REXEC_PRELOAD_PROGRAM=/usr/bin/node",
        c"REXEC_PRELOAD_PACKAGE=",
        c"PATH=/bin",
    ];

    fn got(receiver: Receiver<'_>, given: &[&CStr]) -> Vec<String> {
        let mut start = Start::EMPTY;
        assert!(start.take(OWN_ENTRIES.into_iter()));
        let mut got = Vec::new();
        for_receiver(receiver, &start, given.iter().copied(), |entry| got.push(entry.to_string_lossy().into_owned()));
        got
    }

    #[test]
    fn other_programs_get_nothing_of_rexecs() {
        assert_eq!(got(Receiver::Other, &OWN_ENTRIES), ["HOME=/root", "REXEC_SOCKET=/x/host.sock", "PATH=/bin"]);
        assert_eq!(got(Receiver::Other, &[c"A=1"]), ["A=1"]);
        assert_eq!(
            got(Receiver::Other, &[c"LD_PRELOAD=/own.so", c"REXEC_WHOAMI=me"]),
            ["LD_PRELOAD=/own.so", "REXEC_WHOAMI=me"]
        );
    }

    #[test]
    fn the_shim_learns_who_calls_also_in_an_empty_environment() {
        let told = ["REXEC_RUN_AGENT=7:kimi", "REXEC_WHOAMI=kimi", "REXEC_SOCKET=/x/host.sock", "REXEC_SHELL=/bin/zsh"];
        assert_eq!(got(Receiver::Shim(&[c"REXEC_SHELL=/bin/zsh"]), &[]), told);
        let all = got(Receiver::Shim(&[c"REXEC_SHELL=/bin/zsh"]), &OWN_ENTRIES);
        assert_eq!(all, [&["HOME=/root"], &told[..3], &["PATH=/bin"], &told[3..]].concat());
        let chosen = got(Receiver::Shim(&[c"REXEC_SHELL=/bin/zsh"]), &[c"REXEC_SHELL=/mine"]);
        assert_eq!(chosen, [&["REXEC_SHELL=/mine"], &told[..3]].concat());
    }

    #[test]
    fn an_own_program_gets_the_preload_back() {
        assert_eq!(got(Receiver::Own, &OWN_ENTRIES), OWN_ENTRIES.map(|entry| entry.to_str().unwrap()));
        let few = got(Receiver::Own, &[c"A=1"]);
        assert_eq!((few[0].as_str(), few.len()), ("A=1", OWN_ENTRIES.len() - 1), "{few:?}");
        assert_eq!(got(Receiver::Own, &[c"A=1", c"LD_PRELOAD=/own.so"]), ["A=1", "LD_PRELOAD=/own.so"]);
    }
}
