//! Directories, disks and limits with which a journal cannot be written.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rexec_host::journal::frame::encode_projects;
use rexec_host::recorder::{Bounds, JournalError, Session, journals};
use serde_json::json;

use super::recording::*;
use crate::support::own_process::alone;
use crate::support::programs;
use crate::support::waiting;

#[test]
fn a_removed_journal_is_made_again() {
    let home = Home::new();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    recording.start_and_wait(1, 2);
    fs::remove_file(&path).unwrap();
    recording.end(1);
    assert!(recording.status().starts_with("journal was removed: "));
    wait_until("the file is back", || has_lines(&path, 3));
    assert_eq!(shape(&path), "open start1 end1");
    fs::remove_dir_all(&home.0).unwrap();
    recording.start(2);
    assert!(recording.status().starts_with("journal was removed: "));
    recording.end(2);
    assert!(recording.close().is_empty());
    assert_eq!(shape(&path), "open start2 end2 close");
}

/// A write fails in the middle of a line (EFBIG). Later the file may grow again.
#[test]
fn records_wait_while_the_file_may_not_grow() {
    let wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];
    alone("journal::places::records_wait_while_the_file_may_not_grow", &wrapper, || {
        let home = Home::new();
        let mut recording =
            home.record(Bounds { retry: Duration::from_millis(20), record_cap: 0, ..Bounds::default() });
        let path = recording.path.clone();
        recording.start_and_wait(1, 2);
        let before = fs::read(&path).unwrap();
        let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, before.len() as u64 + 50, hard).unwrap();
        recording.start(2);
        let failed = format!("journal cannot be written: {}: File too large", path.display());
        assert_eq!(recording.status(), failed + "; records are kept in memory and retried");
        for seq in 3..50 {
            recording.start(seq);
            recording.end(seq);
        }
        recording.start(50);
        recording.output(50, &[b'x'; 100_000]);
        recording.end(50);
        recording.fence();
        // Each attempt writes what fits, and takes it back.
        waiting::wait_until("nothing of it stays", || fs::read(&path).unwrap() == before);
        setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
        assert_eq!(recording.status(), "journal is written again");
        recording.end(2);
        recording.end(1);
        assert!(recording.close().is_empty());
        let text = shape(&path);
        assert!(text.starts_with("open start1 start2 start3 end3 start4"), "{text}");
        assert!(text.ends_with("start50 end50 end2 end1 close"), "{text}");
        let records = values(&path);
        let record = records.iter().find(|record| record["type"] == "end" && record["seq"] == 50).unwrap();
        assert_eq!((&record["raw_error"], record.get("raw")), (&json!("File too large"), None));
        assert_eq!(record["output_omitted"], 34_464);
        assert_eq!(fs::read_dir(home.0.join("raw")).unwrap().count(), 0);
    });
}

/// The disk is full when the journal is begun, has room for a while, and is full again.
#[test]
fn records_wait_while_the_disk_is_full() {
    let wrapper = ["unshare", "--map-root-user", "--mount"];
    alone("journal::places::records_wait_while_the_disk_is_full", &wrapper, || {
        let home = Home::new();
        let mut mount = programs::command("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k,mode=700", "none"]).arg(&home.0);
        if !mount.status().unwrap().success() {
            return programs::skipped("no small file system can be mounted here");
        }
        let ballast = home.0.join("ballast");
        let fill = || {
            let mut file = File::create(&ballast).unwrap();
            while file.write(&[0; 4096]).is_ok_and(|n| n > 0) {}
        };
        fill();
        let mut recording = home.record(Bounds { retry: Duration::from_millis(20), ..Bounds::default() });
        recording.start(1);
        let status = recording.status();
        assert!(status.contains("cannot be written") && status.contains("No space left on device"), "{status}");
        fs::remove_file(&ballast).unwrap();
        assert_eq!(recording.status(), "journal is written again");
        recording.end(1);
        recording.fence();
        let (_, path) = journals(&home.0).unwrap().remove(0);
        assert_eq!(shape(&path), "open start1 end1");
        fill();
        for seq in 2..200 {
            recording.start(seq);
            recording.end(seq);
        }
        assert!(recording.status().starts_with("journal cannot be written"));
        recording.fence();
        fs::remove_file(&ballast).unwrap();
        assert_eq!(recording.status(), "journal is written again");
        assert!(recording.close().is_empty());
        let (records, unparsable) = read(&path);
        check_runs(&records);
        assert_eq!((records.len(), unparsable), (2 + 2 * 199, 0));
        programs::command("umount").arg(&home.0).status().unwrap();
    });
}

#[test]
fn raw_files_keep_within_quota_and_age() {
    const ANCIENT: &str = "2025-01-01-00:00:00-1.out";
    const OLD: &str = "2025-01-02-00:00:00-2-17.out";
    const MIDDLE: &str = "2025-01-03-00:00:00-1.2.out";
    const NEW: &str = "2025-01-04-00:00:00-1.out";
    let home = Home::new();
    let raw = home.0.join("raw");
    fs::create_dir(&raw).unwrap();
    let days = |n: u64| SystemTime::now() - Duration::from_secs(n * 24 * 60 * 60);
    for (name, age) in
        [(ANCIENT, 31), (OLD, 29), (MIDDLE, 20), (NEW, 1), ("ancient.out", 99), ("2026-01-01-00:00:00-1.txt", 99)]
    {
        fs::write(raw.join(name), [0; 100_000]).unwrap();
        File::options().append(true).open(raw.join(name)).unwrap().set_modified(days(age)).unwrap();
    }
    let names = || {
        let files = fs::read_dir(&raw).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut recording = home.record(Bounds { raw_bytes: 300_000, record_cap: 0, ..Bounds::default() });
    wait_until("the ancient file is gone", || {
        names() == [OLD, MIDDLE, NEW, "2026-01-01-00:00:00-1.txt", "ancient.out"]
    });
    recording.start(1);
    recording.output(1, &[b'x'; 100_001]);
    recording.end(1);
    let session = recording.path.file_stem().unwrap().to_str().unwrap().to_owned();
    recording.close();
    assert_eq!(names(), [NEW, "2026-01-01-00:00:00-1.txt", &format!("{session}-1.out"), "ancient.out"]);
}

#[test]
fn an_unsafe_directory_is_refused() {
    let home = Home::new();
    let uid = home.uid();
    let at = |name: &str| home.0.join(name);
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), Permissions::from_mode(0o750)).unwrap();
    symlink(&home.0, at("link")).unwrap();
    fs::write(at("file"), "").unwrap();
    let refused = |name: &str, uid: u32| {
        let error = Session::new(&at(name), uid, 1).prepare().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(at(name).to_str().unwrap()) && !text.contains('\n') && !error.hint().is_empty(),
            "{text}"
        );
        error
    };
    assert!(matches!(refused("open", uid), JournalError::Open { mode: 0o750, .. }));
    assert!(matches!(refused("link", uid), JournalError::Symlink { .. }));
    assert!(matches!(refused("file", uid), JournalError::NotADirectory { .. }));
    assert!(matches!(refused("file/below", uid), JournalError::Unreadable { .. }));
    fs::set_permissions(at("open"), Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(refused("open", uid + 1), JournalError::NotOurs { .. }));
    Session::new(&at("open"), uid, 1).prepare().unwrap();
    Session::new(&at("new/deep"), uid, 1).prepare().unwrap();
    assert_eq!(fs::metadata(at("new/deep")).unwrap().mode() & 0o7777, 0o700);
}

/// A link to another directory of this user's takes the place of the journal's directory while a host runs. Nothing is
/// made, read or removed there.
#[test]
fn a_link_in_the_place_of_the_directory_gets_nothing() {
    let home = Home::new();
    let elsewhere = Home::new();
    let bounds = Bounds { head_bytes: 100, tail_bytes: 100, queue_bytes: 1 << 20, ..Bounds::default() };
    let moved = home.0.with_extension("moved");
    let mut recording = home.record(bounds);
    recording.start_and_wait(1, 2);
    recording.start(3);
    recording.output(3, &[b'x'; 10_000]);
    recording.fence();
    assert!(home.0.join("raw").exists());
    fs::rename(&home.0, &moved).unwrap();
    symlink(&elsewhere.0, &home.0).unwrap();
    let kept = elsewhere.0.join("raw");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("2026-01-01-00:00:00-1.out"), "mine").unwrap();
    File::open(kept.join("2026-01-01-00:00:00-1.out")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    recording.output(1, &[b'x'; 10_000]);
    recording.end(3);
    recording.send(|out| encode_projects(br#"{"kept":[],"own":[],"forgotten":[]}"#, out));
    recording.end(1);
    recording.start(2);
    let said = recording.status();
    assert!(said.contains("symbolic link") || said.contains("was removed"), "{said}");
    fs::remove_file(&home.0).unwrap();
    fs::rename(&moved, &home.0).unwrap();
    recording.close();
    let names = |path: &Path| {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&elsewhere.0), ["raw"]);
    assert_eq!(names(&kept), ["2026-01-01-00:00:00-1.out"], "nothing is made there, and nothing removed for its age");
}

/// A link takes the file's place. The journal goes on under another name, and the link's target stays as it was.
#[test]
fn a_symbolic_link_is_never_followed() {
    let home = Home::new();
    let target = home.0.join("target");
    fs::write(&target, "mine").unwrap();
    let mut recording = home.record(Bounds::default());
    let path = recording.path.clone();
    fs::remove_file(&path).unwrap();
    symlink(&target, &path).unwrap();
    recording.start(1);
    assert!(recording.status().starts_with("journal was removed"));
    recording.close();
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    let (_, other) = journals(&home.0).unwrap().remove(0);
    assert_eq!(shape(&other), "open start1 close");
}
