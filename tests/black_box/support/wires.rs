//! Descriptors 0, 1 and 2 of a call: the ends that the program gets, and the ends that the test keeps.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::call::{Input, Output, Target, pattern};
use super::reader::Reader;
use super::temp::TempDir;
use super::terminal::Terminal;
use super::warden::Control;

/// The descriptors of a call, and the test's ends of them.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) ends: Vec<(OwnedFd, i32)>,
    pub(super) stdout: Option<Reader>,
    pub(super) stderr: Option<Reader>,
    pub(super) file: Option<File>,
    pub(super) keep: Vec<OwnedFd>,
    pub(super) control: Control,
}

impl Wires {
    pub(super) fn new(input: Input, output: Output, target: Target<'_>) -> Self {
        let control = Control::None;
        let mut wires = Self { ends: Vec::new(), stdout: None, stderr: None, file: None, keep: Vec::new(), control };
        wires.put_input(input);
        if target == Target::RealOnTerminal {
            wires.put_terminal(output)
        } else {
            wires.put_output(output)
        }
        wires
    }

    fn put_input(&mut self, input: Input) {
        let stdin = match input {
            Input::Closed => return,
            Input::Null => File::open("/dev/null").expect("/dev/null").into(),
            Input::Data(bytes) => feed(bytes.to_vec()),
            Input::Pattern(bytes) => feed(pattern(bytes)),
            Input::File(bytes) => {
                let mut file = nameless_file();
                file.write_all(bytes).expect("a file takes bytes");
                std::io::Seek::rewind(&mut file).expect("a file can be rewound");
                file.into()
            }
            Input::Silent => {
                let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
                self.keep.push(ours.into());
                theirs.into()
            }
        };
        self.ends.push((stdin, 0));
    }

    fn put_output(&mut self, output: Output) {
        let most = if let Output::Head(bytes) = output { bytes } else { usize::MAX };
        match output {
            Output::OneFile => {
                let file = nameless_file();
                let flags = nix::fcntl::FcntlArg::F_SETFL(OFlag::O_APPEND);
                nix::fcntl::fcntl(&file, flags).expect("a file can be appended to");
                self.ends.push((copy(&file), 1));
                self.ends.push((copy(&file), 2));
                self.file = Some(file);
                return;
            }
            Output::OnePipe => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
                self.ends.push((copy(&write), 1));
                self.ends.push((write, 2));
                self.stdout = Some(Reader::new(read, most));
                return;
            }
            Output::Sockets => {
                let readers = [1, 2].map(|fd| {
                    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
                    self.ends.push((theirs.into(), fd));
                    Some(Reader::new(ours.into(), most))
                });
                [self.stdout, self.stderr] = readers;
                return;
            }
            Output::Fifo => {
                let place = TempDir::new(None);
                let path = place.join("fifo");
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a named pipe");
                let read = OpenOptions::new().read(true).write(true).open(&path).expect("its reader");
                let write = || OpenOptions::new().write(true).open(&path).expect("its writer").into();
                self.ends.extend([(write(), 1), (write(), 2)]);
                // Opened for both, it would never end for its reader.
                let read = OpenOptions::new().read(true).open(&path).map(|only| (only, drop(read)).0);
                self.stdout = Some(Reader::new(read.expect("its reader").into(), most));
                return;
            }
            Output::Null => {
                let null = || OpenOptions::new().write(true).open("/dev/null").expect("/dev/null").into();
                self.ends.extend([(null(), 1), (null(), 2)]);
                return;
            }
            _ => {}
        }
        if output != Output::NoStdout {
            let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
            self.ends.push((write, 1));
            self.stdout = (most > 0).then(|| Reader::new(read, most));
        }
        if output != Output::NoStderr {
            let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
            self.ends.push((write, 2));
            self.stderr = Some(Reader::new(read, usize::MAX));
        }
    }

    /// The same as [`Self::put_output`], with a terminal in the place of stdout and of whatever is the same as it.
    fn put_terminal(&mut self, output: Output) {
        let terminal = Terminal::for_commands();
        if output != Output::NoStdout {
            self.ends.push((terminal.slave(), 1));
            self.stdout = Some(Reader::new(copy(&terminal.master), usize::MAX));
        }
        match output {
            Output::OneFile | Output::OnePipe => self.ends.push((terminal.slave(), 2)),
            Output::NoStderr => {}
            Output::Apart | Output::NoStdout | Output::Head(_) | Output::Sockets | Output::Fifo | Output::Null => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
                self.ends.push((write, 2));
                self.stderr = Some(Reader::new(read, usize::MAX));
            }
        }
        self.keep.push(copy(&terminal.master));
        self.control = Control::Background(terminal.slave);
    }
}

fn copy(fd: &impl AsFd) -> OwnedFd {
    fd.as_fd().try_clone_to_owned().expect("a descriptor is available")
}

fn nameless_file() -> File {
    // Not O_TMPFILE, which not every file system knows.
    let place = TempDir::new(None);
    let path = place.join("file");
    OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("a file whose name will go")
}

/// The reading end of a pipe into which a thread writes these bytes.
fn feed(bytes: Vec<u8>) -> OwnedFd {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
    let mut write = File::from(write);
    // What a pipe has room for in any case is there when the command begins.
    let (now, later) = bytes.split_at(bytes.len().min(4_096));
    write.write_all(now).expect("an empty pipe takes them");
    let later = later.to_vec();
    std::thread::spawn(move || {
        // A reader that leaves early is part of some cases.
        _ = write.write_all(&later);
    });
    read
}
