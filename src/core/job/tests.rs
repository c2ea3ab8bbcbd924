//! Every order of facts and time, and each rule by itself.

use super::*;
use crate::core::entry::TerminalWish;
use crate::core::log::{CursorId, Item, Lag};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fact {
    Output,
    HangUp,
    Exit,
    Gone,
    Stop,
    Time,
}

const STEPS: [Fact; 8] =
    [Fact::Output, Fact::HangUp, Fact::Exit, Fact::Gone, Fact::Stop, Fact::Stop, Fact::Time, Fact::Time];

/// Calls `visit` with every order of the steps.
fn permutations(rest: &mut Vec<Fact>, order: &mut Vec<Fact>, visit: &mut impl FnMut(&[Fact])) {
    if rest.is_empty() {
        return visit(order);
    }
    for n in 0..rest.len() {
        if rest[..n].contains(&rest[n]) {
            continue;
        }
        let fact = rest.remove(n);
        order.push(fact);
        permutations(rest, order, visit);
        order.pop();
        rest.insert(n, fact);
    }
}

struct Scenario {
    job: Job,
    reader: CursorId,
    now: Instant,
    exited: bool,
    gone: bool,
    kills: u32,
}

impl Scenario {
    fn new() -> Self {
        let mut job = Job::new();
        let reader = job.log.attach(Lag::Hold);
        let _ = job.on_started(Duration::ZERO, Streams::of(&[Stream::Tty]), Instant::now());
        Self { job, reader, now: Instant::now(), exited: false, gone: false, kills: 0 }
    }

    fn check(&mut self, order: Option<Order>) {
        assert!(order.is_none() || !self.gone, "{order:?} after the guard was gone");
        assert!(!matches!(order, Some(Order::Signal(_))) || !self.exited, "a signal after the reap");
        self.kills += u32::from(order == Some(Order::Kill));
    }

    fn apply(&mut self, fact: Fact) {
        let order = match fact {
            Fact::Output => {
                self.job.on_output(Stream::Tty, b"x".as_slice().into(), self.now);
                None
            }
            Fact::HangUp => {
                self.job.on_hangup(Stream::Tty);
                None
            }
            // A guard that is gone reports nothing.
            Fact::Exit if self.gone => None,
            Fact::Exit => {
                self.exited = true;
                self.job.on_exit(Exit::Code(3), self.now);
                None
            }
            Fact::Gone => {
                self.gone = true;
                self.job.on_guard_gone(self.now);
                None
            }
            Fact::Stop => self.job.stop(Stopper::Console, Duration::from_millis(200), self.now),
            Fact::Time => {
                self.now += Duration::from_millis(300);
                let order = self.job.tick(self.now);
                if order == Some(Order::Look) && self.exited {
                    self.job.on_filters_looked_for(false, self.now);
                    assert_eq!(self.job.tick(self.now), None);
                }
                order
            }
        };
        self.check(order);
        let signal = self.job.signal(Signal::TERM, true);
        self.check(signal);
    }

    fn closes(&mut self) -> usize {
        let id = self.job.log.attach(Lag::Skip);
        let (mut closes, mut last) = (0, false);
        while let Some(item) = self.job.log.next(id) {
            last = matches!(item, Item::Entry(Entry::Ended(_)));
            closes += usize::from(last);
            self.job.log.advance(id);
        }
        assert!(closes == 0 || last, "Closed is not the last entry");
        closes
    }
}

#[test]
fn in_every_order_of_facts_a_job_closes_once_and_orders_nothing_too_late() {
    let mut orders = 0;
    permutations(&mut STEPS.to_vec(), &mut Vec::new(), &mut |order| {
        orders += 1;
        for length in 0..=order.len() {
            let mut run = Scenario::new();
            order[..length].iter().for_each(|&fact| run.apply(fact));
            assert!(run.closes() <= 1, "{order:?}");
            if length < order.len() {
                continue;
            }
            assert_eq!(run.closes(), 1, "not closed after {order:?}: {:?}", run.job.state);
            assert_eq!(run.job.deadline(), None, "a closed job waits for nothing: {order:?}");
            assert!(run.kills <= 1, "{order:?}");
        }
    });
    assert_eq!(orders, 8 * 7 * 6 * 5 * 4 * 3 * 2 / 4);
}

#[test]
fn the_hang_up_of_one_stream_judges_no_other() {
    let mut job = Job::new();
    job.log.attach(Lag::Hold);
    let now = Instant::now();
    let _ = job.on_started(Duration::ZERO, Streams::of(&[Stream::Tty, Stream::Out]), now);
    job.on_exit(Exit::Code(0), now);
    // The log was full all that time and has room now: the pipe still holds data that could not be read.
    let later = now + Duration::from_secs(3);
    job.on_hangup(Stream::Tty);
    assert!(!job.has_ended());
    job.on_output(Stream::Out, b"late".as_slice().into(), later);
    assert_eq!(job.tick(later), None);
    assert!(job.has_ended(), "what came after the cap is still given, and then it is over");
}

#[test]
fn a_job_without_stop_does_not_wait_for_its_guard() {
    let mut run = Scenario::new();
    run.apply(Fact::Exit);
    assert!(!run.job.has_ended());
    run.apply(Fact::HangUp);
    assert!(run.job.has_ended());
}

#[test]
fn a_hang_up_before_the_exit_is_not_the_end() {
    let mut run = Scenario::new();
    run.apply(Fact::HangUp);
    (0..50).for_each(|_| run.apply(Fact::Time));
    assert!(run.job.is_running());
    run.apply(Fact::Exit);
    assert!(run.job.has_ended());
}

#[test]
fn a_straggler_delays_the_end_by_its_silence_and_never_beyond_the_cap() {
    let mut run = Scenario::new();
    run.apply(Fact::Exit);
    for n in 0..5 {
        run.now += limits::DRAIN_IDLE - Duration::from_millis(10);
        run.apply(Fact::Output);
        assert_eq!(run.job.tick(run.now), None);
        assert!(!run.job.has_ended(), "output {n} starts the silence afresh");
    }
    run.now += limits::DRAIN_IDLE;
    assert_eq!(run.job.deadline().map(|at| at <= run.now), Some(true));
    assert_eq!(run.job.tick(run.now), None, "no look is worth it at the cap");
    assert!(run.job.has_ended());
}

#[test]
fn a_silence_ends_nothing_while_something_works_on_what_the_shell_has_fed_it() {
    let mut run = Scenario::new();
    run.job.on_filters_looked_for(false, run.now);
    run.apply(Fact::Exit);
    let end = run.now + limits::DRAIN_MAX;
    // An answer to an earlier order is none to this one.
    run.job.on_filters_looked_for(false, run.now);
    let mut looks = 0;
    while !run.job.has_ended() {
        let at = run.job.deadline().expect("it waits for something");
        assert!(at > run.now || looks == 0, "it does not spin");
        run.now = at;
        if run.job.tick(run.now) == Some(Order::Look) {
            looks += 1;
            assert_eq!(run.job.tick(run.now + Duration::from_millis(1)), None, "one order at a time");
            run.job.on_filters_looked_for(true, run.now);
        }
    }
    assert_eq!(filters_left(&mut run), 1);
    assert_eq!((run.now, looks), (end, 6), "every {:?}", limits::DRAIN_IDLE - limits::DRAIN_LOOK_BEFORE);
}

#[test]
fn a_silence_is_over_at_its_time_once_nothing_works_on_what_the_shell_has_fed_it() {
    for answers in [true, false] {
        let mut run = Scenario::new();
        run.apply(Fact::Exit);
        let begun = run.now;
        run.now = run.job.deadline().expect("a look is due");
        assert_eq!(run.now, begun + limits::DRAIN_IDLE - limits::DRAIN_LOOK_BEFORE);
        assert_eq!(run.job.tick(run.now), Some(Order::Look));
        if answers {
            run.job.on_filters_looked_for(false, run.now);
        }
        let patience = if answers { limits::DRAIN_IDLE } else { limits::DRAIN_MAX };
        assert_eq!(run.job.deadline(), Some(begun + patience), "{answers}");
        assert_eq!(run.job.tick(begun + patience), None);
        assert!(run.job.has_ended());
        assert_eq!(filters_left(&mut run), 0, "none was seen");
    }
}

#[test]
fn a_filter_that_ends_in_time_is_not_told() {
    let mut run = Scenario::new();
    run.apply(Fact::Exit);
    run.now = run.job.deadline().expect("a look is due");
    assert_eq!(run.job.tick(run.now), Some(Order::Look));
    run.job.on_filters_looked_for(true, run.now);
    run.apply(Fact::Output);
    run.apply(Fact::HangUp);
    assert_eq!((run.job.has_ended(), filters_left(&mut run)), (true, 0));
}

/// How often the job's log says that a filter is waited for no longer.
fn filters_left(run: &mut Scenario) -> usize {
    let mut told = 0;
    while let Some(item) = run.job.log.next(run.reader) {
        told += usize::from(matches!(item, Item::Entry(Entry::FilterLeft)));
        run.job.log.advance(run.reader);
    }
    told
}

#[test]
fn the_drain_does_not_run_while_the_log_is_full() {
    let mut job = Job::new();
    let reader = job.log.attach(Lag::Hold);
    let now = Instant::now();
    let _ = job.on_started(Duration::ZERO, Streams::of(&[Stream::Tty]), now);
    job.on_output(Stream::Tty, vec![0; limits::LOG_BYTES].into(), now);
    job.on_exit(Exit::Code(0), now);
    assert!(!job.wants_output(Stream::Tty));
    assert_eq!(job.deadline(), None);
    assert_eq!(job.tick(now + Duration::from_secs(5)), None);
    assert!(!job.has_ended(), "the tail would be cut");
    job.log.advance(reader);
    assert!(job.wants_output(Stream::Tty) && job.deadline().is_some());
}

#[test]
fn a_stop_kills_after_the_grace_and_at_once_without_one_or_the_second_time() {
    let mut run = Scenario::new();
    assert_eq!(run.job.stop(Stopper::Console, Duration::ZERO, run.now), Some(Order::Kill));
    let mut run = Scenario::new();
    assert_eq!(run.job.stop(Stopper::Console, limits::GRACE, run.now), Some(Order::Terminate));
    assert!(run.job.deadline().is_some_and(|at| at <= run.now + limits::GRACE));
    assert_eq!(run.job.tick(run.now + limits::GRACE), Some(Order::Kill));
    let mut run = Scenario::new();
    assert_eq!(run.job.stop(Stopper::Console, limits::GRACE, run.now), Some(Order::Terminate));
    assert_eq!(run.job.stop(Stopper::Host, limits::GRACE, run.now), Some(Order::Kill));
    assert_eq!(run.job.stop(Stopper::Host, limits::GRACE, run.now), None);
}

#[test]
fn a_stopped_job_closes_when_its_tree_is_dead_and_not_before() {
    let mut run = Scenario::new();
    run.apply(Fact::Stop);
    run.apply(Fact::Exit);
    run.apply(Fact::HangUp);
    assert!(!run.job.has_ended(), "a daemon of it may still live");
    run.apply(Fact::Gone);
    assert!(run.job.has_ended());
}

#[test]
fn a_tree_that_cannot_be_killed_is_given_up() {
    let mut run = Scenario::new();
    run.apply(Fact::Stop);
    run.apply(Fact::Stop);
    run.now += limits::KILL_TIMEOUT;
    assert_eq!(run.job.tick(run.now), None);
    run.now += limits::DRAIN_MAX;
    assert_eq!(run.job.tick(run.now), None);
    assert!(run.job.has_ended());
}

/// Else a caller that takes nothing would keep the host awake for as long as the tree lives.
#[test]
fn a_tree_that_cannot_be_killed_asks_for_no_time_while_the_log_is_full() {
    let mut run = Scenario::new();
    run.job.on_output(Stream::Tty, vec![0; limits::LOG_BYTES].into(), run.now);
    run.apply(Fact::Stop);
    run.apply(Fact::Stop);
    (0..100).for_each(|_| run.apply(Fact::Time));
    assert_eq!((run.job.deadline(), run.job.has_ended()), (None, false));
    run.job.log.advance(run.reader);
    (0..2).for_each(|_| run.apply(Fact::Time));
    assert!(run.job.has_ended());
}

#[test]
fn a_reader_of_the_terminal_gets_end_of_file_and_is_hung_up_at_its_fifth_stop() {
    let mut run = Scenario::new();
    let reader = run.job.log.attach(Lag::Skip);
    for _ in 0..100 {
        assert_eq!(
            run.job.on_input_stop(TerminalWish::Modes, "stty".into(), None, run.now),
            Some(Order::PassModes),
            "modes are no reading"
        );
    }
    for _ in 0..2 {
        for _ in 1..limits::INPUT_STOPS_MAX {
            assert_eq!(run.job.on_input_stop(TerminalWish::Input, "less".into(), None, run.now), Some(Order::EndInput));
        }
        assert_eq!(run.job.on_input_stop(TerminalWish::Input, "less".into(), None, run.now), Some(Order::HangUp));
    }
    let mut told = 0;
    while let Some(item) = run.job.log.next(reader) {
        told += u32::from(matches!(item, Item::Entry(Entry::WantedInput { .. })));
        run.job.log.advance(reader);
    }
    assert_eq!(told, 1);
}

#[test]
fn a_terminal_that_is_given_up_gives_end_of_file_once_and_to_readers_of_keys_not_at_all() {
    for (wish, orders) in [
        (TerminalWish::Input, &[Order::EndInput, Order::GiveUpTerminal][..]),
        (TerminalWish::Keys, &[Order::GiveUpTerminal]),
    ] {
        let mut run = Scenario::new();
        run.job.give_up_unanswered();
        let wait = Some(Duration::from_secs(60));
        assert_eq!(run.job.on_input_stop(wish, "zip".into(), wait, run.now), None, "a person has time");
        run.now += Duration::from_secs(60);
        assert_eq!(run.job.tick(run.now), Some(orders[0]));
        for &order in &orders[1..] {
            assert_eq!(run.job.on_input_stop(wish, "zip".into(), wait, run.now), Some(order), "it has had its time");
        }
        run.apply(Fact::HangUp);
        assert!(run.job.deadline().is_none(), "nothing stops at a terminal that is gone: {:?}", run.job.deadline());
    }
}

#[test]
fn a_silent_command_is_looked_through_at_doubling_intervals() {
    let mut run = Scenario::new();
    let mut looks = Vec::new();
    let start = run.now;
    while run.now < start + Duration::from_secs(20) {
        run.now += Duration::from_millis(100);
        if run.job.tick(run.now) == Some(Order::Look) {
            looks.push((run.now - start).as_millis() / 100);
        }
    }
    assert_eq!(looks, [5, 15, 35, 55, 75, 95, 115, 135, 155, 175, 195], "tenths of a second");
    run.apply(Fact::Output);
    assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AFTER), "output starts it afresh");
    run.apply(Fact::Exit);
    run.apply(Fact::HangUp);
    assert_eq!(run.job.deadline(), None);
}

#[test]
fn after_a_stop_a_look_comes_soon_and_output_puts_it_off_for_a_while_only() {
    let mut run = Scenario::new();
    let start = run.now;
    for _ in 0..100 {
        run.now += Duration::from_millis(60);
        run.apply(Fact::Output);
        let order = run.job.tick(run.now);
        assert_eq!(order.is_some(), order == Some(Order::Look));
        if order.is_some() {
            break;
        }
    }
    let waited = run.now - start;
    assert!(waited >= limits::LOOK_EVERY_MAX && waited < limits::LOOK_EVERY_MAX + Duration::from_millis(120));
    assert_eq!(run.job.on_input_stop(TerminalWish::Input, "less".into(), None, run.now), Some(Order::EndInput));
    assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AGAIN));
    run.apply(Fact::Output);
    assert_eq!(run.job.deadline(), Some(run.now + limits::LOOK_AGAIN), "the next redraw does not slow it down");
}

#[test]
fn a_stop_before_the_start_closes_without_one() {
    let mut job = Job::new();
    job.log.attach(Lag::Hold);
    assert_eq!(job.stop(Stopper::Caller, limits::GRACE, Instant::now()), None);
    assert!(job.has_ended());
}
