//! What bash takes and what it refuses: `bash -n` on every text of the data files, and what runs before an error.

use std::path::Path;

use rexec_host::script::LeafState;

use crate::dice::{self, Dice};
use crate::shown::{EVERYDAY, LANGUAGE, command, is_refused, leaves, texts};

/// Whether bash finds an error in a text. In `[[` it tells of some without an exit code.
fn bash_refuses(text: &str) -> bool {
    let output = command("bash").args(["--norc", "-n", "-c", "--", text]).output().expect("bash starts");
    let told = String::from_utf8_lossy(&output.stderr);
    !output.status.success() || ["syntax error", "conditional", "expected `"].iter().any(|words| told.contains(words))
}

/// Files of texts, one a line.
const FILES: [&str; 5] = [
    EVERYDAY,
    LANGUAGE,
    include_str!("../data/masks/commands.txt"),
    include_str!("../data/masks/harmless.txt"),
    include_str!("../data/masks/named.txt"),
];

/// What agents wrap around their commands, with the commands.
fn wrapped() -> Vec<String> {
    let lines = include_str!("../data/wrappers.jsonl").lines();
    let forms = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let texts = forms.flat_map(|form| {
        let words = form["exec"].as_array().cloned().unwrap_or_default();
        let code =
            words.iter().skip_while(|word| !word.as_str().is_some_and(|word| word.ends_with('c'))).nth(1).cloned();
        [Some(form["command"].clone()), code].into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned))
    });
    texts.collect()
}

#[test]
fn bash_takes_the_same_texts() {
    let mut all: Vec<String> = FILES.iter().flat_map(|file| texts(file)).chain(wrapped()).collect();
    all.push(include_str!("../data/everyday/project.sh").to_owned());
    assert!(all.len() > 1_100, "the files are complete: {}", all.len());
    let differing: Vec<_> = all.iter().filter(|text| is_refused(text.as_bytes()) != bash_refuses(text)).collect();
    // `shopt -s extglob` changes how bash reads the next line, but `bash -n` does not run it.
    let is_known = |text: &&&String| text.contains("shopt -s extglob") && !is_refused(text.as_bytes());
    let unknown: Vec<_> = differing.iter().filter(|text| !is_known(text)).collect();
    assert!(unknown.is_empty(), "{} of {}: {unknown:#?}", unknown.len(), all.len());
    assert_eq!(differing.len(), 1, "what is known still differs: {differing:?}");
}

/// The system's own shell scripts, as many as there are.
#[test]
fn bash_takes_the_same_scripts() {
    let mut scripts = Vec::new();
    for folder in ["/usr/bin", "/usr/sbin", "/etc/init.d", "/usr/share/bash-completion/completions"] {
        collect(Path::new(folder), &mut scripts);
    }
    let differs = |text: &&String| is_refused(text.as_bytes()) != bash_refuses(text);
    let differing = scripts.iter().filter(differs).count();
    assert!(differing * 100 <= scripts.len(), "{differing} of {}", scripts.len());
}

fn collect(folder: &Path, scripts: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_small = path.metadata().is_ok_and(|data| data.is_file() && data.len() < 100_000);
        let Some(text) = is_small.then(|| std::fs::read_to_string(&path).ok()).flatten() else { continue };
        let first = text.lines().next().unwrap_or_default();
        let is_shell = first.starts_with("#!") && (first.ends_with("/sh") || first.contains("bash"));
        if is_shell || folder.ends_with("completions") {
            scripts.push(text);
        }
    }
}

/// The share of changed texts on which both must agree, and that of texts that bash takes and we refuse, of a thousand.
const AGREED_MIN: usize = 990;
const REFUSED_MAX: usize = 3;

#[test]
fn bash_takes_the_same_changed_texts() {
    let originals: Vec<String> = [EVERYDAY, LANGUAGE].iter().flat_map(|file| texts(file)).collect();
    let mut count = 0;
    let mut agreed = 0;
    let mut refused = 0;
    dice::rounds(1_500, |dice| {
        let text = changed(&originals, dice);
        // In bash `[[ ]]` and `[[ ! ]]` end the shell without a word.
        if text.contains('\0') || text.contains("[[") {
            return;
        }
        count += 1;
        match (is_refused(text.as_bytes()), bash_refuses(&text)) {
            (ours, theirs) if ours == theirs => agreed += 1,
            (ours, _) => refused += usize::from(ours),
        }
    });
    assert!(agreed * 1_000 >= count * AGREED_MIN, "{agreed} of {count} agree");
    assert!(refused * 1_000 <= count * REFUSED_MAX, "{refused} of {count} are refused");
}

/// Pieces that change how a text is read.
const PIECES: [&str; 44] = [
    "(",
    ")",
    "{ ",
    "; }",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "\n",
    "\"",
    "'",
    "`",
    "$(",
    "${",
    "$((",
    "))",
    "<<E\n",
    "\nE\n",
    "<(",
    ">",
    "<",
    "2>&1",
    "if ",
    "then ",
    "fi",
    "do ",
    "done",
    "case x in ",
    "esac",
    "#",
    "\\",
    "!",
    "=",
    "[",
    "]",
    "for i ",
    "f() ",
    ";;",
    "$",
    "\\\n",
    "a=(",
    "*",
    "}",
];

/// A text with one to three changes.
pub(crate) fn changed(originals: &[String], dice: &mut Dice) -> String {
    let mut text: Vec<char> = originals[dice.below(originals.len())].chars().collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(text.len() + 1);
        let end = (at + dice.below(4)).min(text.len());
        match dice.below(4) {
            0 => drop(text.splice(at..at, PIECES[dice.below(PIECES.len())].chars())),
            1 => drop(text.drain(at..end)),
            2 => {
                let other: Vec<char> = originals[dice.below(originals.len())].chars().collect();
                text.truncate(at);
                text.extend(&other[dice.below(other.len() + 1)..]);
            }
            _ => text.truncate(at),
        }
    }
    text.into_iter().collect()
}

/// What stands on lines before an error has run; what stands on its line or behind has not.
#[test]
fn what_bash_runs_before_an_error_are_leaves() {
    let errors = [
        ")",
        "echo x; )",
        "fi",
        "if true",
        "echo \"",
        "case x in",
        "echo $(",
        "{ echo x;",
        "done",
        "echo x | | y",
        ";;",
        "&& x",
        "for x in a; done",
        "f() echo x",
        "cat <",
        "`",
        "while; do",
        "( )",
        "echo x)",
        "[[ a b ]]",
    ];
    for error in errors {
        for before in 0..5 {
            let lines: Vec<String> = (0..before).map(|number| format!("echo line-{number}")).collect();
            let text = [&lines[..], &[error.to_owned(), "echo never".to_owned()]].concat().join("\n");
            let output = command("bash").args(["-c", &text]).output().expect("bash starts");
            let ran: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
            let leaves = leaves(&text);
            let (last, first) = leaves.split_last().expect("at least one leaf");
            let told: Vec<String> =
                first.iter().map(|leaf| String::from_utf8_lossy(&leaf.arguments[0].shown()).into_owned()).collect();
            assert_eq!(told, ran, "{text}");
            assert!(matches!(last.state, LeafState::Opaque(_)), "{text}: {last:?}");
        }
    }
}
