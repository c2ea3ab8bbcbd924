//! `rexec kill N…`: ends commands, or what they left running, and waits for their end.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::acted::Acted;
use super::ask;
use super::chosen::{self, Chosen};
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words, json};
use crate::front::answer::Answer;
use crate::sys::signal;
use crate::text::banner::duration;

pub(super) const VERB: Verb = Verb {
    term: "kill",
    group: Group::Live,
    summary: "end commands, or what they left running",
    text: "\
N is a command's number, as rexec ps and the console show it, or the name of a
service; #N works too.
All processes of the command get SIGTERM, and SIGKILL after the host's --grace.
rexec kill returns when they have ended, or after ten seconds with what still
lives. A second rexec kill kills at once.

With --signal the command's process group gets that signal, or what an ended
command left running, and rexec kill does not wait. Of a command in its agent's
sandbox, all processes get it. KILL is for the whole tree, at once, and waits.
",
    codes: &[(1, "nothing to end was found, or a process cannot be killed"), (3, "no such command runs"), NO_HOST],
    examples: &["rexec kill 12", "rexec kill 12 14", "rexec kill --agent codex", "rexec kill --signal INT 12"],
    call: &Call::<Chosen> {
        options: &[
            chosen::AGENT,
            chosen::ALL,
            Opt::word(
                "-s, --signal SIGNAL",
                &SIGNALS,
                |q, v| q.signal = v.word(signal::number),
                "send only this signal, by name or number",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N... | --agent AGENT | --all", Values::Runs, |q, w| match w.text() {
            number if is_signal(&number) => w.refuse(no_option(&number)),
            _ => q.numbers.extend(chosen::given_number(w)),
        }),
        run: |chosen| {
            let (chosen, socket) = (chosen.checked(&VERB)?, super::socket_path()?);
            let (signal, is_json) = (chosen.signal, chosen.is_json);
            let numbers = chosen.numbers(&socket)?;
            super::with_output(|out| kill(&socket, &numbers, signal, is_json, out))
        },
    },
};

const SIGNALS: [&str; 8] = ["INT", "TERM", "KILL", "HUP", "QUIT", "USR1", "USR2", "WINCH"];

/// Returns true for a number with a dash, which `kill(1)` takes as a signal.
fn is_signal(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|number| number.parse::<u64>().is_ok())
}

fn no_option(number: &str) -> Notice {
    let hint = format!("rexec kill --signal {} N sends signal {0}", number.trim_start_matches('-'));
    Notice::usage(format_args!("there is no option `{number}`"), hint)
}

/// The time limit. The host answers a second sooner in any case, see [`crate::limits::KILL_ANSWER`].
const ANSWER: Duration = Duration::from_secs(10);

/// Ends these commands. It sends all requests before it waits for the first answer.
///
/// # Errors
/// The host does not answer, a command does not run, or one of its processes cannot be killed. The other commands are
/// ended all the same, and the first failure is returned.
fn kill(socket: &Path, numbers: &[u64], signal: Option<u8>, is_json: bool, out: &mut impl Write) -> Result<(), Notice> {
    let signal = signal.map(|signal| format!(r#","signal":{signal}"#)).unwrap_or_default();
    let question = |seq: &u64| format!(r#"{{"action":"kill","seq":{seq}{signal}}}"#);
    let asked: Vec<_> = numbers.iter().map(|seq| (seq, ask::ask(socket, &question(seq)))).collect();
    let mut first = None;
    let until = Instant::now() + ANSWER;
    for (seq, asked) in asked {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let failure = match asked.and_then(|asked| asked.answer(Some(left))) {
            Ok(Answer::Kill { grace_left_ms: left @ Some(ms), .. }) => {
                Acted { seq: *seq, result: "stopping", grace_left_ms: left, ..Acted::default() }.say(is_json, "", out);
                Some(Notice::failed(
                    format_args!("#{seq} has not ended yet; it got SIGTERM, and gets SIGKILL in {}", duration(ms)),
                    format_args!("rexec kill {seq} kills it at once"),
                ))
            }
            Ok(Answer::Kill { unkillable, .. }) if unkillable.is_empty() => {
                Acted { seq: *seq, result: "ended", ..Acted::default() }.say(is_json, "has ended", out);
                None
            }
            Ok(Answer::Kill { unkillable: pids, .. }) => {
                Acted { seq: *seq, result: "unkillable", pids: &pids, ..Acted::default() }.say(is_json, "", out);
                Some(Notice::failed(
                    format_args!("#{seq} has processes that cannot be killed: {pids:?}"),
                    "they may belong to another user, as those of sudo do, or wait for a device",
                ))
            }
            Ok(Answer::Signal { seq }) => {
                Acted { seq, result: "signalled", ..Acted::default() }.say(is_json, "got the signal", out);
                None
            }
            Ok(_) => Some(ask::AskError::Unclear.into()),
            Err(error) => Some(error.into()),
        };
        first = first.or(failure);
    }
    first.map_or(Ok(()), Err)
}
