//! Agents of several threads whose death takes a while.

use std::fs;
use std::process::Output;

use super::{Place, host};
use crate::support::host::Host;
use crate::support::procs;
use crate::support::programs;
use crate::support::waiting;

/// Is the agent as a child, which asks the kernel to signal its shells when it dies (prctl(2), `PR_SET_PDEATHSIG`). Has each of its threads end after the other, as on a busy machine: a tracer gets to hold
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

/// Waits for the end of what a command has started in a session of its own, after the program that has killed its agent.
fn expect_end(place: &Place, host: Host, ended: &Output) {
    if ended.status.code() == Some(77) {
        return programs::skipped("processes cannot be traced here");
    }
    assert!(ended.status.success(), "{ended:?}");
    let apart = fs::read_to_string(place.home.join("apart")).expect("a file").trim().parse().expect("a number");
    waiting::wait_until("the process in a session of its own ends", || !procs::is_alive(apart));
    host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
    host.finish();
}

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
    expect_end(&place, host, &ended);
}

/// An agent of two threads whose command's output another process reads.
const READ_BY_ANOTHER: &str = r#"#!/usr/bin/env python3
import os, subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
output = os.pipe()
reader = subprocess.Popen(["cat"], stdin=output[0], stdout=subprocess.DEVNULL)
os.close(output[0])
shell = subprocess.Popen([os.environ["CLAUDE_CODE_SHELL"], "-c", sys.argv[1]], stdout=output[1], stderr=output[1])
os.close(output[1])
with open("pids", "w") as pids:
    print(reader.pid, shell.pid, "", file=pids)
time.sleep(300)
"#;

/// Starts that agent and kills it, holds one of its threads at its exit, and kills the reader. Lets the agent be dead once
/// its shell has ended.
const KILLER: &str = r#"
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, CONT, TRACE_EXIT, ALL_THREADS = 0x4206, 7, 0x40, 0x40000000

def read(path):
    try:
        return open(path).read()
    except OSError:
        return ""

def wait_until(is_so):
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    sys.exit("this takes too long")

agent = os.fork()
if agent == 0:
    os.execv(sys.argv[1], sys.argv[1:])
wait_until(lambda: read("apart").endswith("\n") and read("pids").endswith("\n"))
reader, shell = map(int, read("pids").split())
first, second = sorted(map(int, os.listdir("/proc/%d/task" % agent)))
cannot = any(libc.ptrace(SEIZE, thread, None, TRACE_EXIT) for thread in (first, second))
os.kill(agent, signal.SIGKILL)
if cannot:
    sys.exit(77)
for thread in first, second:
    os.waitpid(thread, ALL_THREADS)
libc.ptrace(CONT, first, None, None)
wait_until(lambda: "VmSize" not in read("/proc/%d/status" % agent))
os.kill(reader, signal.SIGKILL)
wait_until(lambda: read("/proc/%d/stat" % shell).rpartition(")")[2][1:2] in ("", "Z"))
libc.ptrace(CONT, second, None, None)
"#;

/// The reader is gone before the agent is dead, and a command that writes ends by that. All of it ends all the same.
#[test]
fn an_agent_whose_reader_dies_before_it_takes_its_command_along_with_all_of_it() {
    if !programs::has("python3") || !programs::has("setsid") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let agent = place.program("claude", READ_BY_ANOTHER);
    let command = "setsid sh -c \"echo \\$\\$ >apart; exec sleep 300\" & while sleep 0.05; do echo on; done";
    let run = place.run(&host, &[agent.to_str().expect("a path in UTF-8"), command]);
    let mut killer = place.alone("python3");
    killer.args(["-c", KILLER]).arg(run.get_program()).args(run.get_args());
    killer.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = killer.output().expect("it starts");
    expect_end(&place, host, &ended);
}
