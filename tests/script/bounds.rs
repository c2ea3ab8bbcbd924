//! Whatever the text is: no panic, linear time, bounded memory. Time is counted in steps, not by a clock.

use rexec_host::limits;
use rexec_host::script::{self, SudoAsks};

use crate::against_bash::changed;
use crate::dice;
use crate::shown::{EVERYDAY, LANGUAGE, texts};

/// Looks at a byte that are allowed on average: a few for the keywords and operators that it may begin, and once more for
/// each level of arithmetic around it.
const STEPS_PER_BYTE: u64 = 60;

/// Reads a text in both ways; the answer is how many steps it took, and how many leaves there are.
fn read(text: &[u8]) -> (u64, usize) {
    let read = script::leaves(text, &|_| Some(b"a value".to_vec()));
    let _ = script::feeding(text, SudoAsks::Never).fed();
    assert!(read.leaves.len() <= limits::SCRIPT_LEAVES_MAX);
    let text_bytes = |leaf: &script::Leaf| {
        let arguments = leaf.arguments.iter().chain(leaf.redirects.iter().map(|redirect| &redirect.target));
        arguments.map(|argument| argument.shown().len()).sum::<usize>()
    };
    let bytes: usize = read.leaves.iter().map(text_bytes).sum();
    assert!(bytes <= limits::SCRIPT_WEIGHT_MAX + text.len(), "{bytes} bytes of words");
    (read.steps, read.leaves.len())
}

/// Pieces that open something, over and over.
const REPEATED: [&str; 66] = [
    "[",
    "[[ ",
    "${",
    "${x:-",
    "$((",
    "$(",
    "`",
    "((",
    "( ",
    "{ ",
    "\"$(",
    "<<a ",
    "cat <<a\n",
    "cat <<a <<b\n",
    "a ",
    "a;",
    "a|",
    "a\n",
    "'",
    "\"",
    "\\\n",
    "<(",
    "$[",
    "a[",
    "x=(",
    "case x in ",
    "if ",
    "for x in a; do ",
    "! ",
    "time ",
    "f() ",
    "coproc ",
    "coproc x ",
    "function f ",
    "a=1;",
    "eval eval ",
    "a=$a$a;",
    "if a; then x=1; fi;",
    "$'\\x",
    "((a);(b));",
    "$((a);",
    "$(($((",
    "a[$(",
    "{a,b}",
    "@(",
    "alias a=b\n",
    "~",
    "\\\\`",
    "bash -c 'bash -c ",
    "\"`",
    "x+=y;",
    "(x=1;",
    "sudo ",
    "env a=b ",
    "find -exec find ",
    "set -- $@ $@;",
    "eval \"$@ $@\";",
    "xargs xargs ",
    "2>",
    "{a}>",
    "[[ ( ",
    "f() { x=1; };",
    "trap 'trap ",
    "while a; do ",
    "a=\"$a b\"; $a;",
    "git -c alias.a=!git ",
];

#[test]
fn a_long_text_of_anything_takes_linear_time() {
    for piece in REPEATED {
        let text = piece.repeat((1 << 18) / piece.len());
        let (steps, _) = read(text.as_bytes());
        let most = STEPS_PER_BYTE * u64::try_from(text.len()).expect("a length");
        assert!(steps <= most, "{piece:?}: {steps} steps for {} bytes", text.len());
    }
}

/// Twice the text takes twice the steps.
#[test]
fn steps_grow_with_the_text_and_no_faster() {
    for piece in REPEATED {
        let steps = [500, 1_000, 2_000].map(|count| read(piece.repeat(count).as_bytes()).0);
        assert!(steps[2] <= steps[1] * 5 / 2 + 1_000, "{piece:?}: {steps:?}");
    }
}

#[test]
fn pairs_of_pieces_take_linear_time() {
    dice::rounds(120, |dice| {
        let pieces: String = (0..1 + dice.below(4)).map(|_| REPEATED[dice.below(REPEATED.len())]).collect();
        let text = pieces.repeat(20_000 / pieces.len());
        let (steps, _) = read(text.as_bytes());
        assert!(steps <= STEPS_PER_BYTE * 20_000, "{pieces:?}: {steps} steps");
    });
}

#[test]
fn random_bytes_are_read() {
    let letters = b"()[]{}<>|&;$`'\"\\ \n\t#!=*?~ab12-+.,:/@%^";
    let mut count = 0_u64;
    dice::rounds(60_000, |dice| {
        let length = dice.below(80);
        let text: Vec<u8> = match dice.below(3) {
            0 => dice.bytes(length, 0, 255),
            _ => (0..length).map(|_| letters[dice.below(letters.len())]).collect(),
        };
        count += read(&text).0;
    });
    assert!(count > 100_000, "something was read: {count}");
}

#[test]
fn changed_texts_are_read() {
    let originals: Vec<String> = [EVERYDAY, LANGUAGE].iter().flat_map(|file| texts(file)).collect();
    dice::rounds(40_000, |dice| {
        let text = changed(&originals, dice);
        let (steps, _) = read(text.as_bytes());
        let most = STEPS_PER_BYTE * u64::try_from(text.len()).expect("a length") + 10_000;
        assert!(steps <= most, "{text}: {steps} steps");
    });
}

/// An early end of the text is never worse than the whole.
#[test]
fn every_beginning_of_a_text_is_read() {
    for text in texts(LANGUAGE) {
        for end in 0..=text.len() {
            read(&text.as_bytes()[..end]);
        }
    }
}
