//! What travels with a command: everything that the caller's own shell would have inherited.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::host::{CLOSE_OTHERS, Place, Request, frames, outcome};
use rexec_sh::protocol::choice::{Sanitize, Tty};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::FromHost;

fn ok() -> Vec<u8> {
    frames(|out| FromHost::Exit(Exit::Code(0)).encode(out))
}

/// What the host gets when a real shell has run this and becomes the shim.
fn after(setup: &str) -> Request {
    let place = Place::new();
    let host = place.answering(ok());
    let output = place.real_shell(&format!("{CLOSE_OTHERS}; {setup}; exec \"$0\" -c x")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    host.join().unwrap()
}

#[test]
fn process_attributes_are_the_callers() {
    let plain = after("true").attributes;
    assert_eq!(plain.limits.len(), 16);
    assert_eq!((plain.blocked, plain.rows, plain.cols), (0, 0, 0));
    assert!(plain.affinity.iter().any(|&byte| byte != 0));
    let set = after("umask 027; ulimit -Sn 200; ulimit -Hn 300; ulimit -c 0; trap '' PIPE TERM").attributes;
    assert_eq!(set.umask, 0o027);
    assert_eq!(set.limits[7], (200, 300), "RLIMIT_NOFILE");
    assert_eq!(set.limits[4], (0, 0), "RLIMIT_CORE");
    assert_eq!(set.ignored & !plain.ignored, 1 << 12 | 1 << 14, "SIGPIPE and SIGTERM");
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    assert_eq!(plain.oom_score_adj, own);
    // Only root may lower it.
    let higher = own.max(500);
    let niced = after(&format!("renice -n 19 -p $$ >/dev/null; echo {higher} >/proc/self/oom_score_adj")).attributes;
    assert_eq!(niced.nice, 19);
    assert_eq!(niced.oom_score_adj, higher);
}

#[test]
fn the_top_of_the_git_project_is_counted_from_the_working_directory() {
    let depth = |dir: &str, made: &str| {
        after(&format!("mkdir \"${{0%/*}}/top\" && cd \"${{0%/*}}/top\" && mkdir -p {dir} {made} && cd {dir}"))
            .attributes
            .extras
            .project
    };
    assert_eq!(depth("a/b/c", ".git"), Some(3));
    assert_eq!(depth("a/b/c", "a/b/c/.git .git"), Some(0), "the innermost");
    assert_eq!(depth("1/2/3/4/5/6/7/8/9/10/11/12", ".git"), Some(12));
    assert_eq!(depth("1/2/3/4/5/6/7/8/9/10/11/12/13", ".git"), None, "too deep");
    assert_eq!(after("cd /").attributes.extras.project, None);
}

#[test]
fn standard_descriptors_are_told_apart() {
    let stdio = |setup: &str| after(setup).attributes.stdio;
    let plain = stdio("true");
    assert!(plain.stdin && plain.stdout && plain.stderr);
    assert!(!plain.same_output && !plain.stdout_tty && !plain.stderr_tty && !plain.stdin_tty);
    assert!(stdio("exec 2>&1").same_output);
    assert!(!stdio("exec >/dev/null 2>/dev/null").same_output, "one file, opened twice");
    assert!(!stdio("f=${0%/*}/f; exec >$f 2>$f").same_output, "each has its place in it");
    assert!(stdio("f=${0%/*}/f; exec >>$f 2>>$f").same_output, "both write at its end");
    let closed = stdio("exec <&- >&- 2>&-");
    assert!(!closed.stdin && !closed.stdout && !closed.stderr && !closed.same_output);
    assert!(!stdio("exec <&-").stdin);
    let one = stdio("exec 2>&-");
    assert!(one.stdin && one.stdout && !one.stderr);
}

#[test]
fn a_closed_descriptor_is_closed_for_the_real_shell_too() {
    let place = Place::new();
    let script = "exec <&- 2>&-; REXEC_FALLBACK=shell exec \"$0\" -c 'ls /proc/$$/fd; exit 5'";
    let output = place.real_shell(&format!("{CLOSE_OTHERS}; {script}")).output().unwrap();
    assert_eq!(outcome(&output), (Some(5), "1\n".into(), String::new()));
}

#[test]
fn inherited_descriptors_travel_in_the_order_of_their_numbers() {
    let request = after("exec 9</dev/null 5>/dev/null 200</dev/null");
    assert_eq!(request.attributes.inherited, [5, 9, 200]);
    let sixteen = after("for n in {3..18}; do eval \"exec $n</dev/null\"; done");
    assert_eq!(sixteen.attributes.inherited, (3..=18).collect::<Vec<_>>());
}

#[test]
fn more_descriptors_than_travel_are_refused_in_one_sentence() {
    let place = Place::new();
    let host = place.host(|mut peer| peer.drain_bytes());
    let script = "for n in {3..19}; do eval \"exec $n</dev/null\"; done; exec \"$0\" -c x";
    let (code, stdout, stderr) = outcome(&place.real_shell(&format!("{CLOSE_OTHERS}; {script}")).output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    assert!(stderr.starts_with("rexec: the command would inherit 17 descriptors"), "{stderr}");
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
    assert_eq!(host.join().unwrap(), 0, "nothing was sent");
}

#[test]
fn arguments_and_environment_are_bytes() {
    let place = Place::new();
    let host = place.answering(ok());
    let script = OsStr::from_bytes(b"printf '\xff\xfe\n\x01'");
    let mut command = place.shim("rexec-bash");
    command.args([OsStr::new("-lc"), script, OsStr::new(""), OsStr::from_bytes(b"\x80")]);
    command.env("BYTES", OsStr::from_bytes(b"\xf0=\x01")).env("SHELL", place.dir.join("rexec-bash"));
    command.env("CLAUDE_CODE_SHELL", "/x/rexec-bash").env("REXEC_WHOAMI", "me").env("REXEC_SANITIZE", "strip");
    command.env("A_TOKEN", "t").env("REXEC_ENV_DROP", "*_TOKEN");
    assert!(command.status().unwrap().success());
    let request = host.join().unwrap();
    let argv: Vec<&[u8]> = request.argv.iter().map(Vec::as_slice).collect();
    assert_eq!(argv, [&b"/bin/bash"[..], b"-lc", script.as_bytes(), b"", b"\x80"]);
    assert_eq!((request.whoami.as_slice(), request.shell.as_slice()), (&b"me"[..], &b"/bin/bash"[..]));
    assert_eq!(request.attributes.sanitize, Some(Sanitize::Strip));
    assert!(request.env.iter().any(|entry| entry == b"BYTES=\xf0=\x01"));
    assert!(request.has("SHELL=/bin/bash") && request.has("REXEC_INSIDE=1"));
    for name in ["CLAUDE_CODE_SHELL", "REXEC_WHOAMI", "REXEC_SANITIZE", "REXEC_SOCKET", "A_TOKEN"] {
        assert!(!request.has_name(name), "{name}");
    }
}

#[test]
fn the_wanted_use_of_a_terminal_travels() {
    for (value, tty) in
        [("", None), ("auto", Some(Tty::Auto)), ("always", Some(Tty::Always)), ("never", Some(Tty::Never))]
    {
        let request = after(&format!("export REXEC_TTY={value}"));
        assert_eq!(request.attributes.tty, tty);
        assert!(!request.has_name("TERM") && !request.has_name("PAGER"), "that is for the host to add");
    }
}

#[test]
fn only_a_shell_variable_that_leads_back_is_replaced() {
    for (set, sent) in [
        ("/usr/bin/fish", "/usr/bin/fish"),
        ("/nonexistent/rexec-zsh", "/bin/bash"),
        ("$0", "/bin/bash"),
        ("/bin/bash", "/bin/bash"),
        ("", ""),
    ] {
        assert!(after(&format!("export SHELL={set}")).has(&format!("SHELL={sent}")), "{set}");
    }
}

#[test]
fn the_longest_command_and_a_large_environment_arrive_whole() {
    let place = Place::new();
    let host = place.answering(ok());
    let script = "x".repeat(131_071);
    let mut command = place.bash(&script);
    for n in 0..12 {
        command.env(format!("LARGE_{n}"), "y".repeat(100_000));
    }
    assert_eq!(outcome(&command.output().unwrap()), (Some(0), String::new(), String::new()));
    let request = host.join().unwrap();
    assert_eq!(request.argv[2], script.as_bytes());
    let is_large = |entry: &&Vec<u8>| entry.starts_with(b"LARGE_") && entry.ends_with(&[b'y'; 100_000]);
    assert_eq!(request.env.iter().filter(is_large).count(), 12);
}

#[test]
fn a_deleted_working_directory_travels() {
    after("mkdir /tmp/rexec-gone-$$; cd /tmp/rexec-gone-$$; rmdir /tmp/rexec-gone-$$");
}

#[test]
fn a_working_directory_that_may_not_be_entered_is_for_the_real_shell() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let script = "mkdir $0.d; cd $0.d; chmod 000 .; \"$0\" -c 'echo here'; s=$?; cd /; chmod 700 $0.d; exit $s";
    assert_eq!(outcome(&place.real_shell(script).output().unwrap()), (Some(0), "here\n".into(), String::new()));
}
