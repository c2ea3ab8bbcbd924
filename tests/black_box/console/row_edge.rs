//! The status line beside a command that has filled a row exactly: on terminals that remember this when the cursor is saved
//! and restored, and on those that do not (tmux, screen, the Linux console).

use rexec_host::sink::console::{Colours, Console, ConsoleKind, View};

use super::ConsoleRig;
use crate::support::dice::{Dice, rounds};
use crate::support::screen::Screen;

const COLUMNS: u16 = 20;
const SIZE: (u16, u16) = (COLUMNS, 24);
/// The region of the status line, and the bottom of it.
const BEGIN: &str = "\x1b[1;23r\x1b[23;1H";
/// How the status line is drawn.
const STATUS: &str = "\x1b7\x1b[24;1H\x1b[0;7m 1 run\x1b[0m\x1b[K\x1b8";

/// What the console writes for these pieces, with a status line drawn after each of them or not.
fn shown(pieces: &[String], has_status: bool) -> String {
    let mut rig = ConsoleRig::new(ConsoleKind::Terminal);
    rig.console = Console::new(ConsoleKind::Terminal, View::Safe).with_colours(Colours::Off);
    rig.console.resize(COLUMNS);
    let job = rig.start("x");
    let mut all = BEGIN.to_owned() + &rig.shown();
    for piece in pieces {
        rig.write(job, piece);
        all += &rig.shown();
        if has_status {
            all += STATUS;
            let mut mended = Vec::new();
            rig.console.mend_cursor(&mut mended);
            all += &String::from_utf8(mended).expect("UTF-8");
        }
    }
    rig.end(job, 0);
    let rest = rig.shown();
    let all = if has_status { all + &rest } else { all + STATUS + &rest };
    // As the terminal's driver does it.
    all.replace('\n', "\r\n")
}

fn assert_same(pieces: &[String]) {
    let (plain, drawn) = (shown(pieces, false), shown(pieces, true));
    let expected = Screen::of(plain.as_bytes(), SIZE).text();
    assert_eq!(Screen::of(drawn.as_bytes(), SIZE).text(), expected, "{pieces:?}");
    assert_eq!(Screen::forgetful(drawn.as_bytes(), SIZE).text(), expected, "forgetful: {pieces:?}");
}

#[test]
fn a_full_row_stays_whole_when_the_status_line_is_drawn_behind_it() {
    let full = "0123456789abcdefghij";
    for first in [
        full.to_owned(),
        full.repeat(2),
        format!("{}日", &full[2..]),
        format!("{}日{}", &full[1..], &full[2..]),
        format!("{}é", &full[1..]),
        format!("{}e\u{301}", &full[1..]),
        format!("\t\t{}", &full[16..]),
        format!("x\r{full}"),
        format!("x\x1b[11G{}", &full[10..]),
        format!("xx\x08{}", &full[1..]),
    ] {
        for then in
            ["next", "\n", "\r", "\r\nnext\n", "\x08!", "\x1b[31mnext", "\x1b[5D!", "日", "\u{301}x", "\x1b[K\n"]
        {
            assert_same(&[first.clone(), then.to_owned()]);
            let pieces = first.chars().chain(then.chars()).map(String::from).collect::<Vec<_>>();
            assert_same(&pieces);
        }
    }
}

/// The last character is written again in its own colours.
#[test]
fn colours_that_come_behind_a_full_row_follow_the_status_line() {
    let full = format!("\x1b[31m{}\x1b[0m", "x".repeat(COLUMNS.into()));
    let shown = shown(&[full, "\x1b[32mnext".to_owned()], true);
    assert!(shown.contains(&format!("x{STATUS}\x1b[20Gx\x1b[0m\x1b[32mnext{STATUS}")), "{shown:?}");
}

#[test]
fn any_output_looks_as_without_a_status_line() {
    // Behind a full row, terminals differ in what a tab does.
    rounds(300, |dice: &mut Dice| {
        let pieces = (0..12).map(|_| {
            let text = ["x", "日", "é", "ab ", "e\u{301}", "\n", "\r", "\x08", "\x1b[1m", "\x1b[m"][dice.below(10)];
            let count = [1, 1, 2, 10, 19, 20, 21][dice.below(7)];
            if text.starts_with(['\n', '\r', '\x08', '\x1b']) { text.to_owned() } else { text.repeat(count) }
        });
        assert_same(&pieces.collect::<Vec<_>>());
    });
}
