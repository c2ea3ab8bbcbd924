//! `rexec export`: a command and its output as a file for others.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::support::host::Host;
use crate::support::programs;

/// What a call of `rexec` printed, and its exit code.
pub(crate) struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    pub(crate) fn out(&self) -> String {
        self.out.clone()
    }

    pub(crate) fn err(&self) -> String {
        self.err.clone()
    }
}

/// Calls `rexec` beside this host.
pub(crate) fn rexec(host: &Host, arguments: &[&str]) -> Said {
    let mut command = programs::command(programs::rexec());
    let place = [("REXEC_SOCKET", host.socket()), ("REXEC_HOME", host.journal_home())];
    command.args(arguments).env_clear().env("PATH", programs::PATH).envs(place).stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code().expect("an exit code"), out: text(output.stdout), err: text(output.stderr) }
}

const COLOURED: &str = "printf '\\033[1;31merror\\033[0m: <b> & \"x\"\\n10 %%\\r50 %%\\r\\n```` fence\\n'; exit 3";

fn host() -> Host {
    let host = Host::start();
    assert_eq!(host.run(COLOURED).code(), 3);
    assert_eq!(host.run("true").code(), 0);
    assert_eq!(host.run("seq 1 30000").code(), 0);
    host.wait_for("three ends", |journal| (journal.of_type("end").count() == 3).then_some(()));
    host
}

#[test]
fn a_cast_has_a_header_and_events_in_order() {
    let host = host();
    let seen = rexec(&host, &["export", "1", "--cast"]);
    assert_eq!((seen.code(), seen.err()), (0, String::new()));
    let lines: Vec<Value> = seen.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]), (&2.into(), &160.into(), &48.into()));
    assert!(lines[0]["timestamp"].as_i64().unwrap() > 1_700_000_000 && lines[0]["command"] == COLOURED);
    let times: Vec<f64> = lines[1..].iter().map(|event| event[0].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && lines[1..].iter().all(|event| event[1] == "o"));
    let output: String = lines[1..].iter().map(|event| event[2].as_str().unwrap()).collect();
    assert_eq!(output, "\x1b[1;31merror\x1b[0m: <b> & \"x\"\r\n10 %\r50 %\r\n```` fence\r\n");
    let silent = rexec(&host, &["export", "2", "--cast"]);
    let expected = "rexec: command 2 has no recording\nhint: it wrote nothing\n";
    assert_eq!((silent.code(), silent.err().as_str()), (1, expected));
    host.finish();
}

/// A cast is played on somebody's terminal, and Markdown is looked at there.
#[test]
fn what_is_exported_neither_asks_nor_changes_a_terminal() {
    let host = Host::start();
    let hostile = "printf 'a\\033[6n\\033]52;c;eA==\\007\\033]0;t\\007b\\302\\233c\\342\\200\\256d\\005\\033[?1000he\\n'; : '\u{202e}\u{9b}▌'";
    assert_eq!(host.run(hostile).code(), 0);
    host.wait_for("its end", |journal| journal.of_type("end").next().is_some().then_some(()));
    for form in ["--cast", "--md"] {
        let out = rexec(&host, &["export", "1", form]).out();
        let is_shown = |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{202e}' | '▌'));
        assert!(out.chars().all(is_shown), "{form}: {out:?}");
    }
    let cast = rexec(&host, &["export", "1", "--cast"]).out();
    let events: Vec<Value> = cast.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let output: String = events.iter().map(|event| event[2].as_str().unwrap()).collect();
    assert_eq!(output, "abc⟨202E⟩de\r\n");
    host.finish();
}

#[test]
fn text_and_markdown_have_the_clean_output() {
    let host = host();
    assert_eq!(rexec(&host, &["export", "1", "--text"]).out(), "error: <b> & \"x\"\n50 %\n```` fence\n");
    let all: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    assert!(rexec(&host, &["export", "-1", "--text"]).out() == all);
    let markdown = rexec(&host, &["export", "1", "--md"]).out();
    assert!(markdown.contains("\n`````text\nerror: <b> & \"x\"\n50 %\n```` fence\n`````\n"), "{markdown}");
    assert!(markdown.starts_with("`````sh\nprintf") && markdown.contains("\nexit 3 · "), "{markdown}");
    assert!(rexec(&host, &["export", "3", "--md"]).out().contains("\n\n```text\n1\n2\n"));
    assert!(rexec(&host, &["export", "2", "--md"]).out().ends_with(" · no output\n"));
    host.finish();
}

#[test]
fn a_file_that_exists_is_kept_without_force() {
    let host = host();
    let path = host.journal_home().parent().unwrap().join("run.md");
    fs::write(&path, "mine").unwrap();
    let name = path.to_str().unwrap();
    let refused = rexec(&host, &["export", "1", "-o", name]);
    assert_eq!((refused.code(), fs::read_to_string(&path).unwrap().as_str()), (1, "mine"));
    assert!(refused.err().contains("exists\nhint: --force replaces it"), "{}", refused.err());
    assert_eq!(rexec(&host, &["export", "1", "-o", name, "--force"]).code(), 0);
    assert!(fs::read_to_string(&path).unwrap().starts_with("`````sh\n"), "the form is that of the name");
    for (arguments, code) in [
        (&["export"][..], 2),
        (&["export", "1"], 2),
        (&["export", "1", "--cast", "--md"], 2),
        (&["export", "x", "--md"], 3),
        (&["export", "9", "--md"], 3),
        (&["export", "1", "--md", "-o", "/nowhere/x"], 1),
    ] {
        let seen = rexec(&host, arguments);
        assert_eq!(seen.code(), code, "{arguments:?}: {}", seen.err());
        assert!(seen.err().contains("\nhint: "), "{arguments:?}: {}", seen.err());
    }
    host.finish();
}
