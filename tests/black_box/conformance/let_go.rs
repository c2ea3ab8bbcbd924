//! What a command lets go of is free at once, as with the real shell: nothing between it and its caller holds it.

use std::path::Path;

use super::prompts::HANG;
use crate::support::call::{Call, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::temp::TempDir;

/// Scripts of a caller, where `$SH` is the shell in question. Most end only once what is let go of is free.
const CALLERS: &[&str] = &[
    // The working directory, at once, as umount(8) needs it.
    "mkdir d; cd d; exec $SH -c 'D=$PWD; cd /; eval \"$HOLDS\"; holds \"$D\" || echo free'",
    // The same of a command whose directory is gone.
    "mkdir d; cd d; rmdir ../d; exec $SH -c 'cd /; eval \"$HOLDS\"; holds \"$0/d (deleted)\" || echo free' \"${PWD%/d}\"",
    // A lock.
    "exec 9>lock; flock 9; $SH -c 'exec 9>&-; until flock -n lock true; do sleep 0.01; done; echo locked' & exec 9>&-; wait $!",
    // The writing end of a named pipe.
    "mkfifo f; { cat f; touch seen; } & exec 5>f; $SH -c 'exec 5>&-; until [ -e seen ]; do sleep 0.01; done; echo read' & exec 5>&-; wait",
    // Standard output, standard error, each alone and both in one.
    "$SH -c 'echo one; exec >/dev/null; until [ -e seen ]; do sleep 0.01; done; echo two >&2; exit 3' | { cat; touch seen; }; echo ${PIPESTATUS[0]}",
    "{ $SH -c 'echo one >&2; exec 2>/dev/null; until [ -e seen ]; do sleep 0.01; done; echo two' 2>&1 >&3 3>&- | { cat; touch seen; } >&2; } 3>&1",
    "$SH -c 'echo one; exec >/dev/null 2>&1; until [ -e seen ]; do sleep 0.01; done; exit 3' 2>&1 | { cat; touch seen; }; echo ${PIPESTATUS[0]}",
    "$SH -c 'printf one; exec >&- 2>&-; until [ -e seen ]; do sleep 0.01; done; exit 3' | { cat; touch seen; }; echo ${PIPESTATUS[0]}",
    // Standard input: its writer is told.
    "{ trap '' PIPE; while echo x; do sleep 0.01; done; touch seen; } 2>/dev/null | $SH -c 'exec <&-; until [ -e seen ]; do sleep 0.01; done; echo told'",
];

/// A function for them: whether a process of rexec's has this directory, or holds it open.
const HOLDS: &str = "HOLDS=holds() { for p in /proc/[0-9]*; do read -r name <$p/comm || continue; case $name in rexec*) \
                     readlink $p/cwd $p/fd/*;; esac; done 2>/dev/null | grep -qxF \"$1\"; }";

#[test]
fn what_a_command_lets_go_of_is_free_at_once() {
    let host = Host::with(MIRROR);
    for caller in CALLERS {
        let seen = [Target::Real, Target::Shim(&host.socket())].map(|target| {
            let place = TempDir::new(None);
            let mut calling = of(caller, target, &host.socket(), place.path()).start(Target::Real).expect("it starts");
            calling.finish(HANG).unwrap_or_else(|| panic!("{caller} hangs: {:#?}", host.tree()))
        });
        assert_eq!((seen[0].code(), seen[0].out()), (seen[1].code(), seen[1].out()), "{caller}");
    }
    host.finish();
}

/// A caller with this script, by the real shell.
fn of(script: &str, target: Target<'_>, socket: &Path, place: &Path) -> Call {
    let shell = format!("SH={}", target.program("bash").display());
    let socket = format!("REXEC_SOCKET={}", socket.display());
    Call::bash(script, place).env(&shell).env(HOLDS).env(&socket).env("REXEC_INSIDE=")
}

/// A command that lives on when its caller and the readers of what it has let go of are gone.
#[test]
fn a_reader_that_got_its_end_of_file_is_not_lost() {
    let host = Host::with(MIRROR);
    let script = "{ $SH -c 'exec >/dev/null 2>&1; until [ -e seen ]; do sleep 0.01; done; sleep 0.3; touch done' 2>&1 & } \
                  | { cat; touch seen; }; until [ -e done ]; do sleep 0.01; done; echo lived";
    let (place, socket) = (TempDir::new(None), host.socket());
    let call = of(script, Target::Shim(&socket), &socket, place.path());
    let mut calling = call.start(Target::Real).expect("it starts");
    let seen = calling.finish(HANG).unwrap_or_else(|| panic!("the command was ended: {:#?}", host.tree()));
    assert_eq!((seen.code(), seen.out().as_str()), (0, "lived\n"));
    host.finish();
}
