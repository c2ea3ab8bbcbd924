//! Standard input in every form, and output that is long, binary, closed, or shared.

use super::case::{Case, Mode, PLAIN};
use crate::support::call::{Input, Output};

const MEGABYTES: usize = 5 << 20;

const INPUT: &[Case] = &[
    Case { name: "no input", script: b"cat; wc -c; read x; echo $?", ..PLAIN },
    Case { name: "a line of input", script: b"read x; echo \"[$x]\"", input: Input::Data(b"one line\n"), ..PLAIN },
    Case {
        name: "input without a newline",
        script: b"read x; echo $? \"[$x]\"",
        input: Input::Data(b"no end"),
        ..PLAIN
    },
    Case { name: "input passed on", script: b"cat", input: Input::Data(b"a\nb\nc\n"), ..PLAIN },
    Case { name: "binary input", script: b"od -An -tx1", input: Input::Data(b"\0\x01\xff\xfe\r\n\x1b[0m\0"), ..PLAIN },
    Case { name: "five megabytes of input", script: b"cksum", input: Input::Pattern(MEGABYTES), ..PLAIN },
    Case {
        name: "five megabytes through",
        script: b"cat",
        input: Input::Pattern(MEGABYTES),
        modes: &[Mode::Pipe, Mode::Default, Mode::Raw],
        ..PLAIN
    },
    Case { name: "input partly read", script: b"head -c 3; echo; exit 2", input: Input::Pattern(MEGABYTES), ..PLAIN },
    Case {
        name: "input read by two",
        script: b"read a; echo \"1 $a\"; cat",
        input: Input::File(b"first\nsecond\nthird\n"),
        ..PLAIN
    },
    Case { name: "input left unread", script: b"echo no need", input: Input::Pattern(MEGABYTES), ..PLAIN },
    Case { name: "a file as input", script: b"wc -c; wc -c < /proc/self/fd/0", input: Input::File(b"12345"), ..PLAIN },
    Case { name: "a socket that never ends", script: b"echo prompt", input: Input::Silent, ..PLAIN },
    Case {
        name: "a socket that never ends, asked",
        script: b"read -t 0.1 x; echo $(($? > 128))",
        input: Input::Silent,
        ..PLAIN
    },
    Case {
        name: "a socket that never ends, with a heredoc",
        script: b"cat <<X\nbody\nX\necho done",
        input: Input::Silent,
        ..PLAIN
    },
    Case { name: "closed input", script: b"cat; echo $?", input: Input::Closed, ..PLAIN },
    Case {
        name: "sh: input",
        script: b"read x; echo \"$x\"; cat",
        shell: "sh",
        argv0: "sh",
        input: Input::Data(b"a\nb\n"),
        ..PLAIN
    },
    Case { name: "a script and its data", script: b"bash -s one", input: Input::Data(b"echo $1; exit 3\n"), ..PLAIN },
];

const OUTPUT: &[Case] = &[
    Case { name: "both streams", script: b"echo out; echo err >&2", ..PLAIN },
    Case { name: "no output", script: b":", ..PLAIN },
    Case { name: "no newline at the end", script: b"printf 'no end'", ..PLAIN },
    Case { name: "only newlines", script: b"printf '\\n\\n\\n'", ..PLAIN },
    Case {
        name: "a long line",
        script: b"head -c 1000000 /dev/zero | tr '\\0' x; echo",
        modes: &[Mode::Pipe, Mode::Default, Mode::Raw, Mode::Strip],
        ..PLAIN
    },
    Case { name: "many lines", script: b"seq 1 100000", ..PLAIN },
    Case { name: "many lines on stderr", script: b"seq 1 100000 >&2", ..PLAIN },
    Case { name: "much on both", script: b"seq 1 50000; seq 1 50000 >&2; echo end; echo end >&2", ..PLAIN },
    Case {
        name: "every byte",
        script: b"for n in {0..255}; do printf \"\\\\x$(printf %x $n)\"; done",
        modes: &[Mode::Pipe, Mode::Default, Mode::Raw],
        ..PLAIN
    },
    Case {
        name: "a megabyte of noise",
        script: b"seq 1 200000 | gzip -nc | head -c 400000",
        modes: &[Mode::Pipe, Mode::Default, Mode::Raw],
        needs: &["gzip"],
        ..PLAIN
    },
    Case { name: "NUL bytes", script: b"printf 'a\\0b\\0\\0c'; printf 'd\\0' >&2", ..PLAIN },
    Case {
        name: "carriage returns",
        script: b"printf 'one\\r\\ntwo\\r\\nthree'",
        modes: &[Mode::Pipe, Mode::Default, Mode::Raw, Mode::Strip],
        ..PLAIN
    },
    Case { name: "colours", script: b"printf '\\033[1;31mred\\033[0m plain \\033]0;title\\007\\033(B.\\n'", ..PLAIN },
    Case { name: "colours in a grid", script: b"ls --color=always -d / /tmp /etc/passwd", ..PLAIN },
    Case { name: "columns of a terminal", script: b"mkdir d; cd d; touch a{1..40}; ls", ..PLAIN },
    Case { name: "stderr into stdout", script: b"(echo a; echo b >&2; echo c) 2>&1", ..PLAIN },
    Case { name: "stdout into stderr", script: b"echo a >&2; echo b 1>&2", ..PLAIN },
    Case { name: "into files", script: b"exec >out 2>err; echo a; echo b >&2; ls /nonexistent", ..PLAIN },
    Case {
        name: "output of its own into a file",
        script: b"exec >log 2>&1; echo start; sleep 0.3; echo done",
        ..PLAIN
    },
    Case { name: "closes its output and goes on", script: b"exec >&- 2>&-; sleep 0.3; touch f; exit 3", ..PLAIN },
    Case { name: "closes its output and exits", script: b"echo x; exec >&-; exit 4", ..PLAIN },
    Case {
        name: "one file, in order",
        script: b"for n in 1 2 3 4 5; do echo o$n; echo e$n >&2; done",
        output: Output::OneFile,
        ..PLAIN
    },
    Case {
        name: "one file, long",
        script: b"for n in {1..300}; do echo o$n; seq 1 $n >&2; done",
        output: Output::OneFile,
        ..PLAIN
    },
    Case {
        name: "one file, failing",
        script: b"echo a; ls /nonexistent; echo b; exit 3",
        output: Output::OneFile,
        ..PLAIN
    },
    Case {
        name: "one pipe, in order",
        script: b"for n in 1 2 3 4 5; do echo o$n; echo e$n >&2; done; nosuch",
        output: Output::OnePipe,
        ..PLAIN
    },
    Case { name: "stdout closed", script: b"echo a; echo $? >&2; exit 3", output: Output::NoStdout, ..PLAIN },
    Case { name: "stderr closed", script: b"echo a; echo b >&2; echo $?", output: Output::NoStderr, ..PLAIN },
    Case { name: "reader leaves at once", script: b"yes", output: Output::Head(1), modes: AUTO, ..PLAIN },
    Case { name: "no reader from the start", script: b"yes", output: Output::Head(0), modes: AUTO, ..PLAIN },
    Case {
        name: "no reader from the start of a silent command",
        script: b"sleep 0.5; echo a; echo done > f",
        output: Output::Head(0),
        modes: AUTO,
        ..PLAIN
    },
    Case { name: "reader takes 2,000 lines", script: b"yes", output: Output::Head(4000), modes: AUTO, ..PLAIN },
    Case {
        name: "reader leaves a silent command",
        script: b"echo a; sleep 0.3; echo done > f",
        output: Output::Head(2),
        ..PLAIN
    },
    Case {
        name: "reader leaves a pipeline",
        script: b"yes | cat; echo ${PIPESTATUS[*]} >&2",
        output: Output::Head(100),
        modes: AUTO,
        ..PLAIN
    },
    Case { name: "head inside", script: b"yes | head -n 3; echo ${PIPESTATUS[*]}", ..PLAIN },
    Case { name: "tee", script: b"seq 1 1000 | tee copy | tail -n 1", ..PLAIN },
    Case { name: "substitution with newlines", script: b"x=$(printf 'a\\nb\\n\\n'); echo \"[$x]\"", ..PLAIN },
    Case { name: "process substitution, in", script: b"cat <(echo a) <(echo b); diff <(echo 1) <(echo 2)", ..PLAIN },
    Case { name: "process substitution, out", script: b"echo late > >(cat); wait $!", ..PLAIN },
    Case { name: "writes to /dev/stdout", script: b"echo a > /dev/stdout; echo b > /dev/stderr", ..PLAIN },
    Case {
        name: "writes to its descriptors by path",
        script: b"echo a >> /proc/self/fd/1; echo b > /dev/fd/2",
        ..PLAIN
    },
    Case {
        name: "python and its buffers",
        script: b"python3 -c 'import sys; print(1); sys.stderr.write(\"e\\n\"); print(2); sys.exit(3)'",
        needs: &["python3"],
        ..PLAIN
    },
    Case {
        name: "node and its streams",
        script: b"node -e 'console.log(\"x\".repeat(200000)); console.error(1); process.exitCode = 3'",
        needs: &["node"],
        ..PLAIN
    },
];

/// Writes of every kind to both streams, files that tell what was seen, and an end.
const EVERYTHING: &[u8] =
    b"for n in 0 1 2; do test -t $n && echo tty; test -e /proc/self/fd/$n || echo closed; done >seen
    echo out; echo err >&2; printf 'a\\0b\\r\\n'; seq 1 3000; (echo late; echo later >&2) & wait; nosuch; exit 3";

const KINDS: &[Case] = &[
    Case { name: "sockets", script: EVERYTHING, output: Output::Sockets, modes: AUTO, ..PLAIN },
    Case { name: "a named pipe", script: EVERYTHING, output: Output::Fifo, modes: AUTO, ..PLAIN },
    Case { name: "/dev/null", script: EVERYTHING, output: Output::Null, modes: AUTO, ..PLAIN },
    Case { name: "a file", script: EVERYTHING, output: Output::OneFile, modes: AUTO, ..PLAIN },
    Case { name: "a pipe", script: EVERYTHING, output: Output::OnePipe, modes: AUTO, ..PLAIN },
    Case { name: "pipes apart", script: EVERYTHING, output: Output::Apart, modes: AUTO, ..PLAIN },
    Case { name: "no stdout", script: EVERYTHING, output: Output::NoStdout, modes: AUTO, ..PLAIN },
    Case { name: "no stderr", script: EVERYTHING, output: Output::NoStderr, modes: AUTO, ..PLAIN },
    Case {
        name: "a file, with a socket that never ends as input",
        script: EVERYTHING,
        input: Input::Silent,
        output: Output::OneFile,
        modes: AUTO,
        ..PLAIN
    },
    Case { name: "no input", script: EVERYTHING, input: Input::Closed, modes: AUTO, ..PLAIN },
];

const AUTO: &[Mode] = &[Mode::Pipe, Mode::Default];

#[test]
fn some_kinds_of_callers_get_the_same() {
    super::case::check_some(KINDS);
}

#[test]
#[ignore = "long: every case, as every user"]
fn every_kind_of_caller_gets_the_same() {
    super::case::check(KINDS);
}

#[test]
fn some_input_arrives_alike() {
    // Those before it move megabytes.
    super::case::check_some(&INPUT[8..]);
}

#[test]
#[ignore = "long: every case, as every user"]
fn input_arrives_alike() {
    super::case::check(INPUT);
}

#[test]
fn some_output_arrives_alike() {
    super::case::check_some(OUTPUT);
}

#[test]
#[ignore = "long: every case, as every user"]
fn output_arrives_alike() {
    super::case::check(OUTPUT);
}
