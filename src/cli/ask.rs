//! A question to the host and its answer: one line of JSON each way.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use crate::front::answer::{Answer, Reply};
use crate::sys::{file, process, socket};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The time in which a host must answer a question that waits for nothing.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read, bytes. A longer one counts as not understood.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Columns of a host's refusal that are shown. The rest is cut.
const REFUSAL_COLUMNS: usize = 1_024;

/// The reason for a missing answer.
#[derive(Debug)]
pub enum AskError {
    /// No host listens on this socket.
    NoHost { socket: PathBuf },
    /// The socket belongs to another user.
    Stranger { uid: u32 },
    /// The host went away, or took too long.
    Lost(io::Error),
    /// The host sent something that is not an answer.
    Unclear,
    /// The host refused, for this reason.
    Refused(Notice),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost { socket } => write!(f, "no rexec-host is listening on {}", socket.display()),
            Self::Stranger { uid } => {
                write!(f, "the host's socket belongs to another user (uid {uid}); nothing was sent")
            }
            // A timeout of a socket returns this (socket(7)).
            Self::Lost(source) if source.kind() == io::ErrorKind::WouldBlock => {
                write!(f, "the host did not answer in time")
            }
            Self::Lost(source) => write!(f, "the host did not answer: {}", reason(source)),
            Self::Unclear => write!(f, "the host's answer cannot be understood"),
            Self::Refused(notice) => write!(f, "{}", escape_line(&notice.problem, REFUSAL_COLUMNS)),
        }
    }
}

impl std::error::Error for AskError {}

impl From<AskError> for Notice {
    fn from(error: AskError) -> Self {
        let hint = match &error {
            AskError::NoHost { socket } => return Notice::host_not_found(socket),
            AskError::Stranger { .. } => "set REXEC_SOCKET to the socket of your own host",
            AskError::Lost(_) => "look at the host's terminal",
            AskError::Unclear => "install rexec and rexec-host of the same release",
            AskError::Refused(notice) => {
                // Any other code is for the callers of commands.
                let code = if notice.code == exit_code::NO_SUCH_RUN { notice.code } else { exit_code::FAILURE };
                return Notice::new(code, &error, escape_line(&notice.hint, REFUSAL_COLUMNS));
            }
        };
        Notice::failed(&error, hint)
    }
}

/// The answer to a question that was sent.
#[derive(Debug)]
pub struct PendingAnswer(BufReader<UnixStream>);

/// Connects to the host.
///
/// # Errors
/// There is no host, or the socket belongs to another user.
pub fn connect(path: &Path) -> Result<UnixStream, AskError> {
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NoHost { socket: path.to_owned() },
        _ => AskError::Lost(error),
    })?;
    // Nothing is sent to another user's process.
    let uid = socket::peer_uid(&stream).map_err(AskError::Lost)?;
    if uid != process::uid() {
        return Err(AskError::Stranger { uid });
    }
    Ok(stream)
}

/// Sends a question: one line of JSON without its newline.
///
/// # Errors
/// There is no host, the socket belongs to another user, or the connection broke.
pub fn ask(path: &Path, question: &str) -> Result<PendingAnswer, AskError> {
    let mut stream = connect(path)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(AskError::Lost)?;
    // The host may require a descriptor, because a relay of bytes cannot pass one on.
    let proof = file::null().map_err(AskError::Lost)?;
    let line = format!("{question}\n");
    let sent = socket::send(&stream, line.as_bytes(), &[proof.as_raw_fd()]).map_err(AskError::Lost)?;
    stream.write_all(&line.as_bytes()[sent..]).map_err(AskError::Lost)?;
    Ok(PendingAnswer(BufReader::new(stream)))
}

impl PendingAnswer {
    /// Waits for the answer, for `patience` or without end.
    ///
    /// # Errors
    /// The host refused, went away, took too long, or sent something that is not an answer.
    pub fn answer(self, patience: Option<Duration>) -> Result<Answer, AskError> {
        self.answer_and_more(patience).map(|(answer, _)| answer)
    }

    /// Waits for the answer; returns it with the connection, on which more comes.
    ///
    /// # Errors
    /// As [`PendingAnswer::answer`].
    pub fn answer_and_more(mut self, patience: Option<Duration>) -> Result<(Answer, BufReader<UnixStream>), AskError> {
        self.0.get_ref().set_read_timeout(patience).map_err(AskError::Lost)?;
        let mut line = String::new();
        self.0.by_ref().take(ANSWER_BYTES_MAX).read_line(&mut line).map_err(AskError::Lost)?;
        if line.is_empty() {
            return Err(AskError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        match Reply::read(&line) {
            Some(Reply::Answer(answer)) => Ok((answer, self.0)),
            Some(Reply::Refused(notice)) => Err(AskError::Refused(notice)),
            None => Err(AskError::Unclear),
        }
    }
}
