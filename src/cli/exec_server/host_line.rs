//! The host's lines: answers and notifications. The bytes of output follow the line that announces them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::front::rpc::error::{NO_SUCH_RUN, RUN_IS_OVER};

#[derive(Debug, Deserialize)]
pub(super) struct HostLine<'a> {
    #[serde(default)]
    pub(super) id: Option<u64>,
    #[serde(borrow, default)]
    pub(super) method: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) params: HostParams<'a>,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<HostError>,
}

/// The parameters of the notifications that are used here.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HostParams<'a> {
    #[serde(default)]
    pub(super) run: Option<u64>,
    #[serde(borrow, default)]
    stream: Option<&'a str>,
    #[serde(default)]
    pub(super) bytes: Option<usize>,
    #[serde(default)]
    pub(super) exit: Option<i64>,
    #[serde(borrow, default)]
    pub(super) message: Option<Cow<'a, str>>,
}

impl HostParams<'_> {
    /// The name of the stream, which clients know as well.
    pub(super) fn stream(&self) -> Option<&'static str> {
        ["stdout", "stderr", "pty"].into_iter().find(|word| self.stream == Some(*word))
    }
}

/// The host's reason for a refusal.
#[derive(Debug, Deserialize)]
pub(super) struct HostError {
    code: i32,
    message: String,
    #[serde(default)]
    data: Option<Value>,
}

impl HostError {
    /// The error as one sentence, with the hint if there is one for this client. Hints about a run name the host's own
    /// methods.
    pub(super) fn sentence(&self) -> String {
        let is_about_run = [NO_SUCH_RUN, RUN_IS_OVER].contains(&self.code);
        let hint = self.data.as_ref().filter(|_| !is_about_run).and_then(|data| data.get("hint")?.as_str());
        match hint {
            Some(hint) => format!("rexec: {}; {hint}", self.message),
            None => format!("rexec: {}", self.message),
        }
    }
}

impl<'a> HostLine<'a> {
    /// Reads a line; `None` for one that is not understood.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}
