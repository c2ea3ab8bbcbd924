//! Reads what commands write, and closes the streams that have ended or have no reader any more.

use std::time::Instant;

use rexec_sh::protocol::wire;

use super::{Due, Runs};
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Stream;
use crate::core::job::Job;
use crate::guard::spawn;
use crate::host::peers::Peers;
use crate::host::turn::Turn;
use crate::io::poller::Ready;
use crate::io::port::{Port, ReadOutcome};
use crate::limits;
use crate::sys::{self, tree};

/// The bytes that were read of a stream.
#[derive(Debug, Clone, Copy)]
struct ReadBytes<'a> {
    bytes: &'a [u8],
    at: Instant,
}

impl Runs {
    /// Remembers an event of a stream's. Returns true if it calls for a visit.
    pub(in crate::host) fn remember_stream(&mut self, job: JobId, stream: Stream, event: Ready) -> bool {
        let Some(run) = self.get_mut(job) else { return event.readable };
        if let Some(port) = run.stream(stream) {
            port.remember(event);
        }
        event.readable || run.has_keys()
    }

    /// Reads what is there. Once the guard has closed the terminal, this finds either its end or that a left-over
    /// process holds it open.
    pub(super) fn drain_streams(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        for stream in Stream::ALL {
            if let Some(port) = self.get_mut(job).and_then(|run| run.stream(stream)) {
                port.expect_input();
                self.visit_stream(job, stream, turn, engine);
            }
        }
    }

    /// Returns true if the streams of a command may hold unread output.
    pub(in crate::host) fn has_unread(&self, job: JobId) -> bool {
        self.get(job).is_some_and(|run| run.streams.iter().flatten().any(Port::is_readable))
    }

    /// Reads a budget's worth of what the command has written to a stream.
    pub(in crate::host) fn visit_stream(&mut self, job: JobId, stream: Stream, turn: &mut Turn, engine: &mut Engine) {
        let Some(run) = self.get_mut(job).filter(|run| !run.is_unbegun()) else { return };
        let Some(port) = run.stream(stream) else { return };
        let known = engine.job(job).filter(|known| !known.has_ended());
        if known.is_some_and(|known| !known.wants_output(stream)) {
            return;
        }
        // The host reads a command whose reader is behind only up to the log's room, so that many of them do not take
        // twice as much.
        let room = known.map_or(usize::MAX, Job::room).max(limits::READ_LEAST_BYTES).min(turn.buffer.len());
        let has_log = known.is_some();
        let (mut filled, mut is_end) = (0, false);
        while port.is_readable() && !is_end && filled < room {
            let buffer = &mut turn.buffer[filled..room];
            match port.read(|fd| sys::read(fd, buffer)) {
                ReadOutcome::Bytes(length) => filled += length,
                ReadOutcome::Nothing => {}
                ReadOutcome::End => is_end = true,
            }
        }
        if port.is_readable() && !is_end {
            turn.queue(port.token());
        }
        if filled > 0 && has_log {
            self.on_output(job, stream, ReadBytes { bytes: &turn.buffer[..filled], at: turn.now }, engine);
            if stream == Stream::Tty {
                self.on_shown(job, turn, engine);
            }
        }
        if is_end {
            if stream == Stream::Tty {
                self.note_last_modes(job);
            }
            let Some(run) = self.get_mut(job) else { return };
            run.streams[stream as usize].take().into_iter().for_each(|port| turn.close_later(port));
            let goes_on = run.guard.as_ref().is_some_and(|link| !link.shell_is_over);
            if goes_on && caller_stream(stream).is_some() {
                self.timers.set(Due::OutputEnd(job, stream), turn.now + limits::OUTPUT_ENDED_AFTER);
            }
            engine.on_hangup(job, stream);
        }
        turn.touch(job);
    }

    fn on_output(&mut self, job: JobId, stream: Stream, read: ReadBytes<'_>, engine: &mut Engine) {
        let ReadBytes { bytes, at } = read;
        if let Some(run) = self.get_mut(job) {
            run.bind_failure.push(bytes);
            if stream == Stream::Tty {
                run.screen.push(bytes);
            }
        }
        let secret = match self.get_mut(job).map(|run| &mut run.secret) {
            Some(secret) if stream == Stream::Tty || (stream == Stream::Err && secret.is_shown_elsewhere()) => {
                secret.find(bytes, at)
            }
            _ => Vec::new(),
        };
        if stream == Stream::Tty {
            self.keep_shown(job, bytes, &secret);
        }
        let mut from = 0;
        for part in secret {
            if from < part.start {
                engine.on_output(job, stream, bytes[from..part.start].into(), at);
            }
            from = part.end;
            engine.on_secret_echo(job, stream, bytes[part].into(), at);
        }
        if from < bytes.len() {
            engine.on_output(job, stream, bytes[from..].into(), at);
        }
        if stream == Stream::Tty && self.get_mut(job).is_some_and(|run| run.broken_pipe.on_output(at)) {
            engine.on_broken_pipe(job);
        }
    }

    /// Reports an output that has ended before its command to the caller. A caller that has let go of its outputs can be
    /// told nothing more, so the guard must be there, and able to say that the command has ended, too.
    pub(super) fn tell_output_end(&mut self, job: JobId, stream: Stream, peers: &mut Peers, now: Instant) {
        let Some((run, link)) = self.get(job).and_then(|run| Some((run, run.guard.as_ref()?))) else { return };
        if spawn::wake_if_stopped(link.pid, link.control.fd()) || tree::has_first_child_ended(link.pid) {
            self.timers.set(Due::OutputEnd(job, stream), now + limits::OUTPUT_ENDED_AFTER);
        } else if !spawn::has_left(link.control.fd()) {
            let told = run.peer.zip(caller_stream(stream));
            told.into_iter().for_each(|(peer, output)| peers.end_output(peer, output));
        }
    }

    /// The caller says that one of the command's outputs has no reader any more. Its pipe is closed, so that the kernel
    /// sends SIGPIPE to a writer, as on the caller's own pipe; the other output goes on. A terminal that stands for a pipe
    /// cannot be closed like that, so its writers get the signal from the guard. One that stands for the caller's terminal
    /// hangs up, as that has done.
    pub(in crate::host) fn on_output_closed(
        &mut self,
        job: JobId,
        stream: Stream,
        turn: &mut Turn,
        engine: &mut Engine,
    ) {
        if let Some(run) = self.get_mut(job) {
            run.unread[stream as usize] = true;
        }
        self.close_unread(job, turn, engine);
    }

    /// Closes the streams whose outputs have no reader, if there are streams now. Called again when the run's guard has
    /// begun, because it needs the terminal for that.
    pub(in crate::host) fn close_unread(&mut self, job: JobId, turn: &mut Turn, engine: &mut Engine) {
        for (stream, at_caller) in [(Stream::Out, wire::CallerStream::Out), (Stream::Err, wire::CallerStream::Err)] {
            let Some(run) = self.get_mut(job).filter(|run| run.unread[stream as usize]) else { continue };
            if run.streams[stream as usize].is_some() {
                self.close_stream(job, stream, turn);
                engine.on_hangup(job, stream);
            } else if run.tty == Some(at_caller) && run.relay.is_none() {
                run.broken_pipe.begin(turn.now);
            } else if run.tty == Some(at_caller) && !run.is_unbegun() {
                self.close_stream(job, Stream::Tty, turn);
                engine.on_hangup(job, Stream::Tty);
            }
        }
    }

    pub(in crate::host) fn close_stream(&mut self, job: JobId, stream: Stream, turn: &mut Turn) {
        if let Some(port) = self.get_mut(job).and_then(|run| run.streams[stream as usize].take()) {
            turn.close(port);
        }
    }

    /// Queues the streams that are readable and wanted again.
    pub(in crate::host) fn revisit(&self, job: JobId, turn: &mut Turn, engine: &Engine) {
        let Some(run) = self.get(job).filter(|run| !run.is_unbegun()) else { return };
        let Some(known) = engine.job(job) else { return };
        for (stream, port) in Stream::ALL.into_iter().zip(&run.streams) {
            if let Some(port) = port.as_ref().filter(|port| port.is_readable() && known.wants_output(stream)) {
                turn.queue(port.token());
            }
        }
    }
}

/// The caller's stream that a pipe of the command stands for.
fn caller_stream(stream: Stream) -> Option<wire::CallerStream> {
    match stream {
        Stream::Tty => None,
        Stream::Out => Some(wire::CallerStream::Out),
        Stream::Err => Some(wire::CallerStream::Err),
    }
}
