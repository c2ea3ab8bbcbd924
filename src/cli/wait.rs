//! `rexec wait N|NAME…`: waits for the end of commands, or until they are ready, and exits as they do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::awaited::{AwaitedEnd, BackgroundRun, Wanted};
use super::host_calls::{CallError, HostCalls};
use super::output::VerbOutput;
use super::run_reference::RunReference;
use super::verb::{Call, Given, Group, NO_HOST, Opt, Values, Verb, Words, json};
use super::{chosen, out, told};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::RunParams;

pub(super) const VERB: Verb = Verb {
    term: "wait",
    group: Group::Live,
    summary: "wait for commands: their end, a port, or a text",
    text: "\
N is a command's number, -1 for the newest command, or the name of a service.
Without --port and --text it waits for the command's end and exits with the
command's own code, also for a command that has ended already. With several
commands it waits for each, and exits with the first code in your order that is
not 0.

With --port it waits until the command listens on that port, with --text until
the command has written that text, which counts from its beginning. A command
that ends before makes rexec wait fail. ^C ends the waiting, not the command.
",
    codes: &[
        (1, "the command ended with 0 before it was ready"),
        (3, "no such command"),
        (124, "the timeout is over; the command still runs"),
        (125, "the host went away, and nobody knows how the command ended"),
        NO_HOST,
    ],
    examples: &["rexec wait 41", "rexec wait web --port 3000 --timeout 30", "rexec wait build test && echo both"],
    call: &Call::<WaitCall> {
        options: &[
            Opt::value(
                "--port PORT",
                |q, v| q.awaited.extend(v.port().map(Wanted::Port)),
                "wait until the command listens on this TCP port",
            ),
            Opt::value("--text TEXT", |q, v| q.awaited.extend(text(v)), "wait until the command has written this text"),
            Opt::flag("--exit", |q| q.awaited.push(Wanted::Exit), "wait for the command's end, as without options"),
            Opt::value("--timeout TIME", |q, v| q.timeout = v.time(), "wait no longer than this, as 90 or 10m"),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N...", Values::Runs, |q, w| q.words.push(w.text())),
        run: |call| {
            let wait = Wait::of(call)?;
            wait.wait(&mut HostCalls::connect(&super::socket_path()?)?)
        },
    },
};

#[derive(Default)]
struct WaitCall {
    words: Vec<String>,
    awaited: Vec<Wanted>,
    timeout: Option<Duration>,
    is_json: bool,
}

/// A condition and its commands.
struct Wait {
    runs: Vec<u64>,
    awaited: Wanted,
    timeout: Option<Duration>,
    is_json: bool,
}

pub(super) fn text(given: &mut Given<'_>) -> Option<Wanted> {
    given.filled("a text that the command writes").map(Wanted::Text)
}

impl Wait {
    fn of(WaitCall { words, mut awaited, timeout, is_json }: WaitCall) -> Result<Self, Notice> {
        if awaited.len() > 1 {
            return Err(VERB.missing("only one of --port, --text and --exit"));
        }
        if words.is_empty() {
            return Err(
                VERB.missing("a command number or the name of a service; rexec ps and rexec services show them")
            );
        }
        let runs = words.iter().map(|word| chosen::number(&VERB, word)).collect::<Result<_, Notice>>()?;
        Ok(Self { runs, awaited: awaited.pop().unwrap_or_default(), timeout, is_json })
    }

    fn wait(&self, calls: &mut HostCalls) -> Result<u8, Notice> {
        let began = Instant::now();
        let mut asked = BTreeMap::new();
        for &run in &self.runs {
            let id = calls.send::<method::Wait>(&self.awaited.params(run, self.timeout)).map_err(|e| failed(e, run))?;
            asked.insert(id, run);
        }
        let mut codes = self.written_before(&mut asked, calls)?;
        let mut failure = None;
        while let Some((_, &any)) = asked.first_key_value() {
            let (id, answer) = calls.next_answer(None).map_err(|error| failed(error, any))?;
            let Some(run) = asked.remove(&id) else { continue };
            let wanted = (run, &self.awaited, began.elapsed());
            let end = answer.and_then(|answer| AwaitedEnd::read(answer, wanted, calls));
            let end = match end {
                Err(error) if error.is_no_such_run() => past(run, &self.awaited),
                end => end.map_err(|error| failed(error, run)),
            };
            match end {
                Ok(end) => {
                    end.say(self.is_json, &mut VerbOutput::standard())?;
                    codes.insert(run, end.code());
                }
                Err(notice) if notice.code == exit_code::NO_SUCH_RUN => {
                    codes.insert(run, notice.code);
                    told::put(notice);
                }
                Err(notice) => failure = failure.or(Some(notice)),
            }
        }
        let code = self.runs.iter().map(|run| codes.get(run).copied().unwrap_or(exit_code::FAILURE));
        failure.map_or(Ok(code.into_iter().find(|code| *code != 0).unwrap_or(exit_code::SUCCESS)), Err)
    }
}

impl Wait {
    /// Searches the journal for the text. For commands that do not run in the background, the host keeps the output
    /// only from the moment of the question. Reports a found text and awaits it no longer.
    fn written_before(
        &self,
        asked: &mut BTreeMap<u64, u64>,
        calls: &mut HostCalls,
    ) -> Result<BTreeMap<u64, u8>, Notice> {
        let mut codes = BTreeMap::new();
        let Wanted::Text(text) = &self.awaited else { return Ok(codes) };
        for (id, run) in asked.clone() {
            let Ok(status) = calls.call::<method::Status>(&RunParams { run }) else { continue };
            if status.facts.background {
                continue;
            }
            if let Some(line) = written(run, text)? {
                let end = AwaitedEnd::of_text(&status, line, &self.awaited);
                end.say(self.is_json, &mut VerbOutput::standard())?;
                codes.insert(run, end.code());
                asked.remove(&id);
            }
        }
        Ok(codes)
    }
}

/// The most looks at the journal until it has a command that the host knows. Each look takes a moment.
const LOOKS: usize = 30;
/// The number of looks from then on. If the command came late, its output does, too.
const LOOKS_WHEN_LATE: usize = 5;

/// The first line with this text in the journal of a command of the host. A slow recorder may not have written yet that
/// the command began, and one that cannot write never does.
fn written(run: u64, text: &str) -> Result<Option<String>, Notice> {
    let is_missing = |notice: &Notice| notice.code == exit_code::NO_SUCH_RUN;
    let (mut looks, mut is_late) = (LOOKS, false);
    while looks > 0 {
        looks -= 1;
        match out::line_with(run, text) {
            Err(notice) if is_missing(&notice) => is_late = true,
            Ok(None) if is_late => looks = looks.min(LOOKS_WHEN_LATE),
            line => return line,
        }
    }
    Ok(None)
}

/// The end of a run that the host has forgotten, from its journal.
fn past(seq: u64, awaited: &Wanted) -> Result<AwaitedEnd, Notice> {
    let line = match awaited {
        Wanted::Text(text) => out::line_with(seq, text)?,
        _ => None,
    };
    out::wait_for_recorder();
    let found = RunReference::numbered(seq).find(&super::home()?, &super::socket_path()?)?;
    let known = BackgroundRun { seq, line, command: found.start.card.command, ..BackgroundRun::default() };
    let run = match found.end {
        Some(end) => BackgroundRun { exit: Some(end.exit), signal: end.signal, ran_ms: end.duration_ms, ..known },
        None => known,
    };
    Ok(AwaitedEnd::of_the_past(run, awaited))
}

/// The notice for a failed call. A host that goes away takes its commands along.
pub(super) fn failed(error: CallError, run: u64) -> Notice {
    if !matches!(error, CallError::Ask(_)) {
        return error.into();
    }
    let problem = format_args!("the host went away while #{run} ran; nobody knows how it ended");
    Notice::new(
        exit_code::OWN_FAILURE,
        problem,
        format_args!("rexec show {run} has what is known; start rexec-host again"),
    )
}
