//! Answers and events, as lines of JSON.

use serde::Serialize;
use serde_json::Value;

use super::error::RpcError;
use super::events::{RpcEvent, event};
use super::params::Encoding;
use super::ring::OutputChunk;
use crate::core::entry::Stream;
use crate::front::json_line::put_line;
use crate::text::encode::put_base64;

/// A request's identifier: a number or a string.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct RequestId(pub Value);

#[derive(Serialize)]
struct ResultLine<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: &'a T,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: &'a RpcError,
}

#[derive(Serialize)]
struct EventLine<'a, T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: &'a T,
}

pub(super) const VERSION: &str = "2.0";

/// Answers a request.
pub fn put_result(id: &RequestId, result: &impl Serialize, out: &mut Vec<u8>) {
    put_line(&ResultLine { jsonrpc: VERSION, id, result }, out);
}

/// Answers a request with an error. Without an identifier, the error is about a line that could not be read.
pub fn put_error(id: Option<&RequestId>, error: &RpcError, out: &mut Vec<u8>) {
    put_line(&ErrorLine { jsonrpc: VERSION, id, error }, out);
}

/// Reports an event to a client.
pub fn put_event<E: RpcEvent>(params: &E::Note, out: &mut Vec<u8>) {
    put_line(&EventLine { jsonrpc: VERSION, method: E::NAME, params }, out);
}

/// The word for a stream.
#[must_use]
pub fn stream_word(stream: Stream) -> &'static str {
    match stream {
        Stream::Tty => "pty",
        Stream::Out => "stdout",
        Stream::Err => "stderr",
    }
}

/// Sends a client a chunk of a run's output, and the number of bytes lost before it. This is written by hand, because
/// whole builds go through it.
pub fn put_output(run: u64, chunk: &OutputChunk, lost_bytes: u64, encoding: Encoding, out: &mut Vec<u8>) {
    let method = event::Output::NAME;
    let head = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"run":{run},"#);
    out.extend_from_slice(head.as_bytes());
    put_chunk_fields(chunk, encoding, out);
    if lost_bytes > 0 {
        out.extend_from_slice(format!(r#","lost_bytes":{lost_bytes}"#).as_bytes());
    }
    out.extend_from_slice(b"}}\n");
    if encoding == Encoding::Binary {
        out.extend_from_slice(&chunk.bytes);
    }
}

/// The answer to `exec.output`. `rest` follows the chunks.
pub fn put_chunks<'a>(
    id: &RequestId,
    chunks: impl Iterator<Item = &'a OutputChunk>,
    encoding: Encoding,
    rest: &impl Serialize,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    put_value(id, out);
    out.extend_from_slice(br#","result":{"chunks":["#);
    for (at, chunk) in chunks.enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        put_chunk_fields(chunk, encoding, out);
        out.extend_from_slice(format!(r#","at_ms":{}}}"#, chunk.at_ms).as_bytes());
    }
    out.extend_from_slice(b"],");
    let start = out.len();
    put_value(rest, out);
    // The fields of an object, without its brace.
    out.remove(start);
    out.extend_from_slice(b"}\n");
}

/// The answer to a question about the past: the lines of JSON that `rexec` has printed, as they are.
pub fn put_lines(id: &RequestId, lines: &[&[u8]], is_cut: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    put_value(id, out);
    out.extend_from_slice(br#","result":{"lines":["#);
    out.extend_from_slice(&lines.join(&b','));
    out.extend_from_slice(format!(r#"],"cut":{is_cut}}}}}"#).as_bytes());
    out.push(b'\n');
}

fn put_chunk_fields(chunk: &OutputChunk, encoding: Encoding, out: &mut Vec<u8>) {
    let stream = stream_word(chunk.stream);
    out.extend_from_slice(format!(r#""seq":{},"stream":"{stream}","#, chunk.seq).as_bytes());
    match encoding {
        Encoding::Text => {
            out.extend_from_slice(br#""text":"#);
            put_value(&String::from_utf8_lossy(&chunk.bytes), out);
        }
        Encoding::Base64 | Encoding::Terminal => {
            out.extend_from_slice(br#""base64":""#);
            put_base64(&chunk.bytes, out);
            out.push(b'"');
        }
        Encoding::Binary => out.extend_from_slice(format!(r#""bytes":{}"#, chunk.bytes.len()).as_bytes()),
    }
}

fn put_value(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("these types always serialize into memory");
}
