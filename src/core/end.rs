//! The end of a run: how it ended, who ended it, and the code and the words for that.
//!
//! Every reader of a log tells the same end: the caller, the console, the journal, the tally, clients in JSON.

use std::borrow::Cow;
use std::time::Duration;

use rexec_sh::protocol::exit_code::{NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE, TIMED_OUT};
use rexec_sh::protocol::process::Exit;

/// Who asks a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopper {
    /// Its caller, which is gone.
    Caller,
    /// Its caller, which asked for its end.
    CallerAsked,
    /// The time limit of its caller.
    TimeLimit,
    /// A person at the host's console.
    Console,
    /// `rexec kill`.
    Kill,
    /// A client of the host that did not start it, or that starts another run in its place.
    Client,
    /// The end of the project session that it belongs to.
    Project,
    /// The end of the host.
    Host,
}

impl Stopper {
    /// One for each name.
    pub const NAMED: [Self; 7] =
        [Self::Caller, Self::TimeLimit, Self::Console, Self::Kill, Self::Client, Self::Project, Self::Host];

    /// Its name in the journal and in JSON: that of a caller does not say whether that is gone.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Caller | Self::CallerAsked => "caller",
            Self::TimeLimit => "timeout",
            Self::Console => "console",
            Self::Kill => "kill",
            Self::Client => "client",
            Self::Project => "project",
            Self::Host => "host",
        }
    }

    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|stopper| stopper.word() == word)
    }

    /// The failure of a run that it ended.
    fn failure(self) -> Failure {
        match self {
            Self::TimeLimit => Failure::TimedOut,
            Self::Caller
            | Self::CallerAsked
            | Self::Console
            | Self::Kill
            | Self::Client
            | Self::Project
            | Self::Host => Failure::Stopped,
        }
    }
}

/// A failure outside the command itself: why it did not end, or not by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its time limit ended it.
    TimedOut,
    /// Anybody else ended it, or it was asked to stop before it ran.
    Stopped,
    /// Its program was not found.
    NotFound,
    /// It could not be started for another reason.
    NotStarted,
    /// The person's rules deny it, or nobody allowed it.
    Refused,
    /// How it ended is not known.
    Lost,
}

impl Failure {
    pub const ALL: [Self; 6] =
        [Self::TimedOut, Self::Stopped, Self::NotFound, Self::NotStarted, Self::Refused, Self::Lost];

    /// Its name in the journal and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Stopped => "aborted",
            Self::NotFound => "not_found",
            Self::NotStarted => "spawn_failed",
            Self::Refused => "refused",
            Self::Lost => "lost",
        }
    }

    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.word() == word)
    }

    /// `aborted by kill`: the word for a failure, which may be one that this version does not know, and who ended the run,
    /// unless the word says it.
    #[must_use]
    pub fn told<'a>(error: &'a str, by: Option<&str>) -> Cow<'a, str> {
        match by {
            Some(by) if error == Self::Stopped.word() => Cow::Owned(format!("{error} by {by}")),
            _ => Cow::Borrowed(error),
        }
    }
}

/// Why a command did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// The exit code for the caller: 126 or 127 where a shell would exit with it, else 125.
    pub code: u8,
    pub problem: String,
    pub hint: String,
}

/// A command that did not run because the person's rules deny it, or ask and got no yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub subject: Subject,
    pub cause: RefusalCause,
}

/// The part of a command that rules do not allow, in words for the agent. No secret is in it, and no word that an agent
/// takes for its own sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The program with its arguments.
    pub leaf: String,
    /// The name of the rule. `None` if a setting decides, and for a rule without one.
    pub rule: Option<String>,
    /// The rule's own reason, or what the setting is about.
    pub why: Option<String>,
}

impl Subject {
    /// The bytes that it keeps on the heap.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.leaf.len() + [&self.rule, &self.why].into_iter().flatten().map(String::len).sum::<usize>()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalCause {
    /// A rule or a setting denies it.
    Denied,
    /// A person said no, perhaps with a reason.
    Person(Option<String>),
    /// Nobody answered within this time.
    Unanswered(Duration),
    /// Nobody was there to answer.
    Away,
}

impl RefusalCause {
    /// Who decided, where nobody was there.
    pub const AWAY: &str = "away";
}

impl Refusal {
    /// The sentence for the agent.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Subject { leaf, rule, why } = &self.subject;
        let rule = rule.as_ref().map_or_else(|| "the rules of your user".to_owned(), |rule| format!("rule {rule}"));
        let because = |why: &Option<String>| why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let no_no = "This is not a no: tell your user, go on with something else, and run it again later.";
        match &self.cause {
            RefusalCause::Denied => format!("nothing was run: \"{leaf}\" is refused by {rule}{}", because(why)),
            RefusalCause::Person(why) => format!("nothing was run: your user refused \"{leaf}\"{}", because(why)),
            RefusalCause::Unanswered(waited) => {
                let seconds = waited.as_secs();
                format!("nothing was run: nobody answered within {seconds} s whether \"{leaf}\" may run. {no_no}")
            }
            RefusalCause::Away => {
                format!("nothing was run: nobody is there to say whether \"{leaf}\" may run. {no_no}")
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The shell ended.
    Exited(Exit),
    NotStarted(Box<StartError>),
    Refused(Box<Refusal>),
    /// It was asked to stop before it ran.
    NeverRun,
    /// Its shim, which ran it in its caller's sandbox, has ceased to report.
    Unseen,
    /// Its guard died, or it could not be killed, so its exit is unknown.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub how: How,
    /// Who asked it to end, if somebody did.
    pub by: Option<Stopper>,
    /// The time from its request to its start; zero for one that did not start.
    pub queued: Duration,
    /// The time from its start to the end of its shell.
    pub took: Duration,
}

impl End {
    /// The exit for the caller. `None` if no shell ended.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        match (&self.how, self.by) {
            (How::Exited(_), Some(Stopper::TimeLimit)) => Some(Exit::Code(TIMED_OUT)),
            (How::Exited(exit), _) => Some(*exit),
            (How::NotStarted(_) | How::Refused(_) | How::NeverRun | How::Unseen | How::Lost, _) => None,
        }
    }

    /// The exit code, as in a shell.
    #[must_use]
    pub fn code(&self) -> u8 {
        match &self.how {
            How::NotStarted(why) => why.code,
            How::Refused(_) => NOT_EXECUTABLE,
            _ => self.exit().map_or(OWN_FAILURE, Exit::code),
        }
    }

    /// The signal that ended the shell, whoever sent it.
    #[must_use]
    pub fn signal(&self) -> Option<u8> {
        match &self.how {
            How::Exited(Exit::Signal(signal)) => Some(signal.number()),
            _ => None,
        }
    }

    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        match &self.how {
            How::Exited(_) => self.by.map(Stopper::failure),
            How::NotStarted(why) if why.code == NOT_FOUND => Some(Failure::NotFound),
            How::NotStarted(_) => Some(Failure::NotStarted),
            How::Refused(_) => Some(Failure::Refused),
            How::NeverRun => Some(Failure::Stopped),
            How::Unseen | How::Lost => Some(Failure::Lost),
        }
    }

    #[must_use]
    pub fn queued_ms(&self) -> u64 {
        u64::try_from(self.queued.as_millis()).unwrap_or(u64::MAX)
    }

    #[must_use]
    pub fn took_ms(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexec_sh::protocol::process::Signal;

    const STOPPERS: [Option<Stopper>; 8] = [
        None,
        Some(Stopper::Caller),
        Some(Stopper::TimeLimit),
        Some(Stopper::Console),
        Some(Stopper::Kill),
        Some(Stopper::Client),
        Some(Stopper::Project),
        Some(Stopper::Host),
    ];

    /// Code, signal and word of an end for each of [`STOPPERS`].
    fn row(how: &How) -> Vec<(u8, Option<u8>, Option<&'static str>)> {
        let end = |by| End { how: how.clone(), by, queued: Duration::ZERO, took: Duration::ZERO };
        STOPPERS.map(end).map(|end| (end.code(), end.signal(), end.failure().map(Failure::word))).to_vec()
    }

    #[test]
    fn a_time_limit_has_its_own_code_and_word_and_everybody_else_has_one() {
        let stopped = |code, signal| {
            let aborted = (code, signal, Some("aborted"));
            let mut row = vec![(code, signal, None), aborted, (124, signal, Some("timeout"))];
            row.resize(STOPPERS.len(), aborted);
            row
        };
        assert_eq!(row(&How::Exited(Exit::Code(0))), stopped(0, None));
        assert_eq!(row(&How::Exited(Exit::Code(3))), stopped(3, None));
        assert_eq!(row(&How::Exited(Exit::Signal(Signal::TERM))), stopped(143, Some(15)));
        let at_limit = End {
            how: How::Exited(Exit::Signal(Signal::TERM)),
            by: Some(Stopper::TimeLimit),
            queued: Duration::ZERO,
            took: Duration::ZERO,
        };
        assert_eq!(at_limit.exit(), Some(Exit::Code(124)), "the caller's shell is not killed by the signal");
    }

    fn subject() -> Subject {
        Subject { leaf: "git push".to_owned(), rule: None, why: Some("Open a PR.".to_owned()) }
    }

    #[test]
    fn a_refusal_says_what_it_is_about_and_whether_it_is_a_no() {
        let says = |cause| Refusal { subject: subject(), cause }.sentence();
        let no = "nothing was run: your user refused \"git push\"";
        let denied = "nothing was run: \"git push\" is refused by the rules of your user: Open a PR.";
        assert_eq!(says(RefusalCause::Denied), denied);
        assert_eq!(says(RefusalCause::Person(None)), no);
        assert_eq!(says(RefusalCause::Person(Some("later".to_owned()))), format!("{no}: later"));
        for cause in [RefusalCause::Away, RefusalCause::Unanswered(Duration::from_secs(60))] {
            assert!(says(cause.clone()).contains("\"git push\" may run. This is not a no:"), "{cause:?}");
        }
    }

    #[test]
    fn an_end_without_an_exit_has_one_code_and_word_whoever_asked_for_it() {
        let start_error =
            |code| How::NotStarted(Box::new(StartError { code, problem: String::new(), hint: String::new() }));
        let table = [
            (start_error(127), 127, "not_found"),
            (start_error(126), 126, "spawn_failed"),
            (start_error(125), 125, "spawn_failed"),
            (How::Refused(Box::new(Refusal { subject: subject(), cause: RefusalCause::Denied })), 126, "refused"),
            (How::NeverRun, 125, "aborted"),
            (How::Unseen, 125, "lost"),
            (How::Lost, 125, "lost"),
        ];
        for (how, code, error) in table {
            assert_eq!(row(&how), vec![(code, None, Some(error)); STOPPERS.len()], "{how:?}");
            assert_eq!(End { how, by: None, queued: Duration::ZERO, took: Duration::ZERO }.exit(), None);
        }
    }

    #[test]
    fn each_stopper_has_a_word_of_its_own() {
        let words = STOPPERS.map(|by| by.map(Stopper::word));
        assert_eq!(
            words[1..].iter().flatten().copied().collect::<Vec<_>>(),
            ["caller", "timeout", "console", "kill", "client", "project", "host"]
        );
        assert_eq!(words.map(|word| word.and_then(Stopper::of_word)), STOPPERS);
        assert_eq!(Stopper::of_word("aborted"), None);
    }

    #[test]
    fn a_failure_is_known_by_its_word_and_tells_who_stopped_the_run() {
        assert_eq!(Failure::ALL.map(|failure| Failure::of_word(failure.word())), Failure::ALL.map(Some));
        assert_eq!(Failure::of_word("kill"), None);
        assert_eq!(Failure::told("aborted", Some("kill")), "aborted by kill");
        for (error, by) in [("aborted", None), ("timeout", Some("timeout")), ("lost", Some("host")), ("new", Some("x"))]
        {
            assert_eq!(Failure::told(error, by), error);
        }
    }
}
