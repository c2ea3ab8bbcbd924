//! The screen: the human's terminal and the console that is shown on it.
//!
//! Invariants: no write waits for the terminal; what it has no room for stays queued or is counted; what is typed is
//! read, so that it is not left for the parent shell. It means something where the output is a terminal, too.

mod status;
mod take_over;

use std::time::{Duration, Instant};

use crate::core::engine::{Cursor, Engine, JobId};
use crate::limits;
use rexec_sh::protocol::process::Pid;

use super::options::{Color, HostOptions};
use super::turn::PeerId;
use super::viewers::Viewers;
use crate::front::WatchRequest;
use crate::front::jsonl::transcript::Transcript;
use crate::io::outlet::{Flush, Outlet};
use crate::io::poller::{Poller, Ready, Token};
use crate::sink::console::attention::Attention;
use crate::sink::console::keyboard::named::{Asks, NamedPrompts};
use crate::sink::console::keyboard::{KeyAction, Keyboard, Situation};
use crate::sink::console::status_line::StatusLine;
use crate::sink::console::{Colours, Console, ConsoleKind, Heading, View};
use crate::sys::terminal::{self, Keys, Output};
use crate::sys::writer::Writer;
use crate::sys::{self, locale, pty};
use crate::text::count::counted;
use crate::text::redact::Redactor;
use crate::text::safe_text::SafeText;
use take_over::TakeOver;

/// DSR, the device status report (ECMA-48), and the reply of every terminal.
const STATUS_QUERY: &[u8] = b"\x1b[5n";
const STATUS_REPLY: &[u8] = b"\x1b[0n";

/// The human's terminal, or the file or pipe in its place, with the console on it.
#[derive(Debug)]
pub(super) struct Screen {
    console: Console,
    output: Output,
    /// `None` for an output that cannot be polled. Such an output never has to be waited for.
    pub(super) token: Option<Token>,
    out: Outlet,
    is_writable: bool,
    is_gone: bool,
    /// Writes the errors of this process, if they go to a file.
    errors: Option<Writer>,
    keys: Option<Keys>,
    keyboard: Keyboard,
    /// The commands that the console named as waiting for an answer.
    named: NamedPrompts,
    /// The held commands that it named as waiting for the human's decision.
    questions: NamedPrompts,
    /// The screen shows a question of the keyboard's.
    is_asking: bool,
    status: StatusLine,
    attention: Attention,
    /// There is a status line where the terminal has room for one.
    has_status: bool,
    /// It is a terminal that knows more than text, and shows commands' output filtered.
    is_clever: bool,
    /// The command that ^C stops, as the status line last said.
    drawn_shown: Option<Option<JobId>>,
    /// What a key did, and when the status line stops saying so.
    message: Option<(SafeText, Instant)>,
    /// The host's own lines, held while the screen stands still.
    frozen: Option<Vec<u8>>,
    /// The full-screen program that has the screen.
    taken: Option<TakeOver>,
    pub(super) keys_token: Option<Token>,
    pub(super) viewers: Viewers,
    /// Lines that the host left out because the terminal had no room.
    unsaid: u64,
    /// When the next attempt to write to a full disk is due.
    retry_at: Option<Instant>,
}

impl Screen {
    /// Takes over standard input and output. `is_after_kill` says that an earlier host did not end in order.
    pub(super) fn take(poller: &mut Poller, options: &HostOptions, is_after_kill: bool) -> std::io::Result<Self> {
        let output = Output::standard()?;
        let (kind, view) = (kind(output.is_terminal(), options.color), options.view);
        let token = if output.is_pollable() { Some(poller.register(&output)?) } else { None };
        // Commands that write to the terminal unfiltered can fill the keyboard's queue with its replies. There ^C remains
        // a signal, which no queue holds up.
        let keys = Keys::take(output.is_terminal() && view == View::Safe);
        let keys_token = keys.as_ref().and_then(|keys| poller.register(keys).ok());
        let is_clever = kind == ConsoleKind::Terminal && view == View::Safe;
        // Keys that nobody reads would include ^C.
        let keys = keys.filter(|_| keys_token.is_some());
        let mut screen = Self {
            console: new_console(output.is_terminal(), view, options.color, options.highlights)
                .with_keys(keys.is_some()),
            output,
            token,
            out: Outlet::default(),
            is_writable: true,
            is_gone: false,
            errors: terminal::let_go_of_files()?,
            keys,
            keyboard: Keyboard::default(),
            named: NamedPrompts::default(),
            questions: NamedPrompts::default(),
            is_asking: false,
            status: StatusLine::default(),
            attention: attention(),
            has_status: is_clever && options.has_status,
            is_clever,
            drawn_shown: None,
            message: None,
            frozen: None,
            taken: None,
            keys_token,
            viewers: Viewers::default(),
            unsaid: 0,
            retry_at: None,
        };
        screen.enter(is_after_kill);
        Ok(screen)
    }

    /// Shows one line of the host's own.
    pub(super) fn say(&mut self, line: impl Into<SafeText>) {
        let line = line.into();
        self.viewers.say(&line);
        match &mut self.frozen {
            Some(held) if held.len() < limits::CONSOLE_HIGH_BYTES => self.console.say(line, held),
            Some(_) => self.unsaid += 1,
            None => {
                let out = self.out.buffer();
                let before = out.len();
                self.console.say(line, out);
                self.status.on_output(&out[before..]);
            }
        }
    }

    /// Says a line about a command, below the beginning of its block.
    pub(super) fn say_of(&mut self, job: JobId, line: impl Into<SafeText>, now: Instant) {
        if self.frozen.is_none() {
            let out = self.out.buffer();
            let before = out.len();
            self.console.present(job, out, now);
            self.status.on_output(&out[before..]);
        }
        self.say(line);
    }

    /// Freezes the screen, or thaws it. Commands go on meanwhile: for them it is a terminal without room.
    pub(super) fn freeze(&mut self) {
        if !self.thaw() {
            if !self.status.is_on() {
                self.say("… the screen stands still, the commands go on; p shows what came meanwhile");
            }
            self.frozen = Some(Vec::new());
        }
    }

    /// Thaws a frozen screen. Returns true if it was frozen.
    pub(super) fn thaw(&mut self) -> bool {
        let Some(held) = self.frozen.take() else { return false };
        self.out.buffer().extend_from_slice(&held);
        self.status.on_output(&held);
        true
    }

    /// Shows all output of this command, before that of others; `None` ends that.
    pub(super) fn follow(&mut self, job: Option<JobId>, now: Instant) {
        let number = job.or(self.console.followed()).map_or(0, |job| job.0);
        self.console.follow(job);
        let said = match job {
            Some(_) => format!("following #{number}; f ends it"),
            None => format!("#{number} is not followed any more"),
        };
        self.tell(said, now);
    }

    pub(super) fn follows(&self) -> bool {
        self.console.followed().is_some()
    }

    pub(super) fn end_paragraph(&mut self) {
        let out = self.out.buffer();
        let before = out.len();
        self.console.end_paragraph(out);
        self.status.on_output(&out[before..]);
    }

    /// Shows a line about a command that its caller runs itself. Callers may ask faster than the terminal can show, so
    /// lines without room are left out, and their number is shown before the next one.
    pub(super) fn say_if_room(&mut self, line: impl Into<SafeText>) {
        if self.out.pending() >= limits::CONSOLE_HIGH_BYTES {
            self.unsaid += 1;
            return;
        }
        let unsaid = std::mem::take(&mut self.unsaid);
        if unsaid > 0 {
            let lines = counted(unsaid, "line", "lines");
            self.say(format_args!("… {lines} of the host's own not shown, for lack of room"));
        }
        self.say(line);
    }

    /// A command begins: its block waits for its turn on the console. Transcripts do not show these secrets.
    pub(super) fn begin(&mut self, engine: &mut Engine, cursor: Cursor, heading: Heading, secrets: Option<&Redactor>) {
        self.viewers.begin(engine, cursor.job, &heading, secrets);
        self.console.begin(cursor, heading);
    }

    /// Moves output from the commands' logs to the console, up to the limit of its queue.
    pub(super) fn pump(&mut self, engine: &mut Engine, now: Instant) {
        let (out, most) = self.out.room(limits::CONSOLE_HIGH_BYTES);
        let before = out.len();
        self.console.pump(engine, out, if self.frozen.is_some() { 0 } else { most }, now);
        self.status.on_output(&out[before..]);
        if self.status.repair(out) {
            self.console.mend_cursor(out);
        }
        self.pump_taken(engine);
    }

    /// When the screen has something to do although no command writes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let keyboard = self.keyboard.deadline();
        let deadlines = [self.console.deadline(), self.status_deadline(), self.viewers.deadline(), self.retry_at];
        deadlines.into_iter().chain([keyboard]).flatten().min()
    }

    /// Shows the console to this peer from now on.
    pub(super) fn watch(&mut self, id: PeerId, request: WatchRequest, engine: &mut Engine, now: Instant) {
        self.viewers.add(id, request);
        self.viewers.show_running(id, running(&self.console, engine).into_iter(), engine, now);
    }

    /// Tells this peer from now on of each command that ends, without its secrets.
    pub(super) fn tell_transcript<'a>(
        &mut self,
        id: PeerId,
        transcript: Transcript,
        secrets: impl Fn(JobId) -> Option<&'a Redactor>,
        engine: &mut Engine,
    ) {
        let running = running(&self.console, engine);
        let running = running.into_iter().map(|(job, heading)| (job, heading, secrets(job)));
        self.viewers.add_transcript(id, transcript, running, engine);
    }

    /// Ends the block that is being shown, and leaves the terminal as it was before it.
    pub(super) fn leave(&mut self) {
        self.console.leave(self.out.buffer());
        self.give_up();
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.out.is_empty()
    }

    /// Measures the terminal and gives the console its width. `None` when the output is not a terminal.
    pub(super) fn measure(&mut self, now: Instant) -> Option<pty::Size> {
        let size = self.output.size();
        self.console.resize(size.map_or(0, |size| size.cols));
        if self.taken.is_none() {
            self.size_status(now);
        }
        size
    }

    /// Remembers an event. It calls for no visit: every turn flushes the screen.
    pub(super) fn remember(&mut self, ready: Ready) {
        self.is_writable |= ready.writable;
    }

    /// Reads the typed keys and returns what the human wants. `None` when the terminal is gone.
    pub(super) fn take_keys(
        &mut self,
        poller: &mut Poller,
        situation: Situation,
        now: Instant,
    ) -> Option<Vec<KeyAction>> {
        let mut typed = Vec::new();
        if !self.read_keys(poller, |keys| typed.extend_from_slice(keys)) {
            return None;
        }
        Some(if self.output.is_terminal() { self.keyboard.push(&typed, situation, now) } else { Vec::new() })
    }

    /// The answer to this command is over, or did not begin, for this reason.
    pub(super) fn end_answering(&mut self, job: JobId, why: String, now: Instant) {
        self.keyboard.end_answering(job.0, why, now);
        self.mark_pastes(!self.keyboard.is_answering());
        // What is shown of the answer is not what is shown of its end.
        self.is_asking = false;
    }

    /// Asks whether to allow this always, which a held run asks about.
    pub(super) fn propose(&mut self, job: JobId, what: String, now: Instant) {
        self.keyboard.propose(job.0, what, now);
    }

    /// Returns true while keys do nothing, because an answer has ended by itself.
    pub(super) fn holds_keys(&self) -> bool {
        self.keyboard.is_held()
    }

    pub(super) fn tick_keys(&mut self, now: Instant) -> KeyboardTick {
        let was_held = self.keyboard.is_held();
        match self.keyboard.tick(now) {
            true if was_held => KeyboardTick::Released,
            true => KeyboardTick::Question,
            false => KeyboardTick::Nothing,
        }
    }

    /// The effect of the key that answers, while these commands wait.
    pub(super) fn asks(&self, waiting: impl Iterator<Item = u64>, now: Instant) -> Asks {
        self.named.asks(waiting, now)
    }

    /// The effect of the keys that decide, while these commands are held.
    pub(super) fn decides(&self, held: impl Iterator<Item = u64>, now: Instant) -> Asks {
        self.questions.decides(held, now)
    }

    /// These commands wait for an answer, and these for a decision. Where there is a status line, only what it says counts.
    pub(super) fn note_prompts(&mut self, waiting: Vec<u64>, held: Vec<u64>, now: Instant) {
        if !self.status.is_on() {
            self.named.note(waiting, now);
            self.questions.note(held, now);
        }
    }

    /// A command as the status line names it: its number and its agent.
    pub(super) fn name_of(&self, number: u64) -> String {
        let mut headings = self.console.headings();
        let agent = headings.find(|(job, _)| job.0 == number).map(|(_, heading)| heading.name());
        agent.map_or_else(|| format!("#{number}"), |agent| format!("#{number} {agent}"))
    }

    /// The command whose output the console is showing.
    pub(super) fn shown(&self) -> Option<JobId> {
        self.console.shown()
    }

    fn read_keys(&mut self, poller: &mut Poller, each: impl FnMut(&[u8])) -> bool {
        let lives = self.keys.as_mut().is_none_or(|keys| keys.read_all(each));
        if !lives && let Some(keys) = self.keys.take() {
            poller.deregister(&keys);
        }
        lives
    }

    /// Asks the terminal for its status. The terminal replies after its replies to everything that commands asked
    /// before. `None` when the host could not read the reply.
    pub(super) fn question(&mut self) -> Option<Question> {
        self.keys_token?;
        self.keys.as_ref()?;
        self.out.buffer().extend_from_slice(STATUS_QUERY);
        Some(Question::default())
    }

    /// Looks for the reply in the typed bytes. Returns true if there were any.
    pub(super) fn listen(&mut self, poller: &mut Poller, question: &mut Question) -> bool {
        let mut has_come = false;
        self.read_keys(poller, |keys| {
            has_come = true;
            question.typed.extend_from_slice(keys);
            question.is_answered |= question.typed.windows(STATUS_REPLY.len()).any(|bytes| bytes == STATUS_REPLY);
            // A reply may come in two pieces.
            let done = question.typed.len().saturating_sub(STATUS_REPLY.len() - 1);
            question.typed.drain(..done);
        });
        has_come
    }

    /// Writes until the output blocks. Returns `false` when a terminal is gone. A pipe without a reader is not a reason
    /// to end, because the journal still has everything.
    pub(super) fn flush(&mut self, now: Instant) -> bool {
        self.retry_at = None;
        if self.is_gone {
            self.out.clear();
            return true;
        }
        if !self.is_writable || self.out.is_empty() {
            return true;
        }
        let was_full = self.out.pending() >= limits::CONSOLE_HIGH_BYTES / 2;
        let (output, is_writable, retry_at) = (&self.output, &mut self.is_writable, &mut self.retry_at);
        let flushed = self.out.flush(|bytes| match output.write(bytes) {
            Err(error) if sys::is_transient(&error) => {
                *is_writable = false;
                Ok(None)
            }
            // The disk may have room again later, and nothing reports that. Until then the console counts what does not
            // fit in the queue.
            Err(error) if sys::is_disk_full(&error) => {
                *retry_at = Some(now + limits::CONSOLE_DISK_RETRY);
                Ok(None)
            }
            written => written.map(Some),
        });
        match flushed {
            Ok(Flush::Done) => {
                // More may wait for the room that there is now, and a file reports no room.
                self.retry_at = was_full.then_some(now);
                true
            }
            Ok(Flush::Blocked) => true,
            Err(_) => {
                self.is_gone = true;
                self.out.clear();
                !self.output.is_terminal()
            }
        }
    }

    /// The processes that write to the terminal on the host's behalf.
    pub(super) fn helpers(&self) -> impl Iterator<Item = Pid> {
        let writers = self.output.helper().into_iter().chain(self.errors.as_ref().map(Writer::pid));
        writers.chain(self.taken.as_ref().and_then(TakeOver::keeper))
    }

    /// Gives the terminal back after it has got everything that was written, or after `most`.
    pub(super) fn give_back(self, most: Duration) {
        self.output.end(most);
        drop(self.keys);
    }
}

#[must_use]
pub fn new_console(is_terminal: bool, view: View, color: Color, highlights: bool) -> Console {
    Console::new(kind(is_terminal, color), view).with_colours(colours(color, highlights))
}

/// The colours that the console adds, see no-color.org for `NO_COLOR`.
fn colours(color: Color, highlights: bool) -> Colours {
    let is_unwanted = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match color {
        Color::Never => Colours::Never,
        Color::Auto if is_unwanted() => Colours::Off,
        Color::Auto | Color::Always if highlights => Colours::Highlighted,
        Color::Auto | Color::Always => Colours::Rows,
    }
}

fn attention() -> Attention {
    let [term, program] = ["TERM", "TERM_PROGRAM"].map(|name| std::env::var(name).unwrap_or_default());
    Attention::of(&term, &program)
}

fn kind(is_terminal: bool, color: Color) -> ConsoleKind {
    if !is_terminal {
        return ConsoleKind::Text;
    }
    let has_utf8 = locale::is_utf8();
    let is_dumb = color != Color::Always && std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !has_utf8 { ConsoleKind::Dumb { has_utf8 } } else { ConsoleKind::Terminal }
}

/// A status query that the host wrote to the terminal, and the bytes that came since.
#[derive(Debug, Default)]
pub(super) struct Question {
    pub(super) is_answered: bool,
    typed: Vec<u8>,
}

/// What has changed at the keyboard as time passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyboardTick {
    Nothing,
    Question,
    /// Its keys have an effect again.
    Released,
}

/// The commands that run, and the console's heading of each.
fn running<'a>(console: &'a Console, engine: &Engine) -> Vec<(JobId, &'a Heading)> {
    let is_running = |job: JobId| engine.job(job).is_some_and(|known| !known.has_ended());
    console.headings().filter(|(job, _)| is_running(*job)).collect()
}
