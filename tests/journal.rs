//! The journal from outside: a host's frames go in over a real socket, files come out. The host is real where the
//! output's way to the recorder matters.
//!
//! The recorder runs in a thread here, or, where a limit or a mount must not touch other tests, in a copy of this test
//! binary (see `in_own_process`). Every wait is for a fact: a status line, a file's content, the recorder's end.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rexec_host::cli::{list, print};
use rexec_host::sink::reader::{Entry, Reader};
use rexec_host::sink::record::{End, Left, Start, encode_close, encode_end, encode_output, encode_start};
use rexec_host::sink::recorder::{JournalError, Limits, Opened, journals, open, serve};
use serde_json::{Value, json};

use support::host::Host;

const PATIENCE: Duration = Duration::from_secs(30);

/// A directory for one test, gone when the test is.
struct Home(PathBuf);

impl Home {
    fn new() -> Home {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rexec-journal-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = Home(std::env::temp_dir().join(name));
        fs::create_dir_all(&home.0).unwrap();
        fs::set_permissions(&home.0, Permissions::from_mode(0o700)).unwrap();
        home
    }

    fn uid(&self) -> u32 {
        fs::metadata(&self.0).unwrap().uid()
    }

    fn open(&self) -> Opened {
        open(&self.0, self.uid()).unwrap()
    }

    fn record(&self, limits: Limits) -> Recording {
        Recording::new(self.open(), limits)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The host's side of a recorder.
struct Recording {
    path: PathBuf,
    socket: UnixStream,
    status: BufReader<UnixStream>,
    recorder: JoinHandle<()>,
}

impl Recording {
    fn new(opened: Opened, limits: Limits) -> Recording {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = opened.path.clone();
        let recorder = thread::spawn(move || serve(opened, theirs, limits));
        Recording { path, status: BufReader::new(socket.try_clone().unwrap()), socket, recorder }
    }

    fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frames = Vec::new();
        encode(&mut frames);
        self.socket.write_all(&frames).unwrap();
    }

    fn start(&mut self, seq: u64) {
        self.send(|out| encode_start(&start(seq), out));
    }

    fn output(&mut self, seq: u64, bytes: &[u8]) {
        self.send(|out| encode_output(seq, 1, bytes, out));
    }

    fn end(&mut self, seq: u64) {
        self.send(|out| encode_end(&End { seq, ..End::default() }, out));
    }

    fn status(&mut self) -> String {
        let mut line = String::new();
        self.status.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Returns when the recorder has taken in all that was sent: what follows is more than a socket holds.
    fn fence(&mut self) {
        self.output(u64::MAX, &vec![0; 4 << 20]);
    }

    /// Leaves in order; the answer is what the recorder still had to say.
    fn close(mut self) -> Vec<String> {
        self.send(encode_close);
        self.vanish()
    }

    /// Leaves as if killed, except that the recorder's last words are heard.
    fn vanish(self) -> Vec<String> {
        self.socket.shutdown(Shutdown::Write).unwrap();
        let rest = self.status.lines().map(Result::unwrap).collect();
        self.recorder.join().unwrap();
        rest
    }
}

fn start(seq: u64) -> Start {
    Start {
        seq,
        time: "2026-05-21T09:42:18.123Z".into(),
        whoami: "Claude Code".into(),
        dir: "/path/to/repo".into(),
        exec: vec!["sh".into(), "-c".into(), format!("echo {seq}")],
        command: format!("echo {seq}"),
        shell: "sh".into(),
        ..Start::default()
    }
}

/// Every line must be a record.
fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `start1 end1 close`
fn shape(path: &Path) -> String {
    let name = |value: &Value| match value["seq"].as_u64() {
        Some(seq) => format!("{}{seq}", value["type"].as_str().unwrap()),
        None => value["type"].as_str().unwrap().to_owned(),
    };
    values(path).iter().map(name).collect::<Vec<_>>().join(" ")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn has_lines(path: &Path, count: usize) -> bool {
    fs::read(path).is_ok_and(|text| text.iter().filter(|&&byte| byte == b'\n').count() >= count)
}

/// Every start has one end or is lost, and no run is there twice.
fn check_runs(entries: &[Entry]) {
    let seqs = |pick: fn(&Entry) -> Option<u64>| {
        let mut seqs: Vec<u64> = entries.iter().filter_map(pick).collect();
        seqs.sort_unstable();
        seqs
    };
    let starts = seqs(|entry| if let Entry::Start(start) = entry { Some(start.seq) } else { None });
    let ends = seqs(|entry| match entry {
        Entry::Run(run) => Some(run.seq),
        Entry::Lost(lost) => Some(lost.seq),
        _ => None,
    });
    assert_eq!(starts, ends);
    assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
}

/// Runs `body` in a copy of this binary that runs nothing but the test `name`, below `wrapper`. Answers whether the
/// wrapper works on this machine.
fn in_own_process(name: &str, wrapper: &[&str], body: impl FnOnce()) -> bool {
    const MARK: &str = "REXEC_JOURNAL_TEST";
    if std::env::var_os(MARK).is_some_and(|mark| mark == name) {
        body();
        return true;
    }
    let works = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return false;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    let output = command.env(MARK, name).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    true
}

#[test]
fn runs_are_written_as_they_end() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.output(1, b"one\r\n");
    recording.output(2, b"\x1b[31mtwo\x1b[0m\n");
    let end = End {
        seq: 2,
        exit: 137,
        signal: Some(9),
        duration_ms: 5,
        bytes: 13,
        error: Some("aborted".into()),
        left: vec![Left { pid: 4, comm: "sleep".into() }],
        ..End::default()
    };
    recording.send(|out| encode_end(&end, out));
    recording.output(2, b"from a straggler");
    recording.end(2);
    recording.end(1);
    recording.end(77);
    assert!(recording.close().is_empty());
    assert_eq!(shape(&path), "open start1 start2 end2 end1 close");
    let records = values(&path);
    assert!(records.iter().all(|record| record["v"] == 1));
    assert_eq!(records[0]["pid"], std::process::id());
    let expected = json!({
        "v": 1, "type": "end", "seq": 2, "whoami": "Claude Code", "dir": "/path/to/repo", "envs": {},
        "exec": ["sh", "-c", "echo 2"], "exit": 137, "output": "two\n", "time": "2026-05-21T09:42:18.123Z",
        "error": "aborted", "command": "echo 2", "shell": "sh", "duration_ms": 5, "queued_ms": 0, "signal": 9,
        "bytes": 13, "left": [{"pid": 4, "comm": "sleep"}],
    });
    assert_eq!(records[3], expected);
    assert_eq!((&records[4]["output"], records[4].get("error")), (&json!("one\n"), None));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&path), mode(&home.0)), (0o600, 0o700));
}

#[test]
fn a_hundred_runs_interleaved() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    (0..100).for_each(|seq| recording.start(seq));
    for round in 0..10 {
        (0..100).for_each(|seq| recording.output(seq, format!("run {seq} round {round}\n").as_bytes()));
    }
    // 37 and 100 have no common factor: every run ends once, in an order unlike that of the starts.
    (0..100).for_each(|n| recording.end(n * 37 % 100));
    assert!(recording.close().is_empty());
    let records = values(&path);
    assert_eq!(records.len(), 202);
    for n in 0..100 {
        let seq = n * 37 % 100;
        let record = &records[101 + n];
        assert_eq!((&record["type"], &record["seq"]), (&json!("end"), &json!(seq)));
        let output: String = (0..10).map(|round| format!("run {seq} round {round}\n")).collect();
        assert_eq!((&record["output"], &record["bytes"]), (&json!(output), &json!(output.len())));
    }
}

#[test]
fn a_host_that_dies_in_the_middle_of_a_frame() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.end(1);
    let mut frame = Vec::new();
    encode_end(&End { seq: 2, ..End::default() }, &mut frame);
    recording.socket.write_all(&frame[..frame.len() - 1]).unwrap();
    assert!(recording.vanish().is_empty());
    assert_eq!(shape(&path), "open start1 start2 end1");
    let again = home.open();
    assert_eq!(again.lost, 1);
    assert_eq!(shape(&path), "open start1 start2 end1 lost2 close");
    let lost = &values(&path)[4];
    assert_eq!((&lost["command"], &lost["whoami"]), (&json!("echo 2"), &json!("Claude Code")));
    assert_eq!(shape(&again.path), "open");
}

/// A journal cut at every byte: nothing that was whole is lost, and at most the torn line is no record.
#[test]
fn a_torn_journal_is_repaired() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let sample = recording.path.clone();
    recording.start(1);
    recording.start(2);
    recording.output(2, "Grüße \"quoted\"\n".as_bytes());
    recording.end(2);
    recording.start(3);
    recording.end(3);
    recording.end(1);
    recording.close();
    let whole = fs::read(&sample).unwrap();
    let torn = home.0.join("2026-01-01-00:00:00.jsonl");
    for cut in 1..whole.len() {
        fs::write(&torn, &whole[..cut]).unwrap();
        fs::remove_file(home.open().path).unwrap();
        let text = fs::read(&torn).unwrap();
        assert!(text.starts_with(&whole[..cut]), "cut at {cut}");
        let mut reader = Reader::new(File::open(&torn).unwrap());
        let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.unparsable() <= 1 && reader.unknown() == 0, "cut at {cut}");
        assert!(matches!(entries.last(), Some(Entry::Close(_))), "cut at {cut}");
        check_runs(&entries);
        // What is repaired stays as it is.
        fs::remove_file(home.open().path).unwrap();
        assert_eq!(fs::read(&torn).unwrap(), text, "cut at {cut}");
    }
}

/// The recorder itself killed, at any moment, under 64 runs at once.
#[test]
fn a_recorder_that_is_killed() {
    const NAME: &str = "a_recorder_that_is_killed";
    const HOME: &str = "REXEC_JOURNAL_TEST_HOME";
    if let Some(home) = std::env::var_os(HOME) {
        let home = PathBuf::from(home);
        let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
        return serve(open(&home, fs::metadata(&home).unwrap().uid()).unwrap(), socket, Limits::default());
    }
    for round in 0..20 {
        let home = Home::new();
        let (mut socket, theirs) = UnixStream::pair().unwrap();
        let mut recorder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME])
            .env(HOME, &home.0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let host = thread::spawn(move || {
            for seq in 0_u64.. {
                let mut frames = Vec::new();
                encode_start(&start(seq), &mut frames);
                let output = "some output\n".repeat(usize::try_from(seq).unwrap() % 999);
                encode_output(seq, 1, output.as_bytes(), &mut frames);
                if let Some(seq) = seq.checked_sub(64) {
                    encode_end(&End { seq, ..End::default() }, &mut frames);
                }
                if socket.write_all(&frames).is_err() {
                    return;
                }
            }
        });
        let journal = || journals(&home.0).unwrap().pop().map(|(_, path)| path);
        let length = || journal().and_then(|path| fs::metadata(path).ok()).map_or(0, |data| data.len());
        wait_until("the recorder has written", || length() > 60_000 + round * 7919);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        host.join().unwrap();
        let killed = journal().unwrap();
        home.open();
        let mut reader = Reader::new(File::open(killed).unwrap());
        let entries: Vec<Entry> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.unparsable() <= 1 && entries.len() > 100);
        check_runs(&entries);
    }
}

#[test]
fn journals_of_one_second_get_numbers() {
    let home = Home::new();
    let mut all = Vec::new();
    while !all.iter().any(|opened: &Opened| opened.path.to_string_lossy().ends_with("-3.jsonl")) {
        assert!(all.len() < 200);
        all.push(home.open());
    }
    // Each is still held by its host, so none was closed by the next.
    assert!(all.iter().all(|opened| shape(&opened.path) == "open" && opened.lost == 0));
    let mut listed = Vec::new();
    list::list(&home.0, usize::MAX, &mut listed).unwrap();
    let newest_first = all.iter().rev().map(|opened| opened.path.file_stem().unwrap().to_str().unwrap());
    let expected: String = newest_first.map(|name| format!("{name} commands=0\n")).collect();
    assert_eq!(String::from_utf8(listed).unwrap(), expected);
}

#[test]
fn a_journal_in_use_is_left_alone() {
    let home = Home::new();
    let mut first = home.record(Limits::default());
    let path = first.path.clone();
    first.start(1);
    wait_until("the start is written", || has_lines(&path, 2));
    let second = home.record(Limits::default());
    first.end(1);
    first.close();
    second.close();
    assert_eq!(shape(&path), "open start1 end1 close");
}

/// A host was killed and its recorder still writes what it was sent: the next host waits for that.
#[test]
fn a_journal_being_drained_is_waited_for() {
    let home = Home::new();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let path = home.0.join("2026-01-01-00:00:00.jsonl");
    let mut recorder = File::options().create_new(true).append(true).open(&path).unwrap();
    recorder.lock().unwrap();
    let open = json!({"v": 1, "type": "open", "pid": gone.id()});
    writeln!(recorder, "{open}\n{}", json!({"v": 1, "type": "start", "seq": 1})).unwrap();
    let draining = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        writeln!(recorder, "{}", json!({"v": 1, "type": "end", "seq": 1})).unwrap();
    });
    assert_eq!(home.open().lost, 0);
    draining.join().unwrap();
    assert_eq!(shape(&path), "open start1 end1 close");
}

#[test]
fn long_output_goes_to_a_raw_file() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    let sizes = [65_535, 65_536, 65_537, 10 << 20];
    let letters = b"0123456789abcdefghijklmnopqrstuvwxy\n";
    let output = |size: usize| (0..size).map(|n| letters[n * 7 % letters.len()]).collect::<Vec<u8>>();
    for (seq, size) in (0..).zip(sizes) {
        recording.start(seq);
        for piece in output(size).chunks(99_991) {
            recording.output(seq, piece);
        }
        recording.send(|out| encode_end(&End { seq, bytes: size as u64, ..End::default() }, out));
    }
    assert!(recording.close().is_empty());
    let ends: Vec<Value> = values(&path).into_iter().filter(|value| value["type"] == "end").collect();
    assert_eq!(ends.len(), sizes.len());
    for (record, size) in ends.iter().zip(sizes) {
        let bytes = output(size);
        let shown = record["output"].as_str().unwrap().as_bytes();
        assert_eq!((&record["bytes"], record.get("raw_error")), (&json!(size), None));
        if size <= 65_536 {
            assert!(shown == bytes && record.get("raw").is_none() && record.get("output_omitted").is_none());
            continue;
        }
        assert!(shown == [&bytes[..32 << 10], &bytes[size - (32 << 10)..]].concat());
        assert_eq!((&record["output_omitted"], &record["output_cut"]), (&json!(size - 65_536), &json!(32 << 10)));
        let raw = home.0.join(record["raw"].as_str().unwrap());
        assert!(fs::read(&raw).unwrap() == bytes);
        assert_eq!(fs::metadata(&raw).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(raw.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    }
    assert_eq!(fs::read_dir(home.0.join("raw")).unwrap().count(), 2);
}

#[test]
fn a_record_has_the_last_state_of_what_is_redrawn() {
    let host = Host::start();
    let scripts = [
        ("for n in {0..100}; do printf '\\r\\033[Kload %3d %%' $n; done; printf '\\ndone\\r\\n'", "load 100 %\ndone\n"),
        ("for n in {1..50}; do printf 'a %d\\nb %d\\n\\033[2A' $n $n; done; printf '\\n\\n'", "a 50\nb 50\n"),
        ("printf 'one\\033[31m two\\033[0m\\n'; printf %s three >&2", "one two\nthree"),
        // More than a record holds as bytes, and not as text.
        ("for n in {1..20000}; do printf '\\rload %d' $n; done", "load 20000"),
    ];
    for (script, expected) in scripts {
        assert_eq!(host.run(script).code(), 0, "{script}");
        let end = host.wait_for("the end", |journal| journal.end_of(script).cloned());
        assert_eq!((&end["output"], end.get("output_omitted")), (&json!(expected), None), "{script}");
        assert_eq!(end.get("raw").is_some(), end["bytes"].as_u64() > Some(65_536), "{script}");
    }
    let end = host.wait_for("the end", |journal| journal.end_of(scripts[3].0).cloned());
    let raw = fs::read_to_string(host.journal_home().join(end["raw"].as_str().unwrap())).unwrap();
    assert_eq!(raw.matches('\r').count(), 20_000);
}

#[test]
fn output_that_never_arrived_is_counted() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    recording.start(1);
    recording.output(1, b"seen\n");
    recording.send(|out| encode_end(&End { seq: 1, bytes: 1005, ..End::default() }, out));
    recording.close();
    let record = &values(&path)[2];
    assert_eq!((&record["output_omitted"], &record["bytes"]), (&json!(1000), &json!(1005)));
}

#[test]
fn a_removed_journal_is_made_again() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    recording.start(1);
    wait_until("the start is written", || has_lines(&path, 2));
    fs::remove_file(&path).unwrap();
    recording.end(1);
    assert!(recording.status().starts_with("journal was removed: "));
    wait_until("the file is back", || has_lines(&path, 2));
    assert_eq!(shape(&path), "open end1");
    fs::remove_dir_all(&home.0).unwrap();
    recording.start(2);
    assert!(recording.status().starts_with("journal was removed: "));
    recording.end(2);
    assert!(recording.close().is_empty());
    assert_eq!(shape(&path), "open start2 end2 close");
}

/// A host that dies without having read what it was told: all it sent is written nevertheless.
#[test]
fn status_lines_nobody_reads() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    for seq in 0..50 {
        fs::remove_file(&path).unwrap();
        recording.start(seq);
        wait_until("the file is back", || path.exists());
    }
    (0..50).for_each(|seq| recording.end(seq));
    let Recording { socket, status, recorder, .. } = recording;
    drop((socket, status));
    recorder.join().unwrap();
    assert_eq!(values(&path).iter().filter(|value| value["type"] == "end").count(), 50);
}

/// A file that may not grow fails in the middle of a line (EFBIG), then grows again.
#[test]
fn a_limit_on_file_size() {
    let wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];
    let ran = in_own_process("a_limit_on_file_size", &wrapper, || {
        let home = Home::new();
        let mut recording = home.record(Limits { retry: Duration::from_millis(20), ..Limits::default() });
        let path = recording.path.clone();
        recording.start(1);
        wait_until("the start is written", || has_lines(&path, 2));
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
        assert!(fs::read(&path).unwrap() == before);
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
    assert!(ran);
}

/// A disk that is full at the open, has room for a while, and is full again.
#[test]
fn a_full_disk() {
    let wrapper = ["unshare", "--map-root-user", "--mount"];
    let ran = in_own_process("a_full_disk", &wrapper, || {
        let home = Home::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k,mode=700", "none"]).arg(&home.0);
        if !mount.status().unwrap().success() {
            return;
        }
        let ballast = home.0.join("ballast");
        let fill = || {
            let mut file = File::create(&ballast).unwrap();
            while file.write(&[0; 4096]).is_ok_and(|n| n > 0) {}
        };
        fill();
        let mut recording = home.record(Limits { retry: Duration::from_millis(20), ..Limits::default() });
        let path = recording.path.clone();
        recording.start(1);
        let status = recording.status();
        assert!(status.contains("cannot be written") && status.contains("No space left on device"), "{status}");
        fs::remove_file(&ballast).unwrap();
        assert_eq!(recording.status(), "journal is written again");
        recording.end(1);
        recording.fence();
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
        let entries: Vec<Entry> = Reader::new(File::open(&path).unwrap()).map(Result::unwrap).collect();
        check_runs(&entries);
        assert_eq!(entries.len(), 2 + 2 * 199);
        Command::new("umount").arg(&home.0).status().unwrap();
    });
    if !ran {
        let _ = writeln!(std::io::stderr(), "skipped: no mount namespace here");
    }
}

/// 64 MB of output by 8 runs, and all the memory it may take.
#[test]
fn memory_is_bounded() {
    let ran = in_own_process("memory_is_bounded", &["env"], || {
        let home = Home::new();
        let mut recording = home.record(Limits { raw_bytes: 1 << 20, ..Limits::default() });
        let path = recording.path.clone();
        (0..8).for_each(|seq| recording.start(seq));
        let peak = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let mut frames = Vec::new();
        (0..8).for_each(|seq| encode_output(seq, 1, &[b'x'; 64 << 10], &mut frames));
        let before = peak();
        (0..128).for_each(|_| recording.socket.write_all(&frames).unwrap());
        (0..8).for_each(|seq| recording.end(seq));
        recording.close();
        assert!(peak() - before < 8 << 10, "{} KiB", peak() - before);
        let run = &values(&path)[9];
        assert_eq!(run["bytes"], 8 << 20);
        assert!(run["raw_error"].as_str().unwrap().contains("no more room"));
        let files = fs::read_dir(home.0.join("raw")).unwrap();
        assert!(files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>() <= 1 << 20);
    });
    assert!(ran);
}

#[test]
fn raw_files_keep_within_quota_and_age() {
    let home = Home::new();
    let raw = home.0.join("raw");
    fs::create_dir(&raw).unwrap();
    let days = |n: u64| SystemTime::now() - Duration::from_secs(n * 24 * 60 * 60);
    for (name, age) in [("ancient.out", 31), ("old.out", 29), ("middle.out", 20), ("new.out", 1), ("ancient.txt", 99)] {
        fs::write(raw.join(name), [0; 100_000]).unwrap();
        File::options().append(true).open(raw.join(name)).unwrap().set_modified(days(age)).unwrap();
    }
    let names = || {
        let files = fs::read_dir(&raw).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut recording = home.record(Limits { raw_bytes: 300_000, ..Limits::default() });
    wait_until("the ancient one is gone", || names() == ["ancient.txt", "middle.out", "new.out", "old.out"]);
    recording.start(1);
    recording.output(1, &[b'x'; 100_001]);
    recording.end(1);
    let session = recording.path.file_stem().unwrap().to_str().unwrap().to_owned();
    recording.close();
    assert_eq!(names(), [format!("{session}-1.out").as_str(), "ancient.txt", "new.out"]);
}

#[test]
fn what_is_not_text_has_a_twin() {
    let home = Home::new();
    let mut recording = home.record(Limits::default());
    let path = recording.path.clone();
    let mut odd = start(1);
    odd.set_exec([&b"sh"[..], b"-c", b"echo \xff"].into_iter());
    odd.set_dir(b"/tmp/\xe4");
    recording.send(|out| encode_start(&odd, out));
    recording.output(1, b"\xff\xc3\n");
    recording.end(1);
    recording.close();
    let records = values(&path);
    for record in &records[1..3] {
        assert_eq!(record["exec"], json!(["sh", "-c", "echo \u{fffd}"]));
        assert_eq!(record["exec_b64"], json!(["c2g=", "LWM=", "ZWNobyD/"]));
        assert_eq!((&record["dir"], &record["dir_b64"]), (&json!("/tmp/\u{fffd}"), &json!("L3RtcC/k")));
    }
    assert_eq!(records[2]["output"], "\u{fffd}\u{fffd}\n");
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
        let error = open(&at(name), uid).unwrap_err();
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
    open(&at("open"), uid).unwrap();
    open(&at("new/deep"), uid).unwrap();
    assert_eq!(fs::metadata(at("new/deep")).unwrap().mode() & 0o7777, 0o700);
}

/// A journal whose place is taken by a link is begun under another name, and the link's target stays as it was.
#[test]
fn a_symlink_is_never_written_through() {
    let home = Home::new();
    let target = home.0.join("target");
    fs::write(&target, "mine").unwrap();
    let mut recording = home.record(Limits::default());
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

const SAMPLE: &str = r#"{"v":1,"type":"open","time":"t","pid":1,"version":"0"}
{"v":1,"type":"start","seq":1,"time":"2026-05-21T09:42:18.123Z","whoami":"Claude Code","dir":"/p","command":"ls"}
{"v":1,"type":"start","seq":2,"time":"2026-05-21T09:42:19Z","whoami":"Codex","dir":"/p","command":"cat\n\u001b[2J"}
{"v":1,"type":"end","seq":1,"time":"2026-05-21T09:42:18.123Z","whoami":"Claude Code","dir":"/p","command":"ls","exit":0,"output":"a\tb\n\u001b]0;x\u0007","duration_ms":3}
{"v":1,"type":"start","seq":3,"command":"x"}
{"v":1,"type":"end","seq":3,"time":"2026-05-21T09:42:20Z","whoami":"C","dir":"/p","command":"make","exit":101,"output":"headtail","duration_ms":14200,"output_omitted":7,"output_cut":4,"raw":"raw/x-3.out"}
{"v":1,"type":"start","seq":4,"time":"2026-05-21T09:42:21Z","whoami":"C","dir":"/p","command":"a\nb"}
{"v":1,"type":"lost","seq":2,"time":"2026-05-21T09:42:19Z","whoami":"Codex","dir":"/p","command":"cat"}
{"v":1,"type":"dropped","count":3}
{"v":1,"type":"end",
{"v":1,"type":"news"}
"#;

const PRINTED: &str = r"[2026-05-21T09:42:18Z] #1 Claude Code:/p $ ls
a	b
\x1b]0;x\x07

[2026-05-21T09:42:20Z] #3 C:/p $ make
head
… 7 bytes omitted, see raw/x-3.out
tail
exit 101 · 14.2 s

[2026-05-21T09:42:19Z] #2 Codex:/p $ cat
… lost: the host died before this ended, its output and exit are not known

… 3 records were dropped while the journal could not be written

[2026-05-21T09:42:21Z] #4 C:/p $ a\nb
… no end is recorded yet

… lines of the journal that could not be read: 1
… lines of the journal that need a newer version of rexec: 1
";

#[test]
fn listed_and_printed() {
    let home = Home::new();
    let path = home.0.join("2026-05-21-09:42:18.jsonl");
    fs::write(&path, SAMPLE).unwrap();
    fs::write(home.0.join("2026-05-20-17:03:55.jsonl"), "").unwrap();
    for name in ["2026-05-21-09:42:18", "2026-05-21-09:42:18.jsonl", path.to_str().unwrap()] {
        let mut out = Vec::new();
        print::print(&home.0, name, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), PRINTED);
    }
    let mut out = Vec::new();
    list::list(&home.0, list::DEFAULT, &mut out).unwrap();
    assert_eq!(out, b"2026-05-21-09:42:18 commands=4\n2026-05-20-17:03:55 commands=0\n");
    let mut out = Vec::new();
    list::list(&home.0, 1, &mut out).unwrap();
    list::list(&home.0.join("none"), 1, &mut out).unwrap();
    assert_eq!(out, b"2026-05-21-09:42:18 commands=4\n");
}

#[test]
fn listing_and_printing_fail_in_words() {
    let home = Home::new();
    let fails = |name: &str| print::print(&home.0, name, &mut Vec::new()).unwrap_err();
    assert!(matches!((fails(""), fails("").exit_code()), (print::PrintError::Usage { .. }, 2)));
    assert!(matches!((fails("none"), fails("none").exit_code()), (print::PrintError::NotFound { .. }, 1)));
    assert!(fails("none").hint().is_some());
    assert!(matches!(fails("/"), print::PrintError::NotAJournal { .. }));
    fs::write(home.0.join("x.jsonl"), SAMPLE).unwrap();
    // A reader that has left is no failure; a full disk is one.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    list::list(&home.0, 10, &mut ours).unwrap();
    print::print(&home.0, "x", &mut ours).unwrap();
    let mut full = File::options().write(true).open("/dev/full").unwrap();
    assert!(matches!(list::list(&home.0, 10, &mut full), Err(list::ListError::Write(_))));
    assert!(matches!(print::print(&home.0, "x", &mut full), Err(print::PrintError::Write(_))));
}
