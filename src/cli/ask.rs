//! One question to the host, one line of JSON each way.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rexec_sh::protocol::notice::Notice;

use crate::front::answer::{Answer, Reply};
use crate::sys::{file, process, socket};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// How long a host may take to answer what needs no waiting.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// The longest words of a host that are shown, columns.
const WORDS_COLUMNS: usize = 1_024;

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// No host listens on this socket.
    NoHost { socket: PathBuf },
    /// Somebody else's socket.
    Stranger { uid: u32 },
    /// The host went away, or took too long.
    Lost(io::Error),
    /// It said something that is no answer.
    Unclear,
    /// It refused, in these words.
    Refused { text: String },
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost { socket } => write!(f, "no rexec-host is listening on {}", socket.display()),
            Self::Stranger { uid } => write!(f, "the host's socket belongs to another user ({uid}); nothing was said"),
            Self::Lost(source) => write!(f, "the host did not answer: {}", reason(source)),
            Self::Unclear => write!(f, "the host gave an answer that is not understood"),
            Self::Refused { text } => write!(f, "{}", escape_line(text, WORDS_COLUMNS)),
        }
    }
}

impl std::error::Error for AskError {}

impl From<AskError> for Notice {
    fn from(error: AskError) -> Self {
        let hint = match &error {
            AskError::NoHost { socket } => return Notice::host_not_found(socket),
            AskError::Stranger { .. } => "set REXEC_SOCKET to the socket of a host of yours",
            AskError::Lost(_) => "look at the host's terminal",
            AskError::Unclear => "install rexec and rexec-host of the same release",
            AskError::Refused { .. } => "rexec ps shows what runs",
        };
        Notice::failed(&error, hint)
    }
}

/// A question that was put, whose answer is awaited.
#[derive(Debug)]
pub struct PendingAnswer(BufReader<UnixStream>);

/// Puts a question: one line of JSON without its newline.
///
/// # Errors
/// No host, a stranger's socket, or a connection that broke.
pub fn ask(path: &Path, question: &str) -> Result<PendingAnswer, AskError> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NoHost { socket: path.to_owned() },
        _ => AskError::Lost(error),
    })?;
    // Nothing is said to a stranger.
    let uid = socket::peer_uid(&stream).map_err(AskError::Lost)?;
    if uid != process::uid() {
        return Err(AskError::Stranger { uid });
    }
    stream.set_write_timeout(Some(PATIENCE)).map_err(AskError::Lost)?;
    // A descriptor goes along: no relay of bytes can pass it on, and a host may ask for that.
    let proof = file::null().map_err(AskError::Lost)?;
    let line = format!("{question}\n");
    let sent = socket::send(&stream, line.as_bytes(), &[proof.as_raw_fd()]).map_err(AskError::Lost)?;
    stream.write_all(&line.as_bytes()[sent..]).map_err(AskError::Lost)?;
    Ok(PendingAnswer(BufReader::new(stream)))
}

impl PendingAnswer {
    /// Waits for the answer, for this long at most.
    ///
    /// # Errors
    /// A host that refuses, that went away or took too long, or words that are no answer.
    pub fn answer(self, patience: Option<Duration>) -> Result<Answer, AskError> {
        self.0.get_ref().set_read_timeout(patience).map_err(AskError::Lost)?;
        let mut line = String::new();
        self.0.take(ANSWER_BYTES_MAX).read_line(&mut line).map_err(AskError::Lost)?;
        if line.is_empty() {
            return Err(AskError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        match Reply::read(&line) {
            Some(Reply::Answer(answer)) => Ok(answer),
            Some(Reply::Refused(text)) => Err(AskError::Refused { text }),
            None => Err(AskError::Unclear),
        }
    }
}
