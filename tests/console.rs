//! The console's turns, on a scripted clock: whose output stands where, and what is said about the rest.

use std::time::{Duration, Instant};

use rexec_host::core::engine::{Engine, JobId};
use rexec_host::core::entry::{Exit, Stream, Streams};
use rexec_host::core::log::Lag;
use rexec_host::limits;
use rexec_host::sink::console::{Console, Heading, Kind, View};

struct Stage {
    engine: Engine,
    console: Console,
    now: Instant,
    out: Vec<u8>,
}

impl Stage {
    fn new(kind: Kind) -> Self {
        let (console, now) = (Console::new(kind, View::Safe), Instant::now());
        Self { engine: Engine::default(), console, now, out: Vec::new() }
    }

    fn start(&mut self, command: &str) -> JobId {
        let job = self.engine.submit().expect("there is room");
        self.engine.on_started(job, Streams::of(&[Stream::Tty]), self.now);
        let cursor = self.engine.attach(job, Lag::Skip).expect("the job is there");
        let text = |text: &str| text.to_owned();
        let heading = Heading {
            time: text("2026-05-21T09:42:18Z"),
            whoami: text("Codex"),
            dir: text("/d"),
            command: text(command),
            is_probe: command == "probe",
        };
        self.console.begin(&mut self.engine, cursor, heading);
        job
    }

    fn write(&mut self, job: JobId, text: &str) {
        self.engine.on_output(job, Stream::Tty, text.as_bytes().into(), self.now);
    }

    fn end(&mut self, job: JobId, code: u8) {
        self.engine.on_exit(job, Exit::Code(code), self.now);
        self.engine.on_hangup(job, Stream::Tty);
    }

    /// What is shown now, without the times.
    fn shown(&mut self) -> String {
        self.console.pump(&mut self.engine, &mut self.out, usize::MAX, self.now);
        self.taken()
    }

    fn taken(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.out)).expect("UTF-8").replace("[2026-05-21T09:42:18Z] ", "")
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }
}

#[test]
fn blocks_come_in_order_of_start_and_are_never_mixed() {
    let mut stage = Stage::new(Kind::Text);
    let (one, two) = (stage.start("one"), stage.start("two"));
    stage.write(two, "b\n");
    stage.write(one, "a\n");
    assert_eq!(stage.shown(), "#1 Codex:/d $ one\na\n");
    stage.end(two, 3);
    assert_eq!(stage.shown(), "", "the first still has the floor");
    stage.write(one, "no newline");
    stage.end(one, 0);
    assert_eq!(stage.shown(), "no newline\n\n#2 Codex:/d $ two\nb\nexit 3 · 0.0 s\n\n");
}

#[test]
fn who_takes_long_makes_room_at_a_line_start() {
    let mut stage = Stage::new(Kind::Text);
    let (one, two) = (stage.start("one"), stage.start("two"));
    stage.write(one, "half");
    stage.write(two, "b\n");
    assert_eq!(stage.shown(), "#1 Codex:/d $ one\nhalf");
    stage.wait(limits::CONSOLE_FLOOR);
    assert_eq!(stage.shown(), "", "a line is not broken");
    stage.write(one, " line\n");
    assert_eq!(stage.shown(), " line\n… #1 goes on, others wait\n\n#2 Codex:/d $ two\nb\n");
    stage.end(two, 0);
    assert_eq!(stage.shown(), "\n", "the first one is silent");
    stage.write(one, "more\n");
    assert_eq!(stage.shown(), "#1 Codex:/d $ one (goes on)\nmore\n");
    stage.wait(limits::CONSOLE_FLOOR * 5);
    assert_eq!(stage.shown(), "", "nobody waits");
}

#[test]
fn who_has_the_floor_keeps_it_for_its_time() {
    let mut stage = Stage::new(Kind::Text);
    let one = stage.start("one");
    stage.write(one, "a\n");
    stage.shown();
    assert_eq!(stage.console.deadline(), None, "nobody waits");
    stage.start("two");
    assert_eq!(stage.console.deadline(), Some(stage.now + limits::CONSOLE_FLOOR));
    stage.wait(limits::CONSOLE_FLOOR - Duration::from_millis(1));
    stage.write(one, "b\n");
    assert_eq!(stage.shown(), "b\n");
    stage.wait(Duration::from_millis(1));
    assert_eq!(stage.shown(), "… #1 goes on, others wait\n\n#2 Codex:/d $ two\n");
}

/// A time that has passed would end every sleep of the host at once, for as long as the terminal is stopped.
#[test]
fn a_console_without_room_waits_for_no_time() {
    let mut stage = Stage::new(Kind::Text);
    stage.start("one");
    stage.shown();
    stage.start("two");
    stage.wait(limits::CONSOLE_FLOOR);
    stage.console.pump(&mut stage.engine, &mut stage.out, 0, stage.now);
    assert_eq!(stage.console.deadline(), None);
    assert_eq!(stage.shown(), "… #1 goes on, others wait\n\n#2 Codex:/d $ two\n");
    assert!(stage.console.deadline().is_some_and(|at| at > stage.now));
}

#[test]
fn a_line_that_never_ends_makes_room_too() {
    let mut stage = Stage::new(Kind::Text);
    let one = stage.start("one");
    stage.write(one, "50%\r");
    stage.shown();
    stage.start("two");
    stage.wait(limits::CONSOLE_FLOOR * 2 - Duration::from_millis(1));
    assert_eq!(stage.shown(), "");
    assert_eq!(stage.console.deadline(), Some(stage.now + Duration::from_millis(1)), "it does not wake up in vain");
    stage.wait(Duration::from_millis(1));
    assert_eq!(stage.shown(), "\n… #1 goes on, others wait\n\n#2 Codex:/d $ two\n");
}

#[test]
fn what_is_left_out_is_counted() {
    let mut stage = Stage::new(Kind::Text);
    let one = stage.start("one");
    assert_eq!(stage.shown(), "#1 Codex:/d $ one\n");
    let chunk = "x".repeat(64 << 10);
    for _ in 0..8 {
        stage.write(one, &chunk);
    }
    let shown = stage.shown();
    let (first, rest) = shown.split_once('\n').expect("a remark");
    let missed: usize = first.split(' ').nth(1).and_then(|number| number.parse().ok()).expect("a number");
    assert_eq!(first, format!("… {missed} bytes not shown, see the journal"));
    assert_eq!(missed + rest.matches('x').count(), 8 * chunk.len());
}

#[test]
fn too_many_waiting_blocks_are_one_line() {
    let mut stage = Stage::new(Kind::Text);
    let one = stage.start("one");
    stage.shown();
    for n in 0..limits::CONSOLE_BLOCKS_MAX + 4 {
        let job = stage.start(&format!("command {n}"));
        stage.end(job, 0);
    }
    stage.end(one, 0);
    let shown = stage.shown();
    assert!(shown.starts_with("\n… 5 commands not shown (#2 to #6), see the journal\n\n#7 "), "{:?}", &shown[..200]);
}

#[test]
fn a_probe_is_one_line_and_long_commands_are_cut() {
    let mut stage = Stage::new(Kind::Text);
    let probe = stage.start("probe");
    stage.write(probe, "path=/bin\n");
    stage.end(probe, 1);
    assert_eq!(stage.shown(), "#1 Codex:/d $ (a look at the shell, in the journal)\n");
    let long = stage.start(&"cat <<X\n".repeat(1000));
    stage.end(long, 0);
    let shown = stage.shown();
    assert!(shown.starts_with("#2 Codex:/d $ cat <<X\\ncat") && shown.ends_with("…\n\n"), "{shown}");
    assert!(shown.chars().count() <= limits::BANNER_COLUMNS + 30);
}

#[test]
fn a_banner_is_shorter_the_second_time() {
    let mut stage = Stage::new(Kind::Text);
    let one = stage.start(&"q".repeat(1_000));
    assert_eq!(stage.shown().matches('q').count(), limits::BANNER_COLUMNS - 1);
    stage.start("two");
    stage.wait(limits::CONSOLE_FLOOR);
    stage.shown();
    stage.wait(limits::CONSOLE_FLOOR);
    stage.write(one, "more\n");
    stage.start("three");
    let again = stage.shown();
    assert_eq!(again.matches('q').count(), limits::BANNER_AGAIN_COLUMNS - 1, "{again}");
    assert!(again.contains("… (goes on)\nmore\n"), "{again}");
}

#[test]
fn a_host_that_leaves_ends_what_is_shown() {
    let mut stage = Stage::new(Kind::Terminal);
    let one = stage.start("one");
    stage.write(one, "\x1b[?25lhalf\x1b]0;");
    stage.shown();
    stage.console.leave(&mut stage.out);
    let left = stage.taken();
    assert!(left.starts_with("\x18\x1b\\\x1b[0m\x1b[?25h\x1b[?7h\r\n"), "{left:?}");
    assert!(left.contains("… the rest is not shown, see the journal\x1b[0m\n"), "{left:?}");
    stage.write(one, "late");
    assert_eq!(stage.shown(), "");
    stage.console.leave(&mut stage.out);
    assert_eq!(stage.taken(), "", "nothing is shown any more");
}

#[test]
fn what_a_full_screen_program_draws_is_said_once() {
    let mut stage = Stage::new(Kind::Terminal);
    let one = stage.start("vi");
    stage.write(one, "before\n\x1b[?1049hmenu");
    stage.shown();
    stage.engine.on_input_stop(one, true, "vi".to_owned(), stage.now);
    let asked = stage.shown();
    assert!(asked.contains("… vi asked for input") && !asked.contains("drew"), "{asked:?}");
    stage.write(one, "menu\x1b[?1049lafter\n");
    stage.end(one, 0);
    let shown = stage.shown();
    let (text, remark) = shown.split_once("after\n").expect("what follows is shown");
    assert!(!text.contains("menu") && remark.contains("… a full-screen program drew 8 bytes, not shown\x1b[0m\n"));
}
