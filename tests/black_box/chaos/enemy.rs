//! An enemy among the callers: forged reports, connections that linger, files whose server does not answer, and a disk that
//! stands still. None of the other callers may feel it.

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{Report, ShimPlace};
use rexec_sh::protocol::wire::{CallerStream, Hello};

use super::sabotage::Chaos;
use crate::faults::peers::{connect, request, send};
use crate::sandbox::reporters::{beginning, own_namespace, records, write};
use crate::support::call::{Calling, Target};
use crate::support::dice::Dice;
use crate::support::file_server::FileServer;
use crate::support::frozen_disk::FrozenDisk;
use crate::support::host::Host;
use crate::support::lingering::lingering;
use crate::support::waiting::{self, PATIENCE};

/// The command of a forged report.
pub(crate) const FORGED: &str = "forged";

pub(crate) struct Enemy<'a> {
    chaos: &'a Chaos,
    host: &'a Host,
    dice: Dice,
    server: Option<FileServer>,
    disk: Option<FrozenDisk>,
    /// The other ends of the connections that linger.
    far: Vec<TcpStream>,
    /// Requests whose last byte never came.
    unfinished: Vec<UnixStream>,
    /// Commands that wrote to the disk while it stood still.
    writers: Vec<Calling>,
}

impl<'a> Enemy<'a> {
    pub(crate) fn new(chaos: &'a Chaos, host: &'a Host) -> Self {
        Self {
            chaos,
            host,
            dice: Dice::new(chaos.seed.wrapping_add(991)),
            server: FileServer::start(),
            disk: FrozenDisk::mount(),
            far: Vec::new(),
            unfinished: Vec::new(),
            writers: Vec::new(),
        }
    }

    /// Does harm until the chaos is over, and then lets go of everything.
    pub(crate) fn attack(mut self) {
        while self.chaos.goes_on() {
            self.pause(120);
            match self.dice.below(5) {
                0 | 1 => self.forge(),
                2 => self.linger(),
                3 => self.leave_server(),
                _ => self.stop_disk(),
            }
            self.chaos.counts.attacks.fetch_add(1, Relaxed);
        }
        self.unfinished.clear();
        self.far.clear();
        for mut writer in std::mem::take(&mut self.writers) {
            let ended = writer.finish(PATIENCE);
            self.chaos.fault_unless(ended.is_some(), || "a command on the disk that stood still hangs".to_owned());
        }
    }

    fn pause(&mut self, most: usize) {
        std::thread::sleep(Duration::from_millis(self.dice.below(most) as u64));
    }

    /// Reports on processes that are none, that are others', and that are the host; whole, torn, doubled, and garbage.
    fn forge(&mut self) {
        let mut key = [0; 16];
        for _ in 0..1 + self.dice.below(40) {
            key.fill_with(|| u8::try_from(self.dice.below(256)).expect("a byte"));
            // None of them writes to the FIFO. Who does may name itself.
            let pids = [0, 1, self.chaos.host, i32::MAX, std::os::unix::process::parent_id().cast_signed()];
            let pid = pids[self.dice.below(pids.len())];
            let namespace = [0, 1, own_namespace()][self.dice.below(3)];
            let begun = beginning(FORGED, ShimPlace { namespace, pid, ..ShimPlace::default() });
            let begin = Report::Begin { piece: &begun, is_last: self.dice.below(4) > 0 };
            let output = Report::Output { stream: CallerStream::Out, bytes: b"forged\n" };
            let mut bytes = records(key, &[begin, output, Report::End(Exit::Code(0)), Report::End(Exit::Code(0))]);
            if self.dice.below(4) == 0 {
                bytes.truncate(self.dice.below(bytes.len()));
            }
            write(self.host, &bytes);
        }
    }

    /// The last copy of a connection that lingers, with a request that breaks a rule or never ends.
    fn linger(&mut self) {
        let (lingers, far) = lingering();
        let mut stream = connect(self.host);
        let hello = Hello::OURS.encode();
        let rest = [b"x".as_slice(), b"\n", &hello[1..]][self.dice.below(3)];
        // Nothing of this is wrong yet, so the host keeps the descriptor until ours is closed. One that takes nothing leaves
        // the last copy to us, and whoever closes it waits until the other end goes.
        _ = send(&stream, &hello[..1], &[lingers.as_raw_fd()]);
        let closing = std::thread::spawn(move || drop(lingers));
        waiting::until_true(Duration::from_secs(1), || closing.is_finished());
        _ = stream.write_all(&[rest, &[0xff]].concat());
        self.far.push(far);
        if self.dice.below(2) == 0 {
            self.unfinished.push(stream);
        }
        // As many as a host closes at once, and not more than a process may have open.
        let from = self.far.len().saturating_sub(24);
        self.far.drain(..from);
        self.unfinished.truncate(24);
    }

    /// A command whose input is a file of a server that stops answering when it is closed.
    fn leave_server(&mut self) {
        let Some(server) = &self.server else { return };
        let dir = File::open(self.host.home.path()).expect("the directory");
        let file = server.open();
        let whole = request("cat >/dev/null", 0);
        let stream = connect(self.host);
        let length = if self.dice.below(2) == 0 { whole.len() } else { whole.len() - 1 };
        _ = send(&stream, &whole[..length], &[dir.as_raw_fd(), file.as_raw_fd()]);
        drop(file);
        server.freeze();
        std::thread::sleep(Duration::from_millis(self.dice.below(800) as u64));
        drop(stream);
        std::thread::sleep(Duration::from_millis(self.dice.below(200) as u64));
        server.thaw();
    }

    /// A command that writes to a disk which stands still.
    fn stop_disk(&mut self) {
        let Some(disk) = &mut self.disk else { return };
        disk.freeze();
        let script = format!("cd '{}' && echo frozen >file && cat file", disk.path().display());
        let calling = self.host.call(&script).start(Target::Shim(&self.chaos.socket)).expect("the shim starts");
        self.writers.push(calling);
        std::thread::sleep(Duration::from_millis(self.dice.below(1_000) as u64));
        disk.thaw();
        if self.writers.len() > 8 {
            let mut oldest = self.writers.remove(0);
            let ended = oldest.finish(PATIENCE);
            self.chaos.fault_unless(ended.is_some(), || "a command on a disk that goes on hangs".to_owned());
        }
    }
}
