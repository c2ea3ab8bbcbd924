//! The queue, the bounds over all jobs, and when a job is forgotten.

use super::*;
use crate::core::end::{How, Stopper, Subject};
use crate::core::entry::{Consequence, Decider, Decision, Entry, Judgement};

fn started(engine: &mut Engine) -> JobId {
    let id = engine.submit().unwrap();
    engine.attach(id, Lag::Hold).unwrap();
    while let Some(effect) = engine.next_effect() {
        if let Effect::Start(id) = effect {
            engine.on_started(id, Duration::ZERO, Streams::of(&[Stream::Tty]), Instant::now());
        }
    }
    id
}

#[test]
fn a_job_is_forgotten_when_nothing_of_it_lives_and_all_is_read() {
    let (mut engine, now) = (Engine::default(), Instant::now());
    let id = engine.submit().unwrap();
    let cursor = engine.attach(id, Lag::Hold).unwrap();
    assert_eq!(engine.next_effect(), Some(Effect::Start(id)));
    engine.on_started(id, Duration::ZERO, Streams::of(&[Stream::Tty]), Instant::now());
    engine.on_output(id, Stream::Tty, b"hi".as_slice().into(), now);
    engine.on_hangup(id, Stream::Tty);
    engine.on_exit(id, Exit::Code(0), now);
    assert!(engine.is_idle());
    let mut entries = 0;
    while let Some(item) = engine.next(cursor) {
        entries += 1;
        if let Item::Entry(Entry::Ended(end)) = item {
            assert_eq!((&end.how, end.by), (&How::Exited(Exit::Code(0)), None));
        }
        engine.advance(cursor);
    }
    assert_eq!(entries, 3);
    assert!(engine.job(id).is_some(), "it may have left processes");
    engine.on_gone(id);
    assert_eq!(engine.next(cursor), Some(Item::Entry(&Entry::Over)));
    engine.advance(cursor);
    assert!(engine.job(id).is_none());
    assert_eq!(engine.kept_bytes, 0);
}

#[test]
fn the_last_entry_waits_for_readers_that_hold_the_job_back_and_facts_may_precede_it() {
    let mut engine = Engine::default();
    let id = started(&mut engine);
    let (slow, now) = (engine.attach(id, Lag::Hold).unwrap(), Instant::now());
    engine.on_exit(id, Exit::Code(0), now);
    engine.on_hangup(id, Stream::Tty);
    let skipper = engine.attach(id, Lag::Skip).unwrap();
    engine.on_left(id, vec![LeftProcess { pid: 7, program: "node".into(), ports: vec![80] }].into());
    engine.on_gone(id);
    engine.on_received(id, Received { bytes: 5, hidden: 0 });
    let kinds = |engine: &mut Engine, cursor| {
        let mut kinds = Vec::new();
        while let Some(item) = engine.next(cursor) {
            let Item::Entry(entry) = item else { panic!("{item:?}") };
            let words = format!("{entry:?}");
            kinds.push(words.split([' ', '(']).next().unwrap_or_default().to_owned());
            engine.advance(cursor);
        }
        kinds
    };
    assert_eq!(kinds(&mut engine, skipper), ["Exited", "Ended", "Left", "Received"]);
    engine.detach(slow);
    assert!(kinds(&mut engine, skipper).is_empty(), "the first reader has not read it");
    // The one that `started` attached.
    let first = Cursor { job: id, id: CursorId::FIRST };
    assert_eq!(kinds(&mut engine, first), ["Exited", "Ended", "Left", "Received", "Over"]);
    engine.on_unkillable(id, Pid::new(7), "node".into());
    assert_eq!(kinds(&mut engine, skipper), ["Over"], "nothing follows it");
    assert!(engine.job(id).is_none());
}

#[test]
fn beyond_the_bound_jobs_queue_and_start_in_order() {
    let (mut engine, now) = (Engine::default(), Instant::now());
    let ids: Vec<JobId> = (0..limits::RUNNING_MAX + 2).map(|_| started(&mut engine)).collect();
    let waiting = &ids[limits::RUNNING_MAX..];
    assert!(waiting.iter().all(|&id| engine.job(id).unwrap().is_queued()));
    engine.on_exit(ids[5], Exit::Code(0), now);
    engine.on_hangup(ids[5], Stream::Tty);
    assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[0])));
    assert_eq!(engine.next_effect(), None);
    engine.retry(waiting[0]);
    engine.start_queued();
    assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[0])), "it keeps its place");
    engine.stop(waiting[0], Stopper::Caller, limits::GRACE, now);
    assert_eq!(engine.next_effect(), Some(Effect::Start(waiting[1])), "a stop makes room");
}

#[test]
fn a_job_that_is_stopped_before_its_start_is_not_started() {
    for has_reader in [true, false] {
        let mut engine = Engine::default();
        let id = engine.submit().unwrap();
        let cursor = has_reader.then(|| engine.attach(id, Lag::Hold).unwrap());
        engine.stop(id, Stopper::Caller, limits::GRACE, Instant::now());
        assert_eq!(engine.next_effect(), None);
        engine.on_gone(id);
        assert_eq!((engine.is_idle(), engine.job(id).is_some()), (true, has_reader));
        if let Some(cursor) = cursor {
            let Some(Item::Entry(Entry::Ended(end))) = engine.next(cursor) else { panic!("not closed") };
            assert_eq!((&end.how, end.by), (&How::NeverRun, Some(Stopper::Caller)));
        }
    }
}

#[test]
fn jobs_that_could_not_start_are_tried_again_in_order() {
    let mut engine = Engine::default();
    let ids: Vec<JobId> = (0..4).map(|_| engine.submit().unwrap()).collect();
    for _ in 0..3 {
        let tried: Vec<_> = std::iter::from_fn(|| engine.next_effect()).collect();
        assert_eq!(tried, ids.iter().map(|&id| Effect::Start(id)).collect::<Vec<_>>());
        ids.iter().for_each(|&id| engine.retry(id));
        engine.start_queued();
    }
}

#[test]
fn beyond_the_bound_no_job_is_taken_in() {
    let mut engine = Engine::default();
    assert!((0..limits::JOBS_MAX).all(|_| engine.submit().is_some()));
    assert_eq!(engine.submit(), None);
    engine.stop(JobId(limits::RUNNING_MAX as u64 + 1), Stopper::Caller, limits::GRACE, Instant::now());
    assert!(engine.submit().is_some(), "one that goes makes room");
}

/// Runs 300 jobs that write half a log each, with one reader of this kind, and returns the bytes kept.
fn kept_with(lag: Lag) -> usize {
    let mut engine = Engine::default();
    for _ in 0..300 {
        let id = engine.submit().unwrap();
        engine.attach(id, lag).unwrap();
        while engine.next_effect().is_some() {}
        engine.on_started(id, Duration::ZERO, Streams::of(&[Stream::Tty]), Instant::now());
        engine.on_output(id, Stream::Tty, vec![0; limits::LOG_BYTES / 2].into(), Instant::now());
    }
    engine.kept_bytes
}

#[test]
fn what_is_kept_over_all_logs_is_bounded_where_nobody_holds_it() {
    assert!(kept_with(Lag::Skip) <= limits::LOGS_BYTES);
    assert!(kept_with(Lag::Hold) > limits::LOGS_BYTES, "what callers hold is theirs");
}

#[test]
fn jobs_that_are_apart_neither_wait_nor_have_others_wait() {
    let mut engine = Engine::default();
    let starts = |engine: &mut Engine| std::iter::from_fn(|| engine.next_effect()).count();
    for _ in 0..3 {
        let id = engine.submit().unwrap();
        engine.set_apart(id);
    }
    assert!((0..limits::RUNNING_MAX).all(|_| engine.submit().is_some()));
    assert_eq!(starts(&mut engine), 3 + limits::RUNNING_MAX, "none of them waits");
    let late = engine.submit().unwrap();
    assert_eq!(starts(&mut engine), 0);
    engine.set_apart(late);
    assert_eq!((starts(&mut engine), engine.count_apart()), (1, 4));
    engine.retry(late);
    engine.start_queued();
    assert_eq!((starts(&mut engine), engine.count_apart()), (1, 4), "it is still apart");
    engine.on_start_failed(late, StartError { code: 1, problem: String::new(), hint: String::new() });
    assert_eq!(engine.count_apart(), 3);
}

#[test]
fn a_job_that_is_stopped_while_it_waits_leaves_the_queue() {
    for is_apart in [false, true] {
        let (mut engine, now) = (Engine::default(), Instant::now());
        let id = engine.submit().unwrap();
        if is_apart {
            engine.set_apart(id);
        }
        assert_eq!(engine.next_effect(), Some(Effect::Start(id)));
        engine.retry(id);
        assert!(!engine.is_idle());
        engine.stop(id, Stopper::Host, Duration::ZERO, now);
        assert!(engine.is_idle(), "nothing keeps a host that ends");
    }
}

fn asked() -> Judgement {
    let subject = Subject { leaf: String::new(), rule: None, why: None };
    let consequence = Consequence::Asked { subject, wait: Duration::from_secs(60) };
    Judgement { verdict: "ask", rule: None, leaf: String::new(), why: String::new(), consequence }
}

fn effects(engine: &mut Engine) -> Vec<Effect> {
    std::iter::from_fn(|| engine.next_effect()).collect()
}

#[test]
fn a_job_that_is_judged_later_starts_unless_it_is_refused_held_or_ended_by_then() {
    let (mut engine, now) = (Engine::default(), Instant::now());
    let unread = Judgement { consequence: Consequence::Unread, ..asked() };
    let judged: Vec<JobId> = (0..4).map(|_| engine.submit_held().unwrap()).collect();
    let other = engine.submit().unwrap();
    assert_eq!(effects(&mut engine), [Effect::Start(other)], "it does not wait for them");
    engine.stop(judged[3], Stopper::Caller, Duration::ZERO, now);
    for (&id, judgement) in judged.iter().zip([None, Some(unread), Some(asked()), None]) {
        engine.on_judged(id, judgement, now);
    }
    assert_eq!(effects(&mut engine), [Effect::Start(judged[0]), Effect::Start(judged[1])]);
    engine.on_judged(judged[0], None, now);
    assert_eq!(effects(&mut engine), [], "once");
}

#[test]
fn a_held_job_starts_after_a_yes_and_takes_no_room_before() {
    let (mut engine, now) = (Engine::default(), Instant::now());
    let decision = |is_yes| Decision { is_yes, by: Decider::Client, why: None };
    let held: Vec<JobId> = (0..4).map(|_| engine.submit_held().unwrap()).collect();
    held.iter().for_each(|&id| engine.on_judged(id, Some(asked()), now));
    engine.set_apart(held[3]);
    let others: Vec<JobId> = (0..limits::RUNNING_MAX).map(|_| engine.submit().unwrap()).collect();
    assert_eq!(effects(&mut engine), others.iter().map(|&id| Effect::Start(id)).collect::<Vec<_>>());
    assert_eq!(engine.count_apart(), 1);
    engine.decide(held[0], decision(true), now);
    assert_eq!(effects(&mut engine), [], "there is no room");
    engine.decide(held[3], decision(true), now);
    assert_eq!(effects(&mut engine), [Effect::Start(held[3])], "it needs none");
    engine.decide(held[1], decision(false), now);
    engine.decide(held[1], decision(true), now);
    let unanswered = engine.tick(now + Duration::from_secs(60));
    assert_eq!(unanswered.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [held[2]]);
    assert!([1, 2].iter().all(|&at| engine.job(held[at]).is_none_or(Job::has_ended)), "a no, and no answer");
    engine.stop(others[0], Stopper::Kill, Duration::ZERO, now);
    assert_eq!(effects(&mut engine), [Effect::Start(held[0])]);
    engine.stop_all(Stopper::Host, Duration::ZERO, now);
    assert!(engine.is_idle());
}
