//! When what is queued goes to the recorder, and when one that takes nothing holds nobody back any more.

use std::time::Duration;

use super::*;
use crate::core::entry::{Stream, Streams};

const TICK: Duration = Duration::from_millis(1);

/// A journal with one command that runs.
struct FeedRig {
    engine: Engine,
    journal: Feed,
    job: JobId,
    now: Instant,
    out: Vec<u8>,
}

impl FeedRig {
    fn new() -> Self {
        let (mut engine, mut journal, now, mut out) = (Engine::default(), Feed::default(), Instant::now(), Vec::new());
        let job = engine.submit().expect("there is room");
        engine.on_started(job, Streams::of(&[Stream::Tty]), now);
        let cursor = engine.attach(job, journal.lag()).expect("the job is there");
        journal.begin(cursor, &StartRecord { seq: job.0, ..StartRecord::default() }, [], &mut out, now);
        Self { engine, journal, job, now, out }
    }

    /// The command writes this much, and the journal takes it.
    fn write(&mut self, bytes: usize) {
        self.engine.on_output(self.job, Stream::Tty, vec![b'x'; bytes].into(), self.now);
        self.journal.pump(&mut self.engine, self.job, &mut self.out, self.now);
    }

    fn is_due(&mut self) -> bool {
        self.journal.is_due(self.out.len(), self.now)
    }

    /// What was due has been sent.
    fn sent(&mut self) {
        self.out.clear();
    }
}

#[test]
fn output_waits_for_more_of_it_and_records_do_not() {
    let mut stage = FeedRig::new();
    assert!(stage.is_due(), "the start");
    stage.sent();
    for _ in 0..2 {
        stage.write(1);
        assert!(!stage.is_due());
        assert_eq!(stage.journal.send_at(), Some(stage.now + limits::RECORDER_DELAY));
        stage.now += limits::RECORDER_DELAY - TICK;
        stage.write(1);
        assert!(!stage.is_due(), "more of it does not put it off");
        stage.now += TICK;
        assert!(stage.is_due());
        assert_eq!(stage.journal.send_at(), None);
        stage.sent();
    }
    stage.engine.on_exit(stage.job, Exit::Code(0), stage.now);
    stage.engine.on_hangup(stage.job, Stream::Tty);
    stage.journal.pump(&mut stage.engine, stage.job, &mut stage.out, stage.now);
    assert!(stage.is_due(), "the end");
}

#[test]
fn much_output_does_not_wait() {
    let mut stage = FeedRig::new();
    assert!(stage.is_due());
    stage.sent();
    stage.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(!stage.is_due());
    stage.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(stage.is_due());
}

#[test]
fn a_recorder_that_takes_nothing_holds_commands_back_for_its_time_only() {
    let mut stage = FeedRig::new();
    while stage.journal.pace.has_room(false) {
        stage.write(limits::LOG_BYTES / 2);
    }
    stage.write(1);
    assert_eq!(stage.journal.deadline(), Some(stage.now + limits::RECORDER_STALL));
    stage.now += limits::RECORDER_STALL / 2;
    let has_moved = |stage: &mut FeedRig, handled| {
        let done = Done { handled, ..Done::default() };
        stage.journal.on_done(&mut stage.engine, &done, stage.now)
    };
    assert!(has_moved(&mut stage, 1));
    assert!(!has_moved(&mut stage, 1), "nothing new");
    stage.journal.pump(&mut stage.engine, stage.job, &mut stage.out, stage.now);
    assert_eq!(stage.journal.deadline(), Some(stage.now + limits::RECORDER_STALL), "it did something");
    stage.now += limits::RECORDER_STALL - TICK;
    assert!(!stage.journal.tick(&mut stage.engine, stage.now) && stage.journal.lag() == Lag::Hold);
    stage.now += TICK;
    assert!(stage.journal.tick(&mut stage.engine, stage.now) && stage.journal.lag() == Lag::Skip);
    assert!(has_moved(&mut stage, 2));
    assert_eq!(stage.journal.lag(), Lag::Hold);
}

/// Everything but what the recorder acknowledged is sent again, and output that is not kept is counted.
#[test]
fn the_next_recorder_is_sent_what_the_file_may_lack() {
    let frames = |bytes: &[u8]| {
        let (mut decoder, mut frames) = (frame::Decoder::default(), Vec::new());
        decoder.feed(bytes);
        while let Some(frame) = decoder.next_frame() {
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
    let mut stage = FeedRig::new();
    stage.write(10);
    stage.journal.on_down(stage.now);
    stage.write(5);
    stage.sent();
    stage.journal.replay(&mut stage.engine, &mut stage.out, stage.now);
    stage.write(1);
    assert_eq!(frames(&stage.out), "start, output 10, output 5, output 1");
    stage.write(limits::RECORDER_HELD_OUTPUT_BYTES);
    stage.engine.on_exit(stage.job, Exit::Code(0), stage.now);
    stage.engine.on_hangup(stage.job, Stream::Tty);
    for _ in 0..2 {
        stage.journal.pump(&mut stage.engine, stage.job, &mut stage.out, stage.now);
        stage.sent();
        stage.journal.on_down(stage.now);
        stage.journal.replay(&mut stage.engine, &mut stage.out, stage.now);
        assert_eq!(frames(&stage.out), "start, lost 16400, end of 16400");
    }
    let done = Done { handled: 1, ends: vec![stage.job.0], ..Done::default() };
    stage.journal.on_done(&mut stage.engine, &done, stage.now);
    assert!(stage.journal.runs.is_empty() && stage.journal.held == 0);
}

/// One command's output waits for room; another's first output, and every record, does not.
#[test]
fn records_and_first_output_have_room_that_others_do_not_take() {
    let mut stage = FeedRig::new();
    while stage.journal.pace.has_room(false) {
        stage.write(limits::LOG_BYTES / 2);
    }
    let before = stage.out.len();
    stage.write(1);
    assert_eq!(stage.out.len(), before);
    let job = stage.engine.submit().expect("there is room");
    stage.engine.on_started(job, Streams::of(&[Stream::Tty]), stage.now);
    let cursor = stage.engine.attach(job, stage.journal.lag()).expect("the job is there");
    let start = StartRecord { seq: job.0, ..StartRecord::default() };
    stage.journal.begin(cursor, &start, [], &mut stage.out, stage.now);
    stage.engine.on_output(job, Stream::Tty, b"output".as_slice().into(), stage.now);
    stage.engine.on_exit(job, Exit::Code(0), stage.now);
    stage.engine.on_hangup(job, Stream::Tty);
    stage.journal.pump(&mut stage.engine, job, &mut stage.out, stage.now);
    assert!(stage.journal.runs[&job].cursor.is_none(), "its end is on its way");
}

/// As after a Ctrl-Z of both.
#[test]
fn a_recorder_has_no_time_while_its_host_is_stopped() {
    let mut stage = FeedRig::new();
    stage.write(1);
    stage.now += Duration::from_secs(60);
    assert!(!stage.journal.tick(&mut stage.engine, stage.now));
    assert!(!stage.journal.is_stuck(stage.now));
    stage.now += limits::RECORDER_STUCK;
    assert!(stage.journal.is_stuck(stage.now), "with the host running");
}

#[test]
fn that_the_journal_is_behind_is_said_once_and_that_it_has_caught_up_too() {
    let mut stage = FeedRig::new();
    assert_eq!(stage.journal.take_notice(stage.now), None);
    assert_eq!(stage.journal.deadline(), Some(stage.now + limits::RECORDER_BEHIND));
    stage.now += limits::RECORDER_BEHIND;
    assert_eq!(stage.journal.take_notice(stage.now).as_deref(), Some("the journal is 3 s behind"));
    stage.now += limits::RECORDER_BEHIND;
    assert_eq!(stage.journal.take_notice(stage.now), None);
    assert!(!stage.journal.is_stuck(stage.now));
    let done = Done { handled: stage.out.len() as u64, ..Done::default() };
    stage.journal.on_done(&mut stage.engine, &done, stage.now);
    assert_eq!(stage.journal.take_notice(stage.now).as_deref(), Some("the journal has caught up"));
    assert_eq!((stage.journal.take_notice(stage.now), stage.journal.deadline()), (None, None));
    stage.write(1);
    stage.now += limits::RECORDER_STUCK;
    assert!(stage.journal.is_stuck(stage.now), "it does nothing with what it has");
}
