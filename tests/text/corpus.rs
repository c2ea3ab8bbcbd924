//! The corpus: each case has the expected text, whole and in pieces of any size.

use rexec_host::text::sanitize::{Mode, Sanitizer};

use crate::data::{self, CASES, Case, sides};

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

/// Compares a case as a whole and in pieces. Returns the number of comparisons.
fn check(case: &Case, mode: Mode, expected: &[u8]) -> usize {
    let whole = run(mode, [case.input.as_slice()]);
    assert!(whole == expected, "{} {mode:?}: {}", case.id, sides(&whole, expected));
    for size in PIECES {
        let split = run(mode, case.input.chunks(size));
        assert!(split == expected, "{} {mode:?} in pieces of {size}: {}", case.id, sides(&split, expected));
    }
    1 + PIECES.len()
}

#[test]
fn strip_has_the_expected_text() {
    let compared: usize = data::all().iter().map(|case| check(case, Mode::Strip, &case.strip)).sum();
    assert_eq!(compared, 7 * CASES);
}

#[test]
fn strip_does_not_show_where_the_input_was_cut_in_two() {
    let mut compared = 0;
    for case in data::all().iter().filter(|case| case.input.len() < 2000) {
        for at in 0..=case.input.len() {
            let (head, tail) = case.input.split_at(at);
            let cut = run(Mode::Strip, [head, tail]);
            assert!(cut == case.strip, "{} cut at {at}: {}", case.id, sides(&cut, &case.strip));
        }
        compared += 1;
    }
    assert_eq!(compared, 552);
}

#[test]
fn collapse_has_the_expected_text() {
    let compared: usize = data::all()
        .iter()
        .map(|case| check(case, Mode::Collapse { rows: case.rows, cols: case.cols }, &case.collapse))
        .sum();
    assert_eq!(compared, 7 * CASES);
}

#[test]
fn raw_changes_nothing() {
    for case in data::all() {
        assert_eq!(run(Mode::Raw, case.input.chunks(64)), case.input, "{}", case.id);
    }
}

/// Terminals disagree on how far REP may go. Here eight bytes never become more than one line.
#[test]
fn a_repeated_character_fills_a_line_at_most() {
    let text = run(Mode::Collapse { rows: 24, cols: 80 }, [b"ab\x1b[9999b!".as_slice()]);
    assert_eq!(text, [b"a".as_slice(), &[b'b'; 81], b"!"].concat());
}
