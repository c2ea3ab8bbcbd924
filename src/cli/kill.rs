//! `rexec kill N…`: ends commands, or what they left running, and waits until they are over.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::ask;
use crate::front::answer::Answer;
use crate::text::banner::duration;

/// The host answers a second sooner, whatever becomes of the command.
const ANSWER: Duration = Duration::from_secs(10);

/// Ends these commands. All are asked before one is waited for.
///
/// # Errors
/// When the host cannot be asked, one of them does not run, or something cannot be killed; the others are ended all
/// the same, and the first failure is told.
pub fn kill(socket: &Path, numbers: &[u64], out: &mut impl Write) -> Result<(), Notice> {
    let asked: Vec<_> =
        numbers.iter().map(|seq| (seq, ask::ask(socket, &format!(r#"{{"action":"kill","seq":{seq}}}"#)))).collect();
    let mut first = None;
    let until = Instant::now() + ANSWER;
    for (seq, asked) in asked {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let failure = match asked.and_then(|asked| asked.answer(Some(left))) {
            Ok(Answer::Kill { grace_left_ms: Some(left), .. }) => Some(Notice::failed(
                format_args!("#{seq} has not ended yet: it was asked to, and is killed in {}", duration(left)),
                format_args!("rexec kill {seq} kills it at once"),
            )),
            Ok(Answer::Kill { unkillable, .. }) if unkillable.is_empty() => {
                // Nobody is left to be told when this fails.
                let _ = writeln!(out, "#{seq} has ended");
                None
            }
            Ok(Answer::Kill { unkillable, .. }) => Some(Notice::failed(
                format_args!("#{seq} has processes that cannot be killed: {unkillable:?}"),
                "they may belong to another user, as those of sudo do, or wait for a device",
            )),
            Ok(_) => Some(ask::AskError::Unclear.into()),
            Err(error) => Some(error.into()),
        };
        first = first.or(failure);
    }
    first.map_or(Ok(()), Err)
}
