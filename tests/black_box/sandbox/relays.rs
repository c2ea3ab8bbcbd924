//! Callers other than those in a sandbox: logins of another kind, and callers behind a relay.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::call::{Call, Outcome, Target};
use crate::support::crowd;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::reader::read_some;
use crate::support::temp::TempDir;

fn rexec(socket: &Path, wrapper: &[&str], args: &[&str]) -> Output {
    let words: Vec<&str> = wrapper.iter().copied().chain([programs::rexec().to_str().expect("text")]).collect();
    let mut command = programs::command(words[0]);
    command.args(&words[1..]).args(args).env("REXEC_SOCKET", socket).output().expect("it starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

/// What `ssh -R` and socat do: bytes go through, nothing else.
fn relay(from: &Path, to: &Path) {
    let listener = UnixListener::bind(from).expect("a socket");
    let to = to.to_owned();
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (Ok(caller), Ok(host)) = (caller, UnixStream::connect(&to)) else { return };
            for (mut from, mut to) in
                [(caller.try_clone().expect("a copy"), host.try_clone().expect("a copy")), (host, caller)]
            {
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(length @ 1..) = read_some(&mut from, &mut bytes) {
                        if to.write_all(&bytes[..length]).is_err() {
                            break;
                        }
                    }
                    _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
}

#[test]
fn a_login_with_other_groups_sees_and_ends_commands_but_runs_none() {
    if !nix::unistd::geteuid().is_root() || !programs::has("setpriv") || !super::has_sight() {
        return programs::skipped("only root can take on other groups");
    }
    let host = Host::start();
    let mut calling = host.call("sleep 1000").start(Target::Shim(&host.socket())).expect("a shim");
    host.wait_for("its start", |journal| journal.of_type("start").next().cloned());
    for login in
        [&["setpriv", "--groups=4242"][..], &["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]]
    {
        let listed = rexec(&host.socket(), login, &["ps"]);
        let seen = text(&listed);
        let is_root_without_more = login.len() == 3 && seen.contains("other capabilities");
        assert!(is_root_without_more || seen.contains("sleep 1000"), "{login:?}: {seen}");
    }
    let namespace = rexec(&host.socket(), &["unshare", "--ipc"], &["ps"]);
    assert!(text(&namespace).contains("other ipc namespace"), "{}", text(&namespace));
    let killed = rexec(&host.socket(), &["setpriv", "--groups=4242"], &["kill", "1"]);
    assert!(text(&killed).contains("#1 has ended"), "{}", text(&killed));
    assert!(calling.finish(crate::support::waiting::PATIENCE).is_some(), "it ended");
}

#[test]
fn a_shim_behind_a_relay_is_told_so_and_nothing_runs() {
    let host = Host::start();
    let place = TempDir::new(None);
    let forwarded = place.join("host.sock");
    relay(&forwarded, &host.socket());
    let seen = Call::bash("echo ran", place.path()).run(Target::Shim(&forwarded));
    assert_eq!((seen.code(), seen.out().as_str()), (125, ""), "{seen:?}");
    assert!(seen.err().starts_with("rexec: this connection comes through a relay"), "{}", seen.err());
    assert!(
        text(&rexec(&forwarded, &["env"], &["ps"])).contains("nothing runs"),
        "a relay is open unless told otherwise"
    );
    assert_eq!(host.journal().of_type("start").count(), 0);
}

#[test]
fn a_host_that_requires_a_descriptor_serves_no_relay() {
    let host = Host::with(Setup { flags: &["--require-descriptor"], ..PLAIN });
    let place = TempDir::new(None);
    let forwarded = place.join("host.sock");
    relay(&forwarded, &host.socket());
    let through = rexec(&forwarded, &["env"], &["ps"]);
    assert!(!through.status.success() && text(&through).contains("relay"), "{}", text(&through));
    let answer = crowd::answer(crowd::ask(&host, &["echo", "ran"]));
    assert!(
        answer["error"] == "refused" && answer["message"].as_str().is_some_and(|text| text.contains("relay")),
        "{answer}"
    );
    let direct = rexec(&host.socket(), &["env"], &["ps"]);
    assert!(text(&direct).starts_with("nothing runs "), "{}", text(&direct));
    assert_eq!(host.run("echo here").out(), "here\n");
    host.wait_for("the one command", |journal| journal.end_of("echo here").cloned());
    assert_eq!(host.journal().of_type("start").count(), 1);
}

/// A control group of this test's own; `None` where none can be made.
fn own_group(name: &str) -> Option<PathBuf> {
    let name = format!("rexec-test-{name}-{}", std::process::id());
    let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let place = roots.into_iter().find(|root| root.exists())?.join(name);
    std::fs::create_dir(&place).ok().map(|()| place)
}

/// Runs a script that knows the shim as $shim, by a shell that is a member of a control group; then removes the group.
/// `None` where the group cannot be entered.
fn run_in_group(host: &Host, place: &Path, script: &str) -> Option<Outcome> {
    let script = format!(
        "unset REXEC_INSIDE; shim='{1}'; echo 0 >{0}/cgroup.procs || exit 77; {script}; code=$?; \
         echo 0 >{0}/../cgroup.procs; exit $code",
        place.display(),
        programs::shims().join("bash").display()
    );
    let seen = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display())).run(Target::Real);
    let is_empty = || std::fs::remove_dir(place).is_ok();
    assert!(crate::support::waiting::until_true(crate::support::waiting::PATIENCE, is_empty), "somebody is left in it");
    (seen.code() != 77).then_some(seen)
}

/// Limits of a control group hold for what its members have run.
#[test]
fn a_command_runs_in_its_callers_control_group() {
    let Some(place) = own_group("one") else { return programs::skipped("no control group can be made here") };
    let host = Host::start();
    let script = "\"$shim\" -c 'cat /proc/self/cgroup'; code=$?; cat /proc/self/cgroup >&2; (exit $code)";
    let Some(seen) = run_in_group(&host, &place, script) else {
        return programs::skipped("no control group can be entered here");
    };
    assert_eq!((seen.code(), seen.out()), (0, seen.err()), "the command is where its caller is");
    assert!(seen.out().contains("rexec-test-"), "{}", seen.out());
    host.wait_for("the command", |journal| journal.of_type("end").next().cloned());
}

/// Panes of a terminal multiplexer can be in groups of their own. Only the command moves there, so its guard serves again.
#[test]
fn a_guard_serves_callers_of_several_control_groups() {
    let Some(place) = own_group("several") else { return programs::skipped("no control group can be made here") };
    let host = Host::start();
    let call =
        "\"$shim\" -c 'echo $PPID $(grep -c rexec-test- /proc/self/cgroup) $(grep -c rexec-test- /proc/$PPID/cgroup)'";
    let script = format!("for n in 1 2 3 4 5 6 7 8; do {call}; done");
    let Some(seen) = run_in_group(&host, &place, &script) else {
        return programs::skipped("no control group can be entered here");
    };
    let mut guards = BTreeSet::new();
    for line in seen.out().lines() {
        let (guard, groups) = line.split_once(' ').expect("three numbers");
        assert_eq!(groups, "1 0", "the command is where its caller is, and the guard is not");
        guards.insert(guard.to_owned());
    }
    assert_eq!(seen.out().lines().count(), 8, "{}", seen.err());
    assert!(guards.len() < 8, "none of {guards:?} served twice");
    let seen = host.run("cat /proc/self/cgroup");
    assert!(!seen.out().contains("rexec-test-"), "a guard that has served there is not there: {}", seen.out());
    host.finish();
}

/// A directory that only who is in it already can use: the command runs without the host, and the console knows.
#[test]
fn the_console_tells_of_a_command_whose_directory_the_host_cannot_enter() {
    if !nix::unistd::geteuid().is_root() {
        return programs::skipped("only root can be another user");
    }
    let host = Host::with(Setup { user: Some(65534), ..PLAIN });
    let script = format!(
        "mkdir shut; cd shut; chmod 000 .; '{}' -c 'echo here'; code=$?; cd /; exit $code",
        programs::shims().join("bash").display()
    );
    let call = Call { user: Some(65534), ..host.call(&script) };
    let seen =
        call.env(&format!("REXEC_SOCKET={}", host.socket().display())).env("REXEC_WHOAMI=stuck").run(Target::Real);
    assert_eq!((seen.out().as_str(), seen.err().as_str(), seen.code()), ("here\n", "", 0));
    let told = || host.console_text().contains("… stuck runs a command without this host");
    assert!(crate::support::waiting::until_true(crate::support::waiting::PATIENCE, told), "{}", host.console_text());
    _ = std::fs::set_permissions(host.home.join("shut"), std::os::unix::fs::PermissionsExt::from_mode(0o700));
}
