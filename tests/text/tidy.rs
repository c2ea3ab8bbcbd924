//! The filter for pipes: all bytes unchanged, but without escape sequences and earlier states of rewritten lines.

use std::time::{Duration, Instant};

use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::corpus::run;
use crate::data::{self, sides};
use crate::dice::rounds;
use crate::properties::invent;

const STILL: Duration = Duration::from_millis(250);

fn tidy(input: &[u8]) -> Vec<u8> {
    run(Mode::Tidy, [input])
}

/// Streams and their text.
const CASES: &[(&str, &str)] = &[
    // Unchanged.
    ("plain\n", "plain\n"),
    ("no end", "no end"),
    ("", ""),
    ("dos\r\nlines\r\n", "dos\r\nlines\r\n"),
    ("a\tb\x0bc\x0cd\x07e\x7f \n", "a\tb\x0bc\x0cd\x07e\x7f \n"),
    ("trailing  \n\n\n", "trailing  \n\n\n"),
    ("C1 \u{9b}31m and \u{85}\n", "C1 \u{9b}31m and \u{85}\n"),
    ("日本 é \u{200b}\u{202e}\u{feff}\n", "日本 é \u{200b}\u{202e}\u{feff}\n"),
    // Escape sequences.
    ("\x1b[31mred\x1b[0m\n", "red\n"),
    ("\x1b[31mred\x1b[0m\x07\x0c  \r\n", "red\x07\x0c  \r\n"),
    ("\x1b]0;title\x07text\n", "text\n"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
    ("\x1bPq#0;2;0\x1b\\after\n", "after\n"),
    ("\x1b(B\x1b=\x1b>\x1b7a\n", "a\n"),
    ("\x1b[?25l\x1b[?2004hshown\x1b[?25h\n", "shown\n"),
    ("tail\x1b[K\n\x1b[K\n", "tail\n\n"),
    ("\x1b[H\x1b[2J\x1b[3Jafter clear\nnext\r\n", "after clear\nnext\r\n"),
    ("cut off\x1b[3", "cut off"),
    ("cut off\x1b]0;title", "cut off"),
    ("a\x1b[12\n34mb\n", "a\nb\n"),
    ("stray \x1b]0;x\nnext\n", "stray \nnext\n"),
    // Lines that are rewritten.
    ("10%\r20%\r100%\n", "100%\n"),
    ("10%\r20%\r100%\r\n", "100%\r\n"),
    ("10%\r20%", "20%"),
    ("10%\r", "10%"),
    ("10%\r\r\n", "10%\r\n"),
    ("10%\r\x1b[0m\r\nnext\n", "10%\r\nnext\n"),
    ("longer\rab\n", "abnger\n"),
    ("longer\r\x1b[Kab\n", "ab\n"),
    ("gone\r\x1b[K\nnext\n", "\nnext\n"),
    ("gone\r\x1b[2K", ""),
    ("gone\r    \rnew\n", "new\n"),
    ("N\x08NA\x08AM\x08M\n", "NAM\n"),
    ("_\x08u\n", "u\n"),
    ("abc\x08\x08X\n", "aXc\n"),
    ("日本\r語\n", "語本\n"),
    ("a\x1b[3Gc\x1b[2Gb\n", "abc\n"),
    ("abcdef\x1b[4D\x1b[1PX\n", "abXef\n"),
    ("one\n10%\r20%\ntwo\n", "one\n20%\ntwo\n"),
    ("one\r\n10%\r20%\r\ntwo\r\n", "one\r\n20%\r\ntwo\r\n"),
    ("col\tumn\rC\n", "Col\tumn\n"),
    // The cursor moves upwards: the first states were appended before.
    ("a 1\nb 1\n\x1b[2Aa 2\nb 2\n\x1b[2Aa 3\nb 3\n", "a 1\nb 1\na 2\nb 2\na 3\nb 3\n"),
];

#[test]
fn streams_become_plain_text() {
    for (input, expected) in CASES {
        assert_eq!(String::from_utf8(tidy(input.as_bytes())).unwrap(), *expected, "{input:?}");
    }
}

/// A stream is binary from its first NUL or invalid byte on.
#[test]
fn binary_data_passes_unchanged() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x1b[31m";
    let gzip = b"\x1f\x8b\x08\0\0\x1b[0m\r\x08x";
    let elf = b"\x7fELF\x02\x01\x01\0\0\x1b[m";
    let utf16 = b"a\0b\0\r\0\n\0\x1b\0";
    for input in [&png[..], gzip, elf, utf16, b"text\r\nab\rcd\0\x1b[m\r1\r2\n", b"half \xc3", b"\xe2\x1b[m\x98"] {
        assert_eq!(tidy(input), input, "{}", input.escape_ascii());
    }
    assert_eq!(tidy(b"\x1b[1mtext\x1b[0m\n\xff\x1b[31m"), b"text\n\xff\x1b[31m");
    assert_eq!(tidy(b"1%\r2%\nab\x08\xff"), b"2%\nab\x08\xff", "the open line is not lost");
    assert_eq!(tidy(b"\x1b]0;ti\0tle\x07"), b"\0tle\x07");
    assert_eq!(tidy(b"x\x1b[3\xfe1m"), b"x\xfe1m");
}

#[test]
fn the_cut_never_shows() {
    let mut inputs: Vec<Vec<u8>> = CASES.iter().map(|(input, _)| input.as_bytes().to_vec()).collect();
    inputs.extend(data::all().into_iter().filter(|case| case.input.len() < 700).map(|case| case.input));
    inputs.push(b"ab\rc\xe6\x97\xa5\x08\xe6\x97\x1b[1mz\0\r".to_vec());
    let mut compared = 0;
    for input in inputs {
        let whole = tidy(&input);
        compared += 1;
        for at in 0..=input.len() {
            let (head, tail) = input.split_at(at);
            let cut = run(Mode::Tidy, [head, tail]);
            assert!(cut == whole, "{} cut at {at}: {}", input.escape_ascii(), sides(&cut, &whole));
        }
        let bytes = run(Mode::Tidy, input.chunks(1));
        assert!(bytes == whole, "{} in single bytes: {}", input.escape_ascii(), sides(&bytes, &whole));
    }
    assert_eq!(compared, CASES.len() + 537 + 1);
}

#[test]
fn mutated_streams_may_be_cut_anywhere_and_long_ones_too() {
    let seeds = data::all();
    rounds(1500, |random| {
        let mut input = Vec::new();
        for _ in 0..1 + random.below(4) {
            match random.below(6) {
                0 => input.extend(vec![b'x'; [4000, 4096, 5000, 66_000][random.below(4)]]),
                1 => input.extend_from_slice([b"\r".as_slice(), b"\x08", b"\r\n", b"\n"][random.below(4)]),
                _ => {
                    let text = invent(random, &seeds);
                    let text = String::from_utf8_lossy(&text).replace('\0', "");
                    input.extend_from_slice(text.as_bytes());
                }
            }
        }
        let whole = tidy(&input);
        let cut = run(Mode::Tidy, random.pieces(&input));
        assert!(cut == whole, "{}", sides(&cut, &whole));
    });
}

#[test]
fn text_without_escapes_and_bare_returns_is_identical() {
    let seeds = data::all();
    rounds(1500, |random| {
        let text = String::from_utf8_lossy(&invent(random, &seeds)).replace(['\x1b', '\x08', '\r'], "");
        let text = if random.below(2) == 0 { text } else { text.replace('\n', "\r\n") };
        let input = text.as_bytes();
        let given = run(Mode::Tidy, random.pieces(input));
        assert!(given == input, "{}", sides(&given, input));
    });
}

/// A recording that never moves upwards has the same text as on a terminal without a right edge.
#[test]
fn recordings_end_as_on_a_wide_terminal() {
    let mut compared = 0;
    for case in data::load("captures") {
        let moves_up = case.input.split(|&byte| byte == 0x1b).skip(1).any(|part| {
            let last = part.iter().skip(1).find(|byte| (0x40..=0x7e).contains(*byte));
            part.first() != Some(&b'[') || !matches!(last, Some(b'm' | b'K' | b'G' | b'C' | b'D' | b'P'))
        });
        let Ok(text) = std::str::from_utf8(&case.input) else { continue };
        if moves_up || text.contains(['\0', '\x0c', '\x07', '\x0e', '\x0f']) {
            continue;
        }
        let wide = run(Mode::Collapse { rows: 48, cols: 4096 }, [case.input.as_slice()]);
        let given = tidy(&case.input);
        let given = String::from_utf8(given).unwrap().replace("\r\n", "\n");
        assert!(given.as_bytes() == wide, "{}: {}", case.id, sides(given.as_bytes(), &wide));
        compared += 1;
    }
    assert_eq!(compared, 22);
}

#[test]
fn a_line_that_never_ends_passes_as_it_comes() {
    let (mut tidy, mut out) = (Sanitizer::settling(Mode::Tidy, STILL), Vec::new());
    for _ in 0..1000 {
        tidy.push(&[b'x'; 10_000], &mut out);
    }
    assert_eq!(out.len(), 10_000_000);
    tidy.finish(&mut out);
    assert_eq!(out.len(), 10_000_000);
    // A line that is rewritten without end is neither appended nor kept.
    for _ in 0..100_000 {
        tidy.push("\rstate of a bar that never ends █\x1b[K".as_bytes(), &mut out);
    }
    assert_eq!(out.len(), 10_000_000);
}

fn wait(tidy: &mut Sanitizer, now: &mut Instant, ms: u64) -> String {
    let (end, mut out) = (*now + Duration::from_millis(ms), Vec::new());
    let mut wakes = 0;
    while let Some(deadline) = tidy.deadline().filter(|&deadline| deadline <= end) {
        *now = deadline.max(*now);
        tidy.tick(*now, &mut out);
        wakes += 1;
        assert!(wakes < 20, "the deadline does not move on");
    }
    *now = end;
    String::from_utf8(out).unwrap()
}

#[test]
fn open_lines_are_appended_when_they_have_settled() {
    let (mut tidy, mut now) = (Sanitizer::settling(Mode::Tidy, STILL), Instant::now());
    let push = |tidy: &mut Sanitizer, text: &str, now: Instant| {
        let mut out = Vec::new();
        tidy.push_at(text.as_bytes(), now, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(push(&mut tidy, "log\r\nname? ", now), "log\r\n");
    assert_eq!(wait(&mut tidy, &mut now, 249), "");
    assert_eq!(wait(&mut tidy, &mut now, 1), "name? ");
    assert_eq!(push(&mut tidy, "Bob\n10%", now), "Bob\n");
    assert_eq!(wait(&mut tidy, &mut now, 250), "10%");
    assert_eq!(push(&mut tidy, "\r20%", now), "");
    assert_eq!(wait(&mut tidy, &mut now, 1999), "", "the words are those that the reader has");
    assert_eq!(wait(&mut tidy, &mut now, 1), "\n20%");
    assert_eq!(push(&mut tidy, "\r30%", now), "");
    assert_eq!(wait(&mut tidy, &mut now, 1999), "");
    assert_eq!(push(&mut tidy, "\r\x1b[K", now), "");
    assert_eq!(push(&mut tidy, "done\n", now), "\ndone\n");
    assert_eq!(push(&mut tidy, "Building 1/2\r", now), "");
    assert_eq!(wait(&mut tidy, &mut now, 1999), "", "the cursor is at its start");
    assert_eq!(push(&mut tidy, "\x1b[KCompiling x\n", now), "Compiling x\n");
    assert_eq!(tidy.deadline(), None);
}

/// Pushes each text at its millisecond; returns what the reader had at which one.
fn told(mode: Mode, texts: &[(u64, &str)], until: u64) -> Vec<(u64, String)> {
    let mut filter = Sanitizer::settling(mode, STILL);
    let start = Instant::now();
    let mut told = Vec::new();
    for at in 0..=until {
        let (now, mut out) = (start + Duration::from_millis(at), Vec::new());
        texts.iter().filter(|text| text.0 == at).for_each(|text| filter.push_at(text.1.as_bytes(), now, &mut out));
        if filter.deadline().is_some_and(|due| due <= now) {
            filter.tick(now, &mut out);
        }
        if !out.is_empty() {
            told.push((at, String::from_utf8(out).unwrap()));
        }
    }
    told
}

#[test]
fn what_an_open_line_holds_leaves_in_a_bounded_time() {
    for mode in [Mode::Tidy, Mode::Collapse { rows: 48, cols: 160 }] {
        let told = |texts: &[(u64, &str)], until| told(mode, texts, until);
        let expected = [(500, "Go on? ".to_owned())];
        assert_eq!(told(&[(0, "\r1%\r2%\rGo on? ")], 5000), expected, "a prompt behind a rewritten line");
        let dots: Vec<_> = (0..20).map(|n| (n * 100, ".")).collect();
        let given = told(&dots, 3000);
        assert_eq!(given[0], (250, "...".to_owned()), "a line that grows");
        assert!(given.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 350), "{given:?}");
        assert_eq!(given.iter().map(|(_, text)| text.len()).sum::<usize>(), 20);
        let states: Vec<_> = (0..100).map(|n| format!("\r\x1b[K{n} at it")).collect();
        let frames: Vec<_> = (0..).step_by(50).zip(states.iter().map(String::as_str)).collect();
        let given = told(&frames, 4999);
        assert_eq!(given.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2000, 4000], "a bar that never rests");
        assert_eq!(told(&[(0, "1%\r"), (100, "2%\r")], 9000), [(2000, "2%".to_owned())], "parked");
        let asked = [(0, "50%"), (400, "\r60%"), (900, "\rSure? ")];
        let expected = [(250, "50%".to_owned()), (1400, "\nSure? ".to_owned())];
        assert_eq!(told(&asked, 5000), expected, "a prompt behind a slow bar");
        let answered = [(0, "\r50%\rSure? "), (900, "yes\n")];
        assert_eq!(told(&answered, 5000), [(500, "Sure? ".to_owned()), (900, "yes\n".to_owned())]);
        let erased = [(0, "10%"), (400, "\r\x1b[K\n")];
        assert_eq!(told(&erased, 5000), [(250, "10%".to_owned()), (400, "\n".to_owned())]);
        let ended = [(0, "\r50%\rSure? "), (900, "\n")];
        assert_eq!(told(&ended, 5000), [(500, "Sure? ".to_owned()), (900, "\n".to_owned())]);
    }
}

#[test]
fn half_a_character_is_held_like_text() {
    let mut tidy = Sanitizer::settling(Mode::Tidy, STILL);
    let now = Instant::now();
    let mut out = Vec::new();
    tidy.push_at(b"Passe-caf\xe9", now, &mut out);
    assert_eq!((tidy.deadline(), out.len()), (Some(now + STILL), 0));
    tidy.tick(now + STILL, &mut out);
    assert_eq!((tidy.deadline(), out.as_slice()), (None, &b"Passe-caf\xe9"[..]));
    tidy.push_at(b"\x1b[m: ", now + 2 * STILL, &mut out);
    assert_eq!(out, b"Passe-caf\xe9\x1b[m: ", "it is no text");
}

/// Texts whose lines end in CR alone, and what of them a reader gets.
const RETURN_ENDED: &[(&str, &str)] = &[
    ("a\rb\rc\r", "a\rb\rc\r"),
    ("a\rb\rc", "a\rb\rc"),
    ("\x1b[1mname\x1b[0m,age\rann,31\rbob,44\r", "name,age\rann,31\rbob,44\r"),
    ("1\r2\r3\r", "1\r2\r3\r"),
    ("one\r\rtwo\r", "one\r\rtwo\r"),
    // Rewritten lines.
    ("\ra\rb\rc\r", "c"),
    ("a\r", "a"),
    ("working\rdone   ", "done   "),
    ("head\na\rb\rc\r", "head\nc"),
    ("a\rb\rc\n", "c\n"),
    ("load 1%\rload 2%\r", "load 2%"),
    ("[=> ]\r[==>]\r", "[==>]"),
    ("working\r       \r", ""),
    ("a\rb\x08c\rde\r", "de"),
];

#[test]
fn lines_that_end_in_a_return_alone_are_kept() {
    for (input, expected) in RETURN_ENDED {
        assert_eq!(String::from_utf8(tidy(input.as_bytes())).unwrap(), *expected, "{input:?}");
        let bytes = run(Mode::Tidy, input.as_bytes().chunks(1));
        assert_eq!(String::from_utf8(bytes).unwrap(), *expected, "{input:?} in single bytes");
    }
    let text: String = (0..20_000).map(|n| format!("{} of the lines\r", ["this", "that", "one"][n % 3])).collect();
    assert!(tidy(text.as_bytes()) == text.as_bytes(), "more than is held");
    assert!(run(Mode::Tidy, text.as_bytes().chunks(999)) == text.as_bytes());
    assert_eq!(tidy((text.clone() + "end\n1%\r2%\n").as_bytes()), (text.clone() + "end\n2%\n").as_bytes());
    let given = told(Mode::Tidy, &[(0, "a\rb\r"), (3000, "c\rd"), (3100, "\r\ne\rf\n")], 4000);
    let expected = [(2000, "a\rb\r"), (3000, "c\rd"), (3100, "\r\nf\n")];
    assert_eq!(given, expected.map(|(at, text)| (at, text.to_owned())));
}

#[test]
fn slow_bars_are_one_line_in_two_seconds_at_most() {
    for period in [2000, 1000, 500, 250, 100] {
        for (before, after) in [("\r", ""), ("", "\r"), ("\r\x1b[K", ""), ("\x1b[2K\x1b[1G", "")] {
            let (mut tidy, mut now, mut text) = (Sanitizer::settling(Mode::Tidy, STILL), Instant::now(), String::new());
            for n in 0..60 {
                let mut out = Vec::new();
                tidy.push_at(format!("{before}state {n}{after}").as_bytes(), now, &mut out);
                text += std::str::from_utf8(&out).unwrap();
                text += &wait(&mut tidy, &mut now, period);
            }
            let mut out = Vec::new();
            tidy.finish(&mut out);
            text += std::str::from_utf8(&out).unwrap();
            let most = usize::try_from(60 * period / 2000).unwrap() + 2;
            assert!(
                text.lines().count() <= most && text.ends_with("state 59"),
                "{period} {before:?} {after:?}: {text}"
            );
        }
    }
}

#[test]
fn the_open_line_is_released_before_another_stream() {
    let mut tidy = Sanitizer::settling(Mode::Tidy, STILL);
    let now = Instant::now();
    let mut out = Vec::new();
    tidy.push_at(b"one\n50%", now, &mut out);
    tidy.release(&mut out);
    assert_eq!(out, b"one\n50%");
    tidy.release(&mut out);
    tidy.push_at(b" and on\n", now, &mut out);
    assert_eq!(out, b"one\n50% and on\n");
}

#[test]
fn rows_of_a_terminal_are_released_before_another_stream() {
    let mode = Mode::Collapse { rows: 48, cols: 160 };
    let mut filter = Sanitizer::settling(mode, STILL);
    let now = Instant::now();
    let mut out = Vec::new();
    filter.push_at(b"one\nWorking... ", now, &mut out);
    filter.release(&mut out);
    assert_eq!(out, b"one\nWorking... ");
    filter.release(&mut out);
    filter.push_at(b"done\n\x1b[2A\x1b[Kuno\n", now, &mut out);
    filter.release(&mut out);
    assert_eq!(out, b"one\nWorking... done\nuno\n");
}
