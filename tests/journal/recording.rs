//! A journal of a test's own: its directory, the host's side of a recorder, and what the files then hold.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rexec_host::sink::reader::Entry;
use rexec_host::sink::record::{End, Start, encode_close, encode_end, encode_output, encode_start};
use rexec_host::sink::recorder::{Limits, Opened, open, serve};
use serde_json::Value;

use crate::support::waiting::PATIENCE;

/// A directory for one test, gone when the test is.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new() -> Home {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rexec-journal-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = Home(std::env::temp_dir().join(name));
        fs::create_dir_all(&home.0).unwrap();
        fs::set_permissions(&home.0, Permissions::from_mode(0o700)).unwrap();
        home
    }

    pub(crate) fn uid(&self) -> u32 {
        fs::metadata(&self.0).unwrap().uid()
    }

    pub(crate) fn open(&self) -> Opened {
        open(&self.0, self.uid()).unwrap()
    }

    pub(crate) fn record(&self, limits: Limits) -> Recording {
        Recording::new(self.open(), limits)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The host's side of a recorder.
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    pub(crate) socket: UnixStream,
    pub(crate) status: BufReader<UnixStream>,
    pub(crate) recorder: JoinHandle<()>,
}

impl Recording {
    pub(crate) fn new(opened: Opened, limits: Limits) -> Recording {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = opened.path.clone();
        let recorder = thread::spawn(move || serve(opened, theirs, limits));
        Recording { path, status: BufReader::new(socket.try_clone().unwrap()), socket, recorder }
    }

    pub(crate) fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frames = Vec::new();
        encode(&mut frames);
        self.socket.write_all(&frames).unwrap();
    }

    pub(crate) fn start(&mut self, seq: u64) {
        self.send(|out| encode_start(&start(seq), out));
    }

    pub(crate) fn output(&mut self, seq: u64, bytes: &[u8]) {
        self.send(|out| encode_output(seq, 1, bytes, out));
    }

    pub(crate) fn end(&mut self, seq: u64) {
        self.send(|out| encode_end(&End { seq, ..End::default() }, out));
    }

    pub(crate) fn status(&mut self) -> String {
        let mut line = String::new();
        self.status.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Returns when the recorder has taken in all that was sent: what follows is more than a socket holds.
    pub(crate) fn fence(&mut self) {
        self.output(u64::MAX, &vec![0; 4 << 20]);
    }

    /// Leaves in order; the answer is what the recorder still had to say.
    pub(crate) fn close(mut self) -> Vec<String> {
        self.send(encode_close);
        self.vanish()
    }

    /// Leaves as if killed, except that the recorder's last words are heard.
    pub(crate) fn vanish(self) -> Vec<String> {
        self.socket.shutdown(Shutdown::Write).unwrap();
        let rest = self.status.lines().map(Result::unwrap).collect();
        self.recorder.join().unwrap();
        rest
    }
}

pub(crate) fn start(seq: u64) -> Start {
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
pub(crate) fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// `start1 end1 close`
pub(crate) fn shape(path: &Path) -> String {
    let name = |value: &Value| match value["seq"].as_u64() {
        Some(seq) => format!("{}{seq}", value["type"].as_str().unwrap()),
        None => value["type"].as_str().unwrap().to_owned(),
    };
    values(path).iter().map(name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn has_lines(path: &Path, count: usize) -> bool {
    fs::read(path).is_ok_and(|text| text.iter().filter(|&&byte| byte == b'\n').count() >= count)
}

/// Every start has one end or is lost, and no run is there twice.
pub(crate) fn check_runs(entries: &[Entry]) {
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
pub(crate) fn in_own_process(name: &str, wrapper: &[&str], body: impl FnOnce()) -> bool {
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
