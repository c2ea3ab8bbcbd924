//! `rexec --check-host`: whether a host answers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::sys::{process, socket};

/// How long a host may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a host of ours answers a ping on this socket.
#[must_use]
pub fn is_running(path: &Path) -> bool {
    ping(path).is_ok_and(|answer| answer.contains("\"result\":\"pong\""))
}

fn ping(path: &Path) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    // Nothing is said to a stranger.
    if socket::peer_uid(&stream)? != process::uid() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"action\":\"ping\"}\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}
