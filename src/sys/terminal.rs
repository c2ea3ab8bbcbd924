//! The human's terminal: the console's output, and the keys.
//!
//! Invariants: O_NONBLOCK is never set on an inherited descriptor, because the parent shell shares it. Instead, the file is
//! opened a second time through /proc. The terminal's modes are restored whenever the host ends, also when it panics.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::Mutex;
use std::time::Duration;

use nix::libc;
use nix::sys::termios::{InputFlags, LocalFlags, OutputFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use super::close_kind::CloseKind;
use super::pty::{self, Size};
use super::writer::Writer;
use rexec_sh::protocol::process::Pid;

/// The capacity of a pipe on standard output, bytes: the most for any user (pipe-max-size). With a quarter of that, the
/// server takes a tenth more processor time for much output.
const OUTPUT_PIPE_BYTES: i32 = 1 << 20;

/// The major number of `/dev/null`, `/dev/full` and their like (null(4)).
const MEMORY_DEVICES: u32 = 1;

/// The way to write a descriptor without waiting.
#[derive(Debug)]
pub enum Output {
    /// A terminal or pipe, opened a second time with O_NONBLOCK. It can be polled.
    Pollable(File),
    /// A socket, written with MSG_DONTWAIT. It can be polled.
    Socket(OwnedFd),
    /// A descriptor whose writes may wait: a file, whose disk or server may stand still, or a terminal or pipe of
    /// another user, which cannot be opened again. A helper process writes to it.
    Writer(Writer),
    /// A device of the kernel's own, such as `/dev/null`. A write to it never waits, and it cannot be polled.
    Plain(OwnedFd),
}

impl Output {
    /// The standard output of this process.
    ///
    /// # Errors
    /// EMFILE or ENFILE; as fork(2) if a [`Writer`] is needed.
    pub fn standard() -> io::Result<Self> {
        let inherited = io::stdout().as_fd().try_clone_to_owned()?;
        let data = File::from(inherited.try_clone()?).metadata()?;
        let kind = data.file_type();
        let is_terminal = nix::unistd::isatty(&inherited).unwrap_or(false);
        if kind.is_fifo() || is_terminal {
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let reopened = OpenOptions::new().write(true).custom_flags(flags).open("/proc/self/fd/1");
            return reopened.map(Self::Pollable).or_else(|_| Writer::start(inherited).map(Self::Writer));
        }
        let is_memory_device = kind.is_char_device() && libc::major(data.rdev()) == MEMORY_DEVICES;
        Ok(match () {
            () if kind.is_socket() => Self::Socket(inherited),
            () if is_memory_device => Self::Plain(inherited),
            () => Self::Writer(Writer::take_place_of(libc::STDOUT_FILENO, inherited, false)?),
        })
    }

    /// Makes a pipe larger than the usual 64 KiB, so that its reader and this process wake each other less often.
    pub fn widen(&self) {
        if let Self::Pollable(file) = self {
            super::widen(file, OUTPUT_PIPE_BYTES);
        }
    }

    /// Writes without waiting.
    ///
    /// # Errors
    /// `WouldBlock`, or as write(2).
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pollable(file) => super::write(file, bytes),
            Self::Socket(fd) => super::socket::send(fd, bytes, &[]),
            Self::Writer(writer) => writer.write(bytes),
            Self::Plain(fd) => super::write(fd, bytes),
        }
    }

    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Pollable(file) => nix::unistd::isatty(file).unwrap_or(false),
            Self::Writer(writer) => writer.target().is_some_and(|fd| nix::unistd::isatty(fd).unwrap_or(false)),
            Self::Socket(_) | Self::Plain(_) => false,
        }
    }

    #[must_use]
    pub fn size(&self) -> Option<Size> {
        match self {
            Self::Pollable(file) => pty::size(file),
            Self::Writer(writer) => writer.target().and_then(pty::size),
            Self::Socket(_) | Self::Plain(_) => None,
        }
    }

    /// The helper process that writes to it, if there is one.
    #[must_use]
    pub fn helper(&self) -> Option<Pid> {
        match self {
            Self::Writer(writer) => Some(writer.pid()),
            _ => None,
        }
    }

    /// Waits until everything is written, for at most `most`.
    pub fn end(self, most: Duration) {
        if let Self::Writer(writer) = self {
            writer.end(most);
        }
    }

    /// Returns true if poll(2) reports when there is room.
    #[must_use]
    pub fn is_pollable(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pollable(file) => file.as_fd(),
            Self::Writer(writer) => writer.as_fd(),
            Self::Socket(fd) | Self::Plain(fd) => fd.as_fd(),
        }
    }
}

impl AsRawFd for Output {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Pollable(file) => file.as_raw_fd(),
            Self::Writer(writer) => writer.as_raw_fd(),
            Self::Socket(fd) | Self::Plain(fd) => fd.as_raw_fd(),
        }
    }
}

/// Replaces a file that is this process's standard input or error: each child closes its copies, and that may wait for
/// the file's server. Nothing is read from such an input, and a helper, if one is needed, writes the errors.
///
/// # Errors
/// EMFILE or ENFILE; as fork(2).
pub fn let_go_of_files() -> io::Result<Option<Writer>> {
    let is_file =
        |fd: BorrowedFd<'_>| CloseKind::of(fd) == CloseKind::File && !nix::unistd::isatty(fd).unwrap_or(false);
    let input = io::stdin();
    let errors = io::stderr();
    if is_file(input.as_fd()) {
        super::put_at(&super::file::null()?, libc::STDIN_FILENO)?;
    }
    let start = || Writer::take_place_of(libc::STDERR_FILENO, errors.as_fd().try_clone_to_owned()?, true);
    is_file(errors.as_fd()).then(start).transpose()
}

/// The modes that the host switches off in its own terminal. Ctrl-S still stops the output.
const TAKEN: LocalFlags = LocalFlags::ICANON.union(LocalFlags::ECHO).union(LocalFlags::ISIG).union(LocalFlags::IEXTEN);

/// The terminal and its modes before the host changed them. The panic hook needs them, too.
static BEFORE: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// The human's keys. While this lives, the terminal delivers single keys without echo.
#[derive(Debug)]
pub struct Keys {
    file: File,
    /// The terminal's modes while this lives.
    modes: Termios,
    /// The present modes.
    now: Termios,
}

impl Keys {
    /// Takes over standard input. `None` unless it is a terminal with this process in the foreground. With `wants_all`,
    /// keys such as ^C and ^Z are ordinary keys; otherwise they send signals.
    #[must_use]
    pub fn take(wants_all: bool) -> Option<Self> {
        let taken = if wants_all { TAKEN } else { LocalFlags::ICANON | LocalFlags::ECHO };
        Self::take_with(|modes| modes.local_flags.remove(taken))
    }

    /// Takes over standard input for a program that is reached through this one: every key arrives unchanged, and every
    /// byte of output reaches the terminal unchanged.
    #[must_use]
    pub fn take_raw() -> Option<Self> {
        Self::take_with(cfmakeraw)
    }

    fn take_with(change: impl FnOnce(&mut Termios)) -> Option<Self> {
        let stdin = io::stdin();
        let mut before = tcgetattr(&stdin).ok()?;
        if nix::unistd::tcgetpgrp(&stdin).ok()? != nix::unistd::getpgrp() {
            return None;
        }
        let keys = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open("/proc/self/fd/0")
            .ok()?;
        // No program is started with a terminal like this, so a killed host has left it.
        if (before.local_flags & TAKEN).is_empty() {
            make_cooked(&mut before);
        }
        let mut modes = before.clone();
        change(&mut modes);
        tcsetattr(&stdin, SetArg::TCSANOW, &modes).ok()?;
        *BEFORE.lock().ok()? = Some((stdin.as_fd().try_clone_to_owned().ok()?, before));
        Some(Self { file: keys, now: modes.clone(), modes })
    }

    /// Makes every key arrive, and every byte of output reach the terminal, unchanged; or ends that.
    pub fn pass_everything(&mut self, passes: bool) {
        self.now = self.modes.clone();
        if passes {
            cfmakeraw(&mut self.now);
        }
        let _ = tcsetattr(&self.file, SetArg::TCSANOW, &self.now);
    }

    /// Takes the terminal over again after a stop of this process: its shell has given the terminal other modes. Does
    /// nothing in the background, where the terminal is the shell's.
    pub fn retake(&self) {
        let is_foreground = nix::unistd::tcgetpgrp(&self.file).is_ok_and(|group| group == nix::unistd::getpgrp());
        if is_foreground {
            let _ = tcsetattr(&self.file, SetArg::TCSANOW, &self.now);
        }
    }

    /// Reads all typed keys. Returns false if the terminal is gone.
    pub fn read_all(&mut self, mut each: impl FnMut(&[u8])) -> bool {
        let mut buffer = [0; 256];
        loop {
            match super::read(&self.file, &mut buffer) {
                Ok(0) => return false,
                Ok(length) => each(&buffer[..length]),
                Err(error) => return super::is_transient(&error),
            }
        }
    }
}

impl AsFd for Keys {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Keys {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Makes the terminal read lines, and translate output, as every shell expects.
fn make_cooked(modes: &mut Termios) {
    modes.local_flags.insert(TAKEN);
    modes.input_flags.insert(InputFlags::ICRNL | InputFlags::IXON | InputFlags::BRKINT);
    modes.output_flags.insert(OutputFlags::OPOST | OutputFlags::ONLCR);
}

/// Ends the raw mode of a killed host, unless another program has already set modes of its own. Works in the background
/// of a terminal, too.
pub(super) fn restore_raw(terminal: &File) {
    let Ok(mut modes) = tcgetattr(terminal) else { return };
    if (modes.local_flags & TAKEN).is_empty() && !modes.output_flags.contains(OutputFlags::OPOST) {
        make_cooked(&mut modes);
        let _ = tcsetattr(terminal, SetArg::TCSANOW, &modes);
    }
}

/// Restores the terminal's modes. Unread keys are dropped, because they were not meant for the parent shell.
fn restore() {
    if let Ok(mut before) = BEFORE.try_lock()
        && let Some((terminal, modes)) = before.take()
    {
        let _ = tcsetattr(&terminal, SetArg::TCSAFLUSH, &modes);
    }
}

/// The bytes that undo the host's drawing in a panic, and the file for them.
static UNDO: Mutex<Option<(File, Vec<u8>)>> = Mutex::new(None);

/// Registers bytes for the terminal if the host panics. The write does not wait, so some may be lost.
pub fn write_on_panic(output: &Output, bytes: Vec<u8>) {
    if let (Output::Pollable(file), Ok(mut undo)) = (output, UNDO.lock()) {
        *undo = file.try_clone().ok().map(|file| (file, bytes));
    }
}

/// Undoes the host's drawing and restores the terminal's modes in a panic.
pub fn restore_in_panic() {
    if let Ok(mut undo) = UNDO.try_lock()
        && let Some((terminal, bytes)) = undo.take()
    {
        let _ = super::write(&terminal, &bytes);
    }
    restore();
}

/// Writes a last message before the process ends. It may wait.
pub fn say(fd: &impl AsFd, text: &str) {
    let mut rest = text.as_bytes();
    while let Ok(length) = super::write(fd, rest) {
        rest = &rest[length..];
        if rest.is_empty() || length == 0 {
            return;
        }
    }
}
