//! The memory that a thread asks for, which stands for its time: what is copied over and over is allocated over and over.

#![expect(unsafe_code, reason = "the allocator counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use rexec_host::script;

struct Counting;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory is the system allocator's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that reading a text allocates.
fn allocated(text: &str) -> usize {
    let before = ALLOCATED.get();
    black_box(script::leaves(text.as_bytes(), &|_| None));
    ALLOCATED.get() - before
}

/// A text of about this length that begins with one piece and goes on with another.
fn text(begin: &str, piece: &str, bytes: usize) -> String {
    begin.to_owned() + &piece.repeat(bytes.saturating_sub(begin.len()) / piece.len())
}

#[test]
fn a_text_of_twice_the_length_allocates_about_twice_as_much() {
    let arguments = |bytes: usize| format!("set -- {}\n", "a ".repeat(bytes / 8));
    let variables: String = (0..200).map(|number| format!("v{number}=a\n")).collect();
    for (name, begin, piece) in [
        ("subshells with arguments", true, "(a)\n"),
        ("branches with arguments", true, "if a; then b; fi\n"),
        ("shifted arguments", true, "shift\n"),
        ("values of arguments", true, "x=\"$*\"\n"),
        ("children with variables", false, "sh -c a\n"),
        ("texts of others with variables", false, ". a\n"),
        ("traps behind changes", false, "trap a EXIT; x=1\n"),
        ("values that grow", false, "x=$x/a\n"),
        ("directories that grow", false, "cd a\n"),
        ("commands", false, "git add a.txt\n"),
        ("assignments", false, "x=1 y=2\n"),
        ("branches", false, "if a; then x=1; else y=2; fi\n"),
        ("functions", false, "f() { local x=$1; rm -r \"$x/a\"; }\n"),
        ("arrays", false, "x=(a b $c \"d e\")\n"),
        ("here-documents", false, "cat >a <<E\nx $y\nE\n"),
    ] {
        let of = |bytes| {
            let begin = if begin { arguments(bytes) } else { variables.clone() };
            allocated(&text(&begin, piece, bytes))
        };
        let (once, twice) = (of(8 << 10), of(16 << 10));
        assert!(twice < once * 3, "{name}: {once} bytes, and {twice} of twice the text");
        assert!(of(32 << 10) < 48 << 20, "{name}: {} bytes", of(32 << 10));
    }
}

#[test]
fn what_runs_again_and_again_is_walked_a_bounded_number_of_times() {
    let nested = |depth: usize| format!("{}x=1; y=$x;{}\n", "while a; do ".repeat(depth), " done;".repeat(depth));
    let calls = |number: usize| format!("f{number}() {{ f{} a; f{0} b; }}\n", number - 1);
    let callers: String = (1..24).map(calls).collect();
    let deep =
        |number: usize| format!("f{number}() {{ {}f{} a; {} }}\n", "{ ".repeat(36), number - 1, "}; ".repeat(36));
    let deep: String = (1..24).map(deep).collect();
    for piece in [
        nested(12),
        nested(36),
        format!("for i in {}; do x=$i; done\n", "a ".repeat(60)),
        format!("f0() {{ x=1; }}\n{callers}f23 a\n"),
        format!("f0() {{ x=1; }}\n{deep}f23 a\n"),
    ] {
        let bytes = allocated(&text("", &piece, 128 << 10));
        assert!(bytes < 48 << 20, "{}: {bytes} bytes", &piece[..20]);
    }
}
