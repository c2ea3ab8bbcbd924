//! A guard serves one command after the other: none of them finds anything of the one before.

use std::collections::BTreeMap;
use std::path::Path;

use nix::libc;
use nix::sys::signal::Signal::SIGSTOP;

use crate::support::host::Host;
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// What a process inherits, and where it is: the numbers of processes are replaced by their roles.
const PROBE: &str = "stat=$(cat /proc/$$/stat); rest=${stat##*) }; set -- $rest; \
    [ $2 = $PPID ] && echo parent; [ $3 = $$ ] && echo own group; [ $4 = $PPID ] && echo session of the parent; \
    echo foreground $(($6 == $PPID)); pwd; umask; ulimit -a; ulimit -Ha; nice; env | sort; ls /proc/$$/fd; \
    grep -E '^(Sig[BI]|Cap|NoNew|Seccomp|Cpus|Mems)' /proc/self/status; cat /proc/$$/oom_score_adj \
    /proc/$$/coredump_filter /proc/$$/cgroup; trap; readlink /proc/$$/fd/1 | tr -d 0-9";

/// The guard of a command that is run now.
fn guard_of_next(host: &Host) -> i32 {
    host.run("echo $PPID").out().trim().parse().expect("a number")
}

/// Runs commands until a guard serves for the second time.
fn wait_for_reuse(host: &Host) {
    let mut served = BTreeMap::<i32, u32>::new();
    waiting::wait_until("a guard that serves again", || {
        let times = served.entry(guard_of_next(host)).or_default();
        *times += 1;
        *times > 1
    });
}

/// Runs eight commands at the same time, so that eight guards have served.
fn run_eight_at_once(host: &Host) {
    let gates: Vec<_> = (0..8).map(|n| host.home.join(&format!("go-{n}"))).collect();
    std::thread::scope(|scope| {
        for (n, gate) in gates.iter().enumerate() {
            scope.spawn(move || {
                host.run(&format!("echo > on-{n}; until [ -e {} ]; do sleep 0.01; done", gate.display()))
            });
        }
        waiting::wait_until("eight commands at once", || (0..8).all(|n| host.home.join(&format!("on-{n}")).exists()));
        gates.iter().for_each(|gate| std::fs::write(gate, "").expect("a file"));
    });
}

fn guards(host: &Host) -> Vec<Process> {
    procs::children(host.pid()).into_iter().filter(|child| child.comm == "rexec-guard").collect()
}

#[test]
#[ignore = "long: waits out the 10 s that guards wait"]
fn a_guard_whose_command_left_nothing_serves_the_next_one_and_goes_when_it_is_not_needed() {
    let host = Host::start();
    wait_for_reuse(&host);
    run_eight_at_once(&host);
    assert!(guards(&host).len() > 2, "some wait for more commands");
    let is_rest = waiting::until_true(PATIENCE, || guards(&host).len() == 2);
    assert!(is_rest, "{} guards wait although there are no commands", guards(&host).len());
    let slept = waiting::until_steady(std::time::Duration::from_secs(2), || procs::sleeps(host.pid()));
    assert!(slept > 0, "and the host sleeps");
    host.finish();
}

#[test]
#[ignore = "long: waits out the 10 s that guards wait"]
fn a_guard_that_was_stopped_after_its_command_goes_when_it_is_not_needed() {
    let host = Host::start();
    run_eight_at_once(&host);
    guards(&host).iter().for_each(|guard| guard.signal(SIGSTOP));
    let is_rest = waiting::until_true(PATIENCE, || guards(&host).len() == 2);
    assert!(is_rest, "{} guards wait although there are no commands", guards(&host).len());
    host.finish();
}

#[test]
#[ignore = "long: 37 commands, one after the other"]
fn a_command_finds_nothing_of_the_one_before_it() {
    let host = Host::start();
    let first = host.run(PROBE).out();
    assert!(first.contains("parent\nown group\nsession of the parent\n"), "{first}");
    for command in [
        "umask 077; cd /; export LEFT=1; trap '' TERM USR1 HUP; exec 5</dev/null 7>&1; ulimit -n 100; ulimit -c 0; :",
        "stty raw -echo </dev/tty >/dev/null 2>&1; printf 'left' >/dev/tty; :",
        "kill -TERM $PPID; kill -USR1 $PPID; kill -WINCH $PPID; kill -HUP $PPID; :",
        "(sleep 0.01; :) & (setsid sleep 0.01) & wait",
        "kill -9 $$",
        "nice -n 3 sh -c 'exec true'; exec nice -n 5 true",
    ] {
        for _ in 0..3 {
            host.run(command);
            assert_eq!(host.run(PROBE).out(), first, "after {command}");
        }
    }
    wait_for_reuse(&host);
    host.finish();
}

/// Changes a command's guard from outside. Where the system does not let it, the command fails.
fn marks() -> Vec<(&'static str, String)> {
    let perl = |script: &str| format!("exec perl -e '$guard = getppid() + 0; {script}'");
    let (ptrace, keyctl) = (libc::SYS_ptrace, libc::SYS_keyctl);
    let trace = format!(
        "for (1 .. 20) {{ syscall({ptrace}, 16, $guard, 0, 0) == 0 or exit 1; waitpid($guard, 0x40000000); \
         syscall({ptrace}, 17, $guard, 0, 0); }}"
    );
    let keyring = format!("syscall({keyctl}, 1, 0) > 0 && syscall({keyctl}, 18) == 0 or exit 1");
    vec![
        ("its priority", "renice -n 19 -p $PPID".to_owned()),
        ("a limit", "prlimit --pid $PPID --core=0:0 --stack=1000000".to_owned()),
        ("its score for the OOM killer", "echo 500 > /proc/$PPID/oom_score_adj".to_owned()),
        ("its processors", "[ $(nproc) -gt 1 ] && taskset -p 1 $PPID".to_owned()),
        ("its input priority", "ionice -c 3 -p $PPID".to_owned()),
        ("its scheduling policy", "chrt --batch -p 0 $PPID".to_owned()),
        ("what its core dumps hold", "echo 0x1 > /proc/$PPID/coredump_filter".to_owned()),
        ("its timers", "echo 5000000 > /proc/$PPID/timerslack_ns".to_owned()),
        ("its session's priority", "echo 5 > /proc/$PPID/autogroup".to_owned()),
        ("its control group", "mkdir -p $GROUP && echo $PPID > $GROUP/cgroup.procs".to_owned()),
        ("its keyring", perl(&keyring)),
        ("a tracer that leaves again", perl(&trace)),
        ("signals that queue", "for n in 1 2 3; do kill -s RTMIN $PPID || exit 1; done".to_owned()),
    ]
}

#[test]
#[ignore = "long: up to 13 changes, 7 commands each"]
fn a_guard_that_its_command_has_changed_serves_no_other_one() {
    let host = Host::start();
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"];
    let place = places.into_iter().map(Path::new).find(|place| place.join("cgroup.procs").exists());
    let group = place.unwrap_or(Path::new("/none")).join(format!("rexec-test-{}", std::process::id()));
    let first = host.run(PROBE).out();
    let mut tried = 0;
    for (what, mark) in marks() {
        let script = format!("GROUP={}; echo $PPID; {{ {mark}; }} >/dev/null 2>&1", group.display());
        let marked = host.run(&script);
        let guard: i32 = marked.out().trim().parse().expect("a number");
        if marked.code() != 0 {
            continue;
        }
        tried += 1;
        for _ in 0..6 {
            let seen = host.run(&format!("echo $PPID; {PROBE}")).out();
            let (server, probe) = seen.split_once('\n').expect("two lines");
            assert_eq!(probe, first, "after a command changed {what} of its guard");
            assert_ne!(server, guard.to_string(), "a guard serves although a command changed {what}");
        }
    }
    assert!(tried >= 4, "only {tried} ways work here");
    host.finish();
    _ = std::fs::remove_dir(&group);
}

#[test]
#[ignore = "long: 8 commands that stop their guards"]
fn a_guard_that_its_command_has_stopped_serves_on_or_goes() {
    let host = Host::start();
    for round in 0..8 {
        let seen = host.run(&format!("kill -STOP $PPID; echo {round}; exit 7"));
        assert_eq!((seen.code(), seen.out()), (7, format!("{round}\n")));
        let seen = host.run("echo on");
        assert_eq!((seen.code(), seen.out().as_str()), (0, "on\n"));
    }
    host.finish();
}

/// Any process of the user may change a guard that waits, and the next command of another agent would inherit it.
#[test]
fn a_guard_that_somebody_changed_while_it_waited_serves_nobody() {
    let host = Host::start();
    let probe = "ulimit -n; nice; taskset -p $$ | sed 's/.*: //'; cat /proc/$$/oom_score_adj; ionice -p $$";
    let usual = host.run(probe).out();
    let changes: [&[&str]; 5] = [
        &["prlimit", "--nofile=99:", "--pid"],
        &["renice", "-n", "7", "-p"],
        &["taskset", "-p", "1"],
        &["choom", "-n", "300", "-p"],
        &["ionice", "-c", "3", "-p"],
    ];
    for change in changes {
        // One that has just been forked has not read its own condition yet.
        let is_waiting = |guard: &Process| guard.comm == "rexec-guard" && guard.state == 'S';
        let all_wait = || guards(&host).len() >= 2 && guards(&host).iter().all(is_waiting);
        waiting::wait_until("guards that wait", all_wait);
        for guard in guards(&host) {
            let mut command = programs::command(change[0]);
            let output = command.args(&change[1..]).arg(guard.pid.to_string()).output().expect("util-linux is there");
            assert!(output.status.success() || !guard.is_alive(), "{change:?}: {output:?}");
        }
        assert_eq!(host.run(probe).out(), usual, "after {change:?}");
    }
    host.finish();
}
