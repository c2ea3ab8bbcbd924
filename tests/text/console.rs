//! The console's filters: whatever a program writes, the safe one passes only allowed bytes, and the end of a block
//! restores the terminal.

mod narrow;

use rexec_host::text::banner::Banner;
use rexec_host::text::hidden::{is_bar, is_hidden};
use rexec_host::text::safe::raw::RawFilter;
use rexec_host::text::safe::{BLOCK_RESET, SafeFilter};

use crate::data::{self, sides};
use crate::dice::rounds;
use crate::properties::invent;

fn filter<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut safe = SafeFilter::new();
    for piece in pieces {
        safe.push(piece, &mut out);
    }
    safe.end_block(&mut out);
    out
}

/// The bytes before the reset, and those that move the cursor to a fresh line after it; with `^` for ESC.
fn parts(out: &[u8]) -> (String, String) {
    let at = out.windows(BLOCK_RESET.len()).rposition(|part| part == BLOCK_RESET).expect("a reset ends the block");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8").replace('\x1b', "^");
    let end = out[at + BLOCK_RESET.len()..].strip_suffix(b"\x1b[J").expect("nothing is left below");
    (text(&out[..at]), text(end))
}

fn shown(input: &[u8]) -> String {
    parts(&filter([input])).0
}

fn end_of(input: &[u8]) -> String {
    parts(&filter([input])).1
}

/// Checks the allow list independently of the filter, and that the cursor's row stays within the block.
fn assert_allowed(out: &[u8], input: &[u8]) {
    let text = std::str::from_utf8(out).expect("UTF-8");
    let (body, end) = text.rsplit_once(std::str::from_utf8(BLOCK_RESET).unwrap()).expect("a reset ends the block");
    let (mut row, mut last_row) = (0u32, 0u32);
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => {
                row += 1;
                last_row = last_row.max(row);
            }
            '\t' | '\r' | '\x08' => {}
            '\x1b' => {
                let sequence = rest.strip_prefix('[').unwrap_or_else(|| panic!("not CSI, from {input:?}"));
                let len = sequence.find(|c: char| ('\x40'..='\x7e').contains(&c)).expect("a final byte");
                let (params, last) = (&sequence[..len], sequence.as_bytes()[len]);
                assert!(is_allowed(params, last), "CSI {params} {}, from {input:?}", last as char);
                let count = || params.parse::<u32>().unwrap();
                match last {
                    b'A' => row = row.checked_sub(count()).unwrap_or_else(|| panic!("above the block, from {input:?}")),
                    b'B' => row += count(),
                    _ => {}
                }
                assert!(row <= last_row, "below the block, from {input:?}");
                rest = &sequence[len + 1..];
            }
            c => assert!(!c.is_control() && !is_hidden(c) && !is_bar(c), "{c:?}, from {input:?}"),
        }
    }
    let end = end.strip_suffix("\x1b[J").expect("nothing is left below");
    let end = match end.strip_prefix("\x1b[") {
        Some(moved) => moved.split_once('B').expect("a move down").1,
        None => end,
    };
    assert!(end.is_empty() || end == "\r\n", "{end:?}, from {input:?}");
}

fn is_allowed(params: &str, last: u8) -> bool {
    let digits = |text: &str| !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    match last {
        b'm' => params.len() <= 64 && params.bytes().all(|b| matches!(b, b'0'..=b'9' | b';' | b':')),
        b'K' => matches!(params, "0" | "1" | "2"),
        b'J' => params == "0",
        b'A' | b'B' | b'C' | b'D' | b'G' => digits(params),
        b'h' | b'l' => matches!(params, "?7" | "?25"),
        _ => false,
    }
}

/// Every shape of control and escape sequence, in a text.
fn hostile() -> Vec<Vec<u8>> {
    let mut cases = Vec::new();
    let mut add = |sequence: &[u8]| cases.push([b"one\n\xe6\x97\xa5", sequence, b"two\n"].concat());
    for byte in 0..=255u8 {
        add(&[byte]);
        add(&[0x1b, byte]);
        add(&[0xC2, byte]);
    }
    for last in 0x40..=0x7Eu8 {
        for body in [
            "", "0", "1", "5", "99999", "?1", "?25", "?7", "?1049", "?7;1000", ">0", "<1", "=1", "1;1", "1:2", "!",
            "$", " ", "\"", "?1$", "8", "5;8",
        ] {
            add(&[b"\x1b[", body.as_bytes(), &[last]].concat());
            if body.len() < 2 {
                add(&[b"\xC2\x9b", body.as_bytes(), &[last]].concat());
                add(&[b"\x9b", body.as_bytes(), &[last]].concat());
            }
        }
    }
    for intermediate in 0x20..=0x2Fu8 {
        for last in (0x30..=0x7Eu8).step_by(3) {
            add(&[0x1b, intermediate, last]);
        }
    }
    for start in ["\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\u{9d}", "\u{90}", "\u{9f}"] {
        for body in [
            "0;title",
            "52;c;!",
            "52;c;QUJD",
            "8;;http://x",
            "$qm",
            "+q544e",
            "777;notify;a;b",
            "Ga=T;AAAA",
            "4;1;?",
            "133;A",
            "tmux;\x1b\x1b[c",
            "9;\u{202e}",
        ] {
            for end in ["\x07", "\x1b\\", "\u{9c}", "\x18", "\x1a", "", "\n", "\x1b[5n"] {
                add(format!("{start}{body}{end}").as_bytes());
            }
        }
    }
    cases
}

#[test]
fn hostile_sequences_leave_only_allowed_bytes_however_they_are_split() {
    let cases = hostile();
    assert_eq!(cases.len(), 4_488);
    for input in &cases {
        let whole = filter([input.as_slice()]);
        assert_allowed(&whole, input);
        for at in 1..input.len() {
            let (head, tail) = input.split_at(at);
            assert!(filter([head, tail]) == whole, "cut at {at}: {input:?}");
        }
        assert!(filter(input.chunks(1)) == whole, "byte by byte: {input:?}");
    }
}

#[test]
fn captures_and_mutations_leave_only_allowed_bytes() {
    let seeds = data::all();
    assert_eq!(seeds.len(), data::CASES);
    for case in &seeds {
        assert_allowed(&filter([case.input.as_slice()]), &case.input);
    }
    rounds(2000, |random| {
        let input = invent(random, &seeds);
        let whole = filter([input.as_slice()]);
        assert_allowed(&whole, &input);
        let split = filter(random.pieces(&input));
        assert!(split == whole, "{input:?}: {}", sides(&split, &whole));
    });
}

#[test]
fn the_allow_list_by_example() {
    for (input, expected) in [
        ("plain\ttext\r\n", "plain\ttext\r\n"),
        ("a\x07\0\x05\x0e\x0f\x7fb", "ab"),
        ("a\x0bb\x0cc", "a\nb\nc"),
        ("\x1b[1;31mred\x1b[m", "^[1;31mred^[m"),
        ("\x1b[8mhidden\x1b[5mblink", "hiddenblink"),
        ("10%\r20%\x1b[K", "10%\r20%^[0K"),
        ("x\x1b[3D\x1b[4C\x1b[9G", "x^[3D^[4C^[9G"),
        ("\x1b[5Aup", "up"),
        ("1\n2\n3\x1b[9A\x1b[9Bend", "1\n2\n3^[2A^[2Bend"),
        ("1\n2\x1b[F\x1b[E", "1\n2^[1A\r^[1B\r"),
        ("1\n2\x1b[A\x1b[J", "1\n2^[1A^[0J"),
        ("1\n2\x1b[J", "1\n2^[0K"),
        ("1\n2\x1b[1J\x1b[2J\x1b[3J", "1\n2"),
        ("\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?25;1049h", "^[?25l^[?7l^[?25h"),
        ("\x1b[c\x1b[6n\x1b[18t\x1b[>q\x1b[?1$p\x1bZ", ""),
        ("\x1b]0;title\x07\x1b]52;c;QUJD\x1b\\\x1bPq#0\x1b\\text", "text"),
        ("\x1b]0;unterminated\nnext", "\nnext"),
        ("a\u{202e}b\u{2066}c\u{2069}", "a⟨202E⟩b⟨2066⟩c⟨2069⟩"),
        ("a\u{9b}31mb", "a31mb"),
    ] {
        assert_eq!(shown(input.as_bytes()), expected, "{input:?}");
    }
    assert_eq!(shown(b"\xff\x9b2J\xe2\x98"), "\u{fffd}\u{fffd}2J\u{fffd}");
}

#[test]
fn the_alternate_screen_is_counted_and_not_shown() {
    for (input, expected, hidden) in [
        ("before\n\x1b[?1049h\x1b[Hmenu\r\n\x1b[3Gx\x08\x1b[K\x1b[?1049lafter", "before\nafter", 6),
        ("\x1b[?47hmenu\x1bcafter", "after", 4),
        ("\x1b[?1;1047;25hmenu\x1b[?1047l", "^[?25h", 4),
        ("\x1b[?1049h\x1b[1mmenu\x1b[m\x1b[?7l", "^[1m^[m^[?7l", 4),
    ] {
        assert_eq!(shown(input.as_bytes()), expected, "{input:?}");
        let mut safe = SafeFilter::new();
        safe.push(input.as_bytes(), &mut Vec::new());
        assert_eq!((safe.take_hidden_bytes(), safe.take_hidden_bytes()), (hidden, 0), "{input:?}");
    }
    // The program stays on its screen while the console shows other commands.
    let (mut safe, mut out) = (SafeFilter::new(), Vec::new());
    safe.push(b"\x1b[?1049hone", &mut out);
    safe.end_block(&mut out);
    safe.push(b"two\x1b[?1049lthree", &mut out);
    assert!(out.ends_with(b"\x1b[?7h\x1b[Jthree"), "{}", out.escape_ascii());
}

#[test]
fn a_block_ends_on_a_fresh_line() {
    for (input, expected) in [
        ("", ""),
        ("line\n", ""),
        ("line", "\r\n"),
        ("100%\r", "\r\n"),
        ("100%\r\x1b[K", ""),
        ("gone\x1b[2K\r", ""),
        ("1\n2\n3\n\x1b[2A", "^[2B\r\n"),
        ("1\n2\n\x1b[2A\x1b[J", ""),
        ("\x1b]0;still open", ""),
    ] {
        assert_eq!(end_of(input.as_bytes()), expected, "{input:?}");
    }
}

#[test]
fn the_next_block_is_visible_after_anything_unfinished() {
    for open in
        [b"\x1b]0;t".as_slice(), b"\x1bPq", b"\x1b[3", b"\x1b", b"\x1b_G", b"\x1b^x", b"\x1bXx", b"\xf0\x9f", b"\x1b("]
    {
        let mut safe = SafeFilter::new();
        let mut out = Vec::new();
        safe.push(open, &mut out);
        assert!(!safe.at_line_start(), "{open:?}");
        safe.end_block(&mut out);
        assert!(safe.at_line_start());
        out.clear();
        safe.push(b"next\n", &mut out);
        assert_eq!(out, b"next\n", "after {open:?}");
    }
}

#[test]
fn raw_passes_all_and_a_header_is_one_clean_line() {
    let seeds = data::all();
    rounds(1000, |random| {
        let input = invent(random, &seeds);
        let mut raw = RawFilter::new();
        let mut out = Vec::new();
        for piece in random.pieces(&input) {
            raw.push(piece, &mut out);
        }
        assert!(out.ends_with(&input) && (input.is_empty() || out.starts_with(b"\x1b[22;0t")));
        let text = String::from_utf8_lossy(&input);
        let banner = Banner { time: &text, seq: 1, whoami: &text, dir: &text, command: &text, is_unwrapped: false };
        let header = banner.line(400);
        assert!(!header.chars().any(|c| c.is_control() || is_hidden(c) || is_bar(c)), "{header:?}");
        assert!(header.len() < 20_000, "{}", header.len());
    });
}

/// Characters like the host's bar, however a program gets to the start of a row.
#[test]
fn nothing_like_the_host_s_bar_begins_a_row() {
    let full = "x".repeat(80);
    for before in ["", "\u{301}", "\u{fe0f}", "x\x08", "\x1b[5C\x1b[9D", &full, "日\r", "x\x1b[7m\x1b[1G", "x\x1b[2K\r"]
    {
        for bar in ["▋", "▐", "\u{1fb89}"] {
            let mut out = Vec::new();
            let mut safe = SafeFilter::new();
            safe.resize(80);
            safe.push(format!("{before}{bar}[2026").as_bytes(), &mut out);
            let out = String::from_utf8(out).unwrap();
            assert!(out.ends_with("⟩[2026"), "{before:?} {out:?}");
        }
    }
    // Elsewhere in a row nobody takes them for the host's bar.
    assert_eq!(shown("\r 50%|██▋  | 1/2\x1b[m▋".as_bytes()), "\r 50%|██▋  | 1/2^[m▋");
}
