//! The errors of JSON-RPC: a code, one plain sentence, and a hint.

use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Serialize};

pub const PARSE_ERROR: i32 = -32_700;
/// The line is JSON, and not a request.
pub const INVALID_REQUEST: i32 = -32_600;
pub const UNKNOWN_METHOD: i32 = -32_601;
/// The parameters are not those of the method.
pub const BAD_PARAMS: i32 = -32_602;
/// The host failed inside.
pub const FAILED: i32 = -32_603;
/// No run has this number.
pub const NO_SUCH_RUN: i32 = -32_001;
/// The run has ended, so it takes no input, no size and no signal; or its input has ended: see [`ErrorData::input`].
pub const RUN_IS_OVER: i32 = -32_002;
/// A limit is reached. The call may work later.
pub const BUSY: i32 = -32_003;
/// The caller is in a sandbox.
pub const SANDBOXED: i32 = -32_004;
/// The host is ending.
pub const ENDING: i32 = -32_005;
/// Another run has this name.
pub const NAME_TAKEN: i32 = -32_006;
/// No project session has this name.
pub const NO_SUCH_SESSION: i32 = -32_007;

/// All errors, and what they say.
pub const ERRORS: [(i32, &str); 12] = [
    (PARSE_ERROR, "the line is not JSON"),
    (INVALID_REQUEST, "the line is no request"),
    (UNKNOWN_METHOD, "the method is not known"),
    (BAD_PARAMS, "the parameters are wrong; the message names the field"),
    (FAILED, "the host failed"),
    (NO_SUCH_RUN, "the run is not there"),
    (RUN_IS_OVER, "the run is over; or its input is, if data.input is closed"),
    (BUSY, "the host or the connection has too much to do; try again later"),
    (SANDBOXED, "the caller is in a sandbox; the connection ends"),
    (ENDING, "the host is ending"),
    (NAME_TAKEN, "the name is taken, by the run in data.run or by a session"),
    (NO_SUCH_SESSION, "the session is not there"),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorData>,
}

/// Further facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The run that is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The reason why a running command takes no input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<InputFault>,
}

/// The reason why a run takes no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputFault {
    /// It was started without input that stays open, or the end was written.
    Closed,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.data.get_or_insert_default().hint = Some(hint.into());
        self
    }

    /// The error that names the run in the way.
    #[must_use]
    pub fn of_run(mut self, run: u64) -> Self {
        self.data.get_or_insert_default().run = Some(run);
        self
    }

    /// The client speaks a protocol that this host serves no more.
    #[must_use]
    pub fn old_protocol(spoken: u32, oldest: u32) -> Self {
        Self::new(BAD_PARAMS, format!("protocol: this host serves {oldest} and later ones, not {spoken}"))
            .hint("update the client")
    }

    #[must_use]
    pub fn no_such_run(run: u64) -> Self {
        Self::new(NO_SUCH_RUN, format!("there is no run {run} here"))
            .hint(format!("exec.list has the runs that are; rexec show {run} looks in the journal"))
    }

    #[must_use]
    pub fn run_is_over(run: u64) -> Self {
        Self::new(RUN_IS_OVER, format!("run {run} is over")).hint("exec.status says how it ended")
    }

    /// The error for a run that goes on, but takes no input.
    #[must_use]
    pub fn input_is_closed(run: u64) -> Self {
        let mut error = Self::new(RUN_IS_OVER, format!("run {run} has no input that is open"))
            .hint("start it with \"keep_stdin\":true, or with \"mode\":\"pty\"");
        error.data.get_or_insert_default().input = Some(InputFault::Closed);
        error
    }

    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(BUSY, message)
    }
}

impl From<&Notice> for RpcError {
    fn from(notice: &Notice) -> Self {
        Self::new(FAILED, notice.problem.to_string()).hint(notice.hint.to_string())
    }
}
