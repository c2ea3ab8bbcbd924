//! The verbs of `rexec`: what the table says of each is true, and every form that is made of the table works.

mod config;
mod diff;
mod events;
mod explain;
mod follow;
mod gate;
mod hostile;
pub(crate) mod live;
mod rerun;
mod tail;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::exec;
use crate::support::host::{Host, PLAIN};
use crate::support::programs;
use crate::support::temp::TempDir;

fn rexec(args: &[&str]) -> Output {
    let mut command = programs::command(programs::rexec());
    let place = [("REXEC_SOCKET", "/nonexistent/host.sock"), ("REXEC_HOME", "/nonexistent")];
    command.args(args).env_clear().env("PATH", programs::PATH).envs(place).stdin(Stdio::null());
    command.output().expect("the program starts")
}

fn said(args: &[&str]) -> String {
    let output = rexec(args);
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Every verb, as the page rexec(1) lists them.
pub(crate) fn verbs() -> Vec<String> {
    let page = said(&["man"]);
    let synopsis = page.split(".nf\n").nth(1).and_then(|rest| rest.split(".fi\n").next()).expect("a synopsis");
    let names = synopsis.lines().filter_map(|usage| usage.split_whitespace().nth(1));
    let names: Vec<String> = names.map(|name| name.replace("\\-", "-")).collect();
    assert!(names.len() >= 8, "the search finds what it looks for: {names:?}");
    names
}

/// An option of a verb's help: its spelling, and the word for its value.
type Listed = (String, Option<String>);

/// The options that a verb's help lists, beside `--help`.
fn options(help: &str) -> Vec<Listed> {
    let list = help.split("\noptions:\n").nth(1).expect("a list of options");
    let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  "));
    let terms = lines.filter(|line| line.trim_start().starts_with('-'));
    let options = terms.map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| !word.starts_with("--"));
        let name = words.next().expect("a long option").to_owned();
        let value = words.next().filter(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == ':'));
        (name, value.map(str::to_owned))
    });
    options.filter(|(name, _)| name != "--help").collect()
}

#[test]
fn each_verb_has_one_help_that_fits_a_terminal() {
    let all = said(&["--help"]);
    for verb in verbs() {
        let help = said(&["help", &verb]);
        assert_eq!(said(&[&verb, "--help"]), help);
        let bare = verb.trim_start_matches('-');
        // A verb and a flag may have the same name but for the dashes.
        if bare == verb || !verbs().iter().any(|other| other == bare) {
            assert_eq!(said(&["help", bare]), help);
        }
        assert!(help.starts_with(&format!("rexec {verb}: ")) && help.contains(&format!("\nusage: rexec {verb}")));
        assert!(all.contains(&format!(" {verb} ")), "rexec --help does not list {verb}");
        for line in help.lines().chain(all.lines()) {
            assert!(line.chars().count() <= 79 && line == line.trim_end(), "{verb}: {line}");
        }
    }
}

/// An option that the verb does not know would be the one that is complained about.
#[test]
fn each_option_of_the_help_is_known_to_its_verb() {
    let mut count = 0;
    for verb in verbs() {
        for (option, value) in options(&said(&["help", &verb])) {
            count += 1;
            let value = value.map(|word| valid(&word));
            let args: Vec<&str> =
                [verb.as_str(), &option].into_iter().chain(value).chain(["--no-such-option"]).collect();
            let output = rexec(&args);
            let text = String::from_utf8_lossy(&output.stderr);
            let is_told = text.contains("`--no-such-option`") && output.status.code() == Some(2);
            // An option that acts as a verb of its own may have done it.
            assert!(is_told || output.status.success(), "{verb} does not know {option}: {text}");
        }
    }
    assert!(count >= 3, "the search finds what it looks for: {count}");
}

/// A value that is valid where the help says this word.
fn valid(word: &str) -> &'static str {
    match word {
        "SIZE" => "256K",
        "SIGNAL" => "KILL",
        "KEY" => "enter",
        "WHEN" => "never",
        "PROTOCOL" => "current",
        "A:B" => "1:2",
        "LIST" => "git",
        "T" | "TIME" | "S" | "SECONDS" | "SPAN" | "DURATION" => "1h",
        _ => "1",
    }
}

/// The other way round: an option that a verb reads and the table lacks would be in no help.
#[test]
fn each_option_that_a_verb_reads_is_in_its_help() {
    let helps: String = verbs().iter().map(|verb| said(&["help", verb])).collect();
    let listed: BTreeSet<String> = options_in(&helps);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    let (mut ahead, mut count) = (vec![folder], 0);
    while let Some(path) = ahead.pop() {
        if path.is_dir() {
            ahead.extend(fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        // rexec-host has a help of its own.
        if path.ends_with("cli/host.rs") || path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source");
        for rest in source.split("Long(\"").skip(1) {
            count += 1;
            let name = format!("--{}", rest.split('"').next().expect("the end of a name"));
            let is_known = listed.contains(&name) || ["--help", "--version"].contains(&name.as_str());
            assert!(is_known, "{} reads {name}, which no help has", path.display());
        }
    }
    assert!(count >= 3, "the search finds what it looks for: {count}");
}

fn options_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
#[ignore = "long: every page by man and mandoc"]
fn each_page_is_clean_roff() {
    let names: Vec<String> = verbs().iter().map(|verb| verb.trim_start_matches('-').to_owned()).collect();
    let home = TempDir::new(None);
    for name in names.iter().map(String::as_str).chain([""]) {
        let args: Vec<&str> = ["man", name].into_iter().filter(|word| !word.is_empty()).collect();
        let file = home.join("page.1");
        fs::write(&file, said(&args)).expect("a file");
        for (program, args) in [("mandoc", &["-T", "lint"][..]), ("man", &["--warnings", "-P", "cat", "-l"])] {
            if !programs::has(program) {
                continue;
            }
            let mut command = programs::command(program);
            // man complains of a locale that is not installed, and formats for another width where one is set.
            command.env_clear().env("PATH", programs::PATH).env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
            let output = command.args(args).arg(&file).output().expect("the program starts");
            let complaints = [output.stderr.as_slice(), if program == "mandoc" { &output.stdout } else { b"" }];
            let complaints = String::from_utf8_lossy(&complaints.concat()).into_owned();
            assert!(output.status.success() && complaints.is_empty(), "{program}, {name}: {complaints}");
        }
    }
}

/// What a command prints whose path begins with the folder of `rexec`, line by line. It finds this host.
fn lines(program: &str, args: &[&str], script: &Path, host: &Host) -> Vec<String> {
    let bin = programs::rexec().parent().expect("a folder");
    let output = programs::command(program)
        .args(args)
        .arg(script)
        .env_clear()
        .env("PATH", format!("{}:{}", bin.display(), programs::PATH))
        .env("HOME", script.parent().expect("a folder"))
        .env("TERM", "xterm")
        .env("REXEC_SOCKET", host.socket())
        .env("REXEC_HOME", host.journal_home())
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A host with two commands: 1, and 2 with the name web.
fn host_with_runs() -> Host {
    let host = Host::with(PLAIN);
    for args in [&["--", "sleep", "1000"][..], &["--name", "web", "--", "sh", "-c", "sleep 1000\n3\t:"]] {
        assert_eq!(exec::said(exec::rexec(&host, &[&["exec", "--bg"], args].concat())).0, 0);
    }
    host
}

fn end(host: Host) {
    assert_eq!(exec::said(exec::rexec(&host, &["kill", "--all"])).0, 0);
    host.finish();
}

#[test]
fn bash_completes() {
    let (home, host) = (TempDir::new(None), host_with_runs());
    let script = home.join("script");
    let cases = [
        ("ki", "kill"),
        ("kill --a", "--agent --all"),
        ("kill 1", "1"),
        ("kill w", "web"),
        ("kill ''", "1 2 web"),
        ("kill -- ''", "1 2 web"),
        ("kill -s T", "TERM"),
        ("kill --signal = T", "TERM"),
        ("kill --signal =", "INT TERM KILL HUP QUIT USR1 USR2 WINCH"),
        ("kill --signal=T", "--signal=TERM"),
        ("help ag", "agents"),
        ("completions ''", "bash zsh fish"),
        ("--li", "--list"),
        ("run co", "codex copilot"),
        ("run claude co", ""),
        ("run -- claude co", ""),
        ("complet", "completions"),
        ("nothing ''", ""),
    ];
    let calls: String = cases.iter().map(|(words, _)| format!("of rexec {words}\n")).collect();
    let begin = "source <(rexec completions bash)\n\
                 of() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _rexec; echo \"${COMPREPLY[*]}\"; }\n";
    fs::write(&script, begin.to_owned() + &calls).expect("a file");
    let found = lines("bash", &["--norc"], &script, &host);
    assert_eq!(found.len(), cases.len(), "{found:?}");
    for ((words, expected), found) in cases.iter().zip(&found) {
        assert_eq!(found, expected, "{words}");
    }
    end(host);
}

/// Each word is alone in its line, whatever its command is.
#[test]
fn each_word_is_offered_with_its_meaning() {
    let host = host_with_runs();
    let offered = |words: &[&str]| exec::said(exec::rexec(&host, &[&["complete", "--"], words].concat()));
    let (code, runs, _) = offered(&["kill", ""]);
    let runs: Vec<_> = runs.lines().filter_map(|line| line.split_once('\t')).collect();
    assert_eq!((code, runs[0], runs.len()), (0, ("1", "sleep 1000"), 3), "{runs:?}");
    assert!(runs[1].0 == "2" && runs[2].0 == "web" && runs[2].1.contains("sleep 1000"), "{runs:?}");
    let (_, options, _) = offered(&["kill", "--"]);
    assert!(options.contains("--all\tall commands\n"), "{options}");
    let (_, journals, _) = offered(&["--print", ""]);
    let names: Vec<&str> = journals.lines().collect();
    assert!(matches!(names[..], [name] if host.journal_home().join(format!("{name}.jsonl")).exists()), "{journals}");
    end(host);
    for words in [&["complete"][..], &["complete", "--", "kill", ""], &["complete", "--", "--print", ""]] {
        assert_eq!(said(words), "", "{words:?}: there is no host");
    }
}

/// Names that an older host may have given to services. Each begins with a word of its own.
const HOSTILE_NAMES: [&str; 8] =
    ["a1$(touch ran)", "b1`touch ran`", "c1;touch ran;", "d1 e f", "f1'g", "h1*", "i1&touch ran&", "k1<(touch ran)"];

/// A program in place of rexec that has services of these names, and writes down what else it is called with.
fn hostile_services(folder: &Path) {
    let list: String = HOSTILE_NAMES.iter().map(|name| format!("{name}\tits command\n")).collect();
    fs::write(folder.join("list"), list).expect("a file");
    let program = format!(
        "#!/bin/sh\ncase $1 in\ncomplete) [ \"$3\" != kill ] || cat {0}/list ;;\ncompletions) exec {1} \"$@\" ;;\n\
         *) printf '%s\\n' \"$2\" >>{0}/called ;;\nesac\n",
        folder.display(),
        programs::rexec().display()
    );
    fs::create_dir_all(folder.join("bin")).expect("a folder");
    programs::write(&folder.join("bin/rexec"), program.as_bytes());
}

/// Names of services are completed as they are, and what a person then runs has them as one word.
#[test]
fn no_completion_runs_what_a_name_says() {
    let firsts: Vec<&str> = HOSTILE_NAMES.iter().map(|name| &name[..2]).collect();
    let bash = format!(
        "source <(rexec completions bash)\n\
         of() {{ COMP_WORDS=(rexec kill \"$1\"); COMP_CWORD=2; _rexec; eval \"rexec kill ${{COMPREPLY[0]}}\"; }}\n\
         for first in {}; do of \"$first\"; done\n",
        firsts.join(" ")
    );
    let fish = format!(
        "rexec completions fish | source\n\
         for first in {}; eval rexec kill (complete --escape -C \"rexec kill $first\" | string split -f1 \\t); end\n",
        firsts.join(" ")
    );
    // A line is typed when the one before has been run.
    let zsh = format!(
        "zmodload zsh/zpty\nzpty -b z zsh -f -i\nn=0\n\
         zpty -w z 'PS1=; autoload -Uz compinit; compinit -D -u; source <(rexec completions zsh)'\n\
         for first in {}; do\n    \
         zpty -w -n z \"rexec kill $first\"$'\\t\\n'\n    ((++n))\n    \
         until [[ -e called ]] && (( $(wc -l <called) >= n )); do zpty -r z seen; sleep 0.05; done\ndone\nzpty -d z\n",
        firsts.join(" ")
    );
    for (shell, arguments, text) in
        [("bash", &["--norc"][..], &bash), ("fish", &["--no-config"], &fish), ("zsh", &["-f"], &zsh)]
    {
        if !programs::has(shell) {
            continue;
        }
        let home = TempDir::new(None);
        hostile_services(home.path());
        let script = home.join("script");
        fs::write(&script, text).expect("a file");
        let mut command = programs::command("timeout");
        command.args(["240", shell]).args(arguments).arg(&script).current_dir(home.path()).env_clear();
        command.env("PATH", format!("{}:{}", home.join("bin").display(), programs::PATH));
        let output =
            command.env("HOME", home.path()).env("TERM", "xterm").stdin(Stdio::null()).output().expect("it starts");
        let called = fs::read_to_string(home.join("called")).unwrap_or_default();
        let called: Vec<&str> = called.lines().collect();
        assert_eq!(called, HOSTILE_NAMES, "{shell}: {output:?}");
        assert!(!home.join("ran").exists(), "{shell} ran what a name says");
    }
}

#[test]
fn fish_completes() {
    if !programs::has("fish") {
        return;
    }
    let (home, host) = (TempDir::new(None), host_with_runs());
    let script = home.join("script");
    let text = "rexec completions fish | source\n\
                for line in 'rexec ki' 'rexec kill --al' 'rexec kill 1' 'rexec help ag' 'rexec --li' \
                'rexec kill -s TE' 'rexec kill --signal=TE'\ncomplete -C $line\nend\n";
    fs::write(&script, text).expect("a file");
    let found = lines("fish", &["--no-config"], &script, &host);
    let found: Vec<&str> = found.iter().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(found, ["kill", "--all", "1", "agents", "--list", "TERM", "--signal=TERM"]);
    end(host);
}

/// zsh completes only where somebody types, so it gets a terminal of its own.
#[test]
fn zsh_completes() {
    if !programs::has("zsh") {
        return;
    }
    let (home, host) = (TempDir::new(None), host_with_runs());
    let (script, inner) = (home.join("script"), home.join("inner"));
    let stand_in = "rexec() { if [[ $1 == complete ]]; then command rexec \"$@\"; else print -r -- \"got: $*\"; fi }";
    let begin = "autoload -Uz compinit; compinit -D -u; source <(command rexec completions zsh)";
    fs::write(&inner, format!("PS1=\n{begin}\n{stand_in}\nprint rea''dy\n")).expect("a file");
    let text = format!(
        "zmodload zsh/zpty\nzpty z zsh -f -i\n\
         say() {{ local seen; zpty -w -n z \"$1\"; zpty -r -m z seen \"*$2*\"$'\\n'; print -r -- ${{${{(f)seen}}[-1]}}; }}\n\
         say $'source {}\\n' ready\n\
         say $'rexec ki\\t --al\\t\\n' got:\nsay $'rexec kill 1\\t\\n' got:\nsay $'rexec help ag\\t\\n' got:\n\
         say $'rexec --li\\t\\n' got:\n\
         say $'rexec kill --signal=TE\\t -s USR2\\t\\n' got:\nzpty -d z\n",
        inner.display()
    );
    fs::write(&script, text).expect("a file");
    let found = lines("timeout", &["240", "zsh", "-f"], &script, &host);
    let found: Vec<&str> = found.iter().map(|line| line.trim()).collect();
    assert_eq!(
        found,
        [
            "ready",
            "got: kill --all",
            "got: kill 1",
            "got: help agents",
            "got: --list",
            "got: kill --signal=TERM -s USR2"
        ]
    );
    end(host);
}
