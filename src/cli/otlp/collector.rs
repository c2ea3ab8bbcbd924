//! One request to a collector of spans, and the meaning of its answer (OTLP over HTTP).
//!
//! Invariant: only the answer decides. Spans are sent again only after an error that the collector calls temporary, so
//! that refused spans never block later ones.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::front::span::rejected_spans;
use crate::limits;

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CollectorReply {
    /// The collector has the spans, except for this number, for this reason.
    Taken { rejected: u64, reason: String },
    /// It refuses them for good.
    Refused(String),
    /// It may take them later, after this time if it names one.
    Later(String, Option<Duration>),
}

/// Sends a request, and waits for its answer.
///
/// # Errors
/// The collector cannot be reached, or does not answer.
pub(super) fn post(address: SocketAddr, path: &str, body: &str) -> io::Result<CollectorReply> {
    let end = Instant::now() + limits::SPANS_PATIENCE;
    let mut stream = TcpStream::connect_timeout(&address, limits::SPANS_PATIENCE)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(limits::SPANS_PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    let mut piece = [0; 512];
    while !is_whole(&answer) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            // A read with a time limit is interrupted when the process was stopped and goes on, signal(7).
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if answer.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    if answer.is_empty() && end <= Instant::now() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the collector does not answer"));
    }
    Ok(meaning(&answer))
}

/// Returns true if a read timed out.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The header lines, and the body.
fn parts(answer: &[u8]) -> (String, Option<&[u8]>) {
    let end = memchr::memmem::find(answer, b"\r\n\r\n");
    let head = String::from_utf8_lossy(&answer[..end.unwrap_or(answer.len())]).into_owned();
    (head, end.map(|end| &answer[end + 4..]))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Returns true if all needed parts of an answer are there.
fn is_whole(answer: &[u8]) -> bool {
    let (head, body) = parts(answer);
    let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
    answer.len() >= limits::SPANS_ANSWER_BYTES
        || body.is_some_and(|body| length.is_some_and(|length| body.len() >= length))
}

/// The meaning of an answer, whose end may be missing.
fn meaning(answer: &[u8]) -> CollectorReply {
    let (head, body) = parts(answer);
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.split_ascii_whitespace().nth(1));
    let Some(status) = status else {
        return CollectorReply::Later("the collector does not speak HTTP/1.1".to_owned(), None);
    };
    let said = format!("the collector answers {}", status.escape_default());
    match status {
        "429" | "502" | "503" | "504" => {
            let seconds = header(&head, "retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
            CollectorReply::Later(said, seconds.map(Duration::from_secs))
        }
        _ if !status.starts_with('2') => CollectorReply::Refused(said),
        _ => {
            let (rejected, reason) = rejected_spans(body.unwrap_or_default());
            CollectorReply::Taken { rejected, reason }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_collector_calls_temporary_is_sent_again() {
        let later = |status: &str, after| CollectorReply::Later(format!("the collector answers {status}"), after);
        let taken = |rejected, reason: &str| CollectorReply::Taken { rejected, reason: reason.to_owned() };
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", taken(0, "")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", taken(0, "")),
            ("HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{}}", taken(0, "")),
            (
                "HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"old\"}}",
                taken(3, "old"),
            ),
            ("HTTP/1.1 202 Accepted\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":1}}", taken(1, "")),
            ("HTTP/1.1 200 OK\r\n\r\nnot json", taken(0, "")),
            ("HTTP/1.0 429 Slow\r\nretry-after:  7\r\n\r\n", later("429", Some(Duration::from_secs(7)))),
            ("HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n", later("503", None)),
            ("HTTP/1.1 502 No", later("502", None)),
            ("HTTP/1.1 400 Bad\r\n\r\n", CollectorReply::Refused("the collector answers 400".to_owned())),
            ("HTTP/1.1 500 Bad\r\n\r\n", CollectorReply::Refused("the collector answers 500".to_owned())),
            ("SSH-2.0-x\r\n", CollectorReply::Later("the collector does not speak HTTP/1.1".to_owned(), None)),
        ] {
            assert_eq!(meaning(answer.as_bytes()), expected, "{answer}");
        }
    }

    #[test]
    fn an_answer_is_whole_with_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345";
        assert!((0..answer.len()).all(|end| !is_whole(&answer[..end])) && is_whole(answer));
        assert!(is_whole(&vec![b'x'; limits::SPANS_ANSWER_BYTES]));
    }
}
