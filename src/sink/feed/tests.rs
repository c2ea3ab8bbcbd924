//! When queued frames go to the recorder, and when a recorder that makes no progress stops holding commands back.

use std::time::Duration;

use super::*;
use crate::core::entry::{LeftProcess, Received, Stream, Streams};
use crate::journal::record::PublishedCard;
use rexec_sh::protocol::process::{Exit, Pid};

const TICK: Duration = Duration::from_millis(1);

/// A feed with one command that runs.
struct FeedRig {
    engine: Engine,
    feed: Feed,
    job: JobId,
    now: Instant,
    out: Vec<u8>,
}

impl FeedRig {
    fn new() -> Self {
        let (mut engine, mut feed, now, mut out) = (Engine::default(), Feed::default(), Instant::now(), Vec::new());
        let job = engine.submit().expect("there is room");
        engine.on_started(job, Duration::ZERO, Streams::of(&[Stream::Tty]), now);
        let cursor = engine.attach(job, feed.lag()).expect("the job is there");
        feed.begin(
            cursor,
            &StartRecord { card: PublishedCard { seq: job.0, ..PublishedCard::default() }, ..StartRecord::default() },
            [],
            &mut out,
            now,
        );
        Self { engine, feed, job, now, out }
    }

    /// The command writes this many bytes, and the feed takes them.
    fn write(&mut self, bytes: usize) {
        self.engine.on_output(self.job, Stream::Tty, vec![b'x'; bytes].into(), self.now);
        self.feed.pump(&mut self.engine, self.job, &mut self.out, self.now);
    }

    fn is_due(&mut self) -> bool {
        self.feed.is_due(self.out.len(), self.now)
    }

    /// All queued frames are sent.
    fn sent(&mut self) {
        self.out.clear();
    }
}

#[test]
fn output_waits_for_more_of_it_and_records_do_not() {
    let mut rig = FeedRig::new();
    assert!(rig.is_due(), "the start");
    rig.sent();
    for _ in 0..2 {
        rig.write(1);
        assert!(!rig.is_due());
        assert_eq!(rig.feed.send_at(), Some(rig.now + limits::RECORDER_DELAY));
        rig.now += limits::RECORDER_DELAY - TICK;
        rig.write(1);
        assert!(!rig.is_due(), "more of it does not put it off");
        rig.now += TICK;
        assert!(rig.is_due());
        assert_eq!(rig.feed.send_at(), None);
        rig.sent();
    }
    rig.engine.on_exit(rig.job, Exit::Code(0), rig.now);
    rig.engine.on_hangup(rig.job, Stream::Tty);
    rig.feed.pump(&mut rig.engine, rig.job, &mut rig.out, rig.now);
    assert!(rig.is_due(), "the end");
}

#[test]
fn much_output_does_not_wait() {
    let mut rig = FeedRig::new();
    assert!(rig.is_due());
    rig.sent();
    rig.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(!rig.is_due());
    rig.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(rig.is_due());
}

#[test]
fn a_recorder_without_progress_holds_commands_back_for_a_moment_only() {
    let mut rig = FeedRig::new();
    while rig.feed.pace.has_room(false) {
        rig.write(limits::LOG_BYTES / 2);
    }
    rig.write(1);
    assert_eq!(rig.feed.deadline(), Some(rig.now + limits::RECORDER_STALL));
    rig.now += limits::RECORDER_STALL / 2;
    let has_moved = |rig: &mut FeedRig, handled| {
        let done = Done { handled, ..Done::default() };
        rig.feed.on_done(&mut rig.engine, &done, rig.now)
    };
    assert!(has_moved(&mut rig, 1));
    assert!(!has_moved(&mut rig, 1), "nothing new");
    rig.feed.pump(&mut rig.engine, rig.job, &mut rig.out, rig.now);
    assert_eq!(rig.feed.deadline(), Some(rig.now + limits::RECORDER_STALL), "it did something");
    rig.now += limits::RECORDER_STALL - TICK;
    assert!(!rig.feed.tick(&mut rig.engine, rig.now) && rig.feed.lag() == Lag::Hold);
    rig.now += TICK;
    assert!(rig.feed.tick(&mut rig.engine, rig.now) && rig.feed.lag() == Lag::Skip);
    assert!(has_moved(&mut rig, 2));
    assert_eq!(rig.feed.lag(), Lag::Hold);
}

/// Everything that was not acknowledged is sent again, and output that is not kept is counted.
#[test]
fn the_next_recorder_gets_what_the_file_may_lack() {
    let frames = |bytes: &[u8]| {
        let (mut decoder, mut frames) = (frame::Decoder::default(), Vec::new());
        decoder.feed(bytes);
        while let Some(Ok(frame)) = decoder.next_frame() {
            frames.push(match frame {
                frame::Frame::Start { .. } => "start".to_owned(),
                frame::Frame::Output { bytes, .. } => format!("output {}", bytes.len()),
                frame::Frame::Lost { bytes, .. } => format!("lost {bytes}"),
                frame::Frame::End(end) => format!("end of {}", end.bytes),
                other => format!("{other:?}"),
            });
        }
        frames.join(", ")
    };
    let mut rig = FeedRig::new();
    rig.write(10);
    rig.feed.on_down(rig.now);
    rig.write(5);
    rig.sent();
    rig.feed.replay(&mut rig.engine, &mut rig.out, rig.now);
    rig.write(1);
    assert_eq!(frames(&rig.out), "start, output 10, output 5, output 1");
    rig.write(limits::RECORDER_HELD_OUTPUT_BYTES);
    rig.engine.on_exit(rig.job, Exit::Code(0), rig.now);
    rig.engine.on_hangup(rig.job, Stream::Tty);
    for _ in 0..2 {
        rig.feed.pump(&mut rig.engine, rig.job, &mut rig.out, rig.now);
        rig.sent();
        rig.feed.on_down(rig.now);
        rig.feed.replay(&mut rig.engine, &mut rig.out, rig.now);
        assert_eq!(frames(&rig.out), "start, lost 16400, end of 16400");
    }
    let done = Done { handled: 1, ends: vec![rig.job.0], ..Done::default() };
    rig.feed.on_done(&mut rig.engine, &done, rig.now);
    assert!(rig.feed.runs.is_empty() && rig.feed.held == 0);
}

/// One command's output waits for room. The first output of another command does not, nor does any record.
#[test]
fn records_and_first_output_have_room_of_their_own() {
    let mut rig = FeedRig::new();
    while rig.feed.pace.has_room(false) {
        rig.write(limits::LOG_BYTES / 2);
    }
    let before = rig.out.len();
    rig.write(1);
    assert_eq!(rig.out.len(), before);
    let job = rig.engine.submit().expect("there is room");
    rig.engine.on_started(job, Duration::ZERO, Streams::of(&[Stream::Tty]), rig.now);
    let cursor = rig.engine.attach(job, rig.feed.lag()).expect("the job is there");
    let start =
        StartRecord { card: PublishedCard { seq: job.0, ..PublishedCard::default() }, ..StartRecord::default() };
    rig.feed.begin(cursor, &start, [], &mut rig.out, rig.now);
    rig.engine.on_output(job, Stream::Tty, b"output".as_slice().into(), rig.now);
    rig.engine.on_exit(job, Exit::Code(0), rig.now);
    rig.engine.on_hangup(job, Stream::Tty);
    rig.feed.pump(&mut rig.engine, job, &mut rig.out, rig.now);
    assert!(rig.feed.runs[&job].cursor.is_none(), "its end is on its way");
}

/// Ctrl-Z stops both.
#[test]
fn time_does_not_count_while_the_host_is_stopped() {
    let mut rig = FeedRig::new();
    rig.write(1);
    rig.now += Duration::from_secs(60);
    assert!(!rig.feed.tick(&mut rig.engine, rig.now));
    assert!(!rig.feed.is_stuck(rig.now));
    rig.now += limits::RECORDER_STUCK;
    assert!(rig.feed.is_stuck(rig.now), "the host was running");
}

#[test]
fn the_human_is_told_once_that_the_journal_is_behind_and_once_that_it_caught_up() {
    let mut rig = FeedRig::new();
    assert_eq!(rig.feed.take_notice(rig.now), None);
    assert_eq!(rig.feed.deadline(), Some(rig.now + limits::RECORDER_BEHIND));
    rig.now += limits::RECORDER_BEHIND;
    assert_eq!(rig.feed.take_notice(rig.now).as_deref(), Some("the journal is 3 s behind"));
    rig.now += limits::RECORDER_BEHIND;
    assert_eq!(rig.feed.take_notice(rig.now), None);
    assert!(!rig.feed.is_stuck(rig.now));
    let done = Done { handled: rig.out.len() as u64, ..Done::default() };
    rig.feed.on_done(&mut rig.engine, &done, rig.now);
    assert_eq!(rig.feed.take_notice(rig.now).as_deref(), Some("the journal has caught up"));
    assert_eq!((rig.feed.take_notice(rig.now), rig.feed.deadline()), (None, None));
    rig.write(1);
    rig.now += limits::RECORDER_STUCK;
    assert!(rig.feed.is_stuck(rig.now), "it has something and does nothing");
}

#[test]
fn records_that_wait_for_a_recorder_take_little_more_room_than_their_bytes() {
    let mut rig = FeedRig::new();
    let command = "x".repeat(50_000);
    let has_little_room = |out: &Vec<u8>| out.capacity() <= out.len() / 4 * 5 + (32 << 10);
    for _ in 0..100 {
        let job = rig.engine.submit().expect("there is room");
        let cursor = rig.engine.attach(job, rig.feed.lag()).expect("the job is there");
        let card = PublishedCard { seq: job.0, command: command.clone(), ..PublishedCard::default() };
        rig.feed.begin(cursor, &StartRecord { card, ..StartRecord::default() }, [], &mut rig.out, rig.now);
        assert!(has_little_room(&rig.out), "{} of {}", rig.out.len(), rig.out.capacity());
    }
    let mut again = Vec::new();
    rig.feed.replay(&mut rig.engine, &mut again, rig.now);
    assert!(again.len() > 5_000_000 && has_little_room(&again), "{} of {}", again.len(), again.capacity());
}

/// A caller may read its last output when the job has long ended, and a process may turn out to be unkillable.
#[test]
fn the_record_has_all_that_the_log_says_of_the_end_by_then() {
    let mut rig = FeedRig::new();
    rig.engine.on_unkillable(rig.job, Pid::new(8), "dd".into());
    rig.engine.on_exit(rig.job, Exit::Code(3), rig.now);
    rig.engine.on_hangup(rig.job, Stream::Tty);
    let left = |pid| LeftProcess { pid, program: format!("p{pid}"), ports: vec![80] };
    rig.engine.on_left(rig.job, (1..=20).map(left).collect());
    rig.engine.on_received(rig.job, Received { bytes: 9, hidden: 2 });
    rig.sent();
    rig.feed.pump(&mut rig.engine, rig.job, &mut rig.out, rig.now);
    let (mut decoder, mut ends) = (frame::Decoder::default(), Vec::new());
    decoder.feed(&rig.out);
    while let Some(Ok(frame)) = decoder.next_frame() {
        let frame::Frame::End(end) = frame else { panic!("{frame:?}") };
        ends.push(end);
    }
    let [end] = &ends[..] else { panic!("{ends:?}") };
    assert_eq!((end.exit, end.received, end.hidden, &end.unkillable[..]), (3, Some(9), 2, &[8][..]));
    assert_eq!((end.left_count, end.left.len()), (20, limits::STRAGGLERS_NAMED_MAX));
    assert_eq!((end.left[1].pid, end.left[1].comm.as_str(), &end.left[1].ports[..]), (2, "p2", &[80][..]));
    rig.engine.on_received(rig.job, Received { bytes: 1, hidden: 0 });
    rig.sent();
    rig.feed.pump(&mut rig.engine, rig.job, &mut rig.out, rig.now);
    assert!(rig.out.is_empty(), "one record");
}
