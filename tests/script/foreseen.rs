//! What bash really runs, and what another parser reads, is foreseen by a leaf.
//!
//! Each text runs in bash with its trace in a file: every simple command with its words as they are in the end. A leaf
//! foresees a command if their words are equal but for the leaf's holes. `tests/data/script/calls.jsonl` has what an
//! independent parser reads; `scripts/shell-calls.mjs` makes it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rexec_host::script::{self, Argument, ArgumentPiece, HoleReach, Leaf, LeafState};

use crate::shown::{EVERYDAY, LANGUAGE, command, leaves, line, lossy, texts};

/// In front of each traced command, behind plus signs.
const SIGN: char = '\u{2}';
/// What bash reads before a text: only code of `-c` is traced, not the scripts that it starts.
const TRACE: &str = "\
if [ -n \"${BASH_EXECUTION_STRING+x}\" ]; then
  exec {BASH_XTRACEFD}>>\"$TRACE_FILE\"
  PS4=$'+\\2${BASH_SOURCE[0]-}\\2'
  set -x
fi
";

/// The words of every simple command that bash ran for a text.
fn traced(text: &str, folder: &Path, file: &Path) -> Vec<Vec<Vec<u8>>> {
    let before = file.with_extension("before");
    fs::write(file, "").expect("a file for the trace");
    fs::write(&before, TRACE).expect("a file for bash");
    let mut bash = command("timeout");
    bash.args(["-k", "1", "20", "bash", "-c", text]).current_dir(folder);
    bash.stdout(Stdio::null()).stderr(Stdio::null());
    bash.env("BASH_ENV", &before).env("TRACE_FILE", file);
    bash.status().expect("bash starts");
    let trace = fs::read(file).expect("the trace");
    // A word with a line break goes on in the next line.
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for line in trace.split(|byte| *byte == b'\n') {
        match lines.last_mut() {
            Some(last) if !line.contains(&(SIGN as u8)) => last.extend([b"\n", line].concat()),
            _ => lines.push(line.to_vec()),
        }
    }
    let commands = lines.iter().filter_map(|line| source_and_command(line.trim_ascii_end()));
    commands.map(decoded).filter(|words| is_command(words)).collect()
}

/// The traced command of a line, unless it stands in a file that the text reads in.
fn source_and_command(line: &[u8]) -> Option<&[u8]> {
    let mut parts = line.splitn(3, |byte| *byte == SIGN as u8);
    let plus = parts.next()?;
    let source = parts.next()?;
    let command = parts.next()?;
    let is_own = !source.starts_with(b"/") && !source.starts_with(b".") && !source.contains(&b'.');
    (plus.iter().all(|byte| *byte == b'+') && is_own).then_some(command)
}

/// The words of a traced line: as bash quotes them.
fn decoded(line: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word = None::<Vec<u8>>;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => words.extend(word.take()),
            b'\'' => {
                let end = line[at + 1..].iter().position(|byte| *byte == b'\'').unwrap_or(line.len() - at - 1);
                word.get_or_insert_default().extend_from_slice(&line[at + 1..at + 1 + end]);
                at += end + 1;
            }
            b'$' if line.get(at + 1) == Some(&b'\'') => {
                at += 2;
                while at < line.len() && line[at] != b'\'' {
                    let (byte, length) = match (line[at], line.get(at + 1)) {
                        (b'\\', Some(b'n')) => (b'\n', 2),
                        (b'\\', Some(b't')) => (b'\t', 2),
                        (b'\\', Some(b'E')) => (27, 2),
                        (b'\\', Some(digit @ b'0'..=b'7')) => {
                            let digits = &line[at + 1..(at + 4).min(line.len())];
                            let text = std::str::from_utf8(digits).unwrap_or_default();
                            (u8::from_str_radix(text, 8).unwrap_or(*digit), 1 + digits.len())
                        }
                        (b'\\', Some(next)) => (*next, 2),
                        (byte, _) => (byte, 1),
                    };
                    word.get_or_insert_default().push(byte);
                    at += length;
                }
            }
            b'\\' if at + 1 < line.len() => {
                at += 1;
                word.get_or_insert_default().push(line[at]);
            }
            byte => word.get_or_insert_default().push(byte),
        }
        at += 1;
    }
    words.extend(word);
    words
}

/// Whether a traced line is a simple command, and no assignment, loop head or condition.
fn is_command(words: &[Vec<u8>]) -> bool {
    let Some(first) = words.first() else { return false };
    let is_head = matches!(&first[..], b"for" | b"case" | b"select" | b"[[" | b"((");
    let name = first.split(|byte| *byte == b'=' || *byte == b'+' || *byte == b'[').next().unwrap_or_default();
    let is_assignment = first.contains(&b'=') && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    !is_head && !is_assignment
}

/// Whether a leaf is this command but for its holes. A program that is not known may be any.
fn foresees(leaf: &Leaf, words: &[Vec<u8>]) -> bool {
    let program = Argument::from(&leaf.program[..]);
    let is_unknown = matches!(leaf.state, LeafState::Opaque(_)) && leaf.program.is_empty();
    let arguments: Vec<&Argument> = match is_unknown {
        true => return true,
        false => std::iter::once(&program).chain(&leaf.arguments).collect(),
    };
    are(&arguments, words)
}

fn are(arguments: &[&Argument], words: &[Vec<u8>]) -> bool {
    let Some((first, rest)) = arguments.split_first() else { return words.is_empty() };
    let may_be_more =
        first.pieces.iter().any(|piece| matches!(piece, ArgumentPiece::Hole(hole) if hole.reach == HoleReach::Words));
    if may_be_more {
        return (0..=words.len()).any(|taken| are(rest, &words[taken..]));
    }
    words.split_first().is_some_and(|(word, more)| is(&first.pieces, word) && are(rest, more))
}

fn is(pieces: &[ArgumentPiece], word: &[u8]) -> bool {
    match pieces.split_first() {
        None => word.is_empty(),
        Some((ArgumentPiece::Text(text), rest)) => word.strip_prefix(&text[..]).is_some_and(|word| is(rest, word)),
        Some((ArgumentPiece::Hole(_), rest)) => (0..=word.len()).any(|taken| is(rest, &word[taken..])),
    }
}

/// Programs that change what lies around them, or that take long: they are not run here.
fn may_run(text: &str) -> bool {
    let left_out = [
        "cargo ",
        "npm ",
        "npx ",
        "node ",
        "pip ",
        "docker",
        "tmux",
        "systemctl",
        "apt-cache",
        "ssh-keygen",
        "top ",
        "sleep ",
        "curl",
        "wget",
        "http.server",
        "rebase",
        "view ",
        "sync;",
    ];
    !left_out.iter().any(|word| text.contains(word))
}

/// How many texts run at once, each row of them in a project of its own.
const AT_ONCE: usize = 4;
/// Texts that run in one copy of the project. What they leave behind changes what tools say, and not what bash runs.
const TEXTS_PER_COPY: usize = 20;

/// What came of a row of texts.
#[derive(Debug, Default)]
struct Compared {
    count: usize,
    exact: usize,
    missed: Vec<String>,
}

impl Compared {
    fn compare(&mut self, text: &str, trace: Vec<Vec<Vec<u8>>>) {
        let leaves = leaves(text);
        for words in trace {
            self.count += 1;
            self.exact +=
                usize::from(leaves.iter().any(|leaf| leaf.state == LeafState::Known && foresees(leaf, &words)));
            if !leaves.iter().any(|leaf| foresees(leaf, &words)) {
                let words: Vec<String> = words.iter().map(|word| lossy(word)).collect();
                let told: Vec<String> = leaves.iter().map(line).collect();
                self.missed.push(format!("{text}\n   ran {words:?}\n   leaves {told:#?}"));
            }
        }
    }
}

/// Runs every fourth text, beginning with this one.
fn row(first: usize, texts: &[String], scratch: &Path) -> Compared {
    let own = scratch.join(format!("row-{first}"));
    let folder = own.join("project");
    let mut compared = Compared::default();
    fs::create_dir_all(&own).expect("a folder");
    for (number, text) in texts.iter().skip(first).step_by(AT_ONCE).enumerate() {
        if number % TEXTS_PER_COPY == 0 {
            let _ = fs::remove_dir_all(&folder);
            let copied = command("cp").arg("-a").args([&scratch.join("original"), &folder]).status();
            assert!(copied.is_ok_and(|status| status.success()), "the project can be copied");
        }
        // What a text leaves running may still write to its own trace.
        compared.compare(text, traced(text, &folder, &own.join(format!("trace-{number}"))));
    }
    compared
}

#[test]
#[ignore = "long: runs 560 texts in bash"]
#[expect(clippy::print_stderr, reason = "how many were foreseen belongs to the result")]
fn every_command_that_bash_runs_is_foreseen() {
    let scratch = std::env::temp_dir().join(format!("rexec-foreseen-{}", std::process::id()));
    let original = scratch.join("original");
    fs::create_dir_all(&original).expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/everyday/project.sh");
    let made = command("sh").arg(script).current_dir(&original).stdout(Stdio::null()).status();
    assert!(made.is_ok_and(|status| status.success()), "the project can be made");
    let all = [EVERYDAY, LANGUAGE].iter().flat_map(|file| texts(file));
    let texts: Vec<String> = all.filter(|text| may_run(text)).collect();
    let rows: Vec<Compared> = std::thread::scope(|scope| {
        let start = |first| {
            scope.spawn({
                let texts = &texts;
                let scratch = &scratch;
                move || row(first, texts, scratch)
            })
        };
        let threads: Vec<_> = (0..AT_ONCE).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no row panics")).collect()
    });
    let _ = fs::remove_dir_all(&scratch);
    let count: usize = rows.iter().map(|row| row.count).sum();
    let exact: usize = rows.iter().map(|row| row.exact).sum();
    let missed: Vec<&String> = rows.iter().flat_map(|row| &row.missed).collect();
    eprintln!(
        "{count} commands of {} texts, {exact} of them known in every word, {} not foreseen",
        texts.len(),
        missed.len()
    );
    assert!(count > 900, "the trace is read: {count}");
    assert!(missed.is_empty(), "{} of {count}: {missed:#?}", missed.len());
}

/// The share of calls that must be read alike, of a thousand.
const ALIKE_MIN: usize = 995;

#[test]
#[expect(clippy::print_stderr, reason = "how many were compared belongs to the result")]
fn another_parser_reads_the_same_words() {
    let mut count = 0;
    let mut refused = 0;
    let mut different = Vec::new();
    for row in include_str!("../data/script/calls.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
        let text = row["text"].as_str().expect("a text");
        let Some(calls) = row["calls"].as_array() else {
            refused += 1;
            continue;
        };
        let leaves = script::leaves(text.as_bytes(), &|_| None).leaves;
        for call in calls {
            count += 1;
            let words: Vec<&str> = call.as_array().expect("words").iter().filter_map(|word| word.as_str()).collect();
            if !leaves.iter().any(|leaf| may_be(leaf, &words)) {
                different.push(format!("{text}\n   {words:?}\n   {:#?}", leaves.iter().map(line).collect::<Vec<_>>()));
            }
        }
    }
    eprintln!("{count} calls, {} read otherwise, {refused} texts that the other parser refuses", different.len());
    assert!(count > 900 && refused < 10, "the file is complete: {count}, {refused}");
    assert!(
        (count - different.len()) * 1_000 >= count * ALIKE_MIN,
        "{} of {count}:\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Whether a leaf and a call are equal in all words that both know.
fn may_be(leaf: &Leaf, words: &[&str]) -> bool {
    let program = Argument::from(&leaf.program[..]);
    let first = if leaf.program.is_empty() { None } else { Some(&program) };
    let arguments: Vec<&Argument> = first.into_iter().chain(&leaf.arguments).collect();
    let is_open = |argument: &&Argument| argument.text().is_none();
    let has_holes = words.iter().any(|word| word.contains('\u{1}'));
    // A value that is put in may be no word or several.
    if arguments.len() != words.len() {
        return has_holes
            && arguments
                .first()
                .zip(words.first())
                .is_some_and(|(argument, word)| word.contains('\u{1}') || argument.text() == Some(word.as_bytes()));
    }
    let alike = |(argument, word): (&&Argument, &&str)| {
        is_open(argument) || word.contains('\u{1}') || argument.text() == Some(word.as_bytes())
    };
    arguments.iter().zip(words).all(alike)
}
