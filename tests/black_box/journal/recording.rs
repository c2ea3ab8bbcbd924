//! A test's own journal: its directory, the host's side of a recorder, and what the files hold afterwards.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rexec_host::journal::frame::{Frame, encode_end, encode_output, encode_start};
use rexec_host::journal::reader::{JournalReader, Record};
use rexec_host::journal::record::{PublishedCard, RunEnd, StartRecord};
use rexec_host::journal::status::RecorderStatus;
use rexec_host::recorder::{Bounds, Session, serve};
use serde_json::Value;

use crate::support::temp::TempDir;
use crate::support::waiting::PATIENCE;
pub(crate) use crate::support::waiting::wait_until;

/// A journal's directory for one test, removed when the test ends.
pub(crate) struct Home(pub(crate) PathBuf, #[expect(dead_code, reason = "only held")] TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        let dir = TempDir::new(None);
        Home(dir.path().to_owned(), dir)
    }

    pub(crate) fn uid(&self) -> u32 {
        fs::metadata(&self.0).unwrap().uid()
    }

    /// The journal of a host with this process ID.
    pub(crate) fn session(&self, host: u32) -> Session {
        Session::new(&self.0, self.uid(), host)
    }

    /// Starts a recorder whose host is this process.
    pub(crate) fn record(&self, bounds: Bounds) -> Recording {
        Recording::new(self.session(std::process::id()), bounds)
    }

    /// Starts a recorder whose host is dead.
    pub(crate) fn record_for_the_dead(&self) -> Recording {
        Recording::new(self.session(DEAD), Bounds::default())
    }
}

/// An ID that no process has.
pub(crate) const DEAD: u32 = u32::MAX >> 1;

/// The host's side of a recorder.
pub(crate) struct Recording {
    /// The first file; empty if the recorder could not make it.
    pub(crate) path: PathBuf,
    pub(crate) session: Session,
    pub(crate) socket: UnixStream,
    pub(crate) status: BufReader<UnixStream>,
    pub(crate) recorder: JoinHandle<()>,
    /// Sentences that came before a test asked for them.
    said: Vec<String>,
    /// The runs whose end was acknowledged.
    ended: Vec<u64>,
}

impl Recording {
    pub(crate) fn new(session: Session, bounds: Bounds) -> Recording {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let copy = session.clone();
        let recorder = thread::spawn(move || serve(copy, theirs, bounds));
        let status = BufReader::new(socket.try_clone().unwrap());
        let (path, said, ended) = (PathBuf::new(), Vec::new(), Vec::new());
        let mut recording = Recording { path, session, status, socket, recorder, said, ended };
        while recording.path.as_os_str().is_empty() && recording.said.is_empty() {
            let said = recording.hear();
            recording.said.extend(said);
        }
        recording
    }

    /// Reads one line. Returns it if it is for the human.
    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        self.status.read_line(&mut line).unwrap();
        match RecorderStatus::decode(line.trim_end()).unwrap_or_else(|| panic!("{line:?}")) {
            RecorderStatus::Say(text) => return Some(text),
            RecorderStatus::Done(done) => {
                self.session.on_length(done.length);
                self.ended.extend(done.ends);
            }
            RecorderStatus::Leave | RecorderStatus::Reached { .. } => {}
            RecorderStatus::File(name) => {
                self.session.on_file(&name);
                if self.path.as_os_str().is_empty() {
                    self.path = self.session.path().unwrap();
                }
            }
        }
        None
    }

    pub(crate) fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frames = Vec::new();
        encode(&mut frames);
        self.socket.write_all(&frames).unwrap();
    }

    pub(crate) fn start(&mut self, seq: u64) {
        self.send(|out| encode_start(&start(seq), [], out));
    }

    /// Starts a run, and waits until the current file has this many lines.
    pub(crate) fn start_and_wait(&mut self, seq: u64, lines: usize) {
        self.start(seq);
        let path = self.session.path().unwrap();
        wait_until("the start is written", || has_lines(&path, lines));
    }

    pub(crate) fn output(&mut self, seq: u64, bytes: &[u8]) {
        self.send(|out| encode_output(seq, 1, Duration::ZERO, bytes, out));
    }

    pub(crate) fn end(&mut self, seq: u64) {
        self.end_of(seq, 0);
    }

    /// Ends a run that wrote this many bytes.
    pub(crate) fn end_of(&mut self, seq: u64, bytes: u64) {
        self.send(|out| encode_end(RunEnd { seq, bytes, ..RunEnd::default() }, out));
    }

    /// The next sentence for the human.
    pub(crate) fn status(&mut self) -> String {
        loop {
            if !self.said.is_empty() {
                return self.said.remove(0);
            }
            let said = self.hear();
            self.said.extend(said);
        }
    }

    /// Waits until the file has this run's end.
    pub(crate) fn wait_for_end(&mut self, seq: u64) {
        while !self.ended.contains(&seq) {
            let said = self.hear();
            self.said.extend(said);
        }
    }

    /// Waits until the recorder writes another file, and returns that file.
    pub(crate) fn current(&mut self) -> PathBuf {
        let before = self.session.path();
        while self.session.path() == before {
            let said = self.hear();
            self.said.extend(said);
        }
        self.session.path().unwrap()
    }

    /// Waits until the recorder has taken in all that was sent: it sends more than a socket holds.
    pub(crate) fn fence(&mut self) {
        self.output(u64::MAX, &vec![0; 4 << 20]);
    }

    /// Leaves in order. Returns the sentences that the recorder still had.
    pub(crate) fn close(mut self) -> Vec<String> {
        self.send(|out| Frame::Close.encode(out));
        self.vanish()
    }

    /// Leaves as a killed host would, but reads what the recorder still says.
    pub(crate) fn vanish(self) -> Vec<String> {
        self.socket.shutdown(Shutdown::Write).unwrap();
        let lines = self.status.lines().map(|line| RecorderStatus::decode(&line.unwrap()).unwrap());
        let say = |status| if let RecorderStatus::Say(text) = status { Some(text) } else { None };
        let rest = self.said.into_iter().chain(lines.filter_map(say)).collect();
        self.recorder.join().unwrap();
        rest
    }
}

/// The start of a run that echoes its number.
pub(crate) fn start(seq: u64) -> StartRecord {
    StartRecord {
        card: PublishedCard {
            seq,
            time: "2026-05-21T09:42:18.123Z".into(),
            whoami: "Claude Code".into(),
            dir: "/path/to/repo".into(),
            command: format!("echo {seq}"),
            shell: "sh".into(),
            ..PublishedCard::default()
        },
        exec: vec!["sh".into(), "-c".into(), format!("echo {seq}")],
        ..StartRecord::default()
    }
}

/// The first `size` bytes of a text with lines.
pub(crate) fn text_of(size: usize) -> Vec<u8> {
    let letters = b"0123456789abcdefghijklmnopqrstuvwxy\n";
    (0..size).map(|n| letters[n * 7 % letters.len()]).collect()
}

/// The records of a file, of which every line must be one.
pub(crate) fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The end records of a file.
pub(crate) fn ends(path: &Path) -> Vec<Value> {
    values(path).into_iter().filter(|value| value["type"] == "end").collect()
}

/// The records of a file as its reader sees them, and how many lines are not records. All of them must have a known
/// type.
pub(crate) fn read(path: &Path) -> (Vec<Record>, u64) {
    let mut reader = JournalReader::new(File::open(path).unwrap());
    let records = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.unknown(), 0);
    (records, reader.unparsable())
}

/// Types and numbers of the records: `start1 end1 close`.
pub(crate) fn shape(path: &Path) -> String {
    let name = |value: &Value| match value["seq"].as_u64() {
        Some(seq) => format!("{}{seq}", value["type"].as_str().unwrap()),
        None => value["type"].as_str().unwrap().to_owned(),
    };
    values(path).iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Whether the last line is a record of this type. Earlier lines may be torn.
pub(crate) fn shape_ends(path: &Path, kind: &str) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let last = text.ends_with('\n').then(|| text.lines().next_back()).flatten();
    last.and_then(|line| serde_json::from_str::<Value>(line).ok()).is_some_and(|value| value["type"] == kind)
}

pub(crate) fn has_lines(path: &Path, count: usize) -> bool {
    fs::read(path).is_ok_and(|text| text.iter().filter(|&&byte| byte == b'\n').count() >= count)
}

/// Checks that every run has one start, and one end or a lost record.
pub(crate) fn check_runs(records: &[Record]) {
    let seqs = |pick: fn(&Record) -> Option<u64>| {
        let mut seqs: Vec<u64> = records.iter().filter_map(pick).collect();
        seqs.sort_unstable();
        seqs
    };
    let starts = seqs(|record| if let Record::Start(start) = record { Some(start.card.seq) } else { None });
    let ends = seqs(|record| match record {
        Record::End(end) => Some(end.start.card.seq),
        Record::Lost(lost) => Some(lost.start.card.seq),
        _ => None,
    });
    assert_eq!(starts, ends);
    assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
}
