//! `rexec attach N`: this terminal stands for that of a command, until ^] or the command's end.
//!
//! Invariants: the terminal's modes, and the command's changes to the terminal, are put back however this ends. If this
//! is killed, a helper process does that. Keys typed after the command's end reach nothing: neither another command nor
//! the shell that comes after this.

use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::{Notice, remark};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{self, Decoded, FromHost};

use super::output::drawn;
use super::told::tell;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words};
use super::{ask, chosen, told};
use crate::front::AttachRequest;
use crate::front::answer::Answer;
use crate::sink::console::keyboard::held::{HeldKeys, Hold};
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::terminal::{Keys, Output};
use crate::sys::terminal_keeper::TerminalKeeper;
use crate::sys::{poll, pty, uninterrupted};
use crate::text::alternate_screen::NORMAL_SCREEN;
use crate::text::line_feeds::LineFeeds;
use crate::text::reason::reason;
use crate::text::safe::raw::{RawFilter, repairs};

pub(super) const VERB: Verb = Verb {
    term: "attach",
    group: Group::Live,
    summary: "see and use a command's terminal in this one",
    text: "\
Your keys go to command N and its output comes here, until ^] or its end; the
command goes on without you. It gets the size of this terminal meanwhile, and
its size back afterwards. So you can answer it, use a full-screen program, or
press ^C there. One person at a time has a command's keys; others may watch.

When the command ends by itself, you may still be typing for it. So your keys
go nowhere, and not to your shell, until you press return and then no key for
1 s; Esc, ^C and ^] leave at once, and so do 30 s without a key.

Output comes unfiltered, as full-screen programs need it: it can do to this
terminal whatever a program that you start here can do. What it has changed is
reset at the end, also when this rexec is killed: a helper process does it.
The journal has how many bytes were typed, and never which.
",
    codes: &[(1, "somebody else types for it"), (3, "no such command runs"), NO_HOST],
    examples: &["rexec attach 46", "rexec attach -1", "rexec attach --watch 41"],
    call: &Call::<AttachCall> {
        options: &[Opt::flag(
            "--watch",
            |q| q.is_watching = true,
            "only watch: no key goes to the command; ^C leaves, too",
        )],
        words: Words::run("N", Values::Runs, |q, w| q.seq = chosen::given_number(w)),
        run: |call| {
            let seq = call.seq.ok_or_else(|| VERB.missing("a command number; rexec ps shows the numbers"))?;
            attach(seq, call.is_watching)
        },
    },
};

/// ^], the key to leave.
const LEAVE: u8 = 0x1d;
/// ^C, the key to leave where no key goes to the command.
const INTERRUPT: u8 = 0x03;

#[derive(Default)]
struct AttachCall {
    seq: Option<u64>,
    is_watching: bool,
}

fn attach(seq: u64, is_watching: bool) -> Result<u8, Notice> {
    let size = pty::size(&io::stdout());
    let is_without = size.is_none() && !is_watching;
    let size = size.unwrap_or(pty::Size { rows: 0, cols: 0 });
    // Without a terminal it takes no command's keys, but first reports that a command does not run.
    let request = AttachRequest { seq, watch: is_watching || is_without, rows: size.rows, cols: size.cols };
    let asked = ask::ask(&super::socket_path()?, &request.line())?;
    let stream = match asked.answer_and_more(Some(ask::PATIENCE)) {
        Ok((Answer::Attach { .. }, stream)) => stream,
        Ok(_) => return Err(ask::AskError::Unclear.into()),
        Err(error) => {
            let mut notice = Notice::from(error);
            if !is_watching && notice.code == exit_code::FAILURE {
                notice.hint = format!("rexec attach --watch {seq} shows it without typing").into();
            }
            return Err(notice);
        }
    };
    if is_without {
        let hint = "rexec attach --watch needs none; rexec send types a text";
        return Err(Notice::failed("attach needs a terminal", hint));
    }
    let failed = |error: &io::Error| Notice::failed(format_args!("attach: {}", reason(error)), "try it again");
    let signals = HostSignals::take().map_err(|error| failed(&error))?;
    // The helper comes first, so that it exists whenever the terminal is changed.
    let keeper = keeper();
    let keys = Keys::take_raw();
    let is_raw = keys.is_some();
    let (keeper, unneeded) = if is_raw { (keeper, None) } else { (None, keeper) };
    unneeded.into_iter().for_each(TerminalKeeper::end);
    if keys.is_none() && !is_watching {
        let hint = "start it in the foreground of a terminal; rexec send types a text";
        return Err(Notice::failed("attach needs a terminal that it can read", hint));
    }
    let mut attachment = Attachment {
        stream,
        signals,
        keys,
        is_watching,
        screen: is_raw.then(ShownTerminal::default),
        inbox: Vec::new(),
    };
    let end = attachment.run();
    attachment.repair();
    let by_itself = end.as_ref().map_or_else(|_| Some(unanswered(seq)), |end| end.by_itself(seq));
    let is_told = by_itself.is_some_and(|what| attachment.hold(&what));
    // This gives the terminal its modes back, and drops what was typed meanwhile.
    attachment.keys = None;
    keeper.into_iter().for_each(TerminalKeeper::end);
    match end {
        Ok(AttachEnd::Left) => {
            attachment.leave();
            tell(format_args!("#{seq} goes on"));
        }
        Ok(AttachEnd::Exited(_)) if is_told => {}
        Ok(AttachEnd::Exited(exit)) => tell(ended(seq, exit)),
        Ok(AttachEnd::Failed(text)) => told::put(text),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(failed(&error)),
    }
    Ok(exit_code::SUCCESS)
}

/// Starts the process that restores the terminal if this one is killed. Without it, somebody has to type `reset`.
fn keeper() -> Option<TerminalKeeper> {
    let output = Output::standard().ok().filter(Output::is_terminal)?;
    TerminalKeeper::start(&output, &[repairs().as_slice(), NORMAL_SCREEN].concat()).ok().flatten()
}

fn ended(seq: u64, exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("#{seq} ended with {code}"),
        Exit::Signal(signal) => format!("#{seq} ended by signal {}", signal.number()),
    }
}

enum AttachEnd {
    Left,
    Exited(Exit),
    /// The host reported a failure.
    Failed(String),
}

impl AttachEnd {
    /// The message for a person who might still be typing; `None` if the person left.
    fn by_itself(&self, seq: u64) -> Option<String> {
        match self {
            Self::Left => None,
            Self::Exited(exit) => Some(ended(seq, *exit)),
            Self::Failed(_) => Some(unanswered(seq)),
        }
    }
}

/// The message that keys no longer reach a command, for an unknown reason.
fn unanswered(seq: u64) -> String {
    format!("#{seq} is not answered any more")
}

/// The filters between the terminal and the command.
#[derive(Debug, Default)]
struct ShownTerminal {
    repair: RawFilter,
    feeds: LineFeeds,
}

struct Attachment {
    stream: BufReader<UnixStream>,
    signals: HostSignals,
    keys: Option<Keys>,
    is_watching: bool,
    /// `None` if the output is not shown on the terminal that has the keys.
    screen: Option<ShownTerminal>,
    /// Bytes of an incomplete frame.
    inbox: Vec<u8>,
}

impl Attachment {
    fn run(&mut self) -> io::Result<AttachEnd> {
        // Frames may have come with the answer.
        self.inbox = self.stream.buffer().to_vec();
        self.stream.get_ref().set_read_timeout(None)?;
        loop {
            if let Some(end) = self.take_frames()? {
                return Ok(end);
            }
            let stream = self.stream.get_ref().as_fd();
            let keys = self.keys.as_ref().map_or(self.signals.as_fd(), Keys::as_fd);
            let [has_signal, has_frames, has_keys] = poll::readable([self.signals.as_fd(), stream, keys])?;
            if has_signal && self.on_signals()? {
                return Ok(AttachEnd::Left);
            }
            if has_keys && self.on_keys()? {
                return Ok(AttachEnd::Left);
            }
            if has_frames {
                let mut buffer = vec![0; 64 << 10];
                match uninterrupted(|| self.stream.get_mut().read(&mut buffer))? {
                    0 => return Ok(AttachEnd::Failed(remark(format_args!("the host is gone")))),
                    length => self.inbox.extend_from_slice(&buffer[..length]),
                }
            }
        }
    }

    /// Shows the new output. Returns the command's end, if it has ended.
    fn take_frames(&mut self) -> io::Result<Option<AttachEnd>> {
        let inbox = std::mem::take(&mut self.inbox);
        let (mut at, mut shown, mut end) = (0, Vec::new(), None);
        while let Ok(decoded) = FromHost::decode(&inbox[at..]) {
            let taken = match decoded {
                Decoded::Incomplete => break,
                Decoded::Skip(taken) => taken,
                Decoded::Item(frame, taken) => {
                    match frame {
                        FromHost::Out(bytes) | FromHost::Err(bytes) | FromHost::Note(bytes) => {
                            self.show(bytes, &mut shown);
                        }
                        FromHost::Exit(exit) => end = Some(AttachEnd::Exited(exit)),
                        FromHost::Fail { text, .. } => {
                            end = Some(AttachEnd::Failed(String::from_utf8_lossy(text).into_owned()));
                        }
                        _ => {}
                    }
                    taken
                }
            };
            at += taken;
        }
        self.inbox = inbox[at..].to_vec();
        put(&shown)?;
        Ok(end)
    }

    fn show(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        match &mut self.screen {
            Some(ShownTerminal { repair, feeds }) => {
                let mut repaired = Vec::new();
                repair.push(bytes, &mut repaired);
                feeds.push(&repaired, shown);
            }
            None => shown.extend_from_slice(bytes),
        }
    }

    /// Returns true if the person leaves.
    fn on_signals(&mut self) -> io::Result<bool> {
        while let Some(signal) = self.signals.take_next() {
            match signal {
                HostSignal::End | HostSignal::HangUp => return Ok(true),
                HostSignal::CheckSocket => {}
                HostSignal::Resize | HostSignal::Continued => {
                    self.keys.iter().for_each(Keys::retake);
                    if let Some(size) = pty::size(&io::stdout()).filter(|_| !self.is_watching) {
                        self.tell(|out| wire::FromShim::Size((size.rows, size.cols)).encode(out))?;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Returns true if the person leaves.
    fn on_keys(&mut self) -> io::Result<bool> {
        let Some(keys) = &mut self.keys else { return Ok(false) };
        let mut typed = Vec::new();
        if !keys.read_all(|bytes| typed.extend_from_slice(bytes)) {
            return Ok(true);
        }
        let end = place_of_leaving(&typed, self.is_watching);
        typed.truncate(end.unwrap_or(typed.len()));
        if !typed.is_empty() && !self.is_watching {
            self.tell(|out| {
                typed.chunks(wire::KEYS_BYTES_MAX).for_each(|keys| wire::FromShim::Keys(keys).encode(out))
            })?;
        }
        Ok(end.is_some())
    }

    fn tell(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut frames = Vec::new();
        encode(&mut frames);
        match self.stream.get_mut().write_all(&frames) {
            // The last words of the host before it closed the connection give the reason.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            told => told,
        }
    }

    /// Waits until the host has read the last keys: it would lose them if this closed the connection with frames in it.
    fn leave(&mut self) {
        let stream = self.stream.get_mut();
        let _ = stream.set_read_timeout(Some(ask::PATIENCE));
        let _ = stream.shutdown(Shutdown::Write);
        let _ = io::copy(stream, &mut io::sink());
    }

    /// Takes typed keys away from everybody, until the person has surely noticed the end. Returns true if the message
    /// was printed: a watcher types for nobody.
    fn hold(&mut self, what: &str) -> bool {
        let Some(keys) = self.keys.as_mut().filter(|_| !self.is_watching) else { return false };
        let _ = put(format!("rexec: {what}; press return, then no key for 1 s (Esc: at once)\r\n").as_bytes());
        let mut held = HeldKeys::new(Instant::now());
        loop {
            let left = held.deadline().saturating_duration_since(Instant::now());
            let Ok([has_signal, has_keys]) = poll::readable_within([self.signals.as_fd(), keys.as_fd()], left) else {
                return true;
            };
            while has_signal && let Some(signal) = self.signals.take_next() {
                if matches!(signal, HostSignal::End | HostSignal::HangUp) {
                    return true;
                }
                keys.retake();
            }
            let mut typed = Vec::new();
            let lives = !has_keys || keys.read_all(|bytes| typed.extend_from_slice(bytes));
            let is_over = typed.is_empty() && held.is_over(Instant::now());
            if !lives || is_over || held.push(&typed, Instant::now()) == Hold::Ends {
                return true;
            }
        }
    }

    /// Undoes the command's changes to the terminal, except its modes.
    fn repair(&mut self) {
        let mut resets = Vec::new();
        if let Some(ShownTerminal { repair, .. }) = &mut self.screen {
            repair.end_block(&mut resets);
        }
        // A terminal that is gone needs nothing.
        let _ = put(&resets);
    }
}

fn put(bytes: &[u8]) -> io::Result<()> {
    let mut out = drawn();
    out.write_all(bytes)?;
    out.flush()
}
/// The place of the key to leave among these keys: ^], or ^C of a watcher. A program may have asked the terminal to
/// send such keys as sequences, by modifyOtherKeys (xterm) or by the keyboard protocol of kitty.
fn place_of_leaving(typed: &[u8], is_watching: bool) -> Option<usize> {
    let leaving: &[(u8, &str)] = if is_watching { &[(LEAVE, "93"), (INTERRUPT, "99")] } else { &[(LEAVE, "93")] };
    let places = leaving.iter().flat_map(|&(byte, code)| {
        let sequences = [format!("\x1b[{code};5u"), format!("\x1b[{code};5:1u"), format!("\x1b[27;5;{code}~")];
        let found = sequences.map(|sequence| memchr::memmem::find(typed, sequence.as_bytes()));
        found.into_iter().flatten().chain(memchr::memchr(byte, typed))
    });
    places.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_leaves_is_known_in_each_form() {
        for key in ["\x1d", "\x1b[93;5u", "\x1b[93;5:1u", "\x1b[27;5;93~"] {
            let typed = format!("ls\r{key}rest");
            assert_eq!(place_of_leaving(typed.as_bytes(), false), Some(3), "{key:?}");
        }
        for key in ["\x03", "\x1b[99;5u", "\x1b[27;5;99~"] {
            assert_eq!(place_of_leaving(key.as_bytes(), true), Some(0), "{key:?}");
            assert_eq!(place_of_leaving(key.as_bytes(), false), None, "{key:?}");
        }
        assert_eq!(place_of_leaving(b"\x1b[93;6u\x1b[A]", true), None);
    }
}
