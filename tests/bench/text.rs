//! Speed of the sanitizer and the redactor, next to other programs in the same run: `cargo bench --bench text`.
//!
//! Absolute speeds on a shared machine mean little. So CPU time is measured, the contenders for an input take turns, round
//! by round, and their medians are compared. Input is streamed in pieces as a PTY or a pipe delivers them, into one buffer. A gate that is
//! missed is printed, never asserted.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

#[path = "text/masks.rs"]
mod masks;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use fast_strip_ansi::StreamingStripper;
use nix::time::{ClockId, clock_gettime};
use rexec_host::text::encode::from_base64;
use rexec_host::text::sanitize::{Mode, Sanitizer};

const ROUNDS: usize = 11;
/// Bytes per round, more than a processor's caches hold.
const INPUT_BYTES: usize = 64 << 20;
const COLLAPSE: Mode = Mode::Collapse { rows: 48, cols: 160 };

/// The captures in an input.
const COMPILER: &[&str] = &["cargo-build", "cargo-test", "gcc-color", "grep-color", "pytest-color", "vitest"];
const PROGRESS: &[&str] = &["rsync-progress", "git-clone", "wget-bar", "curl-bar", "curl-meter", "tqdm", "tqdm-nested"];

#[derive(Clone, Copy)]
enum Contender {
    Strip,
    Collapse,
    Tidy,
    /// The captures, each on a new terminal of its own size.
    Corpus,
    ScanAndCopy,
    FastStripAnsi,
    Utf8,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Strip => "strip",
            Self::Collapse => "collapse",
            Self::Tidy => "tidy",
            Self::Corpus => "corpus",
            Self::ScanAndCopy => "scan+copy",
            Self::FastStripAnsi => "fast-strip-ansi",
            Self::Utf8 => "from_utf8",
        }
    }
}

struct Input {
    name: &'static str,
    bytes: Vec<u8>,
    gates: Vec<Gate>,
}

/// `ours` should be at least `factor` times as fast as `theirs`.
struct Gate {
    ours: Contender,
    factor: f64,
    theirs: Contender,
}

fn gate(ours: Contender, factor: f64, theirs: Contender) -> Gate {
    Gate { ours, factor, theirs }
}

use Contender::{Collapse, Corpus, FastStripAnsi, ScanAndCopy, Strip, Tidy, Utf8};

fn main() {
    let captures = captures();
    let plain = plain();
    let lines = |end: &str| plain.lines().flat_map(|line| [line, end]).collect::<String>().into_bytes();
    let named = |names: &[&str]| {
        let parts = captures.iter().filter(|capture| names.contains(&capture.id.as_str()));
        parts.flat_map(|capture| capture.input.iter().copied()).collect::<Vec<u8>>()
    };
    let dense: String = (0..4096)
        .map(|n| format!("\x1b[{}m{}", 30 + n % 8, char::from(b'a' + u8::try_from(n % 26).expect("a letter"))))
        .collect();
    let wide = "│ ビルド中 ─────┤ 日本語のテキスト ├──── ✓ 完了 │\n".repeat(200);
    let inputs = [
        Input {
            name: "plain, LF",
            bytes: lines("\n"),
            gates: vec![gate(Strip, 0.7, ScanAndCopy), gate(Collapse, 0.5, ScanAndCopy), gate(Tidy, 0.8, ScanAndCopy)],
        },
        Input { name: "plain, CRLF", bytes: lines("\r\n"), gates: vec![gate(Strip, 0.2, ScanAndCopy)] },
        Input { name: "compiler colour", bytes: named(COMPILER), gates: vec![gate(Strip, 1.5, FastStripAnsi)] },
        Input { name: "progress", bytes: named(PROGRESS), gates: vec![gate(Strip, 1.5, FastStripAnsi)] },
        Input { name: "dense colour", bytes: dense.into_bytes(), gates: vec![gate(Strip, 1.0, FastStripAnsi)] },
        Input { name: "not ASCII", bytes: wide.into_bytes(), gates: vec![gate(Strip, 0.7, Utf8)] },
    ];
    for piece in [4 << 10, 64 << 10] {
        println!("\npieces of {} KiB, GB/s, median/slowest tenth of {ROUNDS} rounds", piece >> 10);
        for input in inputs.iter().filter(|input| is_asked(input.name)) {
            measure(input, piece);
        }
    }
    if is_asked("corpus") {
        measure_corpus(&captures);
    }
    if is_asked("masks") {
        let prose = include_bytes!("../../README.md");
        let inputs = [
            ("plain", masks::plain()),
            ("compiler", named(COMPILER)),
            ("JSON", masks::json()),
            ("log", masks::log()),
            ("source", lines("\n")),
            ("prose", prose.to_vec()),
            ("base64", masks::base64_lines()),
            ("binary", std::fs::read(std::env::current_exe().expect("this program")).expect("a readable program")),
        ];
        println!("\nmasks, pieces of 64 KiB, GB/s, median/slowest tenth of {ROUNDS} rounds");
        inputs.iter().for_each(|(name, input)| masks::measure(name, input, 64 << 10));
    }
}

/// The CPU time of this thread so far. A clock, because getrusage(2) counts in ticks where the kernel does.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a thread has a clock of its own").into()
}

/// Whether the command line names this input, or none: `cargo bench --bench text -- plain`.
fn is_asked(name: &str) -> bool {
    let mut asked = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    asked.peek().is_none() || asked.any(|asked| name.contains(&asked))
}

fn measure(input: &Input, piece: usize) {
    let all = [Strip, Collapse, Tidy, ScanAndCopy, FastStripAnsi, Utf8];
    let bytes: Vec<u8> = input.bytes.iter().copied().cycle().take(INPUT_BYTES).collect();
    let pieces = cut(&bytes, piece);
    let mut speeds = all.map(|_| Vec::new());
    let mut out = Vec::with_capacity(4 * piece);
    for _ in 0..ROUNDS {
        for (contender, speeds) in all.iter().zip(&mut speeds) {
            let start = cpu_time();
            stream(*contender, &pieces, &mut out);
            speeds.push(INPUT_BYTES as f64 / (cpu_time() - start).as_secs_f64() / 1e9);
        }
    }
    let lows = speeds.clone().map(low);
    let medians = speeds.map(median);
    let speed_of = |asked: Contender| {
        let at = all.iter().position(|contender| contender.name() == asked.name()).expect("a measured contender");
        medians[at]
    };
    print!("{:16}", input.name);
    for ((contender, speed), low) in all.iter().zip(medians).zip(lows) {
        print!("  {} {speed:.2}/{low:.2}", contender.name());
    }
    println!();
    for Gate { ours, factor, theirs } in &input.gates {
        verdict(ours.name(), speed_of(*ours) / speed_of(*theirs), *factor, theirs.name());
    }
}

fn verdict(ours: &str, reached: f64, asked: f64, theirs: &str) {
    let met = if reached >= asked { "met" } else { "MISSED" };
    println!("{:16}  gate {met}: {ours} = {reached:.2} x {theirs}, asked {asked:.1}", "");
}

/// Pieces of about this size, cut between characters, because some contenders need that.
fn cut(bytes: &[u8], piece: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut len = piece.min(rest.len());
        while len < rest.len() && rest[len] & 0xC0 == 0x80 {
            len -= 1;
        }
        let (piece, tail) = rest.split_at(len);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

fn stream(contender: Contender, pieces: &[&[u8]], out: &mut Vec<u8>) {
    let mut sanitizer = Sanitizer::new(match contender {
        Collapse => COLLAPSE,
        Tidy => Mode::Tidy,
        _ => Mode::Strip,
    });
    let mut stripper = StreamingStripper::new();
    for piece in pieces {
        out.clear();
        match contender {
            Strip | Collapse | Tidy | Corpus => sanitizer.push(piece, out),
            ScanAndCopy => {
                black_box(memchr::memchr(0x1b, piece));
                out.extend_from_slice(piece);
            }
            FastStripAnsi => stripper.feed(piece, &mut |text| out.extend_from_slice(text)),
            Utf8 => _ = black_box(std::str::from_utf8(piece)),
        }
        black_box(&mut *out);
    }
}

fn measure_corpus(captures: &[Capture]) {
    let bytes: usize = captures.iter().map(|capture| capture.input.len()).sum();
    let mut speeds = Vec::new();
    let mut out = Vec::new();
    for _ in 0..ROUNDS {
        let start = cpu_time();
        for capture in captures {
            let mut sanitizer = Sanitizer::new(Mode::Collapse { rows: capture.rows, cols: capture.cols });
            for piece in capture.input.chunks(4 << 10) {
                out.clear();
                sanitizer.push(piece, &mut out);
                black_box(&mut out);
            }
            sanitizer.finish(&mut out);
        }
        speeds.push(bytes as f64 / (cpu_time() - start).as_secs_f64() / 1e6);
    }
    println!("\nthe corpus, {} captures, in pieces of 4 KiB", captures.len());
    verdict(Corpus.name(), median(speeds), 200.0, "MB/s");
}

fn median(speeds: Vec<f64>) -> f64 {
    at_percentile(speeds, 50)
}

/// The speed that nine of ten rounds reach.
fn low(speeds: Vec<f64>) -> f64 {
    at_percentile(speeds, 10)
}

fn at_percentile(mut speeds: Vec<f64>, percent: usize) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() * percent / 100]
}

/// The ASCII characters of this crate's sources.
fn plain() -> String {
    let mut text = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                text.push_str(&std::fs::read_to_string(entry.path()).expect("a source file"));
            }
        }
    }
    text.retain(|c| c.is_ascii());
    text
}

struct Capture {
    id: String,
    rows: u16,
    cols: u16,
    input: Vec<u8>,
}

fn captures() -> Vec<Capture> {
    #[derive(serde::Deserialize)]
    struct Line {
        id: String,
        rows: u16,
        cols: u16,
        input: String,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus/captures.jsonl");
    let text = std::fs::read_to_string(path).expect("the corpus");
    let lines = text.lines().map(|line| serde_json::from_str::<Line>(line).expect("a capture"));
    lines
        .map(|line| Capture {
            id: line.id,
            rows: line.rows,
            cols: line.cols,
            input: from_base64(&line.input).expect("base64"),
        })
        .collect()
}
