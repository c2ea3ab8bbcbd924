//! When what is queued goes to the recorder, and when one that takes nothing holds nobody back any more.

use std::time::Duration;

use super::*;
use crate::core::entry::{Stream, Streams};

const TICK: Duration = Duration::from_millis(1);

/// A journal with one command that runs.
struct Stage {
    engine: Engine,
    journal: Journal,
    job: JobId,
    now: Instant,
    out: Vec<u8>,
}

impl Stage {
    fn new() -> Self {
        let (mut engine, mut journal, now, mut out) =
            (Engine::default(), Journal::default(), Instant::now(), Vec::new());
        let job = engine.submit().expect("there is room");
        engine.on_started(job, Streams::of(&[Stream::Tty]), now);
        let cursor = engine.attach(job, journal.lag()).expect("the job is there");
        journal.begin(cursor, &Start { seq: job.0, ..Start::default() }, [], &mut out);
        Self { engine, journal, job, now, out }
    }

    /// The command writes this much, and the journal takes it.
    fn write(&mut self, bytes: usize) {
        self.engine.on_output(self.job, Stream::Tty, vec![b'x'; bytes].into(), self.now);
        self.journal.pump(&mut self.engine, self.job, &mut self.out, usize::MAX);
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
    let mut stage = Stage::new();
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
    stage.journal.pump(&mut stage.engine, stage.job, &mut stage.out, usize::MAX);
    assert!(stage.is_due(), "the end");
}

#[test]
fn much_output_does_not_wait() {
    let mut stage = Stage::new();
    assert!(stage.is_due());
    stage.sent();
    stage.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(!stage.is_due());
    stage.write(limits::RECORDER_BATCH_BYTES / 2);
    assert!(stage.is_due());
}

#[test]
fn a_recorder_that_takes_nothing_holds_commands_back_for_its_time_only() {
    let mut stage = Stage::new();
    stage.journal.on_flush(&mut stage.engine, true, false, stage.now);
    stage.now += limits::RECORDER_STALL / 2;
    stage.journal.on_flush(&mut stage.engine, true, false, stage.now);
    assert_eq!(stage.journal.deadline(), Some(stage.now + limits::RECORDER_STALL), "it took something");
    stage.journal.on_flush(&mut stage.engine, false, false, stage.now + TICK);
    assert_eq!(stage.journal.deadline(), Some(stage.now + limits::RECORDER_STALL));
    stage.now += limits::RECORDER_STALL - TICK;
    assert!(!stage.journal.tick(&mut stage.engine, stage.now) && stage.journal.lag() == Lag::Hold);
    stage.now += TICK;
    assert!(stage.journal.tick(&mut stage.engine, stage.now) && stage.journal.lag() == Lag::Skip);
    assert_eq!(stage.journal.deadline(), None);
    stage.journal.on_flush(&mut stage.engine, true, false, stage.now);
    assert_eq!(stage.journal.lag(), Lag::Hold);
}
