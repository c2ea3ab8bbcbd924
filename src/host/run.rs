//! An active run: what the host holds of one command, from its request to the last process it left behind.
//!
//! A run outlives its command: the job ends with the shell's end and its last output, the run goes when its guard is gone
//! and its streams are closed.

use std::path::PathBuf;
use std::time::Instant;

use rexec_sh::protocol::wire;

use super::answering::Answering;
use super::broken_pipe::BrokenPipe;
use super::input_pipe::InputPipe;
use super::orders::{Again, Orders};
use super::orphan_hunt::OrphanHunt;
use super::spares::END_OF_FILE;
use super::terminal_relay::TerminalRelay;
use super::turn::PeerId;
use crate::core::card::Card;
use crate::core::end::StartError;
use crate::core::entry::Stream;
use crate::front::budget::Share;
use crate::front::command::Command;
use crate::front::projects::ProjectId;
use crate::io::port::Port;
use crate::journal::record::PublishedCard;
use crate::limits;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::sys::{self, pty, tree};
use crate::text::alternate_screen::AlternateScreen;
use crate::text::bind_failure::BindFailure;
use crate::text::echo::SecretLine;
use crate::text::redact::Redactor;
use crate::text::terminal_tail::TerminalTail;
use rexec_sh::protocol::process::{Pid, ProcessGroup};

#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) peer: Option<PeerId>,
    /// The command, until its guard has begun with it; or why it cannot be started.
    pub(super) pending: Option<Result<PendingStart, StartError>>,
    pub(super) description: Description,
    /// Its request's share of the bytes for all requests, until its guard has all of it.
    pub(super) request: Option<Share>,
    pub(super) accepted: Instant,
    /// Its shim has not said yet that it has let go of what the command may let go of.
    pub(super) is_held_by_shim: bool,
    pub(super) guard: Option<GuardLink>,
    /// The number of guards that got it before.
    pub(super) attempts: u32,
    /// It waits for another guard.
    pub(super) again: Option<Again>,
    /// The processes that it left running when it ended: number and start time of each.
    pub(super) left: Vec<(Pid, u64)>,
    /// The hunt for what its dead guard left.
    pub(super) hunt: Option<OrphanHunt>,
    pub(super) streams: StreamPorts,
    /// The relay of its caller's terminal, if its own terminal stands for that.
    pub(super) relay: Option<TerminalRelay>,
    /// The person who answers its prompt, or attends to it.
    pub(super) answering: Option<Answering>,
    /// Tracks if it draws on the alternate screen of its terminal.
    pub(super) screen: AlternateScreen,
    /// The end of what was written to its terminal.
    pub(super) tail: TerminalTail,
    /// Which of the caller's streams its terminal is.
    pub(super) tty: Option<wire::CallerStream>,
    /// The outputs that have no reader any more, as its caller said. It may say so before there are streams, and it holds
    /// for the streams of every guard that gets the command.
    pub(super) unread: [bool; Stream::ALL.len()],
    /// When it gets SIGPIPE for output on a terminal without a reader.
    pub(super) broken_pipe: BrokenPipe,
    /// What its output reported of ports that are in use.
    pub(super) bind_failure: BindFailure,
    /// The secret that a person types for it.
    pub(super) secret: SecretLine,
    pub(super) ending: Ending,
    /// Its standard input, if its caller writes that in pieces.
    pub(super) input: Option<InputPipe>,
    pub(super) pause: Pause,
    pub(super) is_tallied: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nobody has, or they go on.
    No,
    /// They stand still, or will as soon as the run has begun.
    Paused,
    /// The host told its guard to continue them, and the guard has not said that it did. A guard that dies first never
    /// will.
    Resuming,
}

/// The streams of a run that the host reads, by [`Stream`].
pub(super) type StreamPorts = [Option<Port>; Stream::ALL.len()];

#[derive(Debug)]
pub(super) struct PendingStart {
    pub(super) command: Command,
    pub(super) descriptors: Vec<CallerDescriptor>,
}

impl PendingStart {
    /// The directory in which it begins. Empty if that is not known.
    pub(super) fn directory(&self) -> PathBuf {
        directory(&self.command, &self.descriptors)
    }
}

/// The directory in which a command with these descriptors begins. Empty if that is not known.
pub(super) fn directory(command: &Command, descriptors: &[CallerDescriptor]) -> PathBuf {
    let sent = || descriptors.first().and_then(sys::path_of).unwrap_or_default();
    command.dir.clone().map_or_else(sent, PathBuf::from)
}

#[derive(Debug)]
pub(super) struct GuardLink {
    pub(super) pid: Pid,
    pub(super) control: Port,
    pub(super) orders: Orders,
    pub(super) inbox: Vec<u8>,
    pub(super) shell_is_over: bool,
    /// Processes of the command were alive when its shell ended.
    pub(super) has_left: bool,
    /// The command has left nothing, and the guard waits for another one.
    pub(super) is_free: bool,
    /// The process group of a shell that has ended, until it was noted what it left running.
    pub(super) left_by: Option<ProcessGroup>,
}

impl GuardLink {
    /// A guard that gets a command. It may have reported something already.
    pub(super) fn new(pid: Pid, mut control: Port, orders: Orders) -> Self {
        control.expect_input();
        Self {
            pid,
            control,
            orders,
            inbox: Vec::new(),
            shell_is_over: false,
            has_left: false,
            is_free: false,
            left_by: None,
        }
    }
}

/// The description of a command in lists of runs and in messages. It lives as long as the run, also while only processes
/// are left of it, so no text in it is long.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// Its texts are cut to `ROSTER_TEXT_BYTES`, and without its secrets if the host masks them for agents.
    pub(super) card: PublishedCard,
    /// Its caller gave words and not a line for a shell.
    pub(super) is_words: bool,
    /// Its caller kills the rest of the shell's process group.
    pub(super) kills_group: bool,
    /// It brings back files, for the person.
    pub(super) is_restore: bool,
    pub(super) project: Option<ProjectId>,
    /// Masks its secrets for agents, if the host does that.
    pub(super) secrets: Option<Redactor>,
}

impl Description {
    /// The description of a command without these secrets.
    pub(super) fn of(card: &Card, secrets: Option<Redactor>) -> Self {
        let mut published = PublishedCard::from(card);
        for (name, text) in published.texts_mut() {
            match (name, &secrets) {
                ("command", Some(secrets)) => *text = secrets.masked_command(text),
                ("dir" | "why" | "name", Some(secrets)) => *text = secrets.masked_text(text),
                _ => {}
            }
            if text.len() > limits::ROSTER_TEXT_BYTES {
                *text = String::from_utf8_lossy(&text.as_bytes()[..limits::ROSTER_TEXT_BYTES]).into_owned();
            }
        }
        let is_words = card.command.words.is_some();
        Self { card: published, is_words, kills_group: false, is_restore: false, project: None, secrets }
    }
}

/// The state of ending what a command left running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LeftOver {
    /// Nobody asked for its end.
    #[default]
    Untouched,
    /// It got SIGTERM, and gets SIGKILL when the grace is over.
    Terminated,
    /// Its guard kills it.
    Killed,
}

/// The end of a command that a person asked for.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) waiting: Vec<PeerId>,
    pub(super) left_over: LeftOver,
    /// Nothing more can be done about what still lives.
    pub(super) is_given_up: bool,
    /// The processes that could not be killed, until the peers that wait are answered.
    pub(super) unkillable: Vec<Pid>,
}

impl Ending {
    /// Returns true if what was left over should be dead by now.
    pub(super) fn is_killed(&self) -> bool {
        self.left_over == LeftOver::Killed && !self.is_given_up
    }

    /// Returns true while the host ends what was left over.
    pub(super) fn is_pursued(&self) -> bool {
        self.left_over != LeftOver::Untouched && !self.is_given_up
    }

    /// A process cannot be killed, so nothing more can be done.
    pub(super) fn give_up(&mut self, pid: Pid) {
        self.is_given_up = true;
        self.unkillable.push(pid);
    }
}

impl ActiveRun {
    /// A run that belongs to no peer.
    pub(super) fn new(
        pending: Result<PendingStart, StartError>,
        description: Description,
        request: Share,
        accepted: Instant,
    ) -> Self {
        Self {
            peer: None,
            pending: Some(pending),
            description,
            request: Some(request),
            accepted,
            is_held_by_shim: false,
            guard: None,
            attempts: 0,
            again: None,
            left: Vec::new(),
            hunt: None,
            streams: [const { None }; Stream::ALL.len()],
            relay: None,
            answering: None,
            screen: AlternateScreen::default(),
            tail: TerminalTail::default(),
            tty: None,
            unread: [false; Stream::ALL.len()],
            broken_pipe: BrokenPipe::default(),
            bind_failure: BindFailure::default(),
            secret: SecretLine::default(),
            ending: Ending::default(),
            input: None,
            pause: Pause::No,
            is_tallied: false,
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause == Pause::Paused
    }

    /// The stream's port, while it is open.
    pub(super) fn stream(&mut self, stream: Stream) -> Option<&mut Port> {
        self.streams[stream as usize].as_mut()
    }

    pub(super) fn guard_pid(&self) -> Option<Pid> {
        self.guard.as_ref().map(|link| link.pid)
    }

    /// Everything of it that lives now, nearest to its guard first.
    pub(super) fn processes(&self) -> Vec<tree::Process> {
        match (&self.guard, &self.hunt) {
            (Some(link), _) => tree::walk(link.pid).take(limits::STRAGGLERS_COUNTED_MAX).collect(),
            (None, Some(hunt)) => hunt.living.clone(),
            (None, None) => Vec::new(),
        }
    }

    /// Returns true if nothing of it is left, once its job is over.
    pub(super) fn is_over(&self) -> bool {
        self.guard.is_none() && self.hunt.is_none()
    }

    /// Returns true if processes of it may live on, once its job is over. A guard with no processes left lives until
    /// its last report is read.
    pub(super) fn has_left(&self) -> bool {
        self.hunt.is_some() || self.guard.as_ref().is_some_and(|link| link.has_left || !link.shell_is_over)
    }

    /// Returns true if no guard has begun with it. Its streams hold nothing then, and their ends mean nothing, because
    /// another guard may get it.
    pub(super) fn is_unbegun(&self) -> bool {
        self.guard.as_ref().map_or(self.again.is_some(), |link| !link.orders.has_begun())
    }

    /// The host has told its guard to begin, or the guard has begun: no other one gets the command.
    pub(super) fn on_begun(&mut self) {
        if let Some(link) = &mut self.guard {
            link.orders.on_begun();
            self.pending = None;
            self.request = None;
        }
    }

    /// Returns true if it has a terminal that stands for no caller's.
    pub(super) fn has_own_terminal(&self) -> bool {
        self.relay.is_some() && self.peer.is_none()
    }

    pub(super) fn has_keys(&self) -> bool {
        self.relay.as_ref().is_some_and(|relay| !relay.keys.is_empty())
            || self.answering.as_ref().is_some_and(Answering::has_keys)
    }

    /// When its guard, or what its dead guard left, has to be looked at.
    pub(super) fn owing_deadline(&self) -> Option<Instant> {
        match (&self.guard, &self.again, &self.hunt) {
            (Some(link), ..) => link.orders.deadline(),
            (None, Some(again), _) => Some(again.at),
            (None, None, Some(hunt)) => Some(hunt.look_at),
            (None, None, None) => None,
        }
    }

    /// Makes what opens the name of its terminal from now on fail.
    pub(super) fn lock_terminal(&mut self) {
        self.stream(Stream::Tty).into_iter().for_each(|master| pty::lock(master.fd()));
    }

    /// Returns true if its terminal is hung up when nobody answers at it. One that the command's output goes through has to
    /// stay, and so has its caller's.
    pub(super) fn is_hung_up_unanswered(&self) -> bool {
        self.tty.is_none() && self.relay.is_none()
    }

    /// Returns true if it never had such a terminal, or has lost it.
    pub(super) fn is_hung_up(&self) -> bool {
        self.is_hung_up_unanswered() && self.streams[Stream::Tty as usize].is_none()
    }

    /// Makes what opens the name of its terminal fail, unless the command's output goes through it.
    pub(super) fn lock_unanswered_terminal(&mut self) {
        if self.is_hung_up_unanswered() {
            self.lock_terminal();
        }
    }

    /// Types ^D at its terminal, which a reader in line mode takes for end of file.
    pub(super) fn type_end_of_file(&mut self) {
        if let Some(port) = self.stream(Stream::Tty) {
            // A terminal whose input is full already has something to read.
            let _ = port.write(|fd| sys::write(fd, END_OF_FILE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::card::{Caller, CommandLine, Place};

    /// A run that left a process may stay in lists for days.
    #[test]
    fn a_description_keeps_no_long_text() {
        let long = "é".repeat(100_000);
        let card = Card {
            run: 1,
            time: String::new(),
            at: Instant::now(),
            caller: Caller { version: long.clone(), session: long.clone(), ..Caller::default() },
            place: Place { dir: long.clone(), name: String::new() },
            command: CommandLine {
                text: long.clone(),
                why: long.clone(),
                shell: long.clone(),
                ..CommandLine::default()
            },
            sandbox: Some(long),
        };
        let description = Description::of(&card, None);
        let lengths = description.card.texts().map(|(_, text)| text.len()).filter(|length| *length > 0);
        assert_eq!(lengths.collect::<Vec<_>>(), [limits::ROSTER_TEXT_BYTES; 7]);
    }
}
