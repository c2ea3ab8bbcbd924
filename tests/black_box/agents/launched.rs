//! How `rexec run` starts an agent: in its place, with a host if there is none, and what it says when it cannot.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::{Place, host, printed, said};
use crate::support::host::SHUTDOWN;
use crate::support::journal;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{Plan, Warden};

#[test]
fn the_agent_takes_the_place_of_rexec() {
    let (place, host) = (Place::new(), host());
    let agent = place.program("pi", "#!/bin/sh\necho $$ \"$@\"\ngrep SigIgn /proc/$$/status\nexit 7\n");
    let agent = agent.to_str().expect("a path in UTF-8");
    let child = place.run(&host, &[agent, "--help", "-x", "--", "--as"]).stdout(std::process::Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(7));
    let alone = place.alone(agent).output().expect("it starts");
    let ignored = String::from_utf8_lossy(&alone.stdout).lines().last().expect("two lines").to_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{pid} --help -x -- --as\n{ignored}\n"));
    for (agent, options) in [
        ("copilot", "--bash-env=on -p"),
        ("codex", "-c features.daemon_auto_start=false -p"),
        ("mini", "--environment-class rexec_mini.RexecEnvironment -p"),
    ] {
        let program = place.program(agent, "#!/bin/sh\necho \"$@\"\n");
        let mut run = place.run(&host, &["--as", "x", "--", program.to_str().expect("a path in UTF-8"), "-p"]);
        assert_eq!(printed(&mut run), format!("{options}\n"), "{agent}");
    }
    host.finish();
}

#[test]
fn a_name_goes_before_the_agents_own_and_reaches_no_command() {
    let (place, host) = (Place::new(), host());
    let agent = place.program("claude", "#!/bin/sh\nCLAUDECODE=1 $CLAUDE_CODE_SHELL -c 'echo named $REXEC_WHOAMI'\n");
    let agent = agent.to_str().expect("a path in UTF-8");
    assert_eq!(printed(&mut place.run(&host, &["--as", "reviewer", agent])), "named\n");
    host.wait_for("the name", |journal| {
        (journal.end_of("echo named $REXEC_WHOAMI")?["whoami"] == "reviewer").then_some(())
    });
    host.finish();
}

#[test]
fn links_are_made_once_and_repaired() {
    let (place, host) = (Place::new(), host());
    let agent = place.program("pi", "#!/bin/sh\n");
    let agent = agent.to_str().expect("a path in UTF-8");
    let folder = host.home.join("shells");
    let inode = |name: &str| fs::symlink_metadata(folder.join(name)).expect("it is there").ino();
    printed(&mut place.run(&host, &[agent]));
    assert_eq!(fs::metadata(&folder).expect("a directory").mode() & 0o777, 0o700);
    let names = ["rexec-bash", "rexec-sh", "rexec-zsh", "sh", "zsh", "bash-only/bash", "rexec-env.sh"];
    let before = names.map(inode);
    printed(&mut place.run(&host, &[agent]));
    assert_eq!(names.map(inode), before, "what is right stays");
    let shim = fs::read_link(folder.join("sh")).expect("a link");
    fs::remove_file(folder.join("rexec-bash")).expect("it is ours");
    fs::remove_file(folder.join("sh")).expect("it is ours");
    symlink("/bin/false", folder.join("sh")).expect("a link");
    fs::write(folder.join("rexec-env.sh"), "exit 1\n").expect("a file");
    printed(&mut place.run(&host, &[agent]));
    assert!(["rexec-bash", "sh"].iter().all(|name| fs::read_link(folder.join(name)).is_ok_and(|to| to == shim)));
    assert!(fs::read_to_string(folder.join("rexec-env.sh")).expect("a file").contains("BASH_EXECUTION_STRING"));
    assert_eq!(fs::read_dir(&folder).expect("a directory").count(), 13, "nothing else is left behind");
    host.finish();
}

#[test]
fn a_host_is_started_in_the_background_where_none_runs() {
    let place = Place::new();
    let home = place.home.path();
    let agent = place.program("pi", "#!/bin/sh\ncut -d' ' -f6 /proc/$$/stat >\"$HOME/session\"\nPI_CODING_AGENT=true /bin/bash -c 'echo caught $REXEC_INSIDE'\n");
    let (socket, journals) = (home.join("run/host.sock"), home.join("journal"));
    let start = |flags: &[&str]| {
        let rexec = programs::rexec().to_str().expect("a path in UTF-8");
        let argv: Vec<&str> =
            [rexec, "run"].iter().chain(flags).copied().chain([agent.to_str().expect("UTF-8")]).collect();
        let set = |name: &str, value: &Path| format!("{name}={}", value.display());
        let path = format!("PATH={}", programs::PATH);
        let env = [path, set("HOME", home), set("REXEC_SOCKET", &socket), set("REXEC_HOME", &journals)];
        let mut plan = Plan::new(programs::rexec(), &argv, &env);
        let file = |name: &str| fs::File::create(home.join(name)).expect("a file").into();
        let null = fs::File::open("/dev/null").expect("/dev/null");
        plan.descriptors = vec![(null.into(), 0), (file("out"), 1), (file("errors"), 2)];
        Warden::start(plan).expect("it can be executed")
    };
    let text = |name: &str| fs::read_to_string(home.join(name)).unwrap_or_default();

    let mut without = start(&["--host", "never"]);
    assert_eq!(without.wait(PATIENCE).map(|ended| ended.code()), Some(127));
    assert!(text("errors").contains("no host runs") && text("errors").contains("HOST NOT FOUND"), "{}", text("errors"));

    let mut first = start(&[]);
    assert_eq!(first.wait(PATIENCE).map(|ended| ended.code()), Some(0), "{}", text("errors"));
    assert_eq!(text("out"), "caught 1\n");
    assert_eq!(text("errors").lines().count(), 1, "{}", text("errors"));
    let pid: i32 = text("run/host.sock.lock").trim().parse().expect("the host's number");
    assert!(text("errors").contains("rexec --stop-host ends it"), "{}", text("errors"));
    let session = nix::unistd::getsid(Some(Pid::from_raw(pid))).expect("it lives");
    assert_ne!(text("session").trim(), session.to_string(), "a session of its own");

    let mut second = start(&[]);
    assert_eq!(second.wait(PATIENCE).map(|ended| ended.code()), Some(0));
    assert_eq!((text("out").as_str(), text("errors").as_str()), ("caught 1\n", ""), "the same host");
    let known = journal::wait_for(&journals, PATIENCE, |journal| (journal.of_type("end").count() == 2).then_some(()));
    assert!(known.is_some(), "the journal has both");

    assert!(Process::of(pid).is_some_and(|host| host.is_alive()));
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it lives");
    assert!(first.is_empty_within(SHUTDOWN), "nothing is left: {:#?}", first.tree());
    assert!(waiting::until_true(SHUTDOWN, || !socket.exists()), "the socket is removed");
}

#[test]
fn what_cannot_be_started_is_told() {
    let (place, host) = (Place::new(), host());
    let crush = place.program("crush", "#!/bin/sh\n");
    fs::write(place.home.join("text"), "").expect("a file");
    let (crush, text) = (crush.to_str().expect("UTF-8").to_owned(), place.home.join("text"));
    let text = text.to_str().expect("UTF-8");
    for (args, code, words) in [
        (&["no-such-agent"][..], 127, "`no-such-agent`"),
        (&[text], 126, "not an executable file"),
        (&[&crush], 1, "Crush"),
        (&[], 2, "rexec run --list"),
        (&["--host", "maybe", "x"], 2, "auto, never"),
        (&["--as"], 2, "--as"),
        (&["--nmae", "x"], 2, "--nmae"),
    ] {
        let output = place.run(&host, args).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(said(&output).starts_with("rexec: ") && said(&output).contains(words), "{args:?}: {}", said(&output));
    }
    let unknown = place.program("unknown-agent", "#!/bin/sh\nbash -c 'echo caught $REXEC_INSIDE'\n");
    let output = place.run(&host, &[unknown.to_str().expect("UTF-8")]).output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "caught 1\n");
    assert_eq!((said(&output).lines().count(), said(&output).contains("`unknown-agent`")), (1, true), "{output:?}");
    let named =
        |journal: &journal::Journal| (journal.of_type("end").next()?["whoami"] == "unknown-agent").then_some(());
    host.wait_for("the program's name", named);
    let bad = place.run(&host, &["opencode"]).env("OPENCODE_CONFIG_CONTENT", "[").output().expect("it starts");
    assert!(!bad.status.success());
    host.finish();
}

/// Codex asks the kernel to send its shells SIGTERM when it dies (prctl(2), `PR_SET_PDEATHSIG`). The command then ends with
/// all that it has started, as that of an agent that asks for nothing.
#[test]
fn an_agent_that_is_killed_takes_its_command_along_with_all_of_it() {
    if !programs::has("setpriv") || !programs::has("setsid") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let command =
        "setsid sh -c \"echo \\$\\$ >apart; exec sleep 300\" & until [ -s apart ]; do sleep 0.1; done; sleep 300";
    let text = |caller: &str| {
        format!(
            "#!/bin/sh\nrm -f apart\n{caller} $CLAUDE_CODE_SHELL -c '{command}' >out &\n\
             until [ -s apart ]; do sleep 0.1; done\nkill -KILL $$\n"
        )
    };
    for (round, caller) in ["setpriv --pdeathsig TERM", "setpriv --pdeathsig INT", ""].into_iter().enumerate() {
        let agent = place.program("claude", &text(caller));
        let ended = place.run(&host, &[agent.to_str().expect("a path in UTF-8")]).status().expect("it starts");
        assert!(!ended.success(), "it has killed itself");
        let apart = fs::read_to_string(place.home.join("apart")).expect("a file").trim().parse().expect("a number");
        waiting::wait_until("the process in a session of its own ends", || !crate::support::procs::is_alive(apart));
        host.wait_for("its end", |journal| (journal.of_type("end").count() == round + 1).then_some(()));
    }
    host.finish();
}
