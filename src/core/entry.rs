//! The entries of a job's log, and the plain data in them.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::{Exit, Pid};

use super::end::{End, Refusal, RefusalCause, Stopper, Subject};

/// Where output came from. The discriminant numbers it in the journal's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The terminal.
    Tty,
    /// A pipe that is the command's descriptor 1.
    Out,
    /// A pipe that is the command's descriptor 2.
    Err,
}

impl Stream {
    /// Every stream, in the order in which the host reads them.
    pub const ALL: [Self; 3] = [Self::Tty, Self::Out, Self::Err];
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streams(u8);

impl Streams {
    #[must_use]
    pub fn of(streams: &[Stream]) -> Self {
        Self(streams.iter().fold(0, |bits, &stream| bits | 1 << stream as u8))
    }

    #[must_use]
    pub fn contains(self, stream: Stream) -> bool {
        self.0 & 1 << stream as u8 != 0
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn remove(&mut self, stream: Stream) {
        self.0 &= !(1 << stream as u8);
    }
}

/// The reason why a process group waits at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalWish {
    /// To change its modes.
    Modes,
    /// To read. The key ^D is end of file to it, or a key that most programs take for that.
    Input,
    /// To read keys, each as it is typed, in another session: ^D would only be one of them, and no signal follows it.
    Keys,
}

/// A program that waits for a person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub program: String,
    /// The last line of the command's output, as it was written: the words of the prompt.
    pub prompt: Box<[u8]>,
    /// When it began to wait.
    pub since: Instant,
    /// When it gets end of file instead of an answer.
    pub until: Instant,
}

/// One answer of a person, complete: how much was typed, and where. What was typed is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Typed {
    pub bytes: u64,
    /// The terminal did not show it, as for a password.
    pub is_hidden: bool,
    pub place: AnswerPlace,
}

/// Where a person types for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPlace {
    /// On the host's console.
    Console,
    /// By `rexec send`.
    Send,
    /// On a terminal that stands for the command's: `rexec attach`.
    Attach,
    /// In a client of JSON-RPC.
    Client,
}

impl AnswerPlace {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Send => "send",
            Self::Attach => "attach",
            Self::Client => "client",
        }
    }
}

/// A port on which another command listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHeld {
    pub port: u16,
    /// The command that listens there.
    pub run: u64,
    pub whoami: String,
    /// The process that listens, by its program's name and its number.
    pub process: (String, i32),
}

/// A process that outlived the shell of its command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftProcess {
    pub pid: i32,
    /// The program's name, as in proc_pid_comm(5).
    pub program: String,
    /// The TCP ports on which it listened when the shell ended, where they are known.
    pub ports: Vec<u16>,
}

/// What a person's rules say of a command, where they do not allow all of it. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// `ask` or `deny`.
    pub verdict: &'static str,
    /// The rule that decides, by its name and its place. `None` if a setting does.
    pub rule: Option<String>,
    /// The program that it is about, with its arguments.
    pub leaf: String,
    /// All of that in a sentence.
    pub why: String,
    pub consequence: Consequence,
}

impl Judgement {
    /// Returns true if it refuses the command whatever a person says.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(&self.consequence, Consequence::Refused(Refusal { cause: RefusalCause::Denied, .. }))
    }

    fn kept_bytes(&self) -> usize {
        let Self { verdict: _, rule, leaf, why, consequence } = self;
        let subject = match consequence {
            Consequence::Watched | Consequence::Unread | Consequence::Permitted(_) => 0,
            Consequence::Refused(Refusal { subject, .. }) | Consequence::Asked { subject, .. } => subject.kept_bytes(),
        };
        size_of::<Self>() + rule.as_ref().map_or(0, String::len) + leaf.len() + why.len() + subject
    }
}

/// What follows from a judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consequence {
    /// Nothing: it is shown.
    Watched,
    /// The same: it is allowed, though not all of it was read.
    Unread,
    /// The same: they ask, and the person has said yes before the command came.
    Permitted(Permit),
    Refused(Refusal),
    /// The command is held for this long, or until a person has decided.
    Asked {
        subject: Subject,
        wait: Duration,
    },
}

impl Consequence {
    /// Returns true if the command does not run at once.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Asked { .. })
    }
}

/// A person's yes from before a command came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// To this earlier run of the same command, on which nobody had decided in time.
    Later { run: u64 },
    /// To all that are like it.
    Learned,
}

impl Permit {
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Later { .. } => "later",
            Self::Learned => "learned",
        }
    }
}

/// The decision on a command that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub is_yes: bool,
    pub by: Decider,
    /// The person's reason.
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// A person at the host's console.
    Console,
    /// A client of the person's: `rexec answer`, or a program.
    Client,
    /// Who has the token that `--notify` got.
    Token,
    /// Nobody, in the time that there was.
    Timeout,
}

impl Decider {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Client => "client",
            Self::Token => "token",
            Self::Timeout => "timeout",
        }
    }
}

/// What was kept for undo before a command began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptFiles {
    pub files: u32,
    /// Paths that it may destroy, and that are not kept.
    pub missed: u32,
    /// A program of it whose operands are not known; empty if there is none.
    pub unknown: String,
    /// Why not all is kept, or nothing.
    pub failure: Option<String>,
}

/// What a command has destroyed, of what was kept before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DestroyedFiles {
    pub files: u64,
    pub bytes: u64,
    pub directories: u32,
    /// Paths that are gone and were not kept.
    pub missed: u32,
}

/// How much of a command's output its caller has got, once it gets no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes, after all filters.
    pub bytes: u64,
    /// Secrets that were masked in it.
    pub hidden: u64,
}

/// How output relates to a secret that a person typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretEcho {
    /// It is other output.
    No,
    /// It is the first part of what shows one.
    Begins,
    /// It is a further part, with nothing between it and the part before.
    GoesOn,
}

impl SecretEcho {
    /// The output for readers that keep it. The word stands once in the place of all parts, so that nobody even learns the
    /// secret's length.
    #[must_use]
    pub fn hidden<'a>(self, output: &'a [u8], word: &'a str) -> &'a [u8] {
        match self {
            Self::No => output,
            Self::Begins => word.as_bytes(),
            Self::GoesOn => b"",
        }
    }
}

/// One thing that happened to a job, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// It wrote this. `at` is the time from the job's start to the moment when the host read it.
    Output { stream: Stream, bytes: Box<[u8]>, at: Duration, echo: SecretEcho },
    /// Its terminal has another size now.
    Resized { rows: u16, cols: u16, at: Duration },
    /// It wrote this many bytes, which were not reported.
    Unreported { bytes: u64 },
    /// This program of it asked for terminal input, and nobody answered. It got end of file, unless it reads keys.
    WantedInput { program: String, has_ended: bool },
    /// A program of it waits for a person's answer.
    Waits(Box<Prompt>),
    /// A person typed for it.
    Answered(Typed),
    /// The person's rules do not allow all of it.
    Judged(Box<Judgement>),
    /// A person has not decided on it for a while.
    StillHeld { leaf: Box<str> },
    /// It was decided whether it runs, after this time.
    Decided(Box<Decision>, Duration),
    /// A reader begins here, and asks the recorder for what was before. The number is the reader's.
    Marked(u64),
    /// What it may destroy is being kept for undo, and that takes a while.
    Keeping,
    /// That was kept.
    Kept(Box<KeptFiles>),
    /// Another command holds a port that it could not listen on.
    PortHeld(Box<PortHeld>),
    /// It was asked to end, and has its grace to do so.
    Stopping { by: Stopper },
    /// A filter behind the ended shell is waited for no longer, so what it writes from now on is lost.
    FilterLeft,
    /// The shell was reaped; output may still follow.
    Exited { exit: Exit },
    /// Its output is closed. The caller, the name and the place among those that run are free.
    Ended(End),
    /// Its shell has ended, and these processes of it live on.
    Left(Box<[LeftProcess]>),
    /// SIGKILL does not end this process of it.
    Unkillable { pid: Pid, program: String },
    /// It has destroyed this, and nothing of it lives.
    Destroyed(DestroyedFiles),
    /// Its caller has got all of its output that it will get.
    Received(Received),
    /// The last entry: no process of it lives that the host knows of.
    Over,
}

impl Entry {
    /// The length of its output, 0 for any other entry.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        match self {
            Self::Output { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// The bytes that it keeps on the heap.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        match self {
            Self::Waits(prompt) => size_of::<Prompt>() + prompt.program.len() + prompt.prompt.len(),
            Self::WantedInput { program, .. } => program.len(),
            Self::PortHeld(held) => size_of::<PortHeld>() + held.whoami.len() + held.process.0.len(),
            Self::Unkillable { program, .. } => program.len(),
            Self::Kept(kept) => {
                size_of::<KeptFiles>() + kept.unknown.len() + kept.failure.as_ref().map_or(0, String::len)
            }
            Self::Judged(judgement) => judgement.kept_bytes(),
            Self::StillHeld { leaf } => leaf.len(),
            Self::Decided(decision, _) => size_of::<Decision>() + decision.why.as_ref().map_or(0, String::len),
            Self::Left(left) => {
                let kept = |left: &LeftProcess| left.program.len() + left.ports.len() * size_of::<u16>();
                size_of_val(&**left) + left.iter().map(kept).sum::<usize>()
            }
            _ => self.output_bytes(),
        }
    }

    /// Returns true if it may come behind the end of the job.
    #[must_use]
    pub fn may_follow_end(&self) -> bool {
        matches!(self, Self::Left(_) | Self::Unkillable { .. } | Self::Destroyed(_) | Self::Received(_) | Self::Over)
    }

    /// Returns true if a cursor that falls behind may miss it: only output and the terminal's size may be missed.
    #[must_use]
    pub fn may_be_missed(&self) -> bool {
        matches!(self, Self::Output { .. } | Self::Resized { .. })
    }
}
