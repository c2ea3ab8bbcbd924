//! The RUN frame: a command and everything it inherits from its caller.
//!
//! Invariants: what is encoded decodes to the same; numbers, counts and flags beyond what they may be are errors, and so
//! are bytes behind the end that are no [`Extras`].

use std::ffi::CStr;

use super::extra::Extras;
use super::{
    AFFINITY_BYTES_MAX, HEADER_BYTES, INHERITED_MAX, LIMITS_MAX, RUN, RUN_BYTES_MAX, WHOAMI_BYTES_MAX, WireError,
};
use crate::protocol::choice::{Sanitize, Tty};

/// What the caller's descriptors 0, 1 and 2 are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stdio {
    /// Descriptor 0 is open (and travels with the frame, after the working directory).
    pub stdin: bool,
    /// Descriptor 1 is open.
    pub stdout: bool,
    /// Descriptor 2 is open.
    pub stderr: bool,
    /// Descriptors 1 and 2 are one open file description, or one terminal.
    pub same_output: bool,
    /// Descriptor 0 is a terminal.
    pub stdin_tty: bool,
    /// Descriptor 1 is a terminal; where `relayed` is set, the same one.
    pub stdout_tty: bool,
    /// Descriptor 2 is a terminal.
    pub stderr_tty: bool,
    /// Descriptor 0 and an output are the caller's controlling terminal: the shim can hand its keys on.
    pub relayed: bool,
    /// Descriptor 0 is the caller's controlling terminal, and the caller is not in its foreground.
    pub background: bool,
    /// The caller leads the session of that terminal.
    pub leader: bool,
    /// The shim hands keys on only while the command asks for them, because others may read that terminal too. Without
    /// `relayed`, an output is the caller's controlling terminal, and that travels behind descriptor 0.
    pub on_demand: bool,
}

impl Stdio {
    /// Whether the caller's terminal travels as a descriptor of its own, because descriptor 0 is something else.
    #[must_use]
    pub fn brings_terminal(self) -> bool {
        self.on_demand && !self.relayed
    }

    fn bits(self) -> u16 {
        let flags = [
            self.stdin,
            self.stdout,
            self.stderr,
            self.same_output,
            self.stdout_tty,
            self.stderr_tty,
            self.stdin_tty,
            self.relayed,
            self.background,
            self.leader,
            self.on_demand,
        ];
        flags.iter().enumerate().fold(0, |bits, (n, &on)| bits | u16::from(on) << n)
    }

    fn from_bits(bits: u16) -> Option<Self> {
        let on = |n: u16| bits & 1 << n != 0;
        (bits < 1 << 11).then(|| Self {
            stdin: on(0),
            stdout: on(1),
            stderr: on(2),
            same_output: on(3),
            stdout_tty: on(4),
            stderr_tty: on(5),
            stdin_tty: on(6),
            relayed: on(7),
            background: on(8),
            leader: on(9),
            on_demand: on(10),
        })
    }
}

/// The process attributes that a command inherits from its caller (fork(2), execve(2)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Descriptors 0, 1 and 2.
    pub stdio: Stdio,
    /// Which descriptors are the command's terminal. `None`: the host's choice holds.
    pub tty: Option<Tty>,
    /// What is done to the output. `None`: the host's choice holds.
    pub sanitize: Option<Sanitize>,
    /// umask(2).
    pub umask: u32,
    /// Nice value, −20 to 19.
    pub nice: i32,
    /// /proc/PID/oom_score_adj.
    pub oom_score_adj: i32,
    /// Ignored signals; bit N−1 is signal N.
    pub ignored: u64,
    /// Blocked signals; bit N−1 is signal N.
    pub blocked: u64,
    /// Window size, rows; 0 when unknown.
    pub rows: u16,
    /// Window size, columns; 0 when unknown.
    pub cols: u16,
    /// Soft and hard limit of each resource, in the order of their numbers.
    pub limits: Vec<(u64, u64)>,
    /// The mask of sched_setaffinity(2); empty when unknown.
    pub affinity: Vec<u8>,
    /// Numbers of the inherited descriptors from 3 up, in the order in which they travel, after directory and stdin.
    pub inherited: Vec<i32>,
    /// What few callers change.
    pub extras: Extras,
}

/// What a signal does to a shell that has just begun, before anything of its command could set a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtStart {
    /// It ends the shell.
    Ends,
    /// It stops or continues it, or is blocked.
    Waits,
    /// Nothing.
    Nothing,
}

impl Run<'_> {
    /// What this signal does to the shell before it has done anything. bash(1) ignores QUIT in all cases.
    #[must_use]
    pub fn at_start(&self, signal: u8) -> AtStart {
        const KILL: u8 = 9;
        const QUIT: u8 = 3;
        const CONT: u8 = 18;
        const BENIGN: [u8; 3] = [17, 23, 28];
        const STOPS: [u8; 4] = [19, 20, 21, 22];
        let is_in = |set: u64| set & 1 << (signal.clamp(1, 64) - 1) != 0;
        let is_bash = self.shell.to_bytes().ends_with(b"/bash");
        match signal {
            KILL => AtStart::Ends,
            CONT => AtStart::Waits,
            _ if is_in(self.attributes.ignored) || BENIGN.contains(&signal) => AtStart::Nothing,
            QUIT if is_bash => AtStart::Nothing,
            _ if is_in(self.attributes.blocked) || STOPS.contains(&signal) => AtStart::Waits,
            _ => AtStart::Ends,
        }
    }
}

/// A list of NUL-terminated strings as it lies in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strings<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a CStr> + use<'a> {
        self.bytes
            .split_inclusive(|&byte| byte == 0)
            .map(|string| CStr::from_bytes_with_nul(string).expect("the decoder counted the terminators"))
    }
}

/// A whole request to run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<'a> {
    /// What the command inherits.
    pub attributes: Attributes,
    /// What the caller calls itself; empty when it did not say.
    pub whoami: &'a [u8],
    /// The shell to execute. A name without a slash is looked for as execvp(3) does it.
    pub shell: &'a CStr,
    /// Its arguments, `argv[0]` first.
    pub argv: Strings<'a>,
    /// Its environment, `NAME=value`.
    pub env: Strings<'a>,
}

impl Run<'_> {
    /// How many descriptors travel with the frame: the directory if it is none by path, stdin if open, the caller's
    /// terminal if that is not stdin, and the inherited ones.
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
/// [`WireError::TooLong`] when the strings exceed [`RUN_BYTES_MAX`]; `out` is then as it was.
pub fn encode_run<'a>(
    attributes: &Attributes,
    (whoami, shell): (&[u8], &CStr),
    argv: impl Iterator<Item = &'a CStr>,
    env: impl Iterator<Item = &'a CStr>,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[RUN, 0, 0, 0, 0]);
    encode_attributes(attributes, out);
    put_bytes(out, &whoami[..whoami.len().min(WHOAMI_BYTES_MAX)]);
    put_bytes(out, shell.to_bytes_with_nul());
    put_strings(out, argv);
    put_strings(out, env);
    attributes.extras.encode(out);
    set_length(start, out).inspect_err(|_| out.truncate(start))
}

/// Writes the length of the RUN that begins there and goes on to the end.
pub(super) fn set_length(start: usize, out: &mut [u8]) -> Result<(), WireError> {
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes > RUN_BYTES_MAX {
        return Err(WireError::TooLong { kind: RUN, bytes });
    }
    let length = u32::try_from(bytes).expect("bounded by RUN_BYTES_MAX");
    out[start + 1..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn encode_attributes(a: &Attributes, out: &mut Vec<u8>) {
    out.extend_from_slice(&a.stdio.bits().to_le_bytes());
    out.push(a.tty.map_or(0, |tty| tty as u8 + 1));
    out.push(a.sanitize.map_or(0, |sanitize| sanitize as u8 + 1));
    out.extend_from_slice(&a.umask.to_le_bytes());
    out.extend_from_slice(&a.nice.to_le_bytes());
    out.extend_from_slice(&a.oom_score_adj.to_le_bytes());
    out.extend_from_slice(&a.ignored.to_le_bytes());
    out.extend_from_slice(&a.blocked.to_le_bytes());
    out.extend_from_slice(&a.rows.to_le_bytes());
    out.extend_from_slice(&a.cols.to_le_bytes());
    let limits = &a.limits[..a.limits.len().min(LIMITS_MAX)];
    out.push(u8::try_from(limits.len()).expect("bounded by LIMITS_MAX"));
    for (soft, hard) in limits {
        out.extend_from_slice(&soft.to_le_bytes());
        out.extend_from_slice(&hard.to_le_bytes());
    }
    put_bytes(out, &a.affinity[..a.affinity.len().min(AFFINITY_BYTES_MAX)]);
    let inherited = &a.inherited[..a.inherited.len().min(INHERITED_MAX)];
    out.push(u8::try_from(inherited.len()).expect("bounded by INHERITED_MAX"));
    for fd in inherited {
        out.extend_from_slice(&fd.to_le_bytes());
    }
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("callers bound their strings");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_strings<'a>(out: &mut Vec<u8>, strings: impl Iterator<Item = &'a CStr>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    let mut count = 0_u32;
    for string in strings {
        out.extend_from_slice(string.to_bytes_with_nul());
        count += 1;
    }
    // A length that does not fit is far over RUN_BYTES_MAX, which the caller reports.
    let bytes = u32::try_from(out.len() - start - 8).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&bytes.to_le_bytes());
}

/// A cursor over a payload; every read is checked.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.0.split_at_checked(bytes).ok_or(WireError::Malformed("a RUN that ends early"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(*self.take(N)?.first_chunk().expect("take gave N bytes"))
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn count(&mut self, most: usize, what: &'static str) -> Result<usize, WireError> {
        let [count] = self.array()?;
        let count = usize::from(count);
        if count > most { Err(WireError::Malformed(what)) } else { Ok(count) }
    }

    /// One of these, by its number from 1 on; 0 stands for none.
    fn choice<T: Copy>(&mut self, all: &[T], what: &'static str) -> Result<Option<T>, WireError> {
        let [number] = self.array()?;
        let Some(at) = usize::from(number).checked_sub(1) else { return Ok(None) };
        all.get(at).copied().map(Some).ok_or(WireError::Malformed(what))
    }

    pub(super) fn bytes(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.u32()?).expect("usize has 32 bits or more");
        if length > most { Err(WireError::Malformed(what)) } else { self.take(length) }
    }

    fn strings(&mut self) -> Result<Strings<'a>, WireError> {
        let count = usize::try_from(self.u32()?).expect("usize has 32 bits or more");
        let bytes = self.bytes(RUN_BYTES_MAX, "a list of strings that is too long")?;
        let terminated = bytes.last().is_none_or(|&byte| byte == 0);
        if !terminated || bytes.iter().filter(|&&byte| byte == 0).count() != count {
            return Err(WireError::Malformed("a list of strings with a wrong count"));
        }
        Ok(Strings { count, bytes })
    }
}

pub(super) fn decode(payload: &[u8]) -> Result<Run<'_>, WireError> {
    let mut fields = Fields(payload);
    let mut attributes = decode_attributes(&mut fields)?;
    let whoami = fields.bytes(WHOAMI_BYTES_MAX, "a caller's name that is too long")?;
    let shell = fields.bytes(RUN_BYTES_MAX, "a shell's path that is too long")?;
    let shell = CStr::from_bytes_with_nul(shell).map_err(|_| WireError::Malformed("a shell's path with a NUL"))?;
    let (argv, env) = (fields.strings()?, fields.strings()?);
    if argv.is_empty() || shell.is_empty() {
        return Err(WireError::Malformed("a RUN without a program"));
    }
    attributes.extras = Extras::decode(&mut fields)?;
    Ok(Run { attributes, whoami, shell, argv, env })
}

fn decode_attributes(fields: &mut Fields<'_>) -> Result<Attributes, WireError> {
    let bits = u16::from_le_bytes(fields.array()?);
    let stdio = Stdio::from_bits(bits).ok_or(WireError::Malformed("unknown flags of the descriptors"))?;
    let tty = fields.choice(&Tty::ALL, "an unknown use of the terminal")?;
    let sanitize = fields.choice(&Sanitize::ALL, "an unknown treatment of output")?;
    let (umask, nice, oom_score_adj) = (fields.u32()?, fields.i32()?, fields.i32()?);
    let (ignored, blocked) = (fields.u64()?, fields.u64()?);
    let (rows, cols) = (u16::from_le_bytes(fields.array()?), u16::from_le_bytes(fields.array()?));
    let count = fields.count(LIMITS_MAX, "too many resource limits")?;
    let limits = (0..count).map(|_| Ok((fields.u64()?, fields.u64()?))).collect::<Result<_, WireError>>()?;
    let affinity = fields.bytes(AFFINITY_BYTES_MAX, "a CPU mask that is too long")?.to_vec();
    let count = fields.count(INHERITED_MAX, "too many inherited descriptors")?;
    let inherited = (0..count).map(|_| fields.i32()).collect::<Result<Vec<_>, WireError>>()?;
    if inherited.iter().any(|&fd| fd < 3) {
        return Err(WireError::Malformed("an inherited descriptor below 3"));
    }
    Ok(Attributes {
        stdio,
        tty,
        sanitize,
        umask,
        nice,
        oom_score_adj,
        ignored,
        blocked,
        rows,
        cols,
        limits,
        affinity,
        inherited,
        extras: Extras::default(),
    })
}
