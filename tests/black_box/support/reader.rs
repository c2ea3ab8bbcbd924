//! A thread that reads a stream to its end, and what it has read so far.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::waiting;

/// A thread that reads a stream to its end.
#[derive(Debug)]
pub(crate) struct Reader {
    state: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Reader {
    pub(crate) fn new(source: OwnedFd, most: usize) -> Self {
        let state = Arc::new(Mutex::new((Vec::new(), false)));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let (mut source, mut buffer, mut taken) = (File::from(source), vec![0; 64 << 10], 0);
            while taken < most {
                let room = (most - taken).min(buffer.len());
                // The end of a terminal is an error, that of a pipe is not.
                let Ok(1..) = source.read(&mut buffer[..room]).inspect(|&read| {
                    taken += read;
                    shared.lock().expect("no reader panics").0.extend_from_slice(&buffer[..read]);
                }) else {
                    break;
                };
            }
            drop(source);
            shared.lock().expect("no reader panics").1 = true;
        });
        Self { state }
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

    pub(super) fn to_silence(&self) -> Vec<u8> {
        waiting::until_steady(Duration::from_millis(80), || self.length());
        self.so_far()
    }

    /// Waits until the stream has brought these bytes.
    pub(crate) fn wait_for(&self, bytes: &[u8], within: Duration) -> bool {
        waiting::until_true(within, || {
            memchr::memmem::find(&self.state.lock().expect("no reader panics").0, bytes).is_some()
        })
    }
}
