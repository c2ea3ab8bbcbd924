//! A thread that reads a stream to its end, and what it has read so far.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::waiting;

/// A thread that reads a stream to its end.
#[derive(Debug)]
pub(crate) struct Reader {
    /// What has come, and whether the end has. Locked while the thread reads, so nothing is on its way here otherwise.
    state: Arc<Mutex<(Vec<u8>, bool)>>,
    /// The thread alone keeps it open.
    source: Weak<File>,
}

/// One read, whatever interrupts it: a socket with a timeout does not go on by itself (signal(7)), and while one thread
/// starts a child, with all signals blocked, another may be woken for the end of a third thread's child.
pub(crate) fn read_some(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Reader {
    pub(crate) fn new(source: OwnedFd, most: usize) -> Self {
        let (state, source) = (Arc::new(Mutex::new((Vec::new(), false))), Arc::new(File::from(source)));
        let (shared, unread) = (Arc::clone(&state), Arc::downgrade(&source));
        std::thread::spawn(move || {
            let (mut buffer, mut taken) = (vec![0; 64 << 10], 0);
            while taken < most {
                let room = (most - taken).min(buffer.len());
                while !is_ready(&source, PollTimeout::NONE, PollFlags::all()) {}
                let mut state = shared.lock().expect("no reader panics");
                // The end of a terminal is an error, that of a pipe is not.
                let Ok(read @ 1..) = read_some(&mut &*source, &mut buffer[..room]) else { break };
                taken += read;
                state.0.extend_from_slice(&buffer[..read]);
            }
            drop(source);
            shared.lock().expect("no reader panics").1 = true;
        });
        Self { state, source: unread }
    }

    pub(crate) fn so_far(&self) -> Vec<u8> {
        self.state.lock().expect("no reader panics").0.clone()
    }

    pub(super) fn length(&self) -> (usize, bool) {
        let state = self.state.lock().expect("no reader panics");
        (state.0.len(), state.1)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.length().1
    }

    pub(super) fn to_end(&self, deadline: Instant) -> Option<Vec<u8>> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        waiting::until(left, || self.has_ended().then(|| self.so_far()))
    }

    /// What has come once its writers have ended: the kernel may still be passing on what they wrote to a terminal, and
    /// does so at the latest when it is asked.
    pub(crate) fn to_silence(&self) -> Vec<u8> {
        let is_silent = || {
            waiting::until_steady(Duration::from_millis(50), || self.length());
            // The thread that reads may have to wait for a processor.
            let _between_reads = self.state.lock().expect("no reader panics");
            !self.source.upgrade().is_some_and(|source| is_ready(&source, PollTimeout::ZERO, PollFlags::POLLIN))
        };
        waiting::until_true(waiting::PATIENCE, is_silent);
        self.so_far()
    }

    /// Where these bytes end behind a place. Waits for them as long as something comes: a flood takes its time on a busy
    /// machine.
    pub(crate) fn wait_to_find(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let (mut searched, begun, mut last) = (from, Instant::now(), Instant::now());
        while last.elapsed() < waiting::PATIENCE && begun.elapsed() < 10 * waiting::PATIENCE {
            let state = self.state.lock().expect("no reader panics");
            // They may have begun in what came before.
            let at = searched.saturating_sub(bytes.len()).max(from);
            if let Some(found) = memchr::memmem::find(&state.0[at..], bytes) {
                return Some(at + found + bytes.len());
            }
            if state.0.len() > searched {
                (searched, last) = (state.0.len(), Instant::now());
            }
            drop(state);
            waiting::pause();
        }
        None
    }

    /// Waits until the stream has brought these bytes.
    pub(crate) fn wait_for(&self, bytes: &[u8], within: Duration) -> bool {
        waiting::until_true(within, || {
            memchr::memmem::find(&self.state.lock().expect("no reader panics").0, bytes).is_some()
        })
    }
}

/// Whether one of these events is there within this time.
fn is_ready(source: &File, within: PollTimeout, events: PollFlags) -> bool {
    let mut asked = [PollFd::new(source.as_fd(), PollFlags::POLLIN)];
    poll(&mut asked, within).is_ok() && asked[0].revents().is_some_and(|seen| seen.intersects(events))
}
