//! The console on a terminal: one row for each banner and end, floods, long lines, and what every run costs.

use std::collections::BTreeMap;
use std::time::Duration;

use rexec_host::core::engine::JobId;
use rexec_host::core::entry::Stream;
use rexec_host::limits;
use rexec_host::sink::console::{Colours, Console, ConsoleKind, View};

use super::ConsoleRig;
use crate::support::dice::Dice;
use crate::support::strip::strip;

impl ConsoleRig {
    fn on_terminal(columns: u16) -> Self {
        let mut rig = Self::new(ConsoleKind::Terminal);
        rig.console = Console::new(ConsoleKind::Terminal, View::Safe).with_colours(Colours::Off);
        rig.console.resize(columns);
        rig
    }

    /// What is shown now, without colours and moves.
    fn rows(&mut self) -> Vec<String> {
        let shown = self.shown();
        String::from_utf8(strip(shown.as_bytes())).expect("UTF-8").lines().map(str::to_owned).collect()
    }
}

/// The number before this word in a row.
fn number_before(row: &str, word: &str) -> u64 {
    let before = row.split_once(word).map(|(before, _)| before).unwrap_or_default();
    let digits = before.rsplit(['⋯', '+', '(']).next().unwrap_or_default().replace(' ', "");
    digits.parse().unwrap_or(0)
}

#[test]
fn a_command_is_a_banner_its_output_and_an_end_line() {
    let mut rig = ConsoleRig::on_terminal(80);
    let one = rig.start("cargo test\n--all\n");
    rig.write(one, "ok\nFAILED\n");
    rig.wait(Duration::from_millis(1_500));
    rig.end(one, 101);
    assert_eq!(
        rig.rows(),
        ["▌11:42:18 #1 codex d  cargo test ⏎ +1 line (rexec show 1)", "ok", "FAILED", "▌✗ exit 101 · 1.5 s · 2 lines"]
    );
    let quiet = rig.start("true");
    rig.end(quiet, 0);
    let rows = rig.rows();
    assert!(
        rows.len() == 1 && rows[0].starts_with("▌11:42:19 #2 codex d  true  ")
            || rows[0].contains("#2 codex d  true  ")
    );
    assert!(rows[0].ends_with("✓ 0.0 s") && rows[0].chars().count() == 79, "{rows:?}");
    let long = rig.start("sleep 1");
    rig.wait(Duration::from_secs(1));
    assert_eq!(rig.rows(), ["▌11:42:18 #3 codex d  sleep 1"], "a silent one is seen, too");
    let noisy = rig.start("noisy");
    rig.write(noisy, "x\n");
    rig.end(noisy, 0);
    assert_eq!(rig.rows(), ["▌⋯ #3 runs on", "▌11:42:18 #4 codex d  noisy", "x", "▌✓ 0.0 s"]);
    rig.wait(Duration::from_secs(9));
    rig.write(long, "late\n");
    rig.end(long, 0);
    let rows = rig.rows();
    assert_eq!(rows[0], "▌11:42:27 #3 codex d  ⋯ sleep 1 since 11:42:18 · 1 line meanwhile");
    assert_eq!(rows[1..], ["late", "▌✓ 10.0 s"]);
}

#[test]
fn a_new_day_and_what_is_left_running_are_said() {
    let mut rig = ConsoleRig::on_terminal(120);
    let server = rig.start("server");
    rig.write(server, "up\n");
    assert_eq!(rig.rows()[0], "▌11:42:18 #1 codex d  server");
    let other = rig.start("other");
    rig.write(other, "x\n");
    rig.end(other, 0);
    rig.leave(other, 4711);
    assert_eq!(rig.rows().last().map(String::as_str), Some("▌✓ 0.0 s · left: node 4711 :3000"));
    rig.wait(Duration::from_secs(86_400));
    rig.write(server, "still up\n");
    let rows = rig.rows();
    assert_eq!(rows[0], "▌Friday 2026-05-22");
    assert_eq!(rows[1..], ["▌11:42:18 #1 codex d  ⋯ server since 11:42:18 · 1 line meanwhile", "still up"]);
}

/// Output on pipes gets colours where compilers and test runners speak; output with colours of its own gets none.
#[test]
fn plain_output_is_marked_and_standard_error_is_tinted() {
    let shown = |text: &str, colours: Colours| {
        let mut rig = ConsoleRig::new(ConsoleKind::Terminal);
        rig.console = Console::new(ConsoleKind::Terminal, View::Safe).with_colours(colours);
        let one = rig.start("make");
        rig.engine.on_output(one, Stream::Out, text.as_bytes().into(), rig.now);
        rig.engine.on_output(one, Stream::Err, b"on stderr\n".as_slice().into(), rig.now);
        rig.shown()
    };
    let marked = shown("error: no\n", Colours::Highlighted);
    assert!(marked.contains("\x1b[1;31merror:\x1b[0m no\n") && marked.contains("\x1b[38;5;131mon stderr\x1b[0m"));
    assert!(shown("\x1b[32mok\x1b[m error: no\n", Colours::Highlighted).contains("\x1b[32mok\x1b[m error: no\n"));
    for (colours, kept) in [(Colours::Rows, true), (Colours::Off, true), (Colours::Never, false)] {
        let plain = shown("error: no\n\x1b[32mok\x1b[m\n", colours);
        assert!(plain.contains("\nerror: no\n") && plain.contains("\non stderr\n"), "{plain:?}");
        assert_eq!(plain.contains("\x1b[32mok"), kept, "{plain:?}");
        assert_eq!(plain.contains("\x1b[1;38;5;30m"), colours == Colours::Rows, "{plain:?}");
    }
}

#[test]
fn a_flood_costs_as_many_rows_as_its_ends_and_one() {
    let mut rig = ConsoleRig::on_terminal(120);
    let one = rig.start("seq 1 3000000");
    let (mut rows, mut total) = (Vec::new(), 0_u64);
    for chunk in 0..1_500_u64 {
        let text: String = (0..8_192 / 8).map(|line| format!("{:07}\n", chunk * 1_024 + line)).collect();
        total += 1_024;
        rig.write(one, &text);
        rig.wait(Duration::from_millis(1));
        rows.extend(rig.rows());
    }
    assert_eq!(rows.len(), 1 + limits::CONSOLE_LIVE_LINES, "the banner and the first lines");
    let overview = rig.console.overview();
    assert_eq!((overview.shown, overview.floods[0].job), (Some(one), one));
    assert_eq!(overview.floods[0].unshown.lines, total - limits::CONSOLE_LIVE_LINES as u64);
    rig.end(one, 0);
    rows.extend(rig.rows());
    assert_eq!(rows.len(), 1 + 200 + 1 + 40 + 1);
    assert_eq!(number_before(&rows[201], " lines ("), total - 240, "{}", rows[201]);
    assert!(rows[201].ends_with("not shown · rexec out 1"), "{}", rows[201]);
    assert_eq!(rows[241], format!("{:07}", total - 1));
    assert!(rows[242].ends_with("· 1 536 000 lines"), "{}", rows[242]);
}

#[test]
fn a_flood_that_falls_silent_shows_its_end_and_a_followed_one_all() {
    let mut rig = ConsoleRig::on_terminal(120);
    let server = rig.start("server");
    let lines = |from: u32, to: u32| (from..to).map(|line| format!("line {line}\n")).collect::<String>();
    rig.write(server, &lines(0, 1_000));
    assert_eq!(rig.rows().len(), 201);
    let wakes = rig.console.deadline().expect("the flood is looked at again");
    assert!(wakes <= rig.now + limits::CONSOLE_QUIET);
    rig.wait(limits::CONSOLE_QUIET);
    let rows = rig.rows();
    assert_eq!((rows.len(), number_before(&rows[0], " lines (")), (41, 760), "{rows:?}");
    assert_eq!((rows[40].as_str(), rig.console.deadline()), ("line 999", None), "an idle console never wakes");
    rig.console.follow(Some(server));
    rig.write(server, &lines(0, 5_000));
    assert_eq!(rig.rows().len(), 5_000);
    rig.console.follow(None);
    rig.write(server, &lines(0, 5_000));
    assert_eq!(rig.rows().len(), limits::CONSOLE_TAIL_LINES);
}

#[test]
fn a_long_line_is_cut_after_some_rows_and_its_rest_counted() {
    for (kind, cut) in [(ConsoleKind::Terminal, "@⋯ +"), (ConsoleKind::Dumb { has_utf8: true }, " ... +")] {
        let mut rig = ConsoleRig::new(kind);
        rig.console.resize(50);
        let one = rig.start("cat bundle.js");
        for _ in 0..100 {
            rig.write(one, &"@".repeat(1_000));
        }
        rig.write(one, "\nnext\n");
        rig.end(one, 0);
        let shown = rig.rows().join("\n");
        let whole = shown.matches('@').count();
        assert!((150..=200).contains(&whole), "{kind:?}: {whole}");
        let rest = number_before(shown.split_once(cut).expect("a count").1, " bytes");
        assert_eq!(whole as u64 + rest, 100_000, "{kind:?}");
        assert!(shown.contains("\nnext\n"), "{kind:?}");
    }
    // A bar that is drawn again and again is not a long line.
    let mut rig = ConsoleRig::on_terminal(80);
    let bar = rig.start("bar");
    for step in 0..1_000 {
        rig.write(bar, &format!("\r{step} {}\x08\x08\x08\x1b[10D", "=".repeat(60)));
    }
    rig.write(bar, "\n");
    rig.end(bar, 0);
    assert!(!rig.rows().iter().any(|row| row.contains("⋯ +")));
}

#[test]
fn every_row_of_the_hosts_fits_whatever_the_width() {
    let (wide, words) = ("日本語 ".repeat(50), "word ".repeat(99));
    for columns in 40..=300 {
        for kind in [ConsoleKind::Terminal, ConsoleKind::Dumb { has_utf8: false }] {
            let mut rig = ConsoleRig::new(kind);
            rig.console = Console::new(kind, View::Safe).with_colours(Colours::Off);
            rig.console.resize(columns);
            let text = [wide.as_str(), "x\ny", "short", words.as_str()][usize::from(columns % 4)];
            let (one, two) = (rig.start(text), rig.start(&wide));
            rig.write(one, "half");
            rig.end(two, 3);
            let mut rows = rig.rows();
            rig.wait(Duration::from_millis(300));
            rig.write(one, " a line\n");
            rows.extend(rig.rows());
            rig.end(one, 0);
            rows.extend(rig.rows());
            let own = rows.iter().filter(|row| row.starts_with('▌') || row.starts_with(">>> "));
            let widths: Vec<usize> =
                own.map(|row| row.chars().map(|c| 1 + usize::from(c >= '\u{2e80}')).sum()).collect();
            assert!(
                widths.len() >= 3 && widths.iter().all(|&width| width < usize::from(columns)),
                "{columns}: {rows:#?}"
            );
        }
    }
}

/// A development server that writes on, five agents with short commands, and a flood now and then: for ten minutes of
/// console time.
#[test]
#[ignore = "long: 60,000 steps of a console"]
fn all_that_was_written_is_shown_or_counted_in_time_and_with_few_rows_of_the_hosts() {
    const AGENTS: u64 = 5;
    let mut rig = ConsoleRig::on_terminal(120);
    let mut dice = Dice::new(17);
    let server = rig.start("server");
    let mut written: BTreeMap<JobId, u64> = BTreeMap::new();
    let (mut running, mut ended, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..60_000_u64 {
        rig.wait(Duration::from_millis(10));
        if step % 70 == 0 {
            rig.write(server, &format!("=1 {step}\n"));
            *written.entry(server).or_default() += 1;
        }
        if step % (190 / AGENTS) == 0 {
            let job = rig.start("short");
            let lines = [0, 1, 4, 12, 5_000][dice.below(if step % 50 == 0 { 5 } else { 4 })];
            let text: String = (0..lines).map(|line| format!("={} {line}\n", job.0)).collect();
            rig.engine.on_output(job, Stream::Tty, text.into_bytes().into(), rig.now);
            written.insert(job, lines);
            running.push((job, step + dice.below(40) as u64));
        }
        while let Some(at) = running.iter().position(|&(_, ends)| ends <= step) {
            let (job, _) = running.remove(at);
            rig.end(job, 0);
            ended.push((job, rig.now));
        }
        let (holder, new) = (rig.console.shown(), rig.rows());
        ended.retain(|&(job, at)| {
            let is_shown = holder == Some(job) || new.iter().any(|row| row.contains(&format!(" #{} ", job.0)));
            assert!(is_shown || rig.now <= at + Duration::from_secs(1), "#{} waits for more than a second", job.0);
            !is_shown
        });
        rows.extend(new);
    }
    rig.wait(Duration::from_secs(20));
    rows.extend(rig.rows());
    rig.end(server, 0);
    rows.extend(rig.rows());
    let (mut counted, mut own, mut turns, mut now_shown) = (BTreeMap::<JobId, u64>::new(), 0, 0, JobId(0));
    for row in &rows {
        let Some(word) = row.strip_prefix('▌') else {
            let job = row.strip_prefix('=').and_then(|row| row.split_once(' ')).expect("a command's").0;
            assert_eq!(job.parse(), Ok(now_shown.0), "no block has two commands");
            *counted.entry(now_shown).or_default() += 1;
            continue;
        };
        own += 1;
        turns += u64::from(word.contains("runs on") || word.contains(" since "));
        if word.contains(" not shown · ") {
            *counted.entry(now_shown).or_default() += number_before(row, " lines (");
        } else if let Some((_, number)) = word.split_once(" #").filter(|_| word.contains("codex")) {
            now_shown = JobId(number.split(' ').next().and_then(|number| number.parse().ok()).expect("a number"));
        }
    }
    written.retain(|_, lines| *lines > 0);
    assert_eq!(counted, written, "what is shown and what is counted is all that was written");
    assert!(turns * 4 <= rows.len() as u64, "{turns} of {} rows only say whose turn it is", rows.len());
    assert!(turns > 100 && own < rows.len(), "{turns} {own}");
}
