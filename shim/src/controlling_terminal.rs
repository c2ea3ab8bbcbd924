//! The caller's terminal while the host relays it: its modes, its keys and its foreground.
//!
//! Every key goes to the command's terminal, whose line discipline then does the echo, ^C and ^D. If other processes
//! may read the same terminal, the shim takes it only while the command asks for keys. It then reads one line at a
//! time, once the command has read everything before it.
//!
//! Invariants: modes are changed only while the host relays, this process is in the foreground, and no other shim has
//! changed them; they are put back before this process stops or ends; no flag of the inherited descriptor changes.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::{CallerStream, KEYS_BYTES_MAX, Stdio, TerminalModes};

use crate::sys::{self, Modes, SignalSet, bit};

/// Size of one read, bytes: the buffer size of a terminal.
const READ_BYTES: usize = 4096;
/// The pause between attempts to take a terminal that another shim has.
const TAKEN_PAUSE: Duration = Duration::from_millis(50);

/// The result of reading a terminal.
#[derive(Debug)]
pub(crate) enum KeyInput<'a> {
    Keys(&'a [u8]),
    Nothing,
    /// The terminal hung up.
    End,
}

/// The caller's terminal.
#[derive(Debug)]
pub(crate) struct ControllingTerminal {
    /// The inherited descriptor.
    fd: RawFd,
    output: CallerStream,
    is_on_demand: bool,
    /// A second, non-blocking opening.
    keys: Option<OwnedFd>,
    is_relayed: bool,
    /// True if keys go to the command. On demand, only while it asks.
    is_attached: bool,
    has_hung_up: bool,
    /// The modes to put back, and the lock that excludes other shims, while the terminal is in raw mode.
    before: Option<(Modes, Option<OwnedFd>)>,
    /// The modes before the command, once it has left others.
    original: Option<Modes>,
    /// The time of the next attempt, because another shim has the terminal.
    retry_at: Option<Instant>,
    /// Keys that the command's terminal has not taken yet, bytes.
    in_flight: usize,
    buffer: Vec<u8>,
}

impl ControllingTerminal {
    /// The terminal that can be relayed. It stays unchanged until the host relays it.
    pub(crate) fn of(stdio: &Stdio) -> Option<Self> {
        let (output, output_fd) = match stdio.stdout_tty {
            true => (CallerStream::Out, libc::STDOUT_FILENO),
            false => (CallerStream::Err, libc::STDERR_FILENO),
        };
        let fd = if stdio.relayed { libc::STDIN_FILENO } else { output_fd };
        (stdio.relayed || stdio.on_demand).then(|| Self {
            fd,
            output,
            is_on_demand: stdio.on_demand,
            keys: None,
            is_relayed: false,
            is_attached: false,
            has_hung_up: false,
            before: None,
            original: None,
            retry_at: None,
            in_flight: 0,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// The caller's stream for the command's terminal.
    pub(crate) fn output(&self) -> CallerStream {
        self.output
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.fd
    }

    /// Returns true if it is taken only while the command asks for keys.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.is_on_demand
    }

    /// Begins relaying: the command has begun on a terminal that stands for this one.
    pub(crate) fn begin(&mut self) {
        self.is_relayed = true;
        if !self.is_on_demand {
            self.attach();
        }
    }

    /// Returns true if this terminal would process output that the command's terminal has processed before.
    pub(crate) fn processes_twice(&self) -> bool {
        self.is_relayed && !self.is_taken() && sys::modes(self.fd).is_ok_and(|modes| modes.ends_lines())
    }

    /// Passes keys on, because the command asks for them.
    pub(crate) fn attach(&mut self) {
        self.is_attached = true;
        self.keys = reopened(self.fd, libc::O_RDONLY);
        self.take();
    }

    /// Passes no keys on, because the command asks for them no longer.
    pub(crate) fn detach(&mut self) {
        self.release();
        (self.is_attached, self.keys, self.in_flight) = (false, None, 0);
    }

    pub(crate) fn is_relayed(&self) -> bool {
        self.is_relayed
    }

    /// Returns true if the command has it.
    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// Returns true if keys come here.
    pub(crate) fn is_taken(&self) -> bool {
        self.before.is_some()
    }

    /// Takes the terminal if this process is in its foreground. Returns true if it is. If another shim has the
    /// terminal, [`ControllingTerminal::retry_at`] is the time to try again.
    pub(crate) fn take(&mut self) -> bool {
        let is_foreground = sys::foreground_group(self.fd) == Some(sys::own_group());
        self.retry_at = None;
        if is_foreground && self.before.is_none() && !self.has_hung_up {
            let lock = reopened_by_number(self.fd);
            if lock.as_ref().is_some_and(|lock| !sys::lock(lock)) {
                self.retry_at = Some(Instant::now() + TAKEN_PAUSE);
            } else if let Ok(modes) = sys::modes(self.fd) {
                set(self.fd, &modes.raw());
                self.before = Some((modes, lock));
            }
        }
        is_foreground
    }

    /// The time to call [`ControllingTerminal::take`] again.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Puts the modes back.
    pub(crate) fn release(&mut self) {
        self.retry_at = None;
        if let Some((modes, _lock)) = self.before.take() {
            set(self.fd, &modes);
        }
    }

    /// Puts back the modes from before the command.
    pub(crate) fn reset(&mut self) {
        self.release();
        if let Some(modes) = self.original.take() {
            set(self.fd, &modes);
        }
    }

    /// Replaces the modes to put back by those that the command has left.
    pub(crate) fn leave_with(&mut self, left: &TerminalModes) {
        if let Some((modes, _)) = &mut self.before {
            self.original.get_or_insert(*modes);
            *modes = modes.with(left);
        }
    }

    /// The poll(2) entry.
    pub(crate) fn watch(&self) -> libc::pollfd {
        let room = if self.is_on_demand { 1 } else { KEYS_BYTES_MAX };
        let wants_keys = self.is_taken() && self.in_flight < room;
        sys::watch(if wants_keys { self.keys_fd() } else { -1 }, libc::POLLIN)
    }

    fn keys_fd(&self) -> RawFd {
        self.keys.as_ref().map_or(self.fd, AsRawFd::as_raw_fd)
    }

    /// Reads once. Call this when the terminal polled as readable.
    pub(crate) fn read(&mut self) -> KeyInput<'_> {
        let room = self.buffer.len().min(KEYS_BYTES_MAX - self.in_flight);
        let read =
            if self.is_on_demand { self.read_line() } else { sys::read(self.keys_fd(), &mut self.buffer[..room]) };
        match read {
            Ok(length @ 1..) => {
                self.in_flight += length;
                KeyInput::Keys(&self.buffer[..length])
            }
            Err(Errno::EAGAIN | Errno::EINTR) => KeyInput::Nothing,
            Ok(_) | Err(_) => {
                self.has_hung_up = true;
                self.before = None;
                KeyInput::End
            }
        }
    }

    /// Reads the pending keys up to the end of a line. The keys after it may be for another reader.
    fn read_line(&mut self) -> sys::Result<usize> {
        let mut length = 0;
        while length < self.buffer.len() {
            match sys::read(self.keys_fd(), &mut self.buffer[length..length + 1]) {
                Ok(1) => length += 1,
                Ok(_) => break,
                Err(error) if length == 0 => return Err(error),
                Err(_) => break,
            }
            if matches!(self.buffer[length - 1], b'\r' | b'\n') || self.keys.is_none() {
                break;
            }
        }
        Ok(length)
    }

    /// Notes that the command's terminal has taken this many bytes.
    pub(crate) fn on_taken(&mut self, bytes: u32) {
        self.in_flight = self.in_flight.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// A second, non-blocking opening of an inherited descriptor.
fn reopened(fd: RawFd, access: libc::c_int) -> Option<OwnedFd> {
    let path = match fd {
        libc::STDIN_FILENO => c"/proc/self/fd/0",
        libc::STDOUT_FILENO => c"/proc/self/fd/1",
        _ => c"/proc/self/fd/2",
    };
    sys::open(path, access | libc::O_NONBLOCK | libc::O_NOCTTY).ok()
}

/// A second opening of a terminal by the name that all its users share, which `/dev/tty` is not.
fn reopened_by_number(fd: RawFd) -> Option<OwnedFd> {
    let number = sys::terminal_number(fd)?;
    let path = CString::new(format!("/dev/pts/{}", libc::minor(number.into()))).expect("a number has no NUL");
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = sys::open(&path, flags).ok().or_else(|| reopened(fd, libc::O_RDONLY))?;
    (sys::terminal_number(opened.as_raw_fd()) == Some(number)).then_some(opened)
}

/// Sets modes, even from the background.
fn set(fd: RawFd, modes: &Modes) {
    const TTOU: SignalSet = bit(sys::TTOU);
    let before = sys::block_signals(TTOU);
    let _ = sys::set_modes(fd, modes);
    sys::restore_mask(before);
}
