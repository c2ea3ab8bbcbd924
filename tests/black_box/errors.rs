//! Every failure that a user can cause is reported in one sentence that starts with `rexec:`, and one hint.

mod command_line;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::call::{Call, Outcome, Target};
use crate::support::host::{self, Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{Ended, State, USUAL};

/// What is wrong with the words, if anything is.
fn fault(text: &str) -> Option<&'static str> {
    let sentences = text.lines().filter(|line| line.starts_with("rexec: ")).count();
    let hints = text.lines().filter(|line| line.starts_with("hint: ") && line.len() > 10).count();
    match (sentences, hints) {
        (1, 1) if !text.contains("panicked") && !text.contains("os error") => None,
        (1, 1) => Some("it speaks the language of programs"),
        (1, _) => Some("no hint, or several"),
        _ => Some("not one sentence"),
    }
}

fn run(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = programs::command(program);
    command.args(args).env_clear().env("PATH", programs::PATH).stdin(Stdio::null());
    command.envs(env.iter().copied()).output().expect("the program starts")
}

/// Somebody may copy the host alone.
#[test]
fn a_host_that_was_installed_without_its_shell_says_so() {
    let prefix = TempDir::new(None);
    fs::create_dir_all(prefix.join("bin")).expect("a directory");
    fs::create_dir_all(prefix.join("lib/rexec")).expect("a directory");
    let host = prefix.join("bin/rexec-host");
    // A copy made here would be open for writing in the children that other tests start meanwhile, and could not be run.
    assert!(programs::command("cp").arg(programs::host()).arg(&host).status().expect("cp").success());
    // It goes no further than to a place where no socket can be.
    let said = || {
        let output = run(&host, &[], &[("REXEC_SOCKET", "/dev/null/host.sock"), ("HOME", "/nonexistent")]);
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = said();
    assert!(text.contains("rexec-sh") && text.contains("hint: install rexec again"), "{text}");
    fs::write(prefix.join("lib/rexec/rexec-sh"), "").expect("a file");
    let text = said();
    assert!(!text.contains("rexec-sh"), "{text}");
    assert_eq!(fault(&text), None, "{text}");
}

#[test]
fn a_full_disk_is_told_in_words() {
    let home = TempDir::new(None);
    let (socket, journal) = (home.join("host.sock"), home.join("journal"));
    fs::create_dir(&journal).expect("a directory");
    for name in ["2026-05-21-09:42:18", "2026-05-21-09:42:19"] {
        fs::write(journal.join(format!("{name}.jsonl")), "").expect("a file");
    }
    let host = Host::start();
    for (args, socket) in
        [(&["--help"][..], &socket), (&["--list"], &socket), (&["ps"], &host.socket()), (&["-c"], &socket)]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = programs::command(programs::rexec());
        command.args(args).env_clear().env("REXEC_HOME", &journal).env("REXEC_SOCKET", socket).stdout(full);
        let output = command.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), fault(&text)), (Some(1), None), "{args:?}: {text}");
        assert!(text.contains("No space left on device"), "{args:?}: {text}");
    }
    host.finish();
}

fn assert_told(what: &str, code: i32, seen: &Outcome) {
    let text = seen.err();
    assert_eq!(fault(&text), None, "{what}: {text}");
    assert_eq!((seen.code(), seen.out().as_str()), (code, ""), "{what}: {text}");
}

#[test]
fn a_missing_host_is_told() {
    let home = TempDir::new(None);
    let socket = home.join("host.sock");
    let seen = Call::bash("echo ran", home.path()).run(Target::Shim(&socket));
    assert_told("no host", 127, &seen);
    assert!(seen.err().contains("HOST NOT FOUND"), "{}", seen.err());
    let fallback = Call::bash("echo ran; exit 3", home.path()).env("REXEC_FALLBACK=shell").run(Target::Shim(&socket));
    assert_eq!((fallback.code(), fallback.out(), fallback.err()), (3, "ran\n".to_owned(), String::new()));
}

#[test]
fn whether_a_host_runs_is_told() {
    let home = TempDir::new(None);
    let check = |socket: &Path| {
        let socket = socket.to_str().expect("a path in UTF-8");
        let output = run(programs::rexec(), &["--check-host"], &[("REXEC_SOCKET", socket)]);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(check(&home.join("host.sock")), (Some(127), "HOST NOT FOUND\n".to_owned()));
    let host = Host::start();
    assert_eq!(check(&host.socket()), (Some(0), "HOST RUNNING\n".to_owned()));
}

#[test]
fn wrong_values_in_the_environment_are_told() {
    let host = Host::start();
    for entry in [
        "REXEC_TTY=sometimes",
        "REXEC_SANITIZE=a-little",
        "REXEC_FALLBACK=maybe",
        "REXEC_LIVE=yes",
        "REXEC_BUDGET=lots",
    ] {
        let seen = host.call("echo ran").env(entry).run(Target::Shim(&host.socket()));
        assert_told(entry, 125, &seen);
        let (name, value) = entry.split_once('=').expect("an entry");
        assert!(seen.err().contains(name) && seen.err().contains(value), "{}", seen.err());
    }
    let seen = host.call("echo ran").env("REXEC_SHELL=/nonexistent/shell").run(Target::Shim(&host.socket()));
    assert!(seen.code() == 127 || seen.code() == 125, "{seen:?}");
    assert_eq!(fault(&seen.err()), None, "{}", seen.err());
}

/// Starts a host that cannot live and returns what it said.
fn doomed(home: &TempDir, setup: &Setup) -> (i32, String) {
    let mut warden = host::launch(home.path(), setup, None);
    // One that lives is ended by the warden.
    let ended = warden.wait(PATIENCE);
    let console = || format!("it lives: {}", fs::read_to_string(home.join("console")).unwrap_or_default());
    let text = if ended.is_some() { fs::read_to_string(home.join("errors")).unwrap_or_default() } else { console() };
    (ended.map_or(0, Ended::code), text)
}

#[test]
fn a_host_that_cannot_start_tells_why() {
    let open = TempDir::new(None);
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let file = TempDir::new(None);
    fs::write(file.join("journal"), "a file in the way").expect("a file");
    let busy = TempDir::new(None);
    fs::create_dir(busy.join("host.sock")).expect("a directory");
    let cases = [
        ("a socket directory that others may list", &open, PLAIN),
        ("a file in the place of the journal's directory", &file, PLAIN),
        ("a directory in the place of the socket", &busy, PLAIN),
    ];
    let mut found = Vec::new();
    for (what, home, setup) in cases {
        let (code, text) = doomed(home, &setup);
        if code == 0 || fault(&text).is_some() {
            found.push(format!("{what}: code {code}, {:?}: {text}", fault(&text)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A journal that cannot be written stops no command, so the host lives; the person at the console is told.
#[test]
fn a_journal_that_cannot_be_written_is_told() {
    let Some(user) = programs::plain_user() else { return };
    let home = TempDir::new(user);
    let place = home.join("journal");
    fs::create_dir(&place).expect("a directory");
    std::os::unix::fs::chown(&place, user, user).expect("ours to give away");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o500)).expect("ours");
    let host = Host::in_dir(home, Setup { user, ..PLAIN });
    assert_eq!(host.run("echo on").out(), "on\n");
    let is_told = || host.console_text().contains("journal cannot be written: ");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    drop(host.leave());
}

#[test]
fn a_second_host_is_told() {
    let host = Host::start();
    let (code, text) = doomed_beside(&host);
    assert!(code != 0 && fault(&text).is_none(), "code {code}: {text}");
}

fn doomed_beside(host: &Host) -> (i32, String) {
    let mut warden = host::launch(host.home.path(), &PLAIN, None);
    let ended = warden.wait(PATIENCE).expect("it leaves at once");
    (ended.code(), host.errors())
}

#[test]
fn a_path_that_is_too_long_is_told() {
    let home = TempDir::new(None);
    let long = home.join(&"d".repeat(120)).join("host.sock");
    let seen = Call::bash("echo ran", home.path()).run(Target::Shim(&long));
    assert!(seen.code() == 127 || seen.code() == 125, "{seen:?}");
    assert_eq!(fault(&seen.err()), None, "{}", seen.err());
    let path = long.to_str().expect("a path in UTF-8");
    let output = run(programs::host(), &[], &[("REXEC_SOCKET", path), ("HOME", "/nonexistent")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(fault(&text), None, "{text}");
}

#[test]
fn too_many_inherited_descriptors_are_told() {
    let host = Host::start();
    for (count, code) in [(16, 0), (17, 125)] {
        let null = || OwnedFd::from(fs::File::open("/dev/null").expect("/dev/null"));
        let extra = (0..count).map(|n| (null(), 3 + n)).collect();
        let seen = Call { extra, ..host.call("exit 0") }.run(Target::Shim(&host.socket()));
        if code == 0 {
            assert_eq!((seen.code(), seen.err().as_str()), (0, ""), "{count} descriptors");
        } else {
            assert_told("17 descriptors", code, &seen);
        }
    }
}

/// The callers' limits can be higher than the host's.
#[test]
fn a_descriptor_beyond_the_hosts_limit_is_passed_on_or_told() {
    let limits = &[(nix::sys::resource::Resource::RLIMIT_NOFILE, 128, 128)];
    let is_root = nix::unistd::geteuid().is_root();
    let users = [None].into_iter().chain(programs::another_user().map(Some));
    for user in users {
        let host = Host::with(Setup { user, state: State { limits, ..USUAL }, ..PLAIN });
        let seen = |number: i32| {
            let text = host.home.join("text");
            fs::write(&text, "passed on").expect("a file");
            let extra = vec![(OwnedFd::from(fs::File::open(&text).expect("the file")), number)];
            Call { extra, ..host.call(&format!("cat <&{number}")) }.run(Target::Shim(&host.socket()))
        };
        for number in [3, 4, 9, 127] {
            let seen = seen(number);
            assert_eq!((seen.code(), seen.out().as_str()), (0, "passed on"), "{number}: {}", seen.err());
        }
        let seen = seen(200);
        // Root may raise its limits, unless that was taken from it.
        if !(is_root && user.is_none() && seen.out() == "passed on") {
            assert_told("descriptor 200", 125, &seen);
            assert!(seen.err().contains("descriptor 200") && seen.err().contains("128"), "{}", seen.err());
        }
    }
}

/// A host with three terminals of its own: what comes beyond them waits, for a while.
#[test]
#[ignore = "long: waits out 30 s without a terminal"]
fn commands_beyond_the_last_terminal_wait_and_are_told() {
    if !nix::unistd::geteuid().is_root() || !programs::has("unshare") {
        return programs::skipped("only root can mount terminals");
    }
    const FEW_TERMINALS: &str = "mount -t devpts -o newinstance,ptmxmode=666,max=3 devpts /dev/pts && \
                                 mount --bind /dev/pts/ptmx /dev/ptmx && exec \"$0\" \"$@\"";
    if !run(Path::new("/usr/bin/unshare"), &["--mount", "sh", "-c", FEW_TERMINALS, "true"], &[]).status.success() {
        return programs::skipped("terminals cannot be mounted here");
    }
    let wrapper = &["unshare", "--mount", "sh", "-c", FEW_TERMINALS];
    let host = Host::with(Setup { wrapper, flags: &["--allow-sandboxed"], ..PLAIN });
    let start = |name: &str| {
        let script = format!("echo >{name}-runs; until test -f {name}-ends; do sleep 0.05; done; echo {name}");
        host.call(&script).start(Target::Shim(&host.socket())).expect("the shim starts")
    };
    let runs = |name: &str| waiting::until_true(PATIENCE, || host.home.join(&format!("{name}-runs")).exists());
    let mut first = ["a", "b", "c"].map(start);
    assert!(["a", "b", "c"].into_iter().all(runs), "{:#?}", host.tree());
    let mut queued = start("d");
    host.wait_for("a fourth start", |journal| journal.of_type("start").nth(3).map(|_| ()));
    let mut told = start("e");
    host.wait_for("a fifth start", |journal| journal.of_type("start").nth(4).map(|_| ()));
    let let_go = |name: &str| fs::write(host.home.join(&format!("{name}-ends")), "").expect("a file");
    let_go("a");
    assert_eq!(first[0].finish(PATIENCE).expect("it ends").out(), "a\n");
    let is_first = waiting::until(PATIENCE, || {
        ["d", "e"].into_iter().find(|name| host.home.join(&format!("{name}-runs")).exists())
    });
    assert_eq!(is_first, Some("d"), "{:#?}", host.tree());
    // Longer than a command waits for a terminal.
    let seen = told.finish(3 * PATIENCE).expect("it is told");
    assert_told("no terminal", 125, &seen);
    assert!(seen.err().contains("no terminals are left") && seen.err().contains("kernel.pty.max"), "{}", seen.err());
    ["b", "c", "d"].into_iter().for_each(let_go);
    let [_, b, c] = &mut first;
    let outs = [b, c, &mut queued].map(|calling| calling.finish(PATIENCE).expect("it ends").out());
    assert_eq!(outs, ["b\n", "c\n", "d\n"]);
    host.finish();
}

#[test]
#[ignore = "long: megabytes of arguments"]
fn arguments_that_just_fit_run_or_are_told() {
    let host = Host::start();
    let call = |bytes: usize| {
        let mut call = host.call("echo ran").env("REXEC_TTY=never");
        let filler = |n: usize| [format!("FILL{n}=").as_bytes(), &vec![b'x'; 100_000][..]].concat();
        call.env.extend((0..bytes / 100_000).map(filler));
        call.env.push([b"LAST=".as_slice(), &vec![b'x'; bytes % 100_000]].concat());
        call
    };
    let fits = |bytes: usize| call(bytes).start(Target::Real).is_ok();
    let (mut low, mut high) = (0, 8 << 20);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if fits(middle) { low = middle } else { high = middle }
    }
    let mut executed = 0;
    for less in (0..3_000).step_by(150) {
        let Ok(mut calling) = call(low - less).start(Target::Shim(&host.socket())) else { continue };
        executed += 1;
        let seen = calling.finish(PATIENCE).expect("it ends");
        let is_right = (seen.code(), seen.out().as_str()) == (0, "ran\n");
        let is_told =
            seen.code() == 126 && seen.out().is_empty() && seen.err().lines().any(|line| line.starts_with("hint: "));
        assert!(is_right || is_told, "{less} bytes below the limit: {seen:?}");
    }
    assert!(executed > 0, "the shim could never be executed");
}
