//! Sends spans to a file, to standard output, or to a collector on this machine.
//!
//! Invariants: the spans that wait for a collector are bounded; each kind of failure is reported once, with the number
//! of lost spans at its end.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::collector::{CollectorReply, post};
use crate::cli::output::VerbOutput;
use crate::cli::shown_json;
use crate::cli::told::tell;
use crate::limits;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The open destination of spans. A file and standard output get one request of the protocol on each line.
#[derive(Debug)]
pub(super) enum SpanDestination {
    Output,
    File(File),
    Collector { address: SocketAddr, path: String },
}

/// A collector's default port.
const PORT: u16 = 4_318;

/// The value of `--to`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum OtlpTarget {
    #[default]
    Output,
    File(PathBuf),
    /// A collector on this machine: its address, and the path of the request.
    Collector(SocketAddr, String),
}

impl OtlpTarget {
    /// Reads the option's value. `Err` has a sentence on the mistake.
    ///
    /// # Errors
    /// A URL that is not of HTTP on a loopback address.
    pub(super) fn named(text: &str) -> Result<Self, String> {
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

    /// Opens the destination.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(&self) -> Result<SpanDestination, Notice> {
        match self {
            Self::Output => Ok(SpanDestination::Output),
            Self::Collector(address, path) => Ok(SpanDestination::Collector { address: *address, path: path.clone() }),
            Self::File(path) => {
                let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                file.map(SpanDestination::File).map_err(|error| {
                    let problem = format_args!("{} cannot be written: {}", path.display(), reason(&error));
                    Notice::failed(problem, "name a file in a directory that you can write")
                })
            }
        }
    }
}

/// The spans under way.
#[derive(Debug)]
pub(super) struct Sender {
    to: SpanDestination,
    waiting: VecDeque<String>,
    /// Spans that were dropped since the last report of a failure.
    dropped: u64,
    has_failed: bool,
    has_told_rejects: bool,
    /// The time of the next attempt after a failure.
    retry_at: Option<Instant>,
}

impl Sender {
    pub(super) fn new(to: SpanDestination) -> Self {
        Self { to, waiting: VecDeque::new(), dropped: 0, has_failed: false, has_told_rejects: false, retry_at: None }
    }

    /// Takes a span, and sends a request when it is full.
    ///
    /// # Errors
    /// Nobody reads standard output, or it cannot be written.
    pub(super) fn push(&mut self, span: String) -> io::Result<()> {
        self.waiting.push_back(span);
        if self.waiting.len() >= limits::SPANS_AT_ONCE { self.send() } else { Ok(()) }
    }

    /// Returns true if sending failed, and nothing was sent since.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Sends all waiting spans, unless an attempt failed a short time ago.
    ///
    /// # Errors
    /// Nobody reads standard output, or it cannot be written.
    pub(super) fn send(&mut self) -> io::Result<()> {
        if self.retry_at.is_none_or(|at| at <= Instant::now()) {
            self.send_all()?;
        }
        while self.waiting.len() > limits::SPANS_WAITING_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        Ok(())
    }

    fn send_all(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(limits::SPANS_AT_ONCE);
            let batch: Vec<String> = self.waiting.drain(..count).collect();
            let body = format!("{{\"resourceSpans\":[{}]}}", batch.join(","));
            match self.request(&body) {
                Ok(CollectorReply::Taken { rejected: 0, .. }) => {}
                Ok(CollectorReply::Taken { rejected, reason }) => self.note_rejects(rejected, &reason),
                Ok(CollectorReply::Refused(why)) => {
                    self.dropped += u64::try_from(count).expect("a length fits 64 bits");
                    self.note_failure(&format!("spans are dropped: {why}"));
                    continue;
                }
                Ok(CollectorReply::Later(why, after)) => {
                    self.put_off(batch, &why, after);
                    return Ok(());
                }
                Err(error) if matches!(self.to, SpanDestination::Output) => return Err(error),
                Err(error) => {
                    self.put_off(batch, &reason(&error), None);
                    return Ok(());
                }
            }
            if std::mem::replace(&mut self.has_failed, false) {
                let dropped = std::mem::take(&mut self.dropped);
                tell(format_args!("spans are exported again; {dropped} were dropped"));
            }
        }
        self.retry_at = None;
        Ok(())
    }

    fn request(&mut self, body: &str) -> io::Result<CollectorReply> {
        let taken = CollectorReply::Taken { rejected: 0, reason: String::new() };
        // A failed request may have left the beginning of a line.
        let start = if self.has_failed { "\n" } else { "" };
        match &mut self.to {
            SpanDestination::File(file) => file.write_all(format!("{start}{body}\n").as_bytes()).map(|()| taken),
            SpanDestination::Collector { address, path } => post(*address, path, body),
            SpanDestination::Output => {
                let mut out = VerbOutput::standard();
                out.write_all(shown_json(format!("{body}\n").as_bytes()).as_bytes())?;
                out.finish().map(|()| taken)
            }
        }
    }

    /// Keeps these spans for a later attempt.
    fn put_off(&mut self, batch: Vec<String>, why: &str, after: Option<Duration>) {
        batch.into_iter().rev().for_each(|span| self.waiting.push_front(span));
        let pause = after.unwrap_or_default().clamp(limits::SPANS_RETRY, limits::SPANS_RETRY_MAX);
        self.retry_at = Some(Instant::now() + pause);
        let most = limits::SPANS_WAITING_MAX;
        self.note_failure(&format!("spans cannot be exported: {why}; the last {most} wait, older ones are dropped"));
    }

    fn note_failure(&mut self, sentence: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            tell(sentence);
        }
    }

    fn note_rejects(&mut self, rejected: u64, reason: &str) {
        if !std::mem::replace(&mut self.has_told_rejects, true) {
            let reason = escape_line(reason, limits::SPANS_REASON_COLUMNS);
            tell(format_args!("the collector keeps not all spans; it rejects {rejected}: {reason}"));
        }
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
