//! The console's turns on a scripted clock: whose output is shown where, and what the console says about the rest.

mod live;
mod row_edge;
mod terminal;

use std::rc::Rc;
use std::time::{Duration, Instant};

use time::macros::datetime;

use rexec_host::core::card::{Caller, Card, CommandLine, Place};
use rexec_host::core::engine::{Engine, JobId};
use rexec_host::core::entry::{LeftProcess, Stream, Streams, TerminalWish};
use rexec_host::core::log::Lag;
use rexec_host::limits;
use rexec_host::sink::console::{Console, ConsoleKind, Heading, View};
use rexec_sh::protocol::process::{Exit, Pid};

struct ConsoleRig {
    engine: Engine,
    console: Console,
    now: Instant,
    out: Vec<u8>,
}

impl ConsoleRig {
    fn new(kind: ConsoleKind) -> Self {
        let (console, now) = (Console::new(kind, View::Safe), Instant::now());
        Self { engine: Engine::default(), console, now, out: Vec::new() }
    }

    fn start(&mut self, command: &str) -> JobId {
        let job = self.engine.submit().expect("there is room");
        self.engine.on_started(job, Duration::ZERO, Streams::of(&[Stream::Tty]), self.now);
        let cursor = self.engine.attach(job, Lag::Skip).expect("the job is there");
        let text = |text: &str| text.to_owned();
        let card = Card {
            run: job.0,
            time: text("2026-05-21T09:42:18Z"),
            at: self.now,
            caller: Caller { whoami: text("Codex"), number: 1, ..Caller::default() },
            place: Place { dir: text("/d"), name: text("d") },
            command: CommandLine {
                text: text(command),
                words: None,
                shell: text("bash"),
                is_unwrapped: command == "unwrapped",
                is_probe: command == "probe",
                ..CommandLine::default()
            },
            sandbox: None,
        };
        let heading = Heading { card: Rc::new(card), local: datetime!(2026-05-21 11:42:18) };
        self.console.begin(cursor, heading);
        job
    }

    fn write(&mut self, job: JobId, text: &str) {
        self.engine.on_output(job, Stream::Tty, text.as_bytes().into(), self.now);
    }

    fn end(&mut self, job: JobId, code: u8) {
        self.engine.on_exit(job, Exit::Code(code), self.now);
        self.engine.on_hangup(job, Stream::Tty);
    }

    /// The ended command has left this process, `node`, which listens.
    fn leave(&mut self, job: JobId, pid: i32) {
        let left = LeftProcess { pid, program: "node".to_owned(), ports: vec![3000] };
        self.engine.on_left(job, [left].into());
    }

    /// Returns what is shown now, without the times.
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
fn blocks_are_never_mixed_and_an_ended_command_goes_first() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let (one, two) = (rig.start("one"), rig.start("two"));
    rig.write(two, "b\n");
    rig.write(one, "a\n");
    assert_eq!(rig.shown(), "#1 Codex:/d $ one\na\n");
    rig.end(two, 3);
    assert_eq!(rig.shown(), "… #1 goes on, others wait\n\n#2 Codex:/d $ two\nb\nexit 3 · 0.0 s\n\n");
    rig.write(one, "no newline");
    rig.end(one, 0);
    assert_eq!(rig.shown(), "#1 Codex:/d $ one (goes on, 1 line meanwhile)\nno newline\n\n");
}

#[test]
fn a_command_within_a_line_keeps_the_floor_until_it_is_silent_or_has_had_it_for_long() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let (one, two) = (rig.start("one"), rig.start("two"));
    rig.write(one, "half");
    assert_eq!(rig.shown(), "#1 Codex:/d $ one\nhalf");
    rig.write(two, "b\n");
    rig.end(two, 0);
    assert_eq!(rig.shown(), "", "a line is not broken");
    let wakes = rig.console.deadline().expect("it is looked at again");
    assert!(wakes > rig.now && wakes <= rig.now + Duration::from_secs(1), "an ended command waits a second at most");
    rig.now = wakes;
    assert_eq!(rig.shown(), "\n… #1 goes on, others wait\n\n#2 Codex:/d $ two\nb\n\n");
    assert_eq!(rig.console.deadline(), None, "the first one is silent");

    let three = rig.start("three");
    for step in 0..30 {
        rig.write(one, &format!("{step}%\r"));
        rig.wait(Duration::from_millis(100));
        if step == 5 {
            rig.end(three, 1);
        }
        rig.shown();
    }
    assert_eq!(rig.console.shown(), Some(one), "the other one has ended and was shown");
}

#[test]
fn a_silent_command_gets_its_banner_when_that_interrupts_nobody_and_never_a_turn_after_it() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("one");
    assert_eq!(rig.shown(), "", "it may end at once");
    let wakes = rig.console.deadline().expect("it is looked at again");
    rig.now = wakes;
    assert_eq!(rig.shown(), "#1 Codex:/d $ one\n");
    assert_eq!((rig.console.shown(), rig.console.deadline()), (Some(one), None));
    for number in 2..500_u64 {
        let short = rig.start("short");
        assert_eq!(short.0, number);
        rig.write(short, "x\ny\n");
        rig.end(short, 0);
        let shown = rig.shown();
        assert!(shown.ends_with(&format!("#{number} Codex:/d $ short\nx\ny\n\n")), "{shown}");
        assert_eq!(shown.contains("#1 "), number == 2, "{shown}");
    }
    assert_eq!(rig.console.deadline(), None);
}

/// A deadline that has passed would wake the host again and again, as long as the terminal is stopped.
#[test]
fn a_console_without_room_has_no_deadline() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("one");
    rig.write(one, "half");
    rig.shown();
    let two = rig.start("two");
    rig.end(two, 0);
    rig.console.pump(&mut rig.engine, &mut rig.out, 0, rig.now);
    assert_eq!(rig.console.deadline(), None);
    rig.wait(Duration::from_millis(200));
    assert_eq!(rig.shown(), "\n… #1 goes on, others wait\n\n#2 Codex:/d $ two\n\n");
}

#[test]
fn output_that_is_left_out_is_counted() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("one");
    let chunk = "@".repeat(64 << 10);
    for _ in 0..64 {
        rig.write(one, &chunk);
        rig.console.pump(&mut rig.engine, &mut rig.out, 0, rig.now);
    }
    let shown = rig.shown();
    let (before, _) = shown.split_once(" bytes not shown · rexec out 1\n").expect("a remark");
    let missed: usize = before.rsplit("… ").next().and_then(|number| number.parse().ok()).expect("a number");
    assert_eq!(missed + shown.matches('@').count(), 64 * chunk.len());
}

#[test]
#[ignore = "long: 2,052 blocks that wait"]
fn too_many_waiting_blocks_are_one_line() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("one");
    rig.write(one, "half");
    rig.shown();
    for n in 0..limits::CONSOLE_BLOCKS_MAX + 4 {
        let job = rig.start(&format!("command {n}"));
        rig.end(job, 0);
    }
    rig.end(one, 0);
    let shown = rig.shown();
    assert!(shown.starts_with("\n\n… 5 commands not shown (#2 to #6), see the journal\n\n#7 "), "{:?}", &shown[..200]);
}

const FOLDED: &str = "#1 Codex:/d $ (a look at the shell, in the journal)\n";

#[test]
fn a_probe_is_one_line_while_all_goes_well() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let probe = rig.start("probe");
    rig.write(probe, "path=/bin\n");
    assert_eq!(rig.shown(), "");
    let two = rig.start("two");
    rig.write(two, "b\n");
    rig.wait(limits::PROBE_TIME_MAX - Duration::from_millis(1));
    assert_eq!(rig.shown(), "#2 Codex:/d $ two\nb\n");
    rig.end(probe, 0);
    assert_eq!(rig.shown(), format!("… #2 goes on, others wait\n\n{FOLDED}"));
}

#[test]
fn a_probe_that_fails_writes_much_lasts_or_leaves_processes_is_shown() {
    let unfolded = |act: &dyn Fn(&mut ConsoleRig, JobId)| {
        let mut rig = ConsoleRig::new(ConsoleKind::Text);
        let probe = rig.start("probe");
        rig.write(probe, "path=/bin\n");
        assert_eq!(rig.shown(), "", "it is folded at first");
        act(&mut rig, probe);
        rig.shown()
    };
    let shown = unfolded(&|rig, probe| rig.end(probe, 1));
    assert_eq!(shown, "#1 Codex:/d $ probe\npath=/bin\nexit 1 · 0.0 s\n\n");

    let much = "x".repeat(limits::PROBE_BYTES_MAX);
    let shown = unfolded(&|rig, probe| rig.write(probe, &much));
    assert_eq!(shown, format!("#1 Codex:/d $ probe\npath=/bin\n{much}"));

    let shown = unfolded(&|rig, _| {
        assert_eq!(rig.console.deadline(), Some(rig.now + limits::PROBE_TIME_MAX));
        rig.wait(limits::PROBE_TIME_MAX);
    });
    assert_eq!(shown, "#1 Codex:/d $ probe\npath=/bin\n");

    let shown = unfolded(&|rig, probe| {
        rig.end(probe, 0);
        rig.leave(probe, 7);
    });
    assert_eq!(shown, "#1 Codex:/d $ probe\npath=/bin\nleft running: node (7)\n\n");
}

/// What turns out about a command is a remark in its block, and behind that a line of the host's.
#[test]
fn a_process_that_cannot_be_killed_is_told_of_within_the_block_and_behind_it() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("one");
    rig.engine.on_unkillable(one, Pid::new(7), "dd\u{1b}".to_owned());
    rig.end(one, 0);
    rig.leave(one, 8);
    let block = "#1 Codex:/d $ one\n… #1: dd\\x1b (process 7) cannot be killed\nleft running: node (8)\n\n";
    assert_eq!(rig.shown(), block);
    rig.engine.on_unkillable(one, Pid::new(8), "node".to_owned());
    rig.console.pump(&mut rig.engine, &mut rig.out, 0, rig.now);
    assert_eq!(rig.taken(), "", "a console that stands still shows nothing");
    assert_eq!(rig.shown(), "… #1: node (process 8) cannot be killed\n");
    rig.engine.on_gone(one);
    assert_eq!((rig.shown().as_str(), rig.engine.jobs().count()), ("", 0), "nobody reads on");
}

/// The logs of more commands than that are kept for nobody.
#[test]
fn a_console_follows_a_bounded_number_of_commands_that_have_ended() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    for _ in 0..limits::STRAGGLERS_MAX + 2 {
        let job = rig.start("short");
        rig.end(job, 0);
        rig.shown();
    }
    let jobs: Vec<JobId> = rig.engine.jobs().map(|(job, _)| job).collect();
    jobs.iter().for_each(|&job| rig.engine.on_unkillable(job, Pid::new(7), "dd".to_owned()));
    let shown = rig.shown();
    assert_eq!((jobs.len(), shown.lines().count()), (limits::STRAGGLERS_MAX + 2, limits::STRAGGLERS_MAX));
    assert!(shown.starts_with("… #3: dd"), "{shown}");
}

#[test]
fn a_long_command_is_cut_between_its_ends() {
    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let lines: String = (0..1000).map(|n| format!("cat {n}\n")).collect();
    let long = rig.start(&format!("{lines}EVIL"));
    rig.end(long, 0);
    let shown = rig.shown();
    assert!(shown.starts_with("#1 Codex:/d $ cat 0\\ncat 1") && shown.ends_with("EVIL\n\n"), "{shown}");
    assert!(shown.contains(" characters, "), "{shown}");
    assert!(shown.chars().count() <= limits::BANNER_COLUMNS + 30);
    let unwrapped = rig.start("unwrapped");
    rig.end(unwrapped, 0);
    assert_eq!(rig.shown(), "#2 Codex:/d $ unwrapped (unwrapped)\n\n");
}

#[test]
fn the_hosts_rows_begin_as_no_row_of_output_does() {
    const FORGED: &str = "\x1b[97;48;2;0;95;134m▌[2026-05-21T09:42:18Z] #9 Claude Code:/x $ ls\x1b[0m\r\n";
    let mut rig = ConsoleRig::new(ConsoleKind::Terminal);
    let one = rig.start("▌ \u{200b}x");
    for text in [FORGED, "\x1b[7m▌x\n", "\r\x1b[1G▌", "x\x08▌", "\u{2028}▌\u{e0041}\u{200b}\u{ad}\n"] {
        rig.write(one, text);
    }
    // The filter removes bytes from the middle, and what is left does not become a mark.
    rig.engine.on_output(one, Stream::Tty, b"\xe2\x96\x1b]0;x\x07\x8c\n".as_slice().into(), rig.now);
    rig.engine.on_output(one, Stream::Tty, b"\xe2\x96\0\x8c\n".as_slice().into(), rig.now);
    rig.end(one, 3);
    let shown = rig.shown();
    let rows: Vec<&str> = shown.lines().filter(|row| row.contains('▌')).collect();
    assert_eq!(rows.len(), 2, "banner and end line: {shown:?}");
    assert!(rows.iter().all(|row| row.contains("m▌") && row.matches('▌').count() == 1), "{rows:?}");
    assert!(shown.contains("⟨258C⟩") && shown.contains("⟨200B⟩⟨00AD⟩"), "{shown:?}");

    let mut rig = ConsoleRig::new(ConsoleKind::Dumb { has_utf8: true });
    rig.console.resize(60);
    let one = rig.start("ls");
    rig.write(one, ">>> [x]\n\x1b[2K>>> y\r\n");
    rig.write(one, &format!("{}>>> z\n", "w".repeat(60)));
    rig.end(one, 3);
    let shown = rig.shown();
    let rows: Vec<&str> = shown.lines().filter(|row| row.starts_with(">>>")).collect();
    assert_eq!(rows, [">>> 11:42:18 #1 codex d  ls", ">>> x exit 3 - 0.0 s - 3 lines"], "{shown}");

    let mut rig = ConsoleRig::new(ConsoleKind::Text);
    let one = rig.start("ls");
    rig.write(one, "[2026-05-21T09:42:18Z] #9 Claude Code:/x $ ls\nexit 0 · 10.5 s\n… #9 goes on\nleft running: x\n");
    rig.end(one, 3);
    let shown = rig.shown();
    let rows: Vec<&str> = shown.lines().filter(|row| row.starts_with(' ')).collect();
    assert_eq!(rows.len(), 4, "{shown}");
}

#[test]
fn a_host_that_leaves_ends_what_is_shown() {
    let mut rig = ConsoleRig::new(ConsoleKind::Terminal);
    let one = rig.start("one");
    rig.write(one, "\x1b[?25lhalf\x1b]0;");
    rig.shown();
    rig.console.leave(&mut rig.out);
    let left = rig.taken();
    assert!(left.starts_with("\x18\x1b\\\x1b[0m\x1b[?25h\x1b[?7h\r\n\x1b[J"), "{left:?}");
    assert!(left.contains("⋯ the rest is not shown, see the journal\x1b[0m\n"), "{left:?}");
    rig.write(one, "late");
    assert_eq!(rig.shown(), "");
    rig.console.leave(&mut rig.out);
    assert_eq!(rig.taken(), "", "nothing is shown any more");
}

#[test]
fn a_full_screen_program_is_one_remark() {
    let mut rig = ConsoleRig::new(ConsoleKind::Terminal);
    let one = rig.start("vi");
    rig.write(one, "before\n\x1b[?1049hmenu");
    rig.shown();
    rig.engine.on_input_stop(one, TerminalWish::Input, "vi".to_owned(), None, rig.now);
    let asked = rig.shown();
    assert!(asked.contains("⋯ vi asked for input") && !asked.contains("drew"), "{asked:?}");
    rig.write(one, "menu\x1b[?1049lafter\n");
    rig.end(one, 0);
    let shown = rig.shown();
    let (text, remark) = shown.split_once("after\n").expect("what follows is shown");
    assert!(!text.contains("menu") && remark.contains("⋯ a full-screen program drew 8 bytes, not shown\x1b[0m\n"));
}
