//! The black-box tests start programs with an environment of their own.

use crate::source::sources;

/// Those that start a copy of the test binary, or a program for it, which has the tests' own environment.
const COPIES: [&str; 5] =
    ["support/programs.rs", "support/own_process.rs", "support/warden.rs", "journal/repairs.rs", "sandbox.rs"];

#[test]
fn programs_have_nothing_of_the_tests_environment() {
    let sources = sources("tests/black_box");
    let starts = |what: &str| {
        let files = sources.iter().filter(|source| source.code.contains(what));
        files.map(|source| source.file.to_str().unwrap()).collect::<Vec<_>>()
    };
    let bare: Vec<&str> = starts(" Command::new(").into_iter().filter(|file| !COPIES.contains(file)).collect();
    assert!(bare.is_empty(), "use programs::command in {bare:?}");
    assert!(starts("programs::command(").len() > 30, "the search finds what it looks for");
}
