//! The wire format between rexec-sh and rexec-host: pure functions over bytes, no descriptors.
//!
//! A connection opens with one [`Hello`] in each direction (8 bytes, never framed, so that any two versions can tell
//! each other apart), followed by frames: one byte of kind, four bytes of payload length (little-endian, as every
//! number here), the payload. Command, directory and environment are bytes and never assumed to be UTF-8.
//!
//! ```text
//! shim ▶ host   HELLO RUN(+descriptors)  SIGNAL*  CLOSED*  ABORT?
//! host ▶ shim   HELLO (OUT | ERR | NOTE)* (EXIT | FAIL | REFUSE)
//! ```
//!
//! Invariants: nothing here allocates by a length field (the caller's buffer grows with the bytes that arrived);
//! every truncation of a valid stream is [`Decoded::Incomplete`] and never an error; kinds from 0x80 up may be skipped
//! by a reader that does not know them, any other unknown kind is an error.

use std::ffi::CStr;
use std::fmt;

/// The first four bytes of every binary connection; the first byte tells it from JSONL, which opens with `{`.
pub const MAGIC: [u8; 4] = *b"RXEC";
/// The version this build speaks.
pub const VERSION: u16 = 1;
/// The oldest version this build still understands.
pub const VERSION_MIN: u16 = 1;
/// Size of a [`Hello`], bytes.
pub const HELLO_BYTES: usize = 8;
/// Size of a frame's kind and length, bytes.
pub const HEADER_BYTES: usize = 5;
/// The largest RUN payload, bytes. execve(2) takes 6 MiB of strings at most, with an unlimited stack.
pub const RUN_BYTES_MAX: usize = 8 << 20;
/// The largest payload of every other kind, bytes.
pub const FRAME_BYTES_MAX: usize = 128 << 10;
/// The most descriptors from 3 up that one RUN may carry.
pub const INHERITED_MAX: usize = 16;
/// The most resource limits that one RUN may carry (Linux has 16).
pub const LIMITS_MAX: usize = 32;
/// The largest CPU affinity mask, bytes (8,192 CPUs).
pub const AFFINITY_BYTES_MAX: usize = 1024;
/// The longest name a caller may give itself, bytes.
pub const WHOAMI_BYTES_MAX: usize = 256;

const RUN: u8 = 0x01;
const SIGNAL: u8 = 0x02;
const ABORT: u8 = 0x03;
const CLOSED: u8 = 0x04;
const OUT: u8 = 0x11;
const ERR: u8 = 0x12;
const NOTE: u8 = 0x13;
const EXIT: u8 = 0x14;
const FAIL: u8 = 0x15;
const REFUSE: u8 = 0x16;
const SKIPPABLE: u8 = 0x80;

/// Why a peer's bytes cannot be understood. The connection ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The first bytes are not [`MAGIC`].
    NotRexec,
    /// The peer speaks these versions, newest and oldest, and we speak none of them.
    Version { newest: u16, oldest: u16 },
    /// A frame of a kind we do not know and may not skip.
    UnknownKind(u8),
    /// A payload longer than its kind allows.
    TooLong { kind: u8, bytes: usize },
    /// A payload that is not what its kind says.
    Malformed(&'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRexec => write!(f, "the peer does not speak the rexec protocol"),
            Self::Version { newest, oldest } if newest == oldest => {
                write!(f, "the peer speaks protocol {newest}, this side {VERSION}")
            }
            Self::Version { newest, oldest } => {
                write!(f, "the peer speaks protocols {oldest} to {newest}, this side {VERSION}")
            }
            Self::UnknownKind(kind) => write!(f, "unknown frame kind {kind:#04x}"),
            Self::TooLong { kind, bytes } => {
                write!(f, "a frame of kind {kind:#04x} announces {bytes} bytes, more than its kind allows")
            }
            Self::Malformed(what) => write!(f, "malformed frame: {what}"),
        }
    }
}

impl std::error::Error for WireError {}

/// What a decoder found at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// More bytes are needed.
    Incomplete,
    /// A whole item, which took this many bytes of the buffer.
    Item(T, usize),
    /// A frame that may be skipped, which took this many bytes of the buffer.
    Skip(usize),
}

/// The opening of a connection: which versions a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The newest version spoken, and the one in use if the other side knows it.
    pub newest: u16,
    /// The oldest version understood.
    pub oldest: u16,
}

impl Hello {
    /// What this build says.
    pub const OURS: Self = Self { newest: VERSION, oldest: VERSION_MIN };

    /// The eight bytes of it.
    #[must_use]
    pub fn encode(self) -> [u8; HELLO_BYTES] {
        let [a, b, c, d] = MAGIC;
        let ([e, f], [g, h]) = (self.newest.to_le_bytes(), self.oldest.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// Reads a hello and checks that the two sides share a version.
    ///
    /// # Errors
    /// [`WireError::NotRexec`] from the first byte that differs, [`WireError::Version`] when no version is shared.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, WireError> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(WireError::NotRexec);
        }
        let Some(hello) = bytes.first_chunk::<HELLO_BYTES>() else { return Ok(Decoded::Incomplete) };
        let newest = u16::from_le_bytes([hello[4], hello[5]]);
        let oldest = u16::from_le_bytes([hello[6], hello[7]]);
        if oldest > VERSION || newest < VERSION_MIN || oldest > newest {
            return Err(WireError::Version { newest, oldest });
        }
        Ok(Decoded::Item(Self { newest, oldest }, HELLO_BYTES))
    }
}

/// One of the two streams of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Err,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// It died by this signal.
    Signal(u8),
}

impl Exit {
    /// The code the caller sees: the shell's own, or 128 + the signal, as shells report it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// What is done to the output on its way to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sanitize {
    /// As the host was told to.
    #[default]
    Default,
    /// Nothing.
    Raw,
    /// Escape sequences and control characters are deleted.
    Strip,
    /// Redraws are resolved to what a person would see at the end.
    Collapse,
}

/// What the caller's descriptors 0, 1 and 2 are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stdio {
    /// Descriptor 0 is open (and travels with the frame, after the working directory).
    pub stdin: bool,
    /// Descriptor 1 is open.
    pub stdout: bool,
    /// Descriptor 2 is open.
    pub stderr: bool,
    /// Descriptors 1 and 2 are one open file description.
    pub same_output: bool,
    /// Descriptor 1 is a terminal.
    pub stdout_tty: bool,
    /// Descriptor 2 is a terminal.
    pub stderr_tty: bool,
    /// The caller asked for pipes in place of a terminal.
    pub pipes: bool,
}

impl Stdio {
    fn bits(self) -> u16 {
        let flags =
            [self.stdin, self.stdout, self.stderr, self.same_output, self.stdout_tty, self.stderr_tty, self.pipes];
        flags.iter().enumerate().fold(0, |bits, (n, &on)| bits | u16::from(on) << n)
    }

    fn from_bits(bits: u16) -> Option<Self> {
        let on = |n: u16| bits & 1 << n != 0;
        (bits < 1 << 7).then(|| Self {
            stdin: on(0),
            stdout: on(1),
            stderr: on(2),
            same_output: on(3),
            stdout_tty: on(4),
            stderr_tty: on(5),
            pipes: on(6),
        })
    }
}

/// The process attributes that a command inherits from its caller (fork(2), execve(2)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Descriptors 0, 1 and 2.
    pub stdio: Stdio,
    /// The treatment of output.
    pub sanitize: Sanitize,
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
    /// The shell to execute.
    pub shell: &'a CStr,
    /// Its arguments, `argv[0]` first.
    pub argv: Strings<'a>,
    /// Its environment, `NAME=value`.
    pub env: Strings<'a>,
}

impl Run<'_> {
    /// How many descriptors travel with the frame: the directory, stdin if open, and the inherited ones.
    #[must_use]
    pub fn descriptor_count(&self) -> usize {
        1 + usize::from(self.attributes.stdio.stdin) + self.attributes.inherited.len()
    }
}

/// A frame from the shim.
#[derive(Debug, PartialEq, Eq)]
pub enum FromShim<'a> {
    /// Run a command. Boxed, because it is far larger than the others and comes once.
    Run(Box<Run<'a>>),
    /// Deliver this signal to the command's process group.
    Signal(u8),
    /// End the command: terminate, then kill, its whole tree.
    Abort,
    /// Nobody reads this stream any more.
    Closed(Stream),
}

/// A frame from the host.
#[derive(Debug, PartialEq, Eq)]
pub enum FromHost<'a> {
    /// Bytes for the caller's descriptor 1.
    Out(&'a [u8]),
    /// Bytes for the caller's descriptor 2.
    Err(&'a [u8]),
    /// One line of the host's own for the caller's descriptor 2.
    Note(&'a [u8]),
    /// The command ended; nothing follows.
    Exit(Exit),
    /// The command did not run, or its end is unknown: leave with this code after these words.
    Fail { code: u8, text: &'a [u8] },
    /// The host may not run it (the caller is sandboxed): run the real shell, silently.
    Refuse,
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
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes > RUN_BYTES_MAX {
        out.truncate(start);
        return Err(WireError::TooLong { kind: RUN, bytes });
    }
    let length = u32::try_from(bytes).expect("bounded by RUN_BYTES_MAX");
    out[start + 1..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

fn encode_attributes(a: &Attributes, out: &mut Vec<u8>) {
    out.extend_from_slice(&a.stdio.bits().to_le_bytes());
    out.push(a.sanitize as u8);
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

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
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

fn put_frame(out: &mut Vec<u8>, kind: u8, parts: [&[u8]; 2]) {
    let bytes = parts[0].len() + parts[1].len();
    debug_assert!(bytes <= FRAME_BYTES_MAX);
    out.push(kind);
    out.extend_from_slice(&u32::try_from(bytes).expect("bounded by FRAME_BYTES_MAX").to_le_bytes());
    out.extend_from_slice(parts[0]);
    out.extend_from_slice(parts[1]);
}

/// Appends a SIGNAL frame.
pub fn encode_signal(signal: u8, out: &mut Vec<u8>) {
    put_frame(out, SIGNAL, [&[signal], &[]]);
}

/// Appends an ABORT frame.
pub fn encode_abort(out: &mut Vec<u8>) {
    put_frame(out, ABORT, [&[], &[]]);
}

/// Appends a CLOSED frame.
pub fn encode_closed(stream: Stream, out: &mut Vec<u8>) {
    put_frame(out, CLOSED, [&[stream as u8 + 1], &[]]);
}

/// Appends output as frames of at most [`FRAME_BYTES_MAX`].
pub fn encode_output(stream: Stream, bytes: &[u8], out: &mut Vec<u8>) {
    let kind = match stream {
        Stream::Out => OUT,
        Stream::Err => ERR,
    };
    for chunk in bytes.chunks(FRAME_BYTES_MAX) {
        put_frame(out, kind, [chunk, &[]]);
    }
}

/// Appends a NOTE frame.
pub fn encode_note(text: &[u8], out: &mut Vec<u8>) {
    put_frame(out, NOTE, [&text[..text.len().min(FRAME_BYTES_MAX)], &[]]);
}

/// Appends an EXIT frame.
pub fn encode_exit(exit: Exit, out: &mut Vec<u8>) {
    let (how, value) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(signal) => (1, signal),
    };
    put_frame(out, EXIT, [&[how, value], &[]]);
}

/// Appends a FAIL frame.
pub fn encode_fail(code: u8, text: &[u8], out: &mut Vec<u8>) {
    put_frame(out, FAIL, [&[code], &text[..text.len().min(FRAME_BYTES_MAX - 1)]]);
}

/// Appends a REFUSE frame.
pub fn encode_refuse(out: &mut Vec<u8>) {
    put_frame(out, REFUSE, [&[], &[]]);
}

/// Splits one frame off the start of a buffer.
fn split(bytes: &[u8]) -> Result<Decoded<(u8, &[u8])>, WireError> {
    let Some(&[kind, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(Decoded::Incomplete) };
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("usize has 32 bits or more");
    let most = if kind == RUN { RUN_BYTES_MAX } else { FRAME_BYTES_MAX };
    if length > most {
        return Err(WireError::TooLong { kind, bytes: length });
    }
    match bytes.get(HEADER_BYTES..HEADER_BYTES + length) {
        None => Ok(Decoded::Incomplete),
        Some(payload) => Ok(Decoded::Item((kind, payload), HEADER_BYTES + length)),
    }
}

/// Whether the buffer starts with a RUN frame: only then may it grow beyond a usual frame.
#[must_use]
pub fn starts_with_run(bytes: &[u8]) -> bool {
    bytes.first() == Some(&RUN)
}

impl<'a> FromShim<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]; the buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        let (kind, payload, taken) = match split(bytes)? {
            Decoded::Incomplete => return Ok(Decoded::Incomplete),
            Decoded::Skip(taken) => return Ok(Decoded::Skip(taken)),
            Decoded::Item((kind, payload), taken) => (kind, payload, taken),
        };
        let frame = match (kind, payload) {
            (RUN, _) => Self::Run(Box::new(decode_run(payload)?)),
            (SIGNAL, &[signal @ 1..=64]) => Self::Signal(signal),
            (ABORT, &[]) => Self::Abort,
            (CLOSED, &[1]) => Self::Closed(Stream::Out),
            (CLOSED, &[2]) => Self::Closed(Stream::Err),
            (SIGNAL | ABORT | CLOSED, _) => return Err(WireError::Malformed("a control frame of the wrong size")),
            (SKIPPABLE.., _) => return Ok(Decoded::Skip(taken)),
            _ => return Err(WireError::UnknownKind(kind)),
        };
        Ok(Decoded::Item(frame, taken))
    }
}

impl<'a> FromHost<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]; the buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        let (kind, payload, taken) = match split(bytes)? {
            Decoded::Incomplete => return Ok(Decoded::Incomplete),
            Decoded::Skip(taken) => return Ok(Decoded::Skip(taken)),
            Decoded::Item((kind, payload), taken) => (kind, payload, taken),
        };
        let frame = match (kind, payload) {
            (OUT, bytes) => Self::Out(bytes),
            (ERR, bytes) => Self::Err(bytes),
            (NOTE, text) => Self::Note(text),
            (EXIT, &[0, code]) => Self::Exit(Exit::Code(code)),
            (EXIT, &[1, signal]) => Self::Exit(Exit::Signal(signal)),
            (FAIL, [code, text @ ..]) => Self::Fail { code: *code, text },
            (REFUSE, &[]) => Self::Refuse,
            (EXIT | FAIL | REFUSE, _) => return Err(WireError::Malformed("a control frame of the wrong size")),
            (SKIPPABLE.., _) => return Ok(Decoded::Skip(taken)),
            _ => return Err(WireError::UnknownKind(kind)),
        };
        Ok(Decoded::Item(frame, taken))
    }
}

/// A cursor over a payload; every read is checked.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], WireError> {
        let (head, tail) = self.0.split_at_checked(bytes).ok_or(WireError::Malformed("a RUN that ends early"))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
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

    fn bytes(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], WireError> {
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

fn decode_run(payload: &[u8]) -> Result<Run<'_>, WireError> {
    let mut fields = Fields(payload);
    let attributes = decode_attributes(&mut fields)?;
    let whoami = fields.bytes(WHOAMI_BYTES_MAX, "a caller's name that is too long")?;
    let shell = fields.bytes(RUN_BYTES_MAX, "a shell's path that is too long")?;
    let shell = CStr::from_bytes_with_nul(shell).map_err(|_| WireError::Malformed("a shell's path with a NUL"))?;
    let (argv, env) = (fields.strings()?, fields.strings()?);
    if argv.is_empty() || shell.is_empty() {
        return Err(WireError::Malformed("a RUN without a program"));
    }
    if !fields.0.is_empty() {
        return Err(WireError::Malformed("a RUN with bytes behind its end"));
    }
    Ok(Run { attributes, whoami, shell, argv, env })
}

fn decode_attributes(fields: &mut Fields<'_>) -> Result<Attributes, WireError> {
    let bits = u16::from_le_bytes(fields.array()?);
    let stdio = Stdio::from_bits(bits).ok_or(WireError::Malformed("unknown flags of the descriptors"))?;
    let sanitize = match fields.array()? {
        [0] => Sanitize::Default,
        [1] => Sanitize::Raw,
        [2] => Sanitize::Strip,
        [3] => Sanitize::Collapse,
        _ => return Err(WireError::Malformed("an unknown treatment of output")),
    };
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let attributes = Attributes {
            stdio: Stdio { stdin: true, stdout: true, stderr: true, same_output: true, ..Stdio::default() },
            sanitize: Sanitize::Strip,
            umask: 0o077,
            nice: -5,
            oom_score_adj: 100,
            ignored: 1 << 12,
            blocked: 1 << 63,
            rows: 48,
            cols: 160,
            limits: vec![(256, u64::MAX), (0, 0)],
            affinity: vec![0b11, 0],
            inherited: vec![3, 255],
        };
        let argv = [c"bash", c"-c", c"printf '\xff\n'", c""];
        let env = [c"PATH=/bin", c"EMPTY=", c"B\xffAD=\x01"];
        let mut out = Vec::new();
        encode_run(&attributes, (b"Claude Code", c"/bin/bash"), argv.into_iter(), env.into_iter(), &mut out).unwrap();
        out
    }

    #[test]
    fn a_run_comes_back_as_it_was_sent() {
        let bytes = sample();
        let Ok(Decoded::Item(FromShim::Run(run), taken)) = FromShim::decode(&bytes) else { panic!("{bytes:?}") };
        assert_eq!(taken, bytes.len());
        assert_eq!(run.argv.iter().nth(2), Some(c"printf '\xff\n'"));
        assert_eq!(run.argv.iter().nth(3), Some(c""));
        assert_eq!(run.env.iter().count(), 3);
        assert_eq!(run.descriptor_count(), 4);
        let mut again = Vec::new();
        encode_run(&run.attributes, (run.whoami, run.shell), run.argv.iter(), run.env.iter(), &mut again).unwrap();
        assert_eq!(again, bytes);
    }

    fn host_frames() -> Vec<u8> {
        let mut out = Vec::new();
        encode_output(Stream::Out, b"out", &mut out);
        encode_output(Stream::Err, &[7; FRAME_BYTES_MAX + 1], &mut out);
        encode_note(b"note", &mut out);
        encode_fail(125, b"why", &mut out);
        encode_refuse(&mut out);
        encode_exit(Exit::Signal(9), &mut out);
        encode_exit(Exit::Code(255), &mut out);
        out
    }

    #[test]
    fn frames_of_the_host_come_back_in_order() {
        let bytes = host_frames();
        let (mut at, mut frames) = (0, Vec::new());
        while let Ok(Decoded::Item(frame, taken)) = FromHost::decode(&bytes[at..]) {
            at += taken;
            frames.push(frame);
        }
        assert_eq!(at, bytes.len());
        assert_eq!(frames.len(), 8);
        assert_eq!(frames[4], FromHost::Fail { code: 125, text: b"why" });
        assert_eq!(frames[6], FromHost::Exit(Exit::Signal(9)));
        assert_eq!(Exit::Signal(9).code(), 137);
    }

    #[test]
    fn every_truncation_is_incomplete_and_never_an_error() {
        let mut shim = sample();
        for frame in [
            encode_abort as fn(&mut Vec<u8>),
            |out| encode_signal(15, out),
            |out| {
                encode_closed(Stream::Err, out);
            },
        ] {
            let mut bytes = Vec::new();
            frame(&mut bytes);
            (0..bytes.len()).for_each(|n| assert_eq!(FromShim::decode(&bytes[..n]), Ok(Decoded::Incomplete)));
            shim.splice(0..0, bytes);
        }
        for n in 0..HELLO_BYTES {
            assert_eq!(Hello::decode(&Hello::OURS.encode()[..n]), Ok(Decoded::Incomplete));
        }
        let run = sample();
        for n in 0..run.len() {
            assert_eq!(FromShim::decode(&run[..n]), Ok(Decoded::Incomplete), "cut at {n}");
        }
    }

    #[test]
    fn a_payload_cut_short_inside_its_frame_is_malformed() {
        let run = sample();
        for n in HEADER_BYTES..run.len() {
            let mut cut = run[..n].to_vec();
            let length = u32::try_from(n - HEADER_BYTES).unwrap();
            cut[1..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
            assert!(matches!(FromShim::decode(&cut), Err(WireError::Malformed(_))), "cut at {n}");
        }
    }

    #[test]
    fn a_million_mutated_frames_neither_panic_nor_lie_about_their_length() {
        let (mut state, shim, host) = (0x9e37_79b9_7f4a_7c15_u64, sample(), host_frames());
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let below = |n: u64, most: usize| usize::try_from(n % most as u64).unwrap();
        let mut errors = 0_u32;
        for round in 0..1_000_000_u32 {
            let source = if round % 8 == 0 { &host[..64] } else { &shim[..] };
            let mut bytes = source[..=below(random(), source.len())].to_vec();
            for _ in 0..=random() % 4 {
                let at = below(random(), bytes.len());
                bytes[at] = random().to_le_bytes()[3];
            }
            // Half of them get a true length, so that the mutation is judged inside the payload.
            if let (0, Some(body)) = (random() % 2, bytes.len().checked_sub(HEADER_BYTES)) {
                bytes[1..HEADER_BYTES].copy_from_slice(&u32::try_from(body).unwrap().to_le_bytes());
            }
            let taken = match (FromShim::decode(&bytes), FromHost::decode(&bytes)) {
                (Ok(Decoded::Item(FromShim::Run(run), taken)), _) => {
                    assert!(run.argv.iter().count() == run.argv.len() && run.env.iter().count() == run.env.len());
                    taken
                }
                (Ok(Decoded::Item(_, taken) | Decoded::Skip(taken)), _) | (_, Ok(Decoded::Item(_, taken))) => taken,
                _ => 0,
            };
            assert!(taken <= bytes.len());
            errors += u32::from(FromShim::decode(&bytes).is_err());
        }
        assert!(errors > 10_000, "the mutations hardly ever broke a frame: {errors}");
    }

    #[test]
    fn oversized_and_unknown_frames_are_named() {
        assert_eq!(
            FromShim::decode(&[SIGNAL, 255, 255, 255, 255]),
            Err(WireError::TooLong { kind: SIGNAL, bytes: 0xffff_ffff })
        );
        assert_eq!(FromShim::decode(&[0x7f, 0, 0, 0, 0]), Err(WireError::UnknownKind(0x7f)));
        assert_eq!(FromShim::decode(&[0x90, 1, 0, 0, 0, 9]), Ok(Decoded::Skip(6)));
        assert_eq!(
            FromShim::decode(&[SIGNAL, 1, 0, 0, 0, 0]),
            Err(WireError::Malformed("a control frame of the wrong size"))
        );
        assert_eq!(Hello::decode(b"GET /"), Err(WireError::NotRexec));
        let newer = Hello { newest: 9, oldest: 9 };
        assert_eq!(Hello::decode(&newer.encode()), Err(WireError::Version { newest: 9, oldest: 9 }));
        assert!(Hello::decode(&Hello { newest: 9, oldest: 1 }.encode()).is_ok());
    }
}
