//! What programs ask about the past: the parameters, and the words with which `rexec` is asked.

use serde::{Deserialize, Serialize};

use super::error::{BAD_PARAMS, NO_SUCH_RUN, RpcError};
use crate::limits;

/// `history.log`: the conditions of `rexec log`, all of which hold.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PastRunsParams {
    pub agent: Option<String>,
    /// The beginning of the name of an agent's session.
    pub caller_session: Option<String>,
    /// A directory, for runs in it or below; or one name of a path.
    pub dir: Option<String>,
    /// A time, as for `rexec log`.
    pub since: Option<String>,
    pub until: Option<String>,
    /// A span, as for `rexec log`.
    pub slow: Option<String>,
    pub exit: Option<u8>,
    pub failed: bool,
    pub running: bool,
    pub destroyed: bool,
    /// A text in the command.
    pub text: Option<String>,
    /// True if the text may be in the output instead.
    pub any_output: bool,
    /// How many runs, the newest.
    pub number: Option<u16>,
}

/// `history.show`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PastRunParams {
    pub run: u64,
    /// The session of the journal; the default is this host's.
    #[serde(default)]
    pub session: Option<String>,
}

/// `history.out`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PastOutputParams {
    pub run: u64,
    /// The session of the journal; the default is this host's.
    #[serde(default)]
    pub session: Option<String>,
    /// The first and the last line, from 1.
    #[serde(default)]
    pub lines: Option<(u64, u64)>,
    /// Only lines with this text.
    #[serde(default)]
    pub text: Option<String>,
    /// How many of these, the last ones.
    #[serde(default)]
    pub tail: Option<u32>,
}

/// What `rexec` is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct PastQuestion {
    pub words: Vec<String>,
    /// The code of the error, should it have no answer.
    pub code: i32,
}

impl PastQuestion {
    /// The question of this verb about a run, which `reference` names.
    fn of_run(verb: &str, options: Vec<String>, reference: String) -> Self {
        let words = [verb.to_owned(), "--json".to_owned()].into_iter().chain(options);
        Self { words: words.chain(["--".to_owned(), reference]).collect(), code: NO_SUCH_RUN }
    }

    /// # Errors
    /// A word is longer than any that a person types, or cannot be one of a program.
    pub fn checked(self) -> Result<Self, RpcError> {
        let is_wrong = |word: &&String| word.len() > limits::HISTORY_WORD_BYTES || word.contains('\0');
        match self.words.iter().find(is_wrong) {
            Some(_) => {
                let most = limits::HISTORY_WORD_BYTES;
                Err(RpcError::new(BAD_PARAMS, format!("params: one is over {most} bytes, or has a zero byte")))
            }
            None => Ok(self),
        }
    }
}

impl PastRunsParams {
    #[must_use]
    pub fn question(&self) -> PastQuestion {
        let number = self.number.unwrap_or(limits::HISTORY_RUNS).min(limits::HISTORY_RUNS_MAX).to_string();
        let exit = self.exit.map(|code| code.to_string());
        let values = [
            ("--agent", &self.agent),
            ("--session", &self.caller_session),
            ("--cwd", &self.dir),
            ("--since", &self.since),
            ("--until", &self.until),
            ("--slow", &self.slow),
            ("--exit", &exit),
            ("--grep", &self.text),
        ];
        let values = values.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let flags = [
            ("--failed", self.failed),
            ("--running", self.running),
            ("--destroyed", self.destroyed),
            ("--any-output", self.any_output),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
        let first = ["log".to_owned(), "--json".to_owned(), format!("--number={number}")];
        PastQuestion { words: first.into_iter().chain(values).chain(flags).collect(), code: BAD_PARAMS }
    }
}

impl PastRunParams {
    #[must_use]
    pub fn question(&self, own_session: Option<&str>) -> PastQuestion {
        PastQuestion::of_run("show", Vec::new(), reference(self.run, self.session.as_deref().or(own_session)))
    }
}

impl PastOutputParams {
    #[must_use]
    pub fn question(&self, own_session: Option<&str>) -> PastQuestion {
        let lines = self.lines.map(|(first, last)| format!("--lines={}:{last}", first.max(1)));
        let text = self.text.as_ref().map(|text| format!("--grep={text}"));
        let tail = self.tail.map(|tail| format!("--tail={tail}"));
        let options = [lines, text, tail].into_iter().flatten().collect();
        PastQuestion::of_run("out", options, reference(self.run, self.session.as_deref().or(own_session)))
    }
}

fn reference(run: u64, session: Option<&str>) -> String {
    session.map_or_else(|| run.to_string(), |session| format!("{session}:{run}"))
}

/// What `rexec` has said: lines of JSON, and what it tells people.
#[derive(Debug, PartialEq, Eq)]
pub struct PastAnswer<'a> {
    pub lines: Vec<&'a [u8]>,
    /// It has said why there is no answer, and what helps.
    pub refusal: Option<(String, String)>,
}

impl<'a> PastAnswer<'a> {
    /// Reads the whole lines of it.
    #[must_use]
    pub fn read(said: &'a [u8]) -> Self {
        let whole = memchr::memrchr(b'\n', said).map_or(0, |end| end + 1);
        let (json, rest): (Vec<&[u8]>, Vec<&[u8]>) =
            said[..whole].split(|&byte| byte == b'\n').partition(|line| line.starts_with(b"{") && line.ends_with(b"}"));
        let told = |start: &str| {
            let of = |line: &&[u8]| Some(String::from_utf8_lossy(line.strip_prefix(start.as_bytes())?).into_owned());
            rest.iter().find_map(of)
        };
        let refusal = told("hint: ").map(|hint| (told("rexec: ").unwrap_or_default(), hint));
        Self { refusal: refusal.filter(|_| json.is_empty()), lines: json }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_one_that_a_person_could_type() {
        let asked = PastRunsParams {
            agent: Some("-x".to_owned()),
            text: Some("a b".to_owned()),
            exit: Some(3),
            failed: true,
            number: Some(u16::MAX),
            ..PastRunsParams::default()
        };
        let number = format!("--number={}", limits::HISTORY_RUNS_MAX);
        let words = ["log", "--json", &number, "--agent=-x", "--exit=3", "--grep=a b", "--failed"];
        assert_eq!(asked.question().words, words);
        let out = PastOutputParams { run: 4, session: None, lines: Some((0, 9)), text: None, tail: Some(2) };
        assert_eq!(out.question(Some("s")).words, ["out", "--json", "--lines=1:9", "--tail=2", "--", "s:4"]);
        let show = PastRunParams { run: 4, session: Some("-t".to_owned()) };
        assert_eq!(show.question(Some("s")).words, ["show", "--json", "--", "-t:4"]);
        assert!(show.question(None).checked().is_ok());
        for wrong in ["a\0b".to_owned(), "x".repeat(limits::HISTORY_WORD_BYTES)] {
            let session = Some(wrong);
            assert!(PastRunParams { run: 1, session }.question(None).checked().is_err());
        }
    }

    #[test]
    fn lines_of_json_are_told_from_words_for_people() {
        let said = b"rexec: 1 line is not a record: it is left out\n{\"a\":1}\n{\"b\":2}\n{\"c\":";
        let answer = PastAnswer::read(said);
        assert_eq!((answer.lines, answer.refusal), (vec![&b"{\"a\":1}"[..], b"{\"b\":2}"], None));
        let refused = PastAnswer::read(b"rexec: no command 9\nhint: look\n");
        assert_eq!(refused.refusal, Some(("no command 9".to_owned(), "look".to_owned())));
        assert_eq!(PastAnswer::read(b"rexec: a remark\n").refusal, None);
    }
}
