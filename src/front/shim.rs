//! The language of rexec-sh: frames in, frames out. The format is `rexec_sh::protocol::wire`.

mod streams;

use std::fmt::Display;
use std::time::Instant;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::{Notice, remark};
use rexec_sh::protocol::wire::{self, Decoded, FromShim, Hello, Rest, Short};

use super::command::Command;
use super::output_filter::OutputFilter;
use super::{PeerRequest, TerminalEvent};
use crate::core::end::{End, How, Stopper};
use crate::core::entry::{Entry, Received, Stream};
use crate::core::log::Item;
use crate::journal::entry_words::caller_line;
use crate::text::count;
use streams::CallerStreams;

/// The shim's next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Hello,
    Run,
    Control,
}

#[derive(Debug)]
pub struct Shim {
    expected: Expected,
    streams: CallerStreams,
    /// The caller got the notice that its command waits for an answer. That happens once.
    has_told_wait: bool,
    /// A model reads the output, so one of the host's notices in it disturbs no program.
    is_agents: bool,
    /// It reports when it has let go of the directory and the descriptors that its command may close.
    lets_go: bool,
}

impl Shim {
    #[must_use]
    pub fn new() -> Self {
        let unfiltered = [OutputFilter::default(), OutputFilter::default()];
        let streams = CallerStreams::new(Some(wire::CallerStream::Out), unfiltered);
        Self { expected: Expected::Hello, streams, has_told_wait: false, is_agents: false, lets_go: false }
    }

    /// Returns true if the shim has said hello.
    #[must_use]
    pub fn has_said_hello(&self) -> bool {
        self.expected != Expected::Hello
    }

    /// Returns true if the shim reports when it has let go of the directory and descriptors that its command may close.
    #[must_use]
    pub fn lets_go(&self) -> bool {
        self.lets_go
    }

    /// Returns true if the shim has asked for a command.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.expected == Expected::Control
    }

    /// Takes whole frames off the front of `inbox`; returns the next request, if there is one.
    ///
    /// # Errors
    /// The first byte is not of this language, or a frame is out of place.
    pub fn take(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        loop {
            let (request, taken) = match self.expected {
                Expected::Hello => match Hello::decode(inbox).map_err(violation)? {
                    Decoded::Item(hello, taken) => {
                        self.expected = Expected::Run;
                        self.lets_go = hello.newest >= wire::VERSION_THAT_LETS_GO;
                        out.extend_from_slice(&Hello::OURS.encode());
                        (None, taken)
                    }
                    _ => return Ok(None),
                },
                Expected::Run | Expected::Control => match FromShim::decode(inbox).map_err(violation)? {
                    Decoded::Incomplete => return Ok(None),
                    Decoded::Skip(taken) => (None, taken),
                    Decoded::Item(frame, taken) => (Some(self.translate(frame, &inbox[..taken])?), taken),
                },
            };
            inbox.drain(..taken);
            if request.is_some() {
                return Ok(request);
            }
        }
    }

    fn translate(&mut self, frame: FromShim<'_>, bytes: &[u8]) -> Result<PeerRequest, Notice> {
        match (frame, self.expected) {
            (FromShim::Run(run), Expected::Run) if run.attributes.extras.are_the_hosts() => {
                Err(violation("a RUN frame with fields that only the host sets"))
            }
            (FromShim::Left { whoami: Short(whoami), command: Rest(command) }, Expected::Run) => {
                self.expected = Expected::Control;
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                Ok(PeerRequest::NoteLeft { whoami: text(whoami), command: text(command) })
            }
            (FromShim::Interactive { whoami: Rest(whoami) }, Expected::Run) => {
                self.expected = Expected::Control;
                Ok(PeerRequest::NoteInteractive { whoami: String::from_utf8_lossy(whoami).into_owned() })
            }
            (FromShim::Run(run), Expected::Run) => {
                self.expected = Expected::Control;
                Ok(PeerRequest::Run(Box::new(Command::of(&run, bytes))))
            }
            (FromShim::Run(_) | FromShim::Left { .. } | FromShim::Interactive { .. }, _) => {
                Err(violation("a second request on one connection"))
            }
            (_, Expected::Hello | Expected::Run) => Err(violation("a control frame before the request")),
            (FromShim::Signal(signal), _) => Ok(PeerRequest::Signal(signal)),
            (FromShim::Abort, _) => Ok(PeerRequest::Abort),
            (FromShim::Keys(keys), _) => Ok(PeerRequest::Terminal(TerminalEvent::Keys(keys.to_vec()))),
            (FromShim::Size((rows, cols)), _) => Ok(PeerRequest::Terminal(TerminalEvent::Size(rows, cols))),
            (FromShim::Resume { foreground }, _) => Ok(PeerRequest::Terminal(TerminalEvent::Resume { foreground })),
            (FromShim::LetGo, _) => Ok(PeerRequest::HasLetGo),
            (FromShim::Hangup, _) => Ok(PeerRequest::Terminal(TerminalEvent::Hangup)),
            (FromShim::Closed(wire::CallerStream::Out), _) => Ok(PeerRequest::OutputClosed(Stream::Out)),
            (FromShim::Closed(wire::CallerStream::Err), _) => Ok(PeerRequest::OutputClosed(Stream::Err)),
        }
    }

    /// Sets the filters of the caller's streams, and the stream for output to the command's terminal.
    pub fn prepare(&mut self, tty: Option<wire::CallerStream>, filters: [OutputFilter; 2]) {
        self.streams = CallerStreams::new(tty, filters);
    }

    /// Notes that a model reads the command's output.
    pub fn is_for_model(&mut self) {
        self.is_agents = true;
    }

    /// The output for the caller so far.
    #[must_use]
    pub fn received(&self) -> Received {
        self.streams.received()
    }

    /// The time at which [`Shim::tick`] has output to release.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.streams.deadline()
    }

    /// Releases output that was held for long enough.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.streams.tick(now, out);
    }

    /// Releases all held output.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        self.streams.release(out);
    }

    /// Translates one item of the job's log.
    pub fn accept(&mut self, item: &Item<'_>, now: Instant, out: &mut Vec<u8>) {
        match item {
            Item::Entry(Entry::Output { stream, bytes, .. }) => {
                let mut taken = 0;
                while taken < bytes.len() {
                    taken += self.output(*stream, &bytes[taken..], now, out);
                }
            }
            Item::Entry(Entry::Ended(end)) => self.close(end, out),
            // A person's console has that line, too; only a model has no other way to learn of it.
            Item::Entry(Entry::PortHeld(_)) if !self.is_agents => {}
            // Once is enough: what follows is up to the person.
            Item::Entry(Entry::Waits(_)) if std::mem::replace(&mut self.has_told_wait, true) => {}
            Item::Entry(entry) => {
                if let Some(line) = caller_line(entry) {
                    wire::FromHost::Note(remark(line).as_bytes()).encode(out);
                }
            }
            Item::Missed { .. } => {}
        }
    }

    /// Takes the first bytes of the command's output; returns their number. It stops early where few bytes have become
    /// many.
    pub fn output(&mut self, stream: Stream, bytes: &[u8], now: Instant, out: &mut Vec<u8>) -> usize {
        self.streams.push(stream, bytes, now, out)
    }

    fn close(&mut self, end: &End, out: &mut Vec<u8>) {
        let withheld = self.streams.finish(out);
        if withheld > 0 {
            let note = count::counted(withheld, "byte, which is", "bytes, which are");
            let note = format_args!("a full-screen program drew {note} not kept");
            wire::FromHost::Note(remark(note).as_bytes()).encode(out);
        }
        match (&end.how, end.exit()) {
            (_, Some(exit)) => wire::FromHost::Exit(exit).encode(out),
            (How::NotStarted(why), _) => encode_notice(&why.as_ref().into(), out),
            (How::Refused(refusal), _) => encode_notice(&refusal.as_ref().into(), out),
            (How::NeverRun, _) => encode_notice(&never_run(end.by), out),
            (How::Exited(_) | How::Lost | How::Unseen, None) => encode_notice(&LOST, out),
        }
    }

    /// Writes the last message to a shim that broke the rules, or that cannot be served.
    pub fn fail(&self, notice: &Notice, out: &mut Vec<u8>) {
        if self.expected == Expected::Hello {
            out.extend_from_slice(&Hello::OURS.encode());
        }
        encode_notice(notice, out);
    }
}

fn encode_notice(notice: &Notice, out: &mut Vec<u8>) {
    wire::FromHost::Fail { code: notice.code, text: notice.to_string().as_bytes() }.encode(out);
}

fn violation(problem: impl Display) -> Notice {
    Notice::new(OWN_FAILURE, problem, "install rexec-sh and rexec-host of the same release")
}

const LOST: Notice = Notice::fixed(
    OWN_FAILURE,
    "the command's guard went away; whether the command finished is unknown",
    "check what it was to do before you run it again",
);

fn never_run(by: Option<Stopper>) -> Notice {
    match by {
        Some(Stopper::Console | Stopper::Kill | Stopper::Client | Stopper::Project) => Notice::fixed(
            OWN_FAILURE,
            "a person stopped the command before it could start; nothing was run",
            "ask that person before you run it again",
        ),
        None | Some(Stopper::Caller | Stopper::CallerAsked | Stopper::Host | Stopper::TimeLimit) => Notice::fixed(
            OWN_FAILURE,
            "the host ended before the command could start; nothing was run",
            "start rexec-host, then run the command again",
        ),
    }
}

impl Default for Shim {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::entry::SecretEcho;
    use crate::text::sanitize::Mode;
    use rexec_sh::protocol::process::{Exit, Signal};
    use std::time::Duration;

    #[test]
    fn frames_out_of_place_are_violations() {
        let mut out = Vec::new();
        let mut shim = Shim::new();
        assert_eq!(
            shim.take(&mut b"GET / HTTP".to_vec(), &mut out).unwrap_err().problem,
            "the peer does not speak the rexec protocol"
        );
        let mut inbox = Hello::OURS.encode().to_vec();
        wire::FromShim::Abort.encode(&mut inbox);
        assert!(shim.take(&mut inbox, &mut out).is_err());
        assert!(shim.has_said_hello() && !shim.has_asked());
    }

    #[test]
    fn output_is_cleaned_and_the_exit_comes_last() {
        let (mut shim, mut out, now) = (Shim::new(), Vec::new(), Instant::now());
        shim.prepare(Some(wire::CallerStream::Out), [OutputFilter::new(Mode::Strip, None), OutputFilter::default()]);
        let entry = Entry::Output {
            stream: Stream::Tty,
            bytes: b"\x1b[31mred\x1b[0m\r".as_slice().into(),
            at: Duration::ZERO,
            echo: SecretEcho::No,
        };
        shim.accept(&Item::Entry(&entry), now, &mut out);
        let how = How::Exited(Exit::Signal(Signal::TERM));
        let end = Entry::Ended(End { how, by: None, queued: Duration::ZERO, took: Duration::ZERO });
        shim.accept(&Item::Entry(&end), now, &mut out);
        let mut expected = Vec::new();
        wire::encode_output(wire::CallerStream::Out, b"red", &mut expected);
        wire::FromHost::Exit(Exit::Signal(Signal::TERM)).encode(&mut expected);
        assert_eq!(out, expected);
    }
    /// On pipes the caller may have put both into one file, where their order shows.
    #[test]
    fn what_is_held_of_one_stream_comes_before_later_bytes_of_the_other() {
        let (mut shim, mut out, now) = (Shim::new(), Vec::new(), Instant::now());
        shim.prepare(None, [OutputFilter::new(Mode::Tidy, None), OutputFilter::new(Mode::Tidy, None)]);
        let bytes: [(Stream, &[u8]); 4] = [
            (Stream::Out, b"one\n\x1b[1mtwo"),
            (Stream::Err, b"error\n50%"),
            (Stream::Out, b" and three\n"),
            (Stream::Err, b"\r100%\n"),
        ];
        for (stream, bytes) in bytes {
            assert_eq!(shim.output(stream, bytes, now, &mut out), bytes.len());
        }
        let mut expected = Vec::new();
        let frames: [(wire::CallerStream, &[u8]); 6] = [
            (wire::CallerStream::Out, b"one\n"),
            (wire::CallerStream::Out, b"two"),
            (wire::CallerStream::Err, b"error\n"),
            (wire::CallerStream::Err, b"50%"),
            (wire::CallerStream::Out, b" and three\n"),
            (wire::CallerStream::Err, b"\n100%\n"),
        ];
        frames.iter().for_each(|(stream, bytes)| wire::encode_output(*stream, bytes, &mut expected));
        assert_eq!(out, expected);
    }
}
