//! The errors of JSON-RPC: a code, one plain sentence, and a hint.

use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Serialize};

macro_rules! errors {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $text:literal;)+) => {
        $($(#[doc = $doc])* pub const $name: i32 = $code;)+

        /// The codes of all errors, and what they say.
        pub const ERRORS: &[(i32, &str)] = &[$(($code, $text)),+];
    };
}

errors! {
    PARSE_ERROR = -32_700, "the line is not JSON";
    INVALID_REQUEST = -32_600, "the line is no request";
    UNKNOWN_METHOD = -32_601, "the method is not known";
    BAD_PARAMS = -32_602, "the parameters are wrong; message names the field";
    FAILED = -32_603, "the host failed";
    NO_SUCH_RUN = -32_001, "the run is not there";
    /// It takes no input, no size and no signal; see also [`ErrorData::input`].
    RUN_IS_OVER = -32_002, "the run is over; or its input is, if data.input is closed";
    BUSY = -32_003, "the host or the connection has too much to do; try again later";
    SANDBOXED = -32_004, "the caller is in a sandbox; the connection ends";
    ENDING = -32_005, "the host is ending";
    NAME_TAKEN = -32_006, "the name is taken, by the run in data.run or by a session";
    /// A project session.
    NO_SUCH_SESSION = -32_007, "the session is not there";
    NOT_A_PERSONS = -32_008, "the caller is an agent's process, and only a person decides that";
    NOT_HELD = -32_009, "the run is not held";
    /// It is not over, but has not begun, is not paused, is about to end, or cannot be found.
    RUN_NOT_READY = -32_010, "the run cannot take that order now; message says why";
}

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

    /// The run has ended, and what it left running goes on.
    #[must_use]
    pub fn run_has_left(run: u64) -> Self {
        let hint = "exec.left has what it left running, and exec.cancel ends that";
        Self::new(RUN_IS_OVER, format!("run {run} is over")).hint(hint)
    }

    /// The error for a run that goes on, but takes no input.
    #[must_use]
    pub fn input_is_closed(run: u64) -> Self {
        let mut error = Self::new(RUN_IS_OVER, format!("run {run} has no input that is open"))
            .hint("start it with \"keep_stdin\":true, or with \"mode\":\"pty\"");
        error.data.get_or_insert_default().input = Some(InputFault::Closed);
        error
    }

    /// The error as a client of this release tells it. Its calls are sound: a host that does not know a method, a field or
    /// a word of them is older.
    #[must_use]
    pub fn as_heard(self) -> Self {
        let is_unknown = ["unknown variant", "unknown field"].iter().any(|words| self.message.contains(words));
        if self.code != UNKNOWN_METHOD && (self.code != BAD_PARAMS || !is_unknown) {
            return self;
        }
        Self::new(self.code, "this rexec-host is of an earlier release and cannot do that")
            .hint("end it, with q on its console or rexec --stop-host, and start it again")
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
