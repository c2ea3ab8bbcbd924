//! A file system with one file, whose server can cease to answer: when a descriptor of the file is closed (FUSE_FLUSH), or
//! whatever it is asked.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::programs::skipped;
use super::temp::TempDir;

const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
/// FORGET, INTERRUPT and BATCH_FORGET.
const UNANSWERED: [u32; 3] = [2, 36, 42];
const HEADER_BYTES: usize = 40;
const ROOT_NODE: u64 = 1;
/// How long the server sleeps while somebody waits for it, milliseconds.
const STEP_MS: u16 = 20;

/// What the server does not answer, as a number.
const NOTHING: u8 = 0;
const CLOSING: u8 = 1;
const ANYTHING: u8 = 2;

#[derive(Debug)]
struct Shared {
    frozen: AtomicU8,
    waiting: AtomicUsize,
    content: Mutex<Vec<u8>>,
    /// The number of the file.
    node: u64,
}

/// The server, until it is dropped. Whoever waits for it then gets an error.
#[derive(Debug)]
pub(crate) struct FileServer {
    place: TempDir,
    running: Option<(UnixStream, JoinHandle<()>)>,
    shared: Arc<Shared>,
}

impl FileServer {
    /// Mounts it. `None` where that is not allowed.
    pub(crate) fn start() -> Option<Self> {
        Self::with(2, b"content\n")
    }

    /// The same; its file has this inode and content.
    pub(crate) fn with(node: u64, content: &[u8]) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.inspect_err(|error| skipped(&format!("/dev/fuse: {error}"))).ok()?;
        let place = TempDir::new(None);
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let mounted = mount(Some("rexec-test"), place.path(), Some("fuse"), flags, Some(options.as_str()));
        mounted.inspect_err(|error| skipped(&format!("no FUSE file system can be mounted: {error}"))).ok()?;
        let (end, ended) = UnixStream::pair().expect("a pair of sockets");
        let content = Mutex::new(content.to_vec());
        let shared = Shared { frozen: AtomicU8::new(NOTHING), waiting: AtomicUsize::new(0), content, node };
        let shared = Arc::new(shared);
        let its = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(device, &ended, &its));
        Some(Self { place, running: Some((end, thread)), shared })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.place.join("file")
    }

    pub(crate) fn open(&self) -> File {
        File::open(self.path()).expect("its file")
    }

    /// From now on nobody who closes the file gets an answer.
    pub(crate) fn freeze(&self) {
        self.shared.frozen.store(CLOSING, SeqCst);
    }

    /// From now on nobody who asks for anything gets an answer.
    pub(crate) fn freeze_all(&self) {
        self.shared.frozen.store(ANYTHING, SeqCst);
    }

    /// Answers again, also those who wait.
    pub(crate) fn thaw(&self) {
        self.shared.frozen.store(NOTHING, SeqCst);
    }

    /// How many questions have had to wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.waiting.load(SeqCst)
    }

    /// What the file has.
    pub(crate) fn content(&self) -> Vec<u8> {
        self.shared.content.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        _ = umount2(self.place.path(), MntFlags::MNT_DETACH);
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            _ = thread.join();
        }
    }
}

/// Serves until the other end of `ended` is closed. With the device closed, the kernel answers with errors.
fn serve(device: File, ended: &UnixStream, shared: &Shared) {
    let mut request = vec![0; 256 << 10];
    let mut kept: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut watched =
            [PollFd::new(device.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
        _ = poll(&mut watched, if kept.is_empty() { PollTimeout::NONE } else { PollTimeout::from(STEP_MS) });
        if watched[1].any() != Some(false) {
            return;
        }
        let is_frozen = |kind: u32| match shared.frozen.load(SeqCst) {
            NOTHING => false,
            CLOSING => kind == FLUSH,
            _ => true,
        };
        let (held, due): (Vec<_>, Vec<_>) = kept.into_iter().partition(|request| is_frozen(number(request, 4)));
        due.iter().for_each(|request| reply(&device, request, shared));
        kept = held;
        if watched[0].any() != Some(true) {
            continue;
        }
        let Ok(length) = (&device).read(&mut request) else { continue };
        let request = &request[..length];
        let kind = number(request, 4);
        if UNANSWERED.contains(&kind) {
            continue;
        }
        if is_frozen(kind) {
            shared.waiting.fetch_add(1, SeqCst);
            kept.push(request.to_vec());
        } else {
            reply(&device, request, shared);
        }
    }
}

fn number(request: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(request[at..at + 4].try_into().expect("four bytes"))
}

fn reply(mut device: &File, request: &[u8], shared: &Shared) {
    let (error, body) = match answer(number(request, 4), request, shared) {
        Some(body) => (0, body),
        None => (-nix::libc::ENOSYS, Vec::new()),
    };
    let length = u32::try_from(16 + body.len()).expect("a short answer");
    let head = [&length.to_le_bytes()[..], &error.to_le_bytes(), &request[8..16]].concat();
    _ = device.write(&[head, body].concat());
}

fn answer(kind: u32, request: &[u8], shared: &Shared) -> Option<Vec<u8>> {
    let wide = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().expect("eight bytes"));
    let mut content = shared.content.lock().expect("nobody panics with it");
    let size = content.len();
    Some(match kind {
        // Version 7.31, and no options.
        INIT => [[7_u32, 31, 0, 0, 0, 64 << 10, 1, 0].map(u32::to_le_bytes).concat(), vec![0; 32]].concat(),
        // Names are known for long, and attributes not at all, so that each look at them asks.
        LOOKUP => {
            let known = [shared.node, 0, 1000, 0].map(u64::to_le_bytes).concat();
            [known, vec![0; 8], attributes(shared.node, size)].concat()
        }
        GETATTR => [0_u64.to_le_bytes().to_vec(), vec![0; 8], attributes(wide(16), size)].concat(),
        OPEN => vec![0; 16],
        READ => {
            let offset = usize::try_from(wide(HEADER_BYTES + 8)).expect("an offset").min(size);
            let length = usize::try_from(number(request, HEADER_BYTES + 16)).expect("a length");
            content[offset..size.min(offset + length)].to_vec()
        }
        WRITE => {
            let written = number(request, HEADER_BYTES + 16);
            content.extend_from_slice(&request[2 * HEADER_BYTES..]);
            [written, 0].map(u32::to_le_bytes).concat()
        }
        RELEASE | FLUSH => Vec::new(),
        _ => return None,
    })
}

fn attributes(node: u64, size: usize) -> Vec<u8> {
    let (mode, links) = if node == ROOT_NODE { (0o40_755_u32, 2_u32) } else { (0o100_755, 1) };
    let sizes = [node, size as u64, 1, 0, 0, 0].map(u64::to_le_bytes).concat();
    [sizes, [0, 0, 0, mode, links, 0, 0, 0, 4096, 0].map(u32::to_le_bytes).concat()].concat()
}
