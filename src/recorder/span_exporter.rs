//! The exporter of spans (`--otlp`), a process of its own: takes spans from the host, line by line, and gives them to a file or to a collector.
//!
//! Invariants: it ends when the host's end of the socket closes, within [`limits::SPANS_FAREWELL`]; what it holds is
//! bounded; each kind of failure is told to the host once, with the number of spans that were lost when it is over.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::collector::{CollectorReply, is_timeout, post};
use crate::limits;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Where spans go, opened.
#[derive(Debug)]
pub enum SpanDestination {
    /// A file: one request of the protocol on each line.
    File(File),
    /// A collector that speaks HTTP.
    Collector {
        /// Its address, on this machine.
        address: SocketAddr,
        /// The path of the request.
        path: String,
    },
}

impl SpanDestination {
    /// The descriptor of a file.
    #[must_use]
    pub fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::File(file) => Some(file.as_raw_fd()),
            Self::Collector { .. } => None,
        }
    }
}

/// The port of a collector that does not say another one.
const PORT: u16 = 4_318;

/// Where `--otlp` sends spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtlpTarget {
    /// To this file.
    File(PathBuf),
    /// To a collector on this machine: its address, and the path of the request.
    Collector(SocketAddr, String),
}

impl OtlpTarget {
    /// Reads the option's value. `Err` has the sentence on what is wrong with it.
    ///
    /// # Errors
    /// A URL that is not of HTTP on a loopback address.
    pub fn named(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            if text.is_empty() || text.contains("://") {
                return Err(format!("{text:?} is neither a file nor an http:// address"));
            }
            return Ok(Self::File(text.into()));
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let path = if matches!(path, "" | "/") { "/v1/traces" } else { path };
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        let authority = authority.replace("localhost", "127.0.0.1");
        let address = authority.parse().ok().or_else(|| {
            let ip: IpAddr = authority.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
            Some(SocketAddr::new(ip, PORT))
        });
        let is_loopback = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip == Ipv6Addr::LOCALHOST || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
        };
        match address.filter(|_| is_plain) {
            Some(address) if is_loopback(&address) => Ok(Self::Collector(address, path.to_owned())),
            Some(_) => Err(format!("{text:?} is not on this machine; spans have commands in them")),
            None => Err(format!("{text:?} has no address such as {}:{PORT}", Ipv4Addr::LOCALHOST)),
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(&self) -> Result<SpanDestination, Notice> {
        match self {
            Self::Collector(address, path) => Ok(SpanDestination::Collector { address: *address, path: path.clone() }),
            Self::File(path) => {
                let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                file.map(SpanDestination::File).map_err(|error| {
                    let problem = format_args!("--otlp: {} cannot be written: {}", path.display(), reason(&error));
                    Notice::failed(problem, "name a file in a directory that you can write")
                })
            }
        }
    }
}

/// Spans that are on their way.
#[derive(Debug)]
struct Exporter {
    host: UnixStream,
    to: SpanDestination,
    waiting: VecDeque<String>,
    /// Spans that were dropped since the last failure was told.
    dropped: u64,
    has_failed: bool,
    /// Whether it was told that the collector keeps only some of the spans.
    has_told_rejects: bool,
    /// What the host has sent of which the rest of a line is to come.
    inbox: Vec<u8>,
    /// Whether the host's end of the socket has closed.
    host_has_ended: bool,
    /// When a failed attempt is repeated.
    retry_at: Option<Instant>,
}

/// Exports what comes on the socket, until that ends.
pub fn export_spans(host: UnixStream, to: SpanDestination) {
    let exporter = Exporter {
        host,
        to,
        waiting: VecDeque::new(),
        dropped: 0,
        has_failed: false,
        has_told_rejects: false,
        inbox: Vec::new(),
        host_has_ended: false,
        retry_at: None,
    };
    // Without the socket there is nothing to export.
    let _ = exporter.run();
}

impl Exporter {
    fn run(mut self) -> io::Result<()> {
        while !self.host_has_ended {
            let pause = self.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
            self.hear(pause)?;
            if !self.host_has_ended && self.retry_at.is_none_or(|at| at <= Instant::now()) {
                self.export();
            }
        }
        self.export();
        Ok(())
    }

    /// Takes what the host sends within this time.
    fn hear(&mut self, pause: Option<Duration>) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        // Zero would mean not to wait at all.
        self.host.set_read_timeout(pause.map(|pause| pause.max(Duration::from_millis(1))))?;
        match self.host.read(&mut buffer) {
            Ok(0) => self.host_has_ended = true,
            Ok(length) => self.inbox.extend_from_slice(&buffer[..length]),
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        self.take_lines();
        Ok(())
    }

    /// Sends a request to a collector. When the host ends meanwhile, the answer is not waited for much longer.
    fn post(&mut self, address: SocketAddr, path: &str, body: &str) -> io::Result<CollectorReply> {
        let began = Instant::now();
        let mut patience = if self.host_has_ended { limits::SPANS_FAREWELL } else { limits::SPANS_PATIENCE };
        post(address, path, body, || {
            if !self.host_has_ended && began.elapsed() > limits::SPANS_LOOK {
                self.host_has_ended = self.hear(Some(Duration::ZERO)).is_err() || self.host_has_ended;
                if self.host_has_ended {
                    patience = patience.min(began.elapsed() + limits::SPANS_FAREWELL);
                }
            }
            patience.saturating_sub(began.elapsed())
        })
    }

    fn take_lines(&mut self) {
        while let Some(end) = memchr::memchr(b'\n', &self.inbox) {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            self.waiting.push_back(String::from_utf8_lossy(&line[..end]).into_owned());
        }
        self.drop_the_oldest();
    }

    fn drop_the_oldest(&mut self) {
        while self.waiting.len() > limits::SPANS_WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
    }

    /// Gives away all that waits, or notes that it cannot.
    fn export(&mut self) {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(limits::SPANS_AT_ONCE);
            let batch: Vec<String> = self.waiting.drain(..count).collect();
            let body = format!("{{\"resourceSpans\":[{}]}}", batch.join(","));
            match self.send(&body) {
                Ok(CollectorReply::Taken { rejected: 0, .. }) => {}
                Ok(CollectorReply::Taken { rejected, reason }) => self.note_rejects(rejected, &reason),
                Ok(CollectorReply::Refused(why)) => {
                    self.dropped += u64::try_from(count).expect("a length fits 64 bits");
                    self.note_failure(&format!("spans are dropped: {why}"));
                    continue;
                }
                Ok(CollectorReply::Later(why, after)) => return self.put_off(batch, &why, after),
                Err(error) => return self.put_off(batch, &reason(&error), None),
            }
            if std::mem::replace(&mut self.has_failed, false) {
                let dropped = std::mem::take(&mut self.dropped);
                self.tell(&format!("spans are exported again; {dropped} were dropped"));
            }
        }
        self.retry_at = None;
    }

    fn send(&mut self, body: &str) -> io::Result<CollectorReply> {
        let taken = CollectorReply::Taken { rejected: 0, reason: String::new() };
        match &mut self.to {
            // A request that failed may have left the beginning of a line.
            SpanDestination::File(file) if self.has_failed => {
                file.write_all(format!("\n{body}\n").as_bytes()).map(|()| taken)
            }
            SpanDestination::File(file) => file.write_all(format!("{body}\n").as_bytes()).map(|()| taken),
            SpanDestination::Collector { address, path } => {
                let (address, path) = (*address, path.clone());
                self.post(address, &path, body)
            }
        }
    }

    /// These spans are sent again later.
    fn put_off(&mut self, batch: Vec<String>, why: &str, after: Option<Duration>) {
        batch.into_iter().rev().for_each(|span| self.waiting.push_front(span));
        self.drop_the_oldest();
        let pause = after.unwrap_or_default().clamp(limits::SPANS_RETRY, limits::SPANS_RETRY_MAX);
        self.retry_at = Some(Instant::now() + pause);
        let most = limits::SPANS_WAITING_MAX;
        self.note_failure(&format!("spans cannot be exported: {why}; the last {most} wait, older ones are dropped"));
    }

    fn note_failure(&mut self, sentence: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.tell(sentence);
        }
    }

    fn note_rejects(&mut self, rejected: u64, reason: &str) {
        if !std::mem::replace(&mut self.has_told_rejects, true) {
            let reason = escape_line(reason, limits::SPANS_REASON_COLUMNS);
            self.tell(&format!("the collector keeps not all spans; it rejects {rejected}: {reason}"));
        }
    }

    fn tell(&mut self, text: &str) {
        // The host's end of the socket may be gone.
        let _ = self.host.write_all(format!("{text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_and_collectors_on_this_machine_are_targets() {
        let collector = |text: &str| match OtlpTarget::named(text) {
            Ok(OtlpTarget::Collector(address, path)) => Some((address.to_string(), path)),
            _ => None,
        };
        let usual = "/v1/traces".to_owned();
        assert_eq!(collector("http://127.0.0.1:4318"), Some(("127.0.0.1:4318".to_owned(), usual.clone())));
        assert_eq!(collector("http://localhost:9/"), Some(("127.0.0.1:9".to_owned(), usual.clone())));
        assert_eq!(collector("http://[::1]:4318/x"), Some(("[::1]:4318".to_owned(), "/x".to_owned())));
        assert_eq!(collector("http://127.0.0.1"), Some(("127.0.0.1:4318".to_owned(), usual)));
        assert_eq!(OtlpTarget::named("spans.jsonl"), Ok(OtlpTarget::File("spans.jsonl".into())));
        for bad in [
            "",
            "https://127.0.0.1:4318",
            "http://192.168.1.5:4318",
            "http://collector:4318",
            "http://0.0.0.0:4318",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:4318/a b",
            "http://127.0.0.1.evil.org:4318",
            "http://localhost.evil.org",
            "http://me@127.0.0.1:4318",
        ] {
            assert!(OtlpTarget::named(bad).is_err(), "{bad}");
        }
    }
}
