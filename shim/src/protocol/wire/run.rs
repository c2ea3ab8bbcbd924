//! The RUN frame: a command and everything that it inherits from its caller.
//!
//! Invariants: an encoded frame decodes to the same; bytes after the end that are not [`Extras`] are errors.

use std::ffi::CStr;

use super::attributes::{self, Attributes};
use super::extras::{self, Extras};
use super::fields::{Fields, Strings, put_bytes, put_strings};
use super::table::Field;
use super::{HEADER_BYTES, RUN, RUN_BYTES_MAX, WHOAMI_BYTES_MAX, WireError};
use crate::protocol::process::Signal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest<'a> {
    /// The inheritance of the command.
    pub attributes: Attributes,
    /// The caller's name for itself; empty if it gave none.
    pub whoami: &'a [u8],
    /// The shell to execute. A name without a slash is searched as by execvp(3).
    pub shell: &'a CStr,
    /// Its arguments, `argv[0]` first.
    pub argv: Strings<'a>,
    /// Its environment, `NAME=value`.
    pub env: Strings<'a>,
}

impl RunRequest<'_> {
    /// The number of descriptors that travel with the frame: the directory if it is not given by path, stdin if open,
    /// the caller's terminal if that is not stdin, and the inherited ones.
    #[must_use]
    pub fn descriptor_count(&self) -> usize {
        let directory = usize::from(self.attributes.extras.directory.is_none());
        let stdio = self.attributes.stdio;
        let standard = usize::from(stdio.stdin) + usize::from(stdio.brings_terminal());
        directory + standard + self.attributes.inherited.len()
    }
}

/// Appends a RUN frame.
///
/// # Errors
/// [`WireError::TooLong`] if the strings exceed [`RUN_BYTES_MAX`]; `out` is then unchanged.
pub fn encode_run<'a>(
    attributes: &Attributes,
    (whoami, shell): (&[u8], &CStr),
    argv: impl Iterator<Item = &'a CStr>,
    env: impl Iterator<Item = &'a CStr>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[RUN, 0, 0, 0, 0]);
    put_payload(attributes, (whoami, shell), argv, env, out);
    set_length(start, out).inspect_err(|_| out.truncate(start))
}

fn put_payload<'a>(
    attributes: &Attributes,
    (whoami, shell): (&[u8], &CStr),
    argv: impl Iterator<Item = &'a CStr>,
    env: impl Iterator<Item = &'a CStr>,
    out: &mut Vec<u8>,
) {
    attributes::encode(attributes, out);
    put_bytes(out, &whoami[..whoami.len().min(WHOAMI_BYTES_MAX)]);
    put_bytes(out, shell.to_bytes_with_nul());
    put_strings(out, argv);
    put_strings(out, env);
    attributes.extras.encode(out);
}

impl<'a> Field<'a> for Box<RunRequest<'a>> {
    fn put(&self, out: &mut Vec<u8>) {
        put_payload(&self.attributes, (self.whoami, self.shell), self.argv.iter(), self.env.iter(), out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        decode(std::mem::take(payload)).map(Self::new)
    }
}

/// Adds the caller's control groups to an encoded RUN frame.
///
/// # Errors
/// [`WireError::TooLong`] if the frame would exceed its bound. It is then unchanged.
pub fn add_cgroups(cgroups: &[u8], frame: &mut Vec<u8>) -> Result<(), WireError> {
    add(frame, |frame| extras::put_cgroups(cgroups, frame))
}

/// Adds a variable, `NAME=value`, to the environment in an encoded RUN frame. It replaces those of its name.
///
/// # Errors
/// [`WireError::TooLong`] if the frame would exceed its bound. It is then unchanged.
pub fn add_variable(entry: &CStr, frame: &mut Vec<u8>) -> Result<(), WireError> {
    add(frame, |frame| extras::put_variable(entry, frame))
}

/// Adds to the extras of an encoded RUN frame.
fn add(frame: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
    let before = frame.len();
    put(frame);
    set_length(0, frame).inspect_err(|_| frame.truncate(before))
}

/// Writes the length of the RUN that begins there and goes on to the end.
fn set_length(start: usize, out: &mut [u8]) -> Result<(), WireError> {
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes > RUN_BYTES_MAX {
        return Err(WireError::TooLong { kind: RUN, bytes });
    }
    let length = u32::try_from(bytes).expect("bounded by RUN_BYTES_MAX");
    out[start + 1..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn decode(payload: &[u8]) -> Result<RunRequest<'_>, WireError> {
    let mut fields = Fields(payload);
    let mut attributes = attributes::decode(&mut fields)?;
    let whoami = fields.bytes(WHOAMI_BYTES_MAX, "a caller's name that is too long")?;
    let shell = fields.bytes(RUN_BYTES_MAX, "a shell's path that is too long")?;
    let shell = CStr::from_bytes_with_nul(shell).map_err(|_| WireError::Malformed("a shell's path with a NUL"))?;
    let (argv, env) = (fields.strings()?, fields.strings()?);
    if argv.is_empty() || shell.is_empty() {
        return Err(WireError::Malformed("a RUN without a program"));
    }
    attributes.extras = Extras::decode(&mut fields)?;
    Ok(RunRequest { attributes, whoami, shell, argv, env })
}

/// The effect of a signal on a shell that has just begun, before its command could set a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtStart {
    /// The signal ends the shell.
    Ends,
    /// The signal stops or continues the shell, or is blocked.
    Waits,
    /// The signal has no effect.
    Nothing,
}

impl RunRequest<'_> {
    /// The effect of this signal on the shell before it has done anything. bash(1) ignores SIGQUIT in all cases.
    #[must_use]
    pub fn at_start(&self, signal: Signal) -> AtStart {
        const CONT: Signal = Signal::new(18);
        /// SIGCHLD, SIGURG and SIGWINCH.
        const BENIGN: [u8; 3] = [17, 23, 28];
        /// SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU.
        const STOPS: [u8; 4] = [19, 20, 21, 22];
        let number = signal.number();
        let is_in = |set: u64| set & 1 << (number.clamp(1, 64) - 1) != 0;
        let is_bash = self.shell.to_bytes().ends_with(b"/bash");
        match signal {
            Signal::KILL => AtStart::Ends,
            CONT => AtStart::Waits,
            _ if is_in(self.attributes.ignored) || BENIGN.contains(&number) => AtStart::Nothing,
            Signal::QUIT if is_bash => AtStart::Nothing,
            _ if is_in(self.attributes.blocked) || STOPS.contains(&number) => AtStart::Waits,
            _ => AtStart::Ends,
        }
    }
}
