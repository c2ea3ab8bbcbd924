//! An agent of several threads that asks the kernel to signal its shells when it dies (prctl(2), `PR_SET_PDEATHSIG`).

use std::fs;

use super::{Place, host};
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting;

/// Is the agent as a child, and has each of its threads end after the other, as on a busy machine: a tracer gets to hold
/// each thread at its exit, when it can still become the parent of what another thread has started (ptrace(2)).
const AGENT: &str = r#"#!/usr/bin/env python3
import ctypes, os, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, CONT, TRACE_EXIT, ALL_THREADS = 0x4206, 7, 0x40, 0x40000000

def agent(ready):
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    call = [os.environ["CLAUDE_CODE_SHELL"], "-c", sys.argv[1]]
    subprocess.Popen(call, preexec_fn=lambda: libc.prctl(1, signal.SIGTERM))
    os.write(ready, b"x")
    time.sleep(300)

ends = os.pipe()
pid = os.fork()
if pid == 0:
    agent(ends[1])
os.read(ends[0], 1)
while not (os.path.exists("apart") and os.path.getsize("apart")):
    time.sleep(0.05)
threads = sorted(map(int, os.listdir("/proc/%d/task" % pid)))
cannot = any(libc.ptrace(SEIZE, thread, None, TRACE_EXIT) for thread in threads)
os.kill(pid, signal.SIGKILL)
if cannot:
    sys.exit(77)
for thread in threads:
    os.waitpid(thread, ALL_THREADS)
    libc.ptrace(CONT, thread, None, None)
    time.sleep(0.7)
"#;

/// The kernel sends the signal once for each thread that it makes the parent and that dies then, too. The command still
/// ends with all that it has started. The tracer has not waited for the threads, so the agent is not quite dead when its
/// command has another parent already.
#[test]
fn an_agent_whose_threads_die_one_after_the_other_takes_its_command_along_with_all_of_it() {
    if !programs::has("python3") || !programs::has("setsid") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let agent = place.program("claude", AGENT);
    let command =
        "setsid sh -c \"echo \\$\\$ >apart; exec sleep 300\" & until [ -s apart ]; do sleep 0.1; done; sleep 300";
    let ended = place.run(&host, &[agent.to_str().expect("a path in UTF-8"), command]).output().expect("it starts");
    if ended.status.code() == Some(77) {
        return programs::skipped("processes cannot be traced here");
    }
    assert!(ended.status.success(), "{ended:?}");
    let apart = fs::read_to_string(place.home.join("apart")).expect("a file").trim().parse().expect("a number");
    waiting::wait_until("the process in a session of its own ends", || !procs::is_alive(apart));
    host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
    host.finish();
}
