//! Whether callers are told apart from the host, with real processes.

use super::pin::pin_by_number;
use super::pin::tests::sleeper;
use super::snapshot::{LINES, NAMESPACES, NO_NEW_PRIVS, lines};
use super::*;
use std::os::unix::net::{UnixListener, UnixStream};

const STATUS: &[u8] = b"Name:\tsh\nUid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t4 24 27 \nCapPrm:\t00\nCapEff:\t00\n\
    CapBnd:\t1ff\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t3\n";

fn standard() -> HostConfinement {
    HostConfinement::read().unwrap()
}

fn confinement(standard: &HostConfinement, pid: u32) -> io::Result<Confinement> {
    let place = pid.to_string();
    Confinement::read(&directory(&standard.proc, &place)?, &place, standard.has_labels)
}

#[test]
fn a_status_is_read_whole_or_not_at_all() {
    let values = lines(STATUS).unwrap();
    let of = |name: &[u8]| values[LINES.iter().position(|(other, ..)| *other == name).unwrap()].as_deref();
    assert_eq!(of(b"Groups:"), Some(b"4 24 27".as_slice()));
    assert_eq!(of(b"Seccomp:"), Some(b"2".as_slice()));
    assert_eq!(of(b"Seccomp_filters:"), Some(b"3".as_slice()));
    assert_eq!(LINES[NO_NEW_PRIVS].0, b"NoNewPrivs:");
    for (name, _, is_usual) in LINES {
        let without: Vec<&[u8]> =
            STATUS.split_inclusive(|&b| b == b'\n').filter(|line| !line.starts_with(name)).collect();
        assert_eq!(lines(&without.concat()).is_err(), is_usual, "{}", name.escape_ascii());
    }
    assert!(lines(b"").is_err());
}

#[test]
fn every_difference_has_its_words() {
    let ours = standard().own;
    assert_eq!(ours.difference(&ours.clone(), Purpose::Run), None);
    let assert_seen = |words: &str, change: &dyn Fn(&mut Confinement)| {
        let mut theirs = ours.clone();
        change(&mut theirs);
        assert_eq!(ours.difference(&theirs, Purpose::Run), Some(words));
        assert_eq!(theirs.difference(&ours, Purpose::Run), Some(words));
    };
    for (at, (_, words)) in NAMESPACES.into_iter().enumerate() {
        assert_seen(words, &|theirs| theirs.namespaces[at] = Some(b"x:[1]".to_vec()));
    }
    for (at, (_, words, _)) in LINES.into_iter().enumerate() {
        assert_seen(words, &|theirs| theirs.lines[at] = Some(b"17".to_vec()));
    }
    for (at, (name, words, _)) in LINES.into_iter().enumerate() {
        let mut theirs = ours.clone();
        theirs.lines[at] = Some(b"17".to_vec());
        let expected = (!matches!(name, b"Groups:" | b"CapBnd:")).then_some(words);
        assert_eq!(ours.difference(&theirs, Purpose::Supervise), expected);
    }
    assert_seen("other root directory", &|theirs| theirs.root.inode += 1);
    assert_seen("other root directory", &|theirs| theirs.root.mount += 1);
    assert_seen("other security label", &|theirs| theirs.label = Some(b"x (enforce)".to_vec()));
}

#[test]
fn a_child_is_equal_while_it_lives() {
    let standard = standard();
    let mut child = sleeper();
    let seen = confinement(&standard, child.id()).unwrap();
    assert_eq!((seen.is_single, standard.own.difference(&seen, Purpose::Run)), (true, None));
    let pin = pin_by_number(Pid::new(child.id().cast_signed()), Moment::now()).unwrap();
    assert!(lives(&pin));
    child.kill().unwrap();
    while lives(&pin) {
        std::thread::yield_now();
    }
    child.wait().unwrap();
    assert!(confinement(&standard, child.id()).is_err());
    assert!(pin_by_number(Pid::new(child.id().cast_signed()), Moment::now()).is_err());
}

#[test]
fn threads_that_come_and_go_are_no_difference() {
    let standard = standard();
    if standard.is_blind() {
        return;
    }
    let (near, _far) = UnixStream::pair().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::spawn(|| {}).join().unwrap();
                }
            });
        }
        let seen: Vec<_> = (0..500).map(|_| standard.compare(&near, Moment::now(), Purpose::Run)).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(seen.into_iter().find(Result::is_err), None);
    });
}

#[test]
fn the_peer_of_a_socket_is_compared() {
    let path = std::env::temp_dir().join(format!("rexec-confinement-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let _near = UnixStream::connect(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (far, _) = listener.accept().unwrap();
    let mut standard = standard();
    let parent = Pid::new(std::os::unix::process::parent_id().cast_signed());
    let expected = if standard.is_blind() { Err(Doubt::Differs(BLIND)) } else { Ok(Some(parent)) };
    assert_eq!(standard.compare(&far, Moment::now(), Purpose::Run), expected);
    standard.own.lines[NO_NEW_PRIVS] = Some(b"1".to_vec());
    assert_eq!(standard.compare(&far, Moment::now(), Purpose::Run), Err(Doubt::Differs(BLIND)));
    standard = standard.waiving_landlock();
    let seen = standard.compare(&far, Moment::now(), Purpose::Run);
    assert!(matches!(seen, Ok(_) | Err(Doubt::Differs("no_new_privs"))), "{seen:?}: nothing else is waived");
    standard.own.root.inode += 1;
    let seen = standard.compare(&far, Moment::now(), Purpose::Supervise);
    assert_eq!(seen, Err(Doubt::Differs("other root directory")));
}
