//! Properties of the sanitizer for any input, tried on mutated and random ones.
//!
//! The loops are short in a normal run; with `REXEC_FUZZ_SECONDS` each of them runs for that many seconds.

use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::corpus::run;
use crate::data::{self, sides};
use crate::dice::{Dice, rounds};

const TOKENS: &[&[u8]] = &[
    b"\x1b[",
    b"\x1b]",
    b"\x1bP",
    b"\x1b_",
    b"\x1b^",
    b"\x1bX",
    b"\x1b\\",
    b"\x1b(0",
    b"\x1b(B",
    b"\x1b",
    b"\x07",
    b"\x18",
    b"\r",
    b"\n",
    b"\r\n",
    b"\t",
    b"\x08",
    b"\0",
    b"\x0b",
    b"\x0e",
    b"\x0f",
    b"\x7f",
    b"\xc2\x9b",
    b"\xc2",
    b"\x9b",
    b"\xe2\x98",
    b"\xe2\x98\x83",
    b"\xf0\x9f\x98\x80",
    b"\xf0\x9f",
    b"\xff",
    b"\xcc\x81",
    b"\xe2\x80\x8d",
    b"\xef\xb8\x8f",
    b"\xe6\x97\xa5",
    b"a",
    b"word ",
    b"   ",
    b"----------------------",
    b"\x1b[A",
    b"\x1b[2A",
    b"\x1b[K",
    b"\x1b[1K",
    b"\x1b[2K",
    b"\x1b[J",
    b"\x1b[1J",
    b"\x1b[2J",
    b"\x1b[H",
    b"\x1b[3;5H",
    b"\x1b[9G",
    b"\x1b[2P",
    b"\x1b[3@",
    b"\x1b[4h",
    b"\x1b[4l",
    b"\x1b[2L",
    b"\x1b[M",
    b"\x1b[S",
    b"\x1b[2T",
    b"\x1b[3X",
    b"\x1b[5b",
    b"\x1b[2;4r",
    b"\x1b[r",
    b"\x1b7",
    b"\x1b8",
    b"\x1bD",
    b"\x1bE",
    b"\x1bM",
    b"\x1bc",
    b"\x1b[!p",
    b"\x1b[?7l",
    b"\x1b[?7h",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[?47h",
    b"\x1b[?47l",
    b"\x1b[0;31m",
    b"\x1b[m",
    b"\x1b[38;5;208m",
    b"\x1b[0K",
    b"\x1b[?25l",
    b"\x1b[10C",
    b"\x1b[200C",
    b"\x1b[3D",
    b"\x1b[B",
    b"\x1b[2E",
    b"\x1b[F",
    b"\x1b[2d",
    b"\x1b]0;title\x07",
    b"\x1b]52;c;AA\n",
    b"52;",
    b"1337;",
    b"3",
    b";",
    b"m",
];

/// A random input: a part of a real one with random changes, or tokens in random order.
pub(crate) fn invent(random: &mut Dice, seeds: &[data::Case]) -> Vec<u8> {
    let mut input = Vec::new();
    if random.below(3) == 0 {
        let seed = &seeds[random.below(seeds.len())].input;
        let start = random.below(seed.len() + 1);
        let len = random.below(1500).min(seed.len() - start);
        input.extend_from_slice(&seed[start..start + len]);
        for _ in 0..random.below(20) {
            let at = random.below(input.len() + 1);
            let end = (at + random.below(4)).min(input.len());
            let token = TOKENS[random.below(TOKENS.len())];
            input.splice(at..end, token.iter().copied());
        }
    } else {
        for _ in 0..random.below(80) {
            match random.below(8) {
                0 => input.push(random.roll().to_le_bytes()[0]),
                1 => input.extend(std::iter::repeat_n(b'x', random.below(200))),
                2 => {
                    // Sometimes as long as the pieces of the fast paths.
                    let token = |dice: &mut Dice| TOKENS[dice.below(TOKENS.len())];
                    let group: Vec<&[u8]> = (0..random.below(6)).map(|_| token(random)).collect();
                    let times = if random.below(16) == 0 { 300 } else { 5 };
                    input.extend_from_slice(&group.concat().repeat(random.below(times)));
                }
                _ => input.extend_from_slice(TOKENS[random.below(TOKENS.len())]),
            }
        }
    }
    input
}

pub(crate) fn assert_clean(out: &[u8]) {
    let text = std::str::from_utf8(out).expect("the output is UTF-8");
    let bad = text.chars().find(|&c| c.is_control() && c != '\t' && c != '\n');
    assert_eq!(bad, None, "in {text:?}");
}

#[test]
fn strip_is_clean_idempotent_bounded_and_blind_to_splits() {
    let seeds = data::all();
    rounds(3000, |random| {
        let input = invent(random, &seeds);
        let whole = run(Mode::Strip, [input.as_slice()]);
        assert_clean(&whole);
        assert!(whole.len() <= 3 * input.len());
        let again = run(Mode::Strip, [whole.as_slice()]);
        assert!(again == whole, "twice: {input:?} {}", sides(&again, &whole));
        let split = run(Mode::Strip, random.pieces(&input));
        assert!(split == whole, "split: {input:?} {}", sides(&split, &whole));
    });
}

fn a_screen(random: &mut Dice) -> Mode {
    let rows = [24, 24, 48, 1, 2, 5][random.below(6)];
    let cols = [80, 80, 160, 2, 10, 40][random.below(6)];
    Mode::Collapse { rows, cols }
}

#[test]
fn collapse_is_clean_and_blind_to_splits() {
    let seeds = data::all();
    rounds(3000, |random| {
        let input = invent(random, &seeds);
        let mode = a_screen(random);
        let whole = run(mode, [input.as_slice()]);
        assert_clean(&whole);
        let split = run(mode, random.pieces(&input));
        assert!(split == whole, "{mode:?} split: {input:?} {}", sides(&split, &whole));
    });
}

/// The text appended so far and what `finish` would append are the text of the stream so far, after every piece.
#[test]
fn what_is_appended_and_what_is_left_are_the_text_so_far() {
    let seeds = data::all();
    rounds(1000, |random| {
        let input = invent(random, &seeds);
        let mode = a_screen(random);
        let (mut sanitizer, mut out, mut taken) = (Sanitizer::new(mode), Vec::new(), 0);
        for piece in random.pieces(&input).into_iter().take(30) {
            sanitizer.push(piece, &mut out);
            taken += piece.len();
            let mut now = out.clone();
            sanitizer.clone().finish(&mut now);
            let expected = run(mode, [&input[..taken]]);
            assert!(now == expected, "{mode:?} after {taken} of {input:?} {}", sides(&now, &expected));
        }
    });
}

/// The line is longer than what is kept as bytes, and comes in one push with the carriage return.
#[test]
fn a_return_behind_a_very_long_line_is_carried_out() {
    for len in [4000, 4090, 4096, 4097, 6000] {
        let (most, rest) = ("x".repeat(len - 50), "x".repeat(50));
        let input = format!("{most}\x1b[1m{rest}\r\x1b[mreturned\n");
        let expected = format!("returned{}\n", "x".repeat(len - "returned".len()));
        let mode = Mode::Collapse { rows: 5, cols: 9000 };
        assert_eq!(run(mode, [input.as_bytes()]), expected.as_bytes(), "{len}");
        assert_eq!(run(mode, input.as_bytes().chunks(1)), expected.as_bytes(), "{len} byte by byte");
    }
}

/// Each of these sequences costs a terminal much more than the program that writes it.
#[test]
fn memory_is_bounded_for_hostile_input() {
    let floods: [&[u8]; 9] = [
        "\u{301}".as_bytes(),
        "a\u{301}\r".as_bytes(),
        b"\t",
        b"x",
        b"\x1b]0;",
        b"\x1b[;",
        b"\x1b[65535b",
        b"\x1b[999;999Hx",
        b"\x1b[?1049h\x1b7\x1b[2;4r\x1bM",
    ];
    for flood in floods {
        let mut sanitizer = Sanitizer::new(Mode::Collapse { rows: 24, cols: 80 });
        let mut out = Vec::new();
        let piece = flood.repeat(4096 / flood.len());
        for _ in 0..200 {
            out.clear();
            sanitizer.push(&piece, &mut out);
        }
        out.clear();
        sanitizer.finish(&mut out);
        assert!(out.len() <= 24 * (80 * 4 + 4096 + 1) + (16 << 10), "{flood:?}: {}", out.len());
    }
}

#[test]
fn plain_text_is_verbatim() {
    rounds(300, |random| {
        let mut text = String::new();
        for _ in 0..random.below(3000) {
            match random.below(12) {
                0 => text.push('\n'),
                1 => text.push('\t'),
                2 => text.push(['é', '日', '😀', '\u{301}', '─', 'ß', '\u{A0}'][random.below(7)]),
                _ => text.push(char::from(b' ' + u8::try_from(random.below(95)).unwrap())),
            }
        }
        let pieces = random.pieces(text.as_bytes());
        assert_eq!(run(Mode::Strip, pieces.iter().copied()), text.as_bytes());
        let mode = a_screen(random);
        assert_eq!(run(mode, pieces), text.as_bytes(), "{mode:?}");
    });
}

/// Lines that end in CR LF are taken many at a time, unless they come byte by byte.
#[test]
fn lines_with_returns_are_read_alike_however_many_come_at_once() {
    let line = |n: usize| match n % 97 {
        5 => format!("{}\r\n", "long ".repeat(1_000)),
        50 => "\x1b[3Aup\x1b[K\x1b[3B\r\n".to_owned(),
        80 => "50 %\r100 %\r\n\x1b[31mred\x1b[m\r\n".to_owned(),
        _ => format!("{}\r\n", "x".repeat(n * 37 % 131)),
    };
    let text = (0..1_000).map(line).collect::<String>().into_bytes();
    for (rows, cols) in [(48, 160), (3, 20)] {
        let read = |size: usize| run(Mode::Collapse { rows, cols }, text.chunks(size));
        let expected = read(1);
        for size in [64, 700, 4_096, 20_000, text.len()] {
            assert!(read(size) == expected, "{rows} rows, pieces of {size}");
        }
    }
}
