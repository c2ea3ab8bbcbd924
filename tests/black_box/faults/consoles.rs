//! Consoles that accept nothing: no command waits for them, the host keeps little for them, and what is left out is
//! counted.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;

use crate::support::call::Target;
use crate::support::crowd::{answer, ask, shim};
use crate::support::file_server::FileServer;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::journal::Journal;
use crate::support::procs;
use crate::support::programs;
use crate::support::strip::strip;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

const TERMINAL: Setup = Setup { terminal: true, is_stuck: true, flags: &["--no-status"], ..PLAIN };
const PIPE: Setup = Setup { pipe: true, is_stuck: true, ..PLAIN };

/// Writes so many of a character that the host itself never does, and nothing else.
fn letters(count: usize) -> String {
    format!("head -c {count} /dev/zero | tr '\\0' '\\100'")
}

/// How many letters were shown, and how many bytes were said to be left out: `⋯ 5 bytes not shown` between lines, and
/// `⋯ +5 bytes` at the end of a line.
fn shown_and_omitted(console: &str) -> (usize, usize) {
    let omitted = console.split(['…', '⋯']).skip(1).filter_map(|note| {
        let (digits, _) = note.split_once(" bytes")?;
        digits.trim_start().trim_start_matches('+').replace(' ', "").parse::<usize>().ok()
    });
    (console.matches('@').count(), omitted.sum())
}

fn text_on(host: &Host) -> String {
    String::from_utf8_lossy(&strip(host.console_text().as_bytes())).into_owned()
}

/// Waits until everything that was written is either shown or counted as left out, as long as the console goes on.
fn assert_all_accounted_for(host: &Host, total: usize) {
    let sum = || {
        let (shown, omitted) = shown_and_omitted(&text_on(host));
        shown + omitted
    };
    waiting::wait_until_grown("everything is shown or counted", total, PATIENCE, sum);
    let (shown, omitted) = shown_and_omitted(&text_on(host));
    assert_eq!(shown + omitted, total, "{shown} bytes are shown, {omitted} are not");
    assert!(omitted > total / 2, "a console that was stuck lacks something: {omitted} of {total}");
}

/// Whether the host's standard output, which is also its parent's, does not block any more.
fn is_nonblocking(host: &Host) -> bool {
    let info = fs::read_to_string(format!("/proc/{}/fdinfo/1", host.pid())).expect("it runs");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags").trim();
    i32::from_str_radix(flags, 8).expect("octal digits") & nix::libc::O_NONBLOCK != 0
}

#[test]
#[ignore = "long: 2 stuck consoles, 50 commands each"]
fn a_console_that_is_not_read_holds_nobody_up() {
    const BYTES: usize = 2_000_000;
    for setup in [TERMINAL, PIPE] {
        let mut host = Host::with(setup);
        let before = procs::data(host.pid());
        let output = shim(&host, &letters(BYTES)).output().expect("a shim");
        assert_eq!((output.stdout.len(), output.status.code()), (BYTES, Some(0)));
        for n in 0..50 {
            let seen = host.run(&format!("echo {n}; exit {n}"));
            assert_eq!((seen.out(), seen.code()), (format!("{n}\n"), n));
        }
        let peak = procs::most_data(host.pid());
        assert!(peak <= before + (8 << 20), "{before} bytes before, at most {peak}");
        assert!(!is_nonblocking(&host), "the host has set O_NONBLOCK, for its parent too");
        host.read_console();
        assert_all_accounted_for(&host, BYTES);
        waiting::wait_until("the commands behind it are shown in full", || {
            let text = text_on(&host);
            (0..50).all(|n| text.contains(&format!("\n{n}\n")) || text.contains(&format!("\n{n}\r\n")))
        });
    }
}

/// As a person does it, with ^S and ^Q.
#[test]
fn a_console_that_was_stopped_goes_on() {
    const BYTES: usize = 2_000_000;
    let host = Host::with(Setup { is_stuck: false, ..TERMINAL });
    let mut keys = host.terminal.as_ref().expect("a terminal").master_file();
    keys.write_all(b"\x13").expect("a key");
    host.terminal.as_ref().expect("a terminal").settle();
    let shown = waiting::until_steady(Duration::from_millis(200), || host.console_text().len());
    let output = shim(&host, &letters(BYTES)).output().expect("a shim");
    assert_eq!((output.stdout.len(), output.status.code()), (BYTES, Some(0)));
    assert_eq!(host.run("echo on").out(), "on\n");
    assert_eq!(host.console_text().len(), shown, "it was stopped");
    keys.write_all(b"\x11").expect("a key");
    assert_all_accounted_for(&host, BYTES);
}

/// The terminal of another user, as below sudo -u or su, and the pipe of another user: neither may be opened again, so
/// nothing promises that a write to it returns.
fn foreign() -> Vec<Setup> {
    if !nix::unistd::geteuid().is_root() {
        programs::skipped("only root can give a host a terminal of another user");
        return Vec::new();
    }
    [TERMINAL, PIPE].map(|setup| Setup { user: Some(65534), ..setup }).into()
}

#[test]
#[ignore = "long: megabytes on a slow console"]
fn a_console_of_another_user_holds_nobody_up_and_shows_everything_or_counts_it() {
    const BYTES: usize = 2_000_000;
    for setup in foreign() {
        let mut host = Host::with(setup);
        let seen = host.run(&letters(BYTES));
        assert_eq!((seen.stdout.len(), seen.code()), (BYTES, 0));
        for n in 0..20 {
            let seen = host.run(&format!("echo {n}; exit {n}"));
            assert_eq!((seen.out(), seen.code()), (format!("{n}\n"), n));
        }
        assert!(!is_nonblocking(&host), "the host has set O_NONBLOCK, for its parent too");
        host.read_console();
        assert_all_accounted_for(&host, BYTES);
    }
}

/// One ^S does not keep the host alive.
#[test]
fn a_host_whose_console_of_another_user_is_stuck_leaves_in_time() {
    for setup in foreign() {
        let mut host = Host::with(setup);
        assert_eq!(host.run(&letters(1_000_000)).stdout.len(), 1_000_000);
        host.wait_idle();
        host.signal(Signal::SIGTERM);
        host.check_end();
    }
}

/// The last words are there when the host has gone.
#[test]
fn a_console_of_another_user_has_the_last_words() {
    for setup in foreign() {
        let mut host = Host::with(Setup { is_stuck: false, ..setup });
        assert_eq!(host.run("echo the last output").out(), "the last output\n");
        host.signal(Signal::SIGTERM);
        host.check_end();
        assert!(waiting::until_true(PATIENCE, || text_on(&host).contains("the last output")), "{}", text_on(&host));
    }
}

/// What is kept for the console alone is bounded over all commands.
#[test]
#[ignore = "long: 100 commands of 288 KiB each"]
fn many_commands_behind_a_stuck_console_are_bounded() {
    const COMMANDS: usize = 100;
    // As much as the console keeps of one command at most.
    const BYTES: usize = 288 << 10;
    let mut host = Host::with(PIPE);
    let before = procs::data(host.pid());
    // The marker is missing where the shell has run without the host.
    let script = format!("{}; [ \"$REXEC_INSIDE\" = 1 ]", letters(BYTES));
    for n in 1..=COMMANDS {
        let status = shim(&host, &script).stdout(Stdio::null()).status().expect("a shim");
        assert!(status.success(), "{n}: {status}, {}", host.errors());
    }
    let peak = procs::most_data(host.pid());
    // 4 MiB for the console. A recorder that is behind, on a busy machine or disk, has 4.5 MiB more on its way to it and
    // 16 KiB of each command kept; the rest is for the holes between them in the heap.
    assert!(peak <= before + (16 << 20), "{before} bytes before, at most {peak} for {} written", COMMANDS * BYTES);
    assert!(peak >= before + (3 << 20), "{before} bytes before, at most {peak}: nothing was kept");
    host.read_console();
    assert_all_accounted_for(&host, COMMANDS * BYTES);
}

/// Commands beyond a bound are not shown at all, and counted.
#[test]
#[ignore = "long: 2,200 commands"]
fn too_many_commands_for_a_stuck_console_are_counted() {
    const COMMANDS: usize = 2_200;
    const WAITING_MAX: usize = 2_048;
    let mut host = Host::with(PIPE);
    let output = shim(&host, &letters(1_000_000)).output().expect("a shim");
    assert_eq!(output.stdout.len(), 1_000_000);
    for _ in 0..COMMANDS {
        assert_eq!(answer(ask(&host, &["no-such-program"]))["exit"], 127);
    }
    host.read_console();
    // The first command has the floor, those that follow are the oldest.
    let unshown = COMMANDS + 1 - WAITING_MAX;
    let line = format!("… {unshown} commands not shown (#2 to #{}), see the journal", unshown + 1);
    assert!(waiting::until_true(PATIENCE, || text_on(&host).contains(&line)), "{line}: {}", tail(&text_on(&host)));
    let last = format!("#{} ", COMMANDS + 1);
    assert!(waiting::until_true(PATIENCE, || text_on(&host).contains(&last)), "{}", tail(&text_on(&host)));
    let ends = || text_on(&host).matches("no-such-program: not found").count();
    waiting::wait_until("the others are shown", || ends() >= WAITING_MAX - 1);
    assert_eq!(ends(), WAITING_MAX - 1);
    host.wait_for("every end", |journal: &Journal| (journal.of_type("end").count() == COMMANDS + 1).then_some(()));
}

fn tail(text: &str) -> String {
    text.replace('@', "").chars().take(3_000).collect()
}

#[test]
fn a_host_whose_console_is_stuck_leaves_in_time() {
    for setup in [TERMINAL, PIPE] {
        let mut host = Host::with(setup);
        let output = shim(&host, &letters(1_000_000)).output().expect("a shim");
        assert_eq!(output.stdout.len(), 1_000_000);
        host.wait_idle();
        host.signal(Signal::SIGTERM);
        host.check_end();
    }
}

/// `rexec-host | head`: the journal still has everything, so the host does not end when nobody reads its pipe.
#[test]
fn a_host_lives_on_when_its_pipe_is_closed() {
    let mut host = Host::with(PIPE);
    assert_eq!(host.run("echo before").out(), "before\n");
    host.close_console();
    for n in 0..10 {
        let seen = host.run(&format!("echo {n}; exit {n}"));
        assert_eq!((seen.out(), seen.code()), (format!("{n}\n"), n));
    }
    host.wait_for("every end", |journal: &Journal| (journal.of_type("end").count() == 11).then_some(()));
}

/// What was written meanwhile is shown then, or counted.
#[test]
#[ignore = "long: fills a disk of 4 MB"]
fn a_console_file_on_a_full_disk_goes_on_when_there_is_room() {
    const BYTES: usize = 2_000_000;
    if !nix::unistd::geteuid().is_root() {
        return programs::skipped("only root can mount a small file system");
    }
    let home = TempDir::new(None);
    let place = home.join("small");
    fs::create_dir(&place).expect("a directory");
    if let Err(error) = mount(Some("tmpfs"), &place, Some("tmpfs"), MsFlags::empty(), Some("size=4m")) {
        return programs::skipped(&format!("no small file system can be mounted: {error}"));
    }
    std::os::unix::fs::symlink("small/console", home.join("console")).expect("a link");
    let host = Host::in_dir(home, PLAIN);
    let mut filler = fs::File::create(place.join("filler")).expect("a file");
    while filler.write_all(&[0; 4096]).is_ok() {}
    assert_eq!(host.run(&letters(BYTES)).stdout.len(), BYTES);
    // From here on the host has nothing else to do: it only looks for room.
    host.wait_idle();
    waiting::until_steady(Duration::from_millis(700), || procs::sleeps(host.pid()));
    // A process that another test has just forked may still have the file open, so its removal would free nothing.
    filler.set_len(0).expect("it can be cut");
    assert_all_accounted_for(&host, BYTES);
    assert_eq!(host.run("echo room again").out(), "room again\n");
    let is_shown = || text_on(&host).contains("\nroom again\n");
    assert!(waiting::until_true(PATIENCE, is_shown), "{}", tail(&text_on(&host)));
    let home = host.leave();
    umount2(&place, MntFlags::MNT_DETACH).expect("we mounted it");
    drop(home);
}

/// A console that is a file, as its errors are. The program that starts the host opens it.
#[test]
fn a_console_in_a_file_that_has_no_answer_holds_up_nobody() {
    let Some(server) = FileServer::with(2, b"") else { return };
    let open = format!("exec \"$0\" \"$@\" >>'{}' 2>&1", server.path().display());
    let wrapper: &'static [&'static str] = Box::leak(Box::new(["bash", "-c", Box::leak(open.into_boxed_str())]));
    let host = Host::with(Setup { wrapper, is_stuck: true, ..PLAIN });
    let text = || String::from_utf8_lossy(&server.content()).into_owned();
    waiting::wait_until("it says what it is", || text().contains("rexec journal: "));
    server.freeze_all();
    for number in 0..20 {
        assert_eq!(host.run(&format!("echo {number}")).out(), format!("{number}\n"));
    }
    waiting::wait_until("somebody waits for the server", || server.waiting() > 0);
    assert_eq!(host.run("seq 300000 | tail -c 2000000; seq 300000 | tail -c 100").code(), 0);
    assert_eq!(host.call("exit 7").run(Target::Shim(&host.socket())).code(), 7);
    server.thaw();
    waiting::wait_until("what came last is shown", || text().contains("exit 7"));
    assert!(text().contains("not shown"), "what had no room is counted: {}", text().len());
}
