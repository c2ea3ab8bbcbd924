//! A peer: one connection, from the hello to the last byte.
//!
//! Invariants: no descriptor is taken in before its sender was looked at; from then on they are taken in at once; a log
//! entry counts as read only when all of it is queued for the peer; a hello alone is never sent, because it is not worth a
//! wake-up of the shim.

use std::time::Instant;

use rexec_sh::protocol::wire::{self, Decoded, Hello};

use super::terminal_relay::RelayEvent;
use super::turn::Turn;
use crate::core::buffer_room::make_room;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Received};
use crate::core::log::Item;
use crate::front::language::Language;
use crate::guard::saved_terminal::SavedTerminal;
use crate::io::outlet::Outlet;
use crate::io::poller::Ready;
use crate::io::port::{Port, ReadOutcome};
use crate::limits;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::sys::confinement::{Moment, Purpose};
use crate::sys::socket;
use rexec_sh::protocol::process::Pid;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) port: Port,
    pub(super) language: Language,
    pub(super) inbox: Vec<u8>,
    /// The inbox waits until the peer has taken the answers to its earlier requests. The host reads nothing more
    /// meanwhile.
    pub(super) is_behind: bool,
    pub(super) descriptors: Vec<CallerDescriptor>,
    pub(super) out: Outlet,
    /// The host has queued nothing but a hello for it so far.
    is_only_greeted: bool,
    /// When it was accepted or had its last answer, for its deadlines.
    pub(super) since: Instant,
    /// It has had an answer, and may ask again.
    pub(super) has_answer: bool,
    /// When it was accepted, for the sandbox check.
    pub(super) accepted: Moment,
    /// The process that connected.
    pub(super) pid: Pid,
    /// The parent of that process, if the sandbox check has seen it.
    pub(super) parent: Option<Pid>,
    /// Another process has written to the connection. It may have been handed to a process in a sandbox.
    pub(super) is_shared: bool,
    /// It was looked at and may bring descriptors. Without that, nothing is received that comes with some.
    pub(super) takes_descriptors: bool,
    /// It has sent descriptors that are not taken in. What it said with them was heard, and nothing more is received.
    pub(super) is_sealed: bool,
    /// When it was found to be confined as the host is, with its whole request before the host's eyes.
    pub(super) admitted: Option<Instant>,
    /// What it was found to be allowed since the host has read what it says. A process can only confine itself further, so
    /// that holds for all requests of it that the host has.
    pub(super) allowed: Option<Purpose>,
    /// Its position in its command's log, until it has read all of it.
    pub(super) cursor: Option<Cursor>,
    /// Bytes that it already has of the entry that it reads next.
    read: usize,
    pub(super) job: Option<JobId>,
    /// The command that its person's terminal stands for, or that the person watches.
    pub(super) attached: Option<JobId>,
    /// Its terminal, while its shim relays it. A shim that was killed cannot put it back.
    pub(super) terminal: Option<SavedTerminal>,
    /// News for it, once it has read all output that came before.
    pub(super) told_in_place: Vec<RelayEvent>,
    /// It has shut its writing side and waits for the answer.
    pub(super) is_half_closed: bool,
    /// Everything is queued for it: the host lets it go when its bytes are out.
    pub(super) is_leaving: bool,
    /// Since when it has taken nothing of what is left for it, although its command has ended.
    pub(super) stuck_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Open,
    End,
    /// The kernel could not deliver descriptors that came with the bytes.
    DescriptorsLost,
    /// More descriptors came than any request has.
    TooManyDescriptors,
    /// Descriptors come with what is next, of which the turn's buffer has so many bytes.
    Brings(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has everything there is for now, or has no room for more.
    Waits,
    /// Its time in this turn is over.
    MayGoOn,
    /// It has the last entry.
    End,
}

impl Peer {
    /// A newly accepted connection from `pid`. The request usually follows at once, so try to read now.
    pub(super) fn new(mut port: Port, language: Language, pid: Pid, now: Instant) -> Self {
        port.expect_input();
        Self {
            port,
            language,
            inbox: Vec::new(),
            is_behind: false,
            descriptors: Vec::new(),
            out: Outlet::default(),
            is_only_greeted: true,
            since: now,
            has_answer: false,
            accepted: Moment::now(),
            pid,
            parent: None,
            is_shared: false,
            takes_descriptors: false,
            is_sealed: false,
            admitted: None,
            allowed: None,
            cursor: None,
            read: 0,
            job: None,
            attached: None,
            terminal: None,
            told_in_place: Vec::new(),
            is_half_closed: false,
            is_leaving: false,
            stuck_since: None,
        }
    }

    /// Remembers an event. Returns true if it calls for a visit.
    pub(super) fn remember(&mut self, event: Ready) -> bool {
        self.port.remember(event);
        event.readable || !self.out.is_empty()
    }

    pub(super) fn is_shim(&self) -> bool {
        matches!(self.language, Language::Shim(_))
    }

    /// Returns true if it is a shim that says when it has let go of what its command may let go of.
    pub(super) fn lets_go(&self) -> bool {
        matches!(&self.language, Language::Shim(shim) if shim.lets_go())
    }

    pub(super) fn is_rpc(&self) -> bool {
        matches!(self.language, Language::Rpc(_))
    }

    /// Returns true if it says a line of JSON next, whose reading may take long.
    pub(super) fn speaks_json(&self) -> bool {
        match &self.language {
            Language::Rpc(_) | Language::Jsonl(_) => true,
            Language::Undecided(_) => matches!(self.inbox.trim_ascii_start().first(), Some(b'{' | b'[')),
            Language::Shim(_) | Language::Attached(_) => false,
        }
    }

    /// Returns true if the host reads nothing more from it for now: it asks for more than it takes, or it may ask again
    /// once it has taken its answer.
    pub(super) fn is_deaf(&self) -> bool {
        match &self.language {
            Language::Rpc(_) => self.out.pending() >= limits::OUTLET_HIGH_BYTES,
            language => self.is_leaving && language.may_go_on() && !self.out.is_empty(),
        }
    }

    /// Makes ready for another request, when everything that was said is sent. Returns `false` when there is none.
    pub(super) fn go_on(&mut self, now: Instant) -> bool {
        let goes_on = self.is_leaving && self.out.is_empty() && self.language.go_on();
        if goes_on {
            (self.is_leaving, self.job, self.stuck_since) = (false, None, None);
            (self.has_answer, self.since) = (true, now);
        }
        goes_on
    }

    /// Returns true if it has its answer and has not begun another request.
    pub(super) fn may_be_closed(&self) -> bool {
        self.has_answer && !self.is_leaving && self.inbox.is_empty() && !self.language.has_asked()
    }

    /// Reads a budget's worth of what the peer has said.
    pub(super) fn receive(&mut self, turn: &mut Turn) -> Heard {
        if self.is_deaf() || self.is_behind || self.is_sealed {
            return Heard::Open;
        }
        let (mut budget, mut is_end) = (limits::READ_BUDGET_BYTES, self.is_half_closed);
        let (mut lost_descriptors, mut brings) = (false, None);
        while self.port.is_readable() && budget > 0 && !is_end {
            let (buffer, descriptors) = (&mut turn.buffer, &mut self.descriptors);
            let pid = self.pid;
            let is_shared = &mut self.is_shared;
            let is_known = self.takes_descriptors;
            let input = self.port.read(|fd| {
                let mut room = buffer.len();
                if !is_known {
                    let next = socket::peek(fd, buffer)?;
                    room = next.bytes;
                    if next.has_descriptors {
                        *is_shared |= next.sender != Some(pid);
                        brings = Some(room);
                    }
                    if room == 0 || next.has_descriptors {
                        return Ok(room);
                    }
                }
                let received = socket::receive_with_descriptors(fd, &mut buffer[..room], descriptors)?;
                lost_descriptors |= received.lost_descriptors;
                *is_shared |= received.bytes > 0 && received.sender != Some(pid);
                Ok(received.bytes)
            });
            match input {
                ReadOutcome::Bytes(length) => {
                    self.allowed = None;
                    if let Some(length) = brings {
                        return Heard::Brings(length);
                    }
                    budget = budget.saturating_sub(length.max(limits::MESSAGE_COST_BYTES));
                    if self.is_leaving {
                        self.descriptors.clear();
                    } else {
                        self.inbox.extend_from_slice(&turn.buffer[..length]);
                    }
                    if self.descriptors.len() > socket::DESCRIPTORS_MAX {
                        return Heard::TooManyDescriptors;
                    }
                }
                ReadOutcome::Nothing => break,
                ReadOutcome::End => is_end = true,
            }
        }
        if self.port.is_readable() && !is_end {
            turn.queue(self.port.token());
        }
        if is_end && !self.still_listens() {
            Heard::End
        } else if lost_descriptors {
            Heard::DescriptorsLost
        } else {
            Heard::Open
        }
    }

    /// The purpose of a peer that sends these bytes with descriptors. `None` if none belong there.
    pub(super) fn purpose_of_descriptors(&mut self, bytes: &[u8]) -> Option<Purpose> {
        self.language.decide(self.inbox.first().or(bytes.first()));
        match &self.language {
            Language::Shim(shim) if shim.has_asked() => None,
            Language::Shim(shim) => {
                let is_greeted = || matches!(Hello::decode(bytes), Ok(Decoded::Item(..)));
                (shim.has_said_hello() || (self.inbox.is_empty() && is_greeted())).then_some(Purpose::Run)
            }
            Language::Jsonl(_) | Language::Rpc(_) => Some(Purpose::Supervise),
            Language::Undecided(_) | Language::Attached(_) => None,
        }
    }

    /// Notes that it is confined as the host is, as far as this purpose asks, for descriptors that come with these
    /// bytes.
    pub(super) fn admit(&mut self, purpose: Purpose, bytes: &[u8], now: Instant) {
        self.takes_descriptors = true;
        let is_for_command = purpose == Purpose::Run && self.inbox.is_empty();
        let frame = bytes.get(wire::HELLO_BYTES..).filter(|_| is_for_command);
        self.admitted = frame.filter(|frame| wire::is_whole_frame(frame)).map(|_| now);
    }

    /// Returns true if the peer, whose end was read, has only shut its writing side and may wait for an answer. Its
    /// last line needs no newline then. A whole close(2) ends its command.
    fn still_listens(&mut self) -> bool {
        self.language.decide(self.inbox.first());
        let listens = self.language.allows_half_close() && !socket::is_hung_up(self.port.fd());
        if listens && !self.is_half_closed {
            self.is_half_closed = true;
            self.inbox.push(b'\n');
        }
        listens
    }

    /// Sends as much as the peer takes. Returns `false` when the peer is gone.
    pub(super) fn send(&mut self) -> bool {
        self.is_only_greeted &= self.out.pending() <= wire::HELLO_BYTES && !self.is_leaving;
        if !self.port.is_writable() || self.is_only_greeted {
            return true;
        }
        let (port, before) = (&mut self.port, self.out.pending());
        let flushed = self.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
        if self.out.pending() < before {
            self.stuck_since = None;
        }
        flushed.is_ok()
    }

    /// Queues and sends what the command's log has for the peer, for as long as the turn allows.
    pub(super) fn read_log(&mut self, engine: &mut Engine, now: Instant) -> Progress {
        let (mut is_end, until) = (false, Instant::now() + limits::PUMP_TIME);
        // It ends when the log is read or the socket is full. An event reports when there is more to do.
        while self.send()
            && let Some(cursor) = self.cursor
            && self.out.pending() < limits::OUTLET_HIGH_BYTES
            && engine.next(cursor).is_some()
        {
            while self.out.pending() < limits::OUTLET_HIGH_BYTES
                && let Some(item) = engine.next(cursor)
                && Instant::now() < until
            {
                is_end = matches!(item, Item::Entry(Entry::Ended(_)));
                if self.take(&item, now) {
                    engine.advance(cursor);
                }
            }
            if is_end {
                return Progress::End;
            }
            if Instant::now() >= until {
                return Progress::MayGoOn;
            }
        }
        Progress::Waits
    }

    /// Queues an item of the log. Returns true if all of it is queued; else the rest of its output is still to come.
    fn take(&mut self, item: &Item<'_>, now: Instant) -> bool {
        let Item::Entry(Entry::Output { stream, bytes, .. }) = item else {
            self.language.accept(item, now, self.out.buffer());
            return true;
        };
        let rest = &bytes[self.read..];
        if rest.len() >= limits::FILTERED_BYTES {
            // For all that will be queued, so that it is not moved while it grows.
            let free = limits::OUTLET_HIGH_BYTES.saturating_sub(self.out.pending()) + limits::FILTERED_BYTES;
            make_room(self.out.buffer(), free.max(rest.len()));
        }
        self.read += self.language.output(*stream, rest, now, self.out.buffer());
        let is_whole = self.read >= bytes.len();
        if is_whole {
            self.read = 0;
        }
        is_whole
    }

    pub(super) fn received(&self) -> Option<Received> {
        let Language::Shim(shim) = &self.language else { return None };
        Some(shim.received())
    }

    /// Tells a shim at once that the host will not refuse its command any more, so that the shim lets go of what the command
    /// may let go of before that begins.
    pub(super) fn accept(&mut self) {
        if self.lets_go() {
            wire::FromHost::Accepted.encode(self.out.buffer());
            // One that is gone is noticed by its event.
            self.send();
        }
    }

    /// Queues the news that has its place in the output, once the peer has read all output before it.
    pub(super) fn tell_in_place(&mut self, engine: &Engine) {
        if self.cursor.is_some_and(|cursor| engine.next(cursor).is_none()) {
            for event in self.told_in_place.drain(..) {
                // The held part of the output comes before its end.
                self.language.release(self.out.buffer());
                event.encode(self.out.buffer());
            }
        }
    }

    /// Returns true if the peer waits for nothing that is on its way.
    pub(super) fn has_nothing_to_take(&self) -> bool {
        self.cursor.is_none() && (self.out.is_empty() || self.is_only_greeted)
    }

    /// When the host lets go of a peer that takes nothing.
    pub(super) fn leaves_by(&self) -> Option<Instant> {
        self.stuck_since.map(|since| since + limits::FAREWELL_TIMEOUT)
    }
}
