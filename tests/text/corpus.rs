//! Every case of the corpus gives its expected text, whole and in pieces of any size.

use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::data::{self, Case, sides};

const PIECES: [usize; 6] = [1, 2, 3, 7, 64, 4096];

pub(crate) fn run<'a>(mode: Mode, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sanitizer = Sanitizer::new(mode);
    for piece in pieces {
        sanitizer.push(piece, &mut out);
    }
    sanitizer.finish(&mut out);
    out
}

fn check(case: &Case, mode: Mode, expected: &[u8]) {
    let whole = run(mode, [case.input.as_slice()]);
    assert!(whole == expected, "{} {mode:?}: {}", case.id, sides(&whole, expected));
    for size in PIECES {
        let split = run(mode, case.input.chunks(size));
        assert!(split == expected, "{} {mode:?} in pieces of {size}: {}", case.id, sides(&split, expected));
    }
}

#[test]
fn strip_gives_the_expected_text() {
    for case in data::all() {
        check(&case, Mode::Strip, &case.strip);
    }
}

#[test]
fn strip_does_not_show_where_the_input_was_cut_in_two() {
    for case in data::all().iter().filter(|case| case.input.len() < 2000) {
        for at in 0..=case.input.len() {
            let (head, tail) = case.input.split_at(at);
            let cut = run(Mode::Strip, [head, tail]);
            assert!(cut == case.strip, "{} cut at {at}: {}", case.id, sides(&cut, &case.strip));
        }
    }
}

#[test]
fn collapse_gives_the_expected_text() {
    for case in data::all() {
        check(&case, Mode::Collapse { rows: case.rows, cols: case.cols }, &case.collapse);
    }
}

#[test]
fn raw_changes_nothing() {
    for case in data::all() {
        assert_eq!(run(Mode::Raw, case.input.chunks(64)), case.input, "{}", case.id);
    }
}

/// Terminals disagree on how far REP may go; here eight bytes never become more than another line.
#[test]
fn a_repeated_character_fills_a_line_at_most() {
    let given = run(Mode::Collapse { rows: 24, cols: 80 }, [b"ab\x1b[9999b!".as_slice()]);
    assert_eq!(given, [b"a".as_slice(), &[b'b'; 81], b"!"].concat());
}
