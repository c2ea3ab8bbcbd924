//! JSON-RPC 2.0 on the host's socket, for programs: many requests and many commands on one connection, a line of JSON each.
//! A connection whose first line has a `method` speaks it for its whole life. `rexec help protocol` has all methods.
//!
//! | file | what it is |
//! |---|---|
//! | `rpc/methods.rs` | the table of methods |
//! | `rpc/shape.rs` | the parameters that a method takes, read off their type |
//! | `rpc/openrpc.rs` | the methods as an OpenRPC document |
//! | `rpc/typescript.rs` | the same as types of TypeScript |
//! | `rpc/call.rs` | a line becomes a call |
//! | `rpc/params.rs`, `rpc/start.rs` | what the methods are given |
//! | `rpc/projects.rs` | project sessions |
//! | `rpc/history.rs` | questions about the past |
//! | `rpc/events.rs` | the table of events |
//! | `rpc/error.rs` | the codes and sentences of errors |
//! | `rpc/answers.rs`, `rpc/listing.rs` | what answers and notifications say |
//! | `rpc/reply.rs` | answers and notifications as lines |
//! | `rpc/client.rs` | calls and answers on a client's side |
//! | `rpc/kept_output.rs`, `rpc/ring.rs`, `rpc/gathered.rs` | a command's output as numbered chunks, kept for later reading |
//! | `rpc/search.rs` | looks for a text in output that comes in pieces |
//!
//! Invariant: every line gets one call, whatever is in it, so that one bad line costs its sender one error and nothing else.

pub mod answers;
pub mod call;
pub mod client;
pub mod error;
pub mod events;
pub mod gathered;
pub mod history;
pub mod kept_output;
pub mod listing;
pub mod methods;
pub mod openrpc;
pub mod params;
pub mod projects;
pub mod reply;
pub mod ring;
pub mod search;
pub mod shape;
pub mod start;
pub mod typescript;

use std::collections::BTreeMap;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;

use super::PeerRequest;
use crate::limits;
use call::RpcCall;
use error::RpcError;

/// The number of this protocol, and the oldest that a host serves. It changes when something that was there is removed or
/// means something else.
pub const PROTOCOL: u32 = 1;
pub const PROTOCOL_MIN: u32 = 1;

/// The beginning of a header, as the Language Server Protocol has them in front of each message.
const HEADER: &[u8] = b"Content-";

#[derive(Debug, Default)]
pub struct RpcLanguage {
    has_asked: bool,
}

impl RpcLanguage {
    /// Returns true if the first line of a connection is of this language: an object with a `method` and no `action`.
    #[must_use]
    pub fn is_spoken_in(line: &[u8]) -> bool {
        // As in later lines, a name may come twice, and its value may have any type.
        let fields = serde_json::from_slice::<BTreeMap<String, serde::de::IgnoredAny>>(line);
        fields.is_ok_and(|fields| fields.contains_key("method") && !fields.contains_key("action"))
    }

    /// Returns true if a call has come.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Takes a line off the front of `inbox`, if there is a whole one.
    ///
    /// # Errors
    /// A line is longer than [`limits::JSON_LINE_BYTES_MAX`], or the first one is a header.
    pub fn take(&mut self, inbox: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        while let Some(end) = memchr::memchr(b'\n', inbox) {
            if !self.has_asked && inbox[..HEADER.len().min(end)].eq_ignore_ascii_case(HEADER) {
                let hint = "send each message as one line of JSON; rexec help protocol has the rest";
                return Err(Notice::new(OWN_FAILURE, "messages with headers are not understood here", hint));
            }
            let call = RpcCall::read(&inbox[..end]);
            inbox.drain(..=end);
            if let Some(call) = call {
                self.has_asked = true;
                return Ok(Some(PeerRequest::Rpc(Box::new(call))));
            }
        }
        if inbox.len() > limits::JSON_LINE_BYTES_MAX {
            let problem = format_args!("a line of over {} bytes", limits::JSON_LINE_BYTES_MAX);
            return Err(Notice::new(OWN_FAILURE, problem, "send longer input in pieces, with exec.write"));
        }
        Ok(None)
    }

    /// Writes the last line to a client that broke the rules, or that cannot be served.
    pub fn fail(&self, notice: &Notice, out: &mut Vec<u8>) {
        reply::put_error(None, &RpcError::from(notice), out);
    }
}

#[cfg(test)]
mod tests;
