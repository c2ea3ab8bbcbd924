//! The safe console on a terminal that is narrower than the command's: rows are redrawn in place, and no command gets
//! above its own lines.

use rexec_host::text::safe::SafeFilter;
use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::data;
use crate::dice::rounds;
use crate::properties::invent;

/// The text on a terminal that is narrower than the command's.
fn seen_at(columns: u16, input: &[u8]) -> String {
    let mut safe = SafeFilter::new();
    safe.resize(columns);
    let mut out = Vec::new();
    safe.push(input, &mut out);
    safe.end_block(&mut out);
    let mut terminal = Sanitizer::new(Mode::Collapse { rows: 24, cols: columns });
    let mut text = Vec::new();
    terminal.push(&out, &mut text);
    terminal.finish(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_line_wider_than_the_terminal_is_redrawn_in_its_place() {
    let wide = |c: &str, length: usize| c.repeat(length);
    for (input, expected) in [
        (format!("{}\r{}\r\nnext\n", wide("a", 95), wide("b", 95)), format!("{}\nnext\n", wide("b", 95))),
        // A full row: the cursor waits at the edge for the next character.
        (format!("{}\r{}\nnext\n", wide("a", 80), wide("b", 80)), format!("{}\nnext\n", wide("b", 80))),
        (format!("{}\r{}\nnext\n", wide("a", 40), wide("b", 40)), format!("{}\nnext\n", wide("b", 40))),
        // An erasure includes the rows below.
        (format!("{}\r\x1b[Kdone\nnext\n", wide("a", 95)), "done\nnext\n".to_owned()),
        (format!("{}\rdone\x1b[K\nnext\n", wide("a", 95)), "done\nnext\n".to_owned()),
        (format!("{}\x1b[2K\rnext\n", wide("a", 39)), "next\n".to_owned()),
        (format!("{}\x1b[1G\x1b[0Jdone\n", wide("a", 95)), "done\n".to_owned()),
        // The next line begins below all rows of this one.
        (format!("{}\r\nnext\n", wide("a", 95)), format!("{}\nnext\n", wide("a", 95))),
        (format!("{}\rb\nnext\n", wide("a", 95)), format!("b{}\nnext\n", wide("a", 94))),
        (format!("{}\rb", wide("a", 95)), format!("b{}\n", wide("a", 94))),
        (format!("\x1b[?7l{}\r{}\n", wide("a", 95), wide("b", 10)), format!("{}{}\n", wide("b", 10), wide("a", 30))),
    ] {
        assert_eq!(seen_at(40, input.as_bytes()), expected, "{input:?}");
    }
}

/// The width of a character on a terminal that gives `free` to those on which terminals differ.
fn width_of(c: char, free: u32) -> u32 {
    match c {
        ' '..='~' => 1,
        '\u{AD}' => free,
        '\u{A0}'..='\u{2FF}' | '\u{370}'..='\u{482}' | '\u{48A}'..='\u{58F}' | '\u{1E00}'..='\u{1FFF}' => free.max(1),
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}' | '\u{20A0}'..='\u{20C0}' | '\u{2100}'..='\u{2BFF}' => {
            free.max(1)
        }
        // Some of these are marks.
        '\u{302A}'..='\u{302F}' | '\u{3099}' | '\u{309A}' | '\u{3164}' => free,
        '\u{3001}'..='\u{303E}' | '\u{3041}'..='\u{A4C6}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FF60}' => 2,
        '\u{FF61}'..='\u{FF9D}' => free.max(1),
        '\u{1F300}'..='\u{1F320}' | '\u{1F600}'..='\u{1F64F}' => 2,
        _ => free,
    }
}

/// Follows the cursor's row on a terminal with this width, this width of other characters, and this many rows below the
/// block's first one. Returns the lowest row, which must not be negative: above the block is another command's text.
fn lowest_row(out: &[u8], columns: u32, other_width: u32, room: i64) -> i64 {
    let text = String::from_utf8(out.to_vec()).unwrap();
    let (mut row, mut lowest, mut column, mut wraps) = (0i64, 0, 0, true);
    let mut bottom = room;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => (row, column) = (row + 1, 0),
            '\r' => column = 0,
            '\t' => column = ((column / 8 + 1) * 8).min(columns - 1),
            '\x08' => column = column.min(columns - 1).saturating_sub(1),
            '\x18' => {}
            '\x1b' => {
                if rest.next() != Some('[') {
                    continue;
                }
                let body: String = rest.clone().take_while(|c| !('\x40'..='\x7e').contains(c)).collect();
                let last = rest.nth(body.len()).unwrap();
                let count = body.parse().unwrap_or(1);
                let on_row = column.min(columns - 1);
                match last {
                    'A' => row -= i64::from(count),
                    'B' => row = (row + i64::from(count)).min(bottom),
                    'C' => column = (on_row + count).min(columns - 1),
                    'D' => column = on_row.saturating_sub(count),
                    'G' => column = (count - 1).min(columns - 1),
                    'h' | 'l' if body == "?7" => wraps = last == 'h',
                    _ => {}
                }
            }
            // A terminal may show the picture before it as text.
            '\u{FE0E}' if other_width == 1 => column = column.saturating_sub(1),
            c => {
                let width = width_of(c, other_width);
                if column + width > columns && width > 0 {
                    (row, column) = if wraps { (row + 1, 0) } else { (row, columns - width) };
                }
                column += width;
            }
        }
        lowest = lowest.min(row);
        bottom = bottom.max(row);
    }
    lowest
}

/// Progress bars with other characters than ASCII, as tqdm and rich draw them.
#[test]
fn a_bar_of_any_characters_is_redrawn_in_its_place() {
    for cell in ["█", "▏", "━", "#", "é", "⠿", "進", "한", "🟩"] {
        let cells = 150 / if "進한🟩".contains(cell) { 2 } else { 1 };
        let mut input = String::new();
        for n in 0..=cells {
            input.push_str(&format!("\r{n:3}|{}{}|", cell.repeat(n), " ".repeat(150 - n * 150 / cells)));
        }
        input.push_str("\ndone\n");
        let expected = format!("{cells:3}|{}|\ndone\n", cell.repeat(cells));
        for columns in [110, 80, 41] {
            // A wide character that does not fit leaves a blank at the end of the row.
            let unspaced = |text: &str| text.replace(' ', "");
            // At the start of a row it looks like the host's bar.
            let seen = seen_at(columns, input.as_bytes()).replace("⟨258F⟩", "▏");
            assert_eq!(unspaced(&seen), unspaced(&expected), "{cell} at {columns}");
        }
    }
}

/// Each line takes several rows, and the cursor goes up by lines.
#[test]
fn several_lines_wider_than_the_terminal_are_redrawn_in_their_place() {
    let line = |name: &str, n: usize, cell: &str| format!("{name} {n:3} {}|", cell.repeat(n * 14));
    for (up, before, cell) in [
        ("\x1b[3A", "\r\x1b[K", "x"),
        ("\x1b[3A", "\x1b[2K", "█"),
        ("\x1b[3F", "\x1b[2K", "x"),
        ("\x1b[A\x1b[A\x1b[A", "\x1b[0K", "x"),
        ("\x1b[3A\x1b[J", "", "█"),
        ("\r\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K", "", "x"),
    ] {
        // The lines grow and shrink.
        let mut input = String::from("first\n");
        for (round, n) in [1, 5, 9, 10, 4, 2].into_iter().enumerate() {
            if round > 0 {
                input.push_str(up);
            }
            for name in ["one", "two", "three"] {
                input.push_str(&format!("{before}{}\r\n", line(name, n, cell)));
            }
        }
        input.push_str("done\n");
        let expected: String = ["one", "two", "three"].map(|name| line(name, 2, cell) + "\n").concat();
        for columns in [110, 160, 50] {
            let seen = seen_at(columns, input.as_bytes());
            let lines: Vec<&str> = seen.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(lines.join("\n"), format!("first\n{expected}done"), "{up:?} at {columns}");
        }
    }
}

#[test]
fn no_command_reaches_above_its_own_lines() {
    let seeds = data::all();
    rounds(3000, |random| {
        let input: Vec<u8> =
            (0..4).flat_map(|_| [invent(random, &seeds), b"a longer word\r".to_vec()].concat()).collect();
        let columns = [7, 20, 40, 80][random.below(4)];
        let mut safe = SafeFilter::new();
        safe.resize(columns);
        let mut out = Vec::new();
        for piece in random.pieces(&input) {
            safe.push(piece, &mut out);
        }
        safe.end_block(&mut out);
        assert_within(&out, columns, &input);
    });
}

fn assert_within(out: &[u8], columns: u16, input: &[u8]) {
    for (other_width, room) in [(0, 0), (1, 0), (2, 0), (0, 50), (1, 3), (2, 50)] {
        let row = lowest_row(out, columns.into(), other_width, room);
        let text = input.escape_ascii();
        assert!(row >= 0, "{row} at {columns} columns, others {other_width}, {room} rows below: {text}");
    }
}

/// Longer lines overwrite others, moves end at the screen's edge, and characters have any width.
#[test]
fn no_command_reaches_above_its_own_lines_by_overwriting_them() {
    let over = format!("{}\x1b[10A{}\n\x1b[9B\x1b[10A\rforged", "line\n".repeat(10), "x".repeat(800));
    let marks = format!("a\n{}\rforged", "\u{ff9e}".repeat(800));
    let signs = format!("a\n{}\rforged", "\u{1f600}\u{fe0e}".repeat(400));
    for input in [over, marks, signs] {
        for columns in [20, 40, 80] {
            let mut out = Vec::new();
            let mut safe = SafeFilter::new();
            safe.resize(columns);
            safe.push(input.as_bytes(), &mut out);
            assert_within(&out, columns, input.as_bytes());
        }
    }
    rounds(3000, |random| {
        let columns = [7, 20, 40, 80][random.below(4)];
        let mut input = String::new();
        for _ in 0..3 + random.below(24) {
            match random.below(10) {
                0..=2 => {
                    let text = ["x", "日", "e\u{301}", "😀", "😀\u{fe0e}", "ｱﾞ", "\t", "ab cd "][random.below(8)];
                    input.push_str(&text.repeat([1, columns - 1, columns, 2 * columns + 1, 400][random.below(5)]));
                }
                3..=5 => {
                    input.push_str(&["\n", "\r", "\r\n", "\x08", "\x0b"][random.below(5)].repeat(1 + random.below(9)))
                }
                6..=8 => {
                    let count = ["", "1", "2", "5", "30", "200"][random.below(6)];
                    input.push_str(&format!("\x1b[{count}{}", char::from(b"ABCDEFGJK"[random.below(9)])));
                }
                _ => input.push_str(["\x1b[?7l", "\x1b[?7h", "\x1b[2K", "\x1b[J", "\x1bM"][random.below(5)]),
            }
        }
        let (mut safe, mut out) = (SafeFilter::new(), Vec::new());
        safe.resize(u16::try_from(columns).unwrap());
        safe.push(input.as_bytes(), &mut out);
        safe.end_block(&mut out);
        assert_within(&out, u16::try_from(columns).unwrap(), input.as_bytes());
    });
}
