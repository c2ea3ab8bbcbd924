//! A journal that cannot be written fails or delays no command, and the records that a killed host leaves fit together.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;

use crate::support::call::Target;
use crate::support::dice::Dice;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::journal::Journal;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// Runs a hundred commands and checks each result. Each writes more than the rest of its record takes.
fn a_hundred_commands(host: &Host) {
    for n in 0..100 {
        let seen = host.run(&format!("seq {n} {}; exit {n}", n + 500));
        let expected: String = (n..=n + 500).map(|line| format!("{line}\n")).collect();
        assert_eq!((seen.code(), seen.out()), (n, expected), "command {n}: {}", seen.err());
        assert_eq!(seen.err(), "", "command {n}");
    }
}

/// A host whose journal is on a disk of this size, if there can be one. The caller gives it to [`leave_small_disk`].
fn on_small_disk(size: &str) -> Option<Host> {
    if !nix::unistd::geteuid().is_root() {
        programs::skipped("only root can mount a small file system");
        return None;
    }
    let home = TempDir::new(None);
    let place = home.join("journal");
    fs::create_dir(&place).expect("a directory");
    let options = format!("size={size},mode=0700");
    if let Err(error) = mount(Some("tmpfs"), &place, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())) {
        programs::skipped(&format!("a small file system cannot be mounted: {error}"));
        return None;
    }
    Some(Host::in_dir(home, PLAIN))
}

fn leave_small_disk(host: Host) {
    let place = host.journal_home();
    let home = host.leave();
    umount2(&place, MntFlags::MNT_DETACH).expect("we mounted it");
    drop(home);
}

#[test]
#[ignore = "long: 100 commands on a full disk"]
fn a_full_disk_fails_no_command() {
    let Some(host) = on_small_disk("64k") else { return };
    a_hundred_commands(&host);
    leave_small_disk(host);
}

/// As a person makes room: by hand, and among the largest files, which the recorder still has open.
#[test]
#[ignore = "long: fills a disk with outputs of 200 KB"]
fn room_that_is_made_by_removing_recordings_is_used() {
    let Some(host) = on_small_disk("300k") else { return };
    let mut commands = 0;
    let is_full = || host.console_text().contains("journal cannot be written");
    while !is_full() {
        assert_eq!(host.run("head -c 200000 /dev/zero | tr '\\0' x").stdout.len(), 200_000);
        commands += 1;
        assert!(commands < 20, "the disk does not fill");
        waiting::wait_until("its end is written, or cannot be", || {
            is_full() || host.journal().of_type("end").count() == commands
        });
    }
    for entry in fs::read_dir(host.journal_home().join("raw")).expect("outputs").flatten() {
        // The recorder removes one that it could not write itself.
        let removed = fs::remove_file(entry.path());
        assert!(removed.is_ok() || !entry.path().exists(), "{entry:?}");
    }
    host.wait_for("every end", |journal| (journal.of_type("end").count() == commands).then_some(()));
    leave_small_disk(host);
}

#[test]
#[ignore = "long: 100 commands after the journal is removed"]
fn a_removed_journal_fails_no_command() {
    let host = Host::start();
    assert_eq!(host.run("echo before").out(), "before\n");
    for entry in fs::read_dir(host.journal_home()).expect("the journal's directory").flatten() {
        _ = fs::remove_file(entry.path());
    }
    a_hundred_commands(&host);
    drop(host.leave());
}

#[test]
#[ignore = "long: 100 commands with a journal without permission"]
fn a_directory_that_became_read_only_fails_no_command() {
    let Some(user) = crate::support::programs::plain_user() else { return };
    let host = Host::with(Setup { user, ..PLAIN });
    fs::set_permissions(host.journal_home(), fs::Permissions::from_mode(0o500)).expect("ours");
    for entry in fs::read_dir(host.journal_home()).expect("the journal's directory").flatten() {
        _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o400));
    }
    a_hundred_commands(&host);
    drop(host.leave());
}

#[test]
#[ignore = "long: 100 commands below a limit of file sizes"]
fn a_limit_of_file_sizes_fails_no_command() {
    let state = State { limits: &[(Resource::RLIMIT_FSIZE, 128 << 10, 128 << 10)], ..USUAL };
    // The console would be a file under the same limit.
    let host = Host::with(Setup { state, terminal: true, ..PLAIN });
    a_hundred_commands(&host);
    drop(host.leave());
}

/// The recorder is stopped first, so that only part of a frame has been sent when it dies.
#[test]
fn a_recorder_that_dies_in_the_middle_of_a_frame_takes_no_later_record_along() {
    let host = Host::start();
    for round in 0..waiting::size(1, 3) {
        let before = host.recorder();
        before.signal(Signal::SIGSTOP);
        assert_eq!(host.run("seq 1 200000").out().lines().count(), 200_000, "a recorder that takes nothing");
        let within = format!("echo within {round}; exit 5");
        assert_eq!(host.run(&within).code(), 5);
        host.kill_recorder(&before);
        let replaced = || host.console_text().matches("… the journal goes on in ").count() == round + 1;
        assert!(waiting::until_true(PATIENCE, replaced), "{}", host.console_text());
        let after = format!("echo after {round}");
        assert_eq!(host.run(&after).out(), format!("after {round}\n"));
        for command in [&within, &after] {
            let end = host.wait_for(&format!("the end of {command}"), |journal| journal.end_of(command).cloned());
            assert_eq!(end["exit"], if *command == within { 5 } else { 0 });
        }
    }
    host.finish();
}

/// The output is more than may be on its way to the recorder: the rest, and the end, wait in the command's log.
#[test]
fn output_that_a_stopped_recorder_did_not_take_is_written_at_the_hosts_end() {
    let mut host = Host::start();
    let recorder = host.recorder();
    recorder.signal(Signal::SIGSTOP);
    let script = "head -c 790000 /dev/zero | tr '\\0' x; exit 7";
    assert_eq!(host.run(script).code(), 7);
    host.signal(Signal::SIGTERM);
    // The host takes no more callers now.
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("… ending")), "{}", host.console_text());
    recorder.signal(Signal::SIGCONT);
    host.check_end();
    let journal = host.journal();
    let end = journal.end_of(script).unwrap_or_else(|| panic!("no end: {journal:#?}"));
    assert_eq!((end["exit"].as_u64(), end["bytes"].as_u64()), (Some(7), Some(790_000)));
}

/// All callers are served, and every command has its record.
#[test]
#[ignore = "long: 12 deaths of recorders among many commands"]
fn recorders_that_are_killed_again_and_again_disturb_no_command() {
    let (host, mut dice) = (Host::start(), Dice::new(3));
    let (stop, ran) = (AtomicBool::new(false), AtomicUsize::new(0));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let n = ran.fetch_add(1, Ordering::Relaxed);
            let seen = host.run(&format!("seq {n} {}; exit {}", n + n % 7 * 500, n % 256));
            assert_eq!((seen.code(), seen.err().as_str()), (i32::try_from(n % 256).expect("small"), ""), "command {n}");
            assert_eq!(seen.out().lines().count(), n % 7 * 500 + 1, "command {n}");
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(work)));
        for round in 0..waiting::size(6, 300) {
            let enough = ran.load(Ordering::Relaxed) + dice.below(12);
            let is_running = waiting::until_true(PATIENCE, || ran.load(Ordering::Relaxed) > enough);
            host.kill_recorder(&host.recorder());
            let told = || host.console_text().matches("… the journal goes on in ").count() > round;
            let is_replaced = waiting::until_true(PATIENCE, told);
            if !is_running || !is_replaced {
                stop.store(true, Ordering::Relaxed);
                panic!("round {round}: {is_running} {is_replaced} {}", host.errors());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(host.run("echo well").out(), "well\n");
    let end = host.wait_for("the last end", |journal| journal.end_of("echo well").cloned());
    assert_eq!(end["exit"], 0);
    let ran = ran.load(Ordering::Relaxed) + 1;
    let home = host.leave();
    let journal = Journal::read(&home.join("journal"));
    assert_eq!(journal.misfits(), Vec::<String>::new());
    assert_eq!((journal.of_type("end").count(), journal.of_type("lost").count()), (ran, 0));
}

/// Four callers run commands, all different, while `disturb` does something to recorders. Then every command must
/// have one start and one end, and no recorder's death may have been taken for the host's.
fn disturbed(host: &Host, commands: usize, disturb: impl FnOnce(&dyn Fn() -> usize)) {
    const CALLERS: usize = 4;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let script = |n: usize| format!("seq {n} {}; exit {}", n + n % 5 * 100, n % 200);
    let mut long =
        host.call("echo running; read line <go; exit 9").start(Target::Shim(&host.socket())).expect("a shim");
    assert!(long.stdout.as_ref().expect("a pipe").wait_for(b"running\n", PATIENCE));
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= commands {
                        return;
                    }
                    let seen = host.run(&script(n));
                    let code = i32::try_from(n % 200).expect("small");
                    assert_eq!((seen.code(), seen.out().lines().count()), (code, n % 5 * 100 + 1), "command {n}");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        disturb(&|| done.load(Ordering::Relaxed));
    });
    fs::write(host.home.join("go"), "\n").expect("it waits for it");
    assert!(long.finish(PATIENCE).is_some());
    let journal = host.wait_for("every end", |journal| {
        (journal.of_type("end").count() > commands)
            .then(|| Journal { records: journal.records.clone(), ..Journal::default() })
    });
    assert_eq!(journal.misfits(), Vec::<String>::new());
    assert_eq!(journal.of_type("start").count(), commands + 1);
    let not_whole = ["lost", "dropped"].map(|kind| journal.of_type(kind).count());
    assert_eq!(not_whole, [0, 0], "{}", host.console_text());
    for n in 0..commands {
        let end = journal.end_of(&script(n)).unwrap_or_else(|| panic!("command {n} has no end"));
        assert_eq!(end["exit"].as_u64(), Some(n as u64 % 200));
        // A record counts the output that it lacks.
        let has = end["output"].as_str().expect("text").len() as u64 + end["output_lost"].as_u64().unwrap_or(0);
        assert_eq!(Some(has), end["bytes"].as_u64(), "{end}");
    }
}

/// A host, and in its directory a pipe at which a command can wait.
fn with_gate() -> Host {
    let host = Host::start();
    nix::unistd::mkfifo(&host.home.join("go"), nix::sys::stat::Mode::S_IRWXU).expect("the directory can be written");
    host
}

#[test]
#[ignore = "long: 240 commands, 18 deaths of recorders"]
fn no_record_of_240_is_lost_when_18_recorders_are_killed() {
    let host = with_gate();
    disturbed(&host, 240, |done| {
        for round in 0..18 {
            assert!(waiting::until_true(PATIENCE, || done() >= round * 12));
            let before = host.recorder();
            host.kill_recorder(&before);
            assert!(host.has_replaced(&before));
        }
    });
    host.finish();
}

#[test]
#[ignore = "long: 240 commands, 7 deaths of stopped recorders"]
fn no_record_is_lost_when_stopped_recorders_are_killed() {
    let host = with_gate();
    disturbed(&host, 240, |done| {
        for round in 0..7 {
            assert!(waiting::until_true(PATIENCE, || done() >= round * 25));
            let before = host.recorder();
            before.signal(Signal::SIGSTOP);
            // Commands run on for a while, and their frames pile up.
            let (from, begin) = (done(), std::time::Instant::now());
            let pile = || done() >= (from + 60).min(240) || begin.elapsed() > Duration::from_millis(300);
            assert!(waiting::until_true(PATIENCE, pile));
            host.kill_recorder(&before);
            assert!(host.has_replaced(&before));
        }
    });
    host.finish();
}

#[test]
#[ignore = "long: waits out 15 s of a stuck recorder"]
fn a_recorder_that_does_nothing_is_reported_and_then_replaced() {
    let host = Host::start();
    let before = host.recorder();
    before.signal(Signal::SIGSTOP);
    assert_eq!(host.run("echo on; exit 3").code(), 3);
    let told = |text: &str| waiting::until_true(PATIENCE, || host.console_text().contains(text));
    assert!(told("… the journal is 3 s behind"), "{}", host.console_text());
    assert!(told("… the journal goes on in "), "{}", host.console_text());
    assert!(told("… the journal has caught up"), "{}", host.console_text());
    let end = host.wait_for("the end", |journal| journal.end_of("echo on; exit 3").cloned());
    assert_eq!((&end["exit"], &end["output"]), (&3.into(), &"on\n".into()));
    assert_eq!(host.console_text().matches(" behind").count(), 1);
    host.finish();
}

#[test]
fn a_killed_host_has_journalled_all_commands_that_had_ended() {
    let host = Host::start();
    let mut long = host.call("echo started; sleep 1000").start(Target::Shim(&host.socket())).expect("a shim");
    assert!(long.stdout.as_ref().expect("a pipe").wait_for(b"started\n", PATIENCE));
    for n in 0..5 {
        assert_eq!(host.run(&format!("echo {n}")).out(), format!("{n}\n"));
    }
    host.wait_for("five ends", |journal| (journal.of_type("end").count() == 5).then_some(()));
    let (home, mut warden) = host.kill();
    assert!(warden.is_empty_within(PATIENCE) && long.finish(PATIENCE).is_some());
    let before = Journal::read(&home.join("journal"));
    assert_eq!((before.of_type("end").count(), before.of_type("start").count()), (5, 6), "{before:#?}");
    let next = Host::in_dir(home, PLAIN);
    let is_lost = |journal: &Journal| (journal.of_type("lost").count() == 1).then_some(());
    next.wait_for("the lost run", is_lost);
    next.finish();
}

#[test]
fn the_records_fit_together_however_often_the_host_is_killed() {
    let rounds = waiting::size(6, 500);
    let mut dice = Dice::new(42);
    let mut home = TempDir::new(None);
    for round in 0..rounds {
        let host = Host::in_dir(home, PLAIN);
        let bad = host.journal().bad.len();
        let (stop, ran) = (AtomicBool::new(false), AtomicUsize::new(0));
        let enough = dice.below(40);
        let pause = Duration::from_micros(u64::try_from(dice.below(20_000)).expect("small"));
        let socket = host.socket();
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let n = ran.fetch_add(1, Ordering::Relaxed);
                let call = crate::support::call::Call::bash(&format!("seq 1 {}", n * 40), std::path::Path::new("/"));
                let Ok(mut calling) = call.start(Target::Shim(&socket)) else { continue };
                assert!(calling.finish(PATIENCE).is_some(), "a shim hangs");
            }
        };
        let killed = std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(work)));
            waiting::until_true(PATIENCE, || ran.load(Ordering::Relaxed) > enough);
            std::thread::sleep(pause);
            let killed = host.kill();
            stop.store(true, Ordering::Relaxed);
            killed
        });
        home = killed.0;
        let journal = Journal::read(&home.join("journal"));
        assert!(journal.bad.len() <= bad + 1, "round {round}: {:?}", journal.bad);
    }
    // The recorder repairs what those before it have left while it works, and not before it says that it is ready.
    let host = Host::in_dir(home, PLAIN);
    let is_repaired = || host.journal().misfits().is_empty();
    assert!(waiting::until_true(PATIENCE, is_repaired), "{:#?}", host.journal().misfits());
    let home = host.leave();
    let journal = Journal::read(&home.join("journal"));
    assert!(journal.of_type("start").count() > rounds);
}

#[test]
fn a_command_whose_guard_is_stopped_has_an_end_when_its_host_ends_in_order() {
    let host = Host::start();
    let calling = host.call("echo $$ >shell; exec sleep 1000").start(Target::Shim(&host.socket())).expect("a shim");
    let shell = || Process::of(fs::read_to_string(host.home.join("shell")).ok()?.trim().parse().ok()?);
    let shell = waiting::until(PATIENCE, shell).expect("it runs");
    // The host continues a stopped guard, or ends its command without it.
    let guard = Process::of(shell.parent).expect("its guard");
    guard.signal(Signal::SIGSTOP);
    let (home, mut warden) = host.end_by(Signal::SIGTERM);
    guard.signal(Signal::SIGCONT);
    assert!(warden.is_empty_within(PATIENCE), "{:#?}", warden.tree());
    drop(calling);
    let next = Host::in_dir(home, PLAIN);
    let ends = ["end", "lost"].map(|kind| next.journal().of_type(kind).count());
    assert_eq!(ends, [1, 0], "{:#?}", next.journal());
    next.finish();
}
