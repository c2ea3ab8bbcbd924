//! Output that a caller follows as it comes: finished lines go out at once, and lines that are still being redrawn do
//! not.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting::PATIENCE;

fn start(host: &Host, script: &str) -> Calling {
    host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts")
}

/// What the caller has been given, once these bytes are among it.
fn given(calling: &Calling, bytes: &str) -> String {
    let stdout = calling.stdout.as_ref().expect("a pipe");
    assert!(stdout.wait_for(bytes.as_bytes(), PATIENCE), "{bytes:?} is late: {:?}", text(calling));
    text(calling)
}

fn text(calling: &Calling) -> String {
    String::from_utf8(calling.stdout.as_ref().expect("a pipe").so_far()).expect("UTF-8")
}

#[test]
fn a_banner_arrives_whole_although_nothing_follows() {
    let host = Host::start();
    let lines = "\x1b[1mserver\x1b[0m 1.0\nlistening on :80\nready> ";
    let calling = start(&host, &format!("printf '%b' {:?}; exec sleep 1000", lines.replace('\x1b', "\\033")));
    assert_eq!(given(&calling, "ready> "), "server 1.0\nlistening on :80\nready> ");
}

#[test]
fn a_prompt_arrives_after_a_spinner() {
    let host = Host::start();
    let frames = r"for n in {1..300}; do printf '\r%s working' $((n % 4)); done; printf '\r\033[Kpassword:'";
    let calling = start(&host, &format!("{frames}; exec sleep 1000"));
    let seen = given(&calling, "password:");
    assert!(seen.ends_with("password:"), "{seen:?}");
    // A machine that stands still for a moment makes a frame stand still.
    assert!(seen.matches("working").count() <= 10, "{seen:?}");
}

/// The command waits for the test, and the test for the last blank of the prompt.
#[test]
fn a_prompt_arrives_with_its_blank_behind_a_rewritten_line() {
    for setup in [PLAIN, MIRROR] {
        let host = Host::with(setup);
        let script = "printf '\\r1%%\\r2%%\\rGo on? '; until test -e step; do sleep 0.02; done; echo yes";
        let mut calling = start(&host, script);
        given(&calling, "Go on? ");
        fs::write(host.home.join("step"), "").expect("a file");
        let seen = calling.finish(PATIENCE).expect("it ends");
        assert!(seen.out().ends_with("Go on? yes\n"), "{:?}", seen.out());
    }
}

/// The line never rests, and ends only when the test has seen its beginning.
#[test]
fn a_line_that_grows_arrives_while_it_grows() {
    for setup in [PLAIN, MIRROR] {
        let host = Host::with(setup);
        let mut calling = start(&host, "until test -e step; do printf .; sleep 0.02; done; printf 'end\\n'");
        given(&calling, ".");
        fs::write(host.home.join("step"), "").expect("a file");
        let seen = calling.finish(PATIENCE).expect("it ends").out();
        assert!(seen.trim_start_matches('.') == "end\n", "{seen:?}");
    }
}

/// What has no line feed is with the caller before its shim is killed.
#[test]
fn an_unfinished_line_is_not_lost_with_the_shim() {
    let host = Host::with(MIRROR);
    let mut calling = start(&host, "printf 'two words '; exec sleep 1000");
    given(&calling, "two words ");
    kill(Pid::from_raw(calling.pid()), Signal::SIGKILL).expect("it runs");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!(seen.out(), "two words ");
}

/// A caller may have put both outputs into one file behind its pipes.
#[test]
fn what_is_held_leaves_before_the_other_stream() {
    for setup in [PLAIN, MIRROR] {
        let host = Host::with(setup);
        let script = "printf 'Working... '; until test -e step; do sleep 0.02; done; echo no >&2; exec sleep 1000";
        let calling = start(&host, script);
        fs::write(host.home.join("step"), "").expect("a file");
        let stderr = calling.stderr.as_ref().expect("a pipe");
        assert!(stderr.wait_for(b"no\n", PATIENCE), "it is late");
        assert_eq!(given(&calling, "Working... "), "Working... ");
    }
}

#[test]
fn a_log_line_arrives_at_once_and_the_next_one_too() {
    let host = Host::start();
    let step = "until test -e step; do sleep 0.02; done";
    let mut calling = start(&host, &format!("echo one; {step}; echo two; exit 3"));
    assert_eq!(given(&calling, "one\n"), "one\n");
    fs::write(host.home.join("step"), "").expect("a file");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.out().as_str(), seen.code()), ("one\ntwo\n", 3));
}

/// Ten states a second: each is gone before it has stood still. The script counts for how many that was not so.
const PROGRESS: &str = r#"
last=${EPOCHREALTIME/./}; slow=0
for n in {1..20}; do
  printf '\r%d of 20' $n
  sleep 0.1
  now=${EPOCHREALTIME/./}; ((now - last > 200000)) && ((slow++)); last=$now
done
printf '\n'; echo $slow >slow; printf 'done\n'"#;

#[test]
fn progress_is_not_relayed_state_by_state() {
    let host = Host::start();
    let seen = host.run(PROGRESS).out();
    let slow = fs::read_to_string(host.home.join("slow")).expect("the script wrote it");
    let slow: usize = slow.trim().parse().expect("a number");
    assert!(seen.ends_with("20 of 20\ndone\n"), "{seen:?}");
    // The first and the last state, what stood still, and as many again for a host that was slow itself.
    let states = seen.matches(" of 20").count();
    assert!(states <= 2 + 2 * slow + 2, "{states} states, {slow} of them slow: {seen:?}");
}

/// As cargo draws it: the cursor is led back to the bar's start, and the next line is written over it.
#[test]
fn a_bar_that_is_erased_is_not_among_the_lines() {
    let host = Host::start();
    let seen = host.run(
        "for n in 1 2 3; do printf '    Building [=>   ] %s/3: some-crate          \\r' $n; sleep 0.6; \
         printf '\\033[K   Compiling crate-%s\\n' $n; done; echo done",
    );
    assert_eq!(seen.out(), "   Compiling crate-1\n   Compiling crate-2\n   Compiling crate-3\ndone\n");
}

/// A state that stands still for a while tells something once, and not every time.
#[test]
#[ignore = "long: a progress bar of 7 s"]
fn a_slow_bar_is_a_few_lines() {
    let host = Host::start();
    let seen = host.run("for n in $(seq 20); do printf '\\r%s of 20' $n; sleep 0.35; done; echo; echo done");
    let out = seen.out();
    assert!(out.lines().count() <= 8 && out.ends_with("20 of 20\ndone\n"), "{out}");
}

/// The program waits for the test, and the test for its first line: without the variable neither would go on.
#[test]
fn a_line_of_python_arrives_before_the_program_ends_where_the_host_is_live() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(Setup { flags: &["--live"], ..MIRROR });
    let script = "mkfifo step; exec python3 -c 'print(1); open(\"step\").read(); print(2)'";
    let mut calling = start(&host, script);
    assert_eq!(given(&calling, "1\n"), "1\n");
    fs::write(host.home.join("step"), "").expect("a FIFO that is read");
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.out().as_str(), seen.code()), ("1\n2\n", 0));
}
