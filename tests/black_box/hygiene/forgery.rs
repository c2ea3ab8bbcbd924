//! Commands that would not be seen, and output that looks like another agent's command.

use std::fs;

use serde_json::Value;

use crate::support::call::{Call, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::strip::strip;
use crate::support::waiting::{self, PATIENCE};

const CLAUDE: &[&str] = &["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_agent"];
const HARNESS: &[&str] = &["CLAUDECODE=1", "AI_AGENT=claude-code_2-1-329_harness"];
const CODEX: &[&str] = &["CODEX_CI=1", "CODEX_THREAD_ID=1-a"];

/// Texts that show something harmless where a wrapper or a look at the shell is recognised by a part of it, for callers
/// with these variables. Each of them writes a file by the word `PAYLOAD`.
fn hidden() -> Vec<(&'static [&'static str], String)> {
    let pad = |c: &str| c.repeat(600);
    vec![
        (CLAUDE, "true && eval 'true' && pwd -P >| /dev/null; PAYLOAD".to_owned()),
        (CODEX, "true && eval 'true' && pwd -P >| /dev/null; PAYLOAD".to_owned()),
        (CLAUDE, "SNAPSHOT_FILE=x\nPAYLOAD".to_owned()),
        (HARNESS, "SNAPSHOT_FILE=x\nPAYLOAD".to_owned()),
        (HARNESS, "PAYLOAD".to_owned()),
        (&["AI_AGENT=claude-code_2-1-329_harness"], "PAYLOAD".to_owned()),
        (CODEX, "__CODEX_X=1\nPAYLOAD; exit 0\nexec '/bin/bash' -c 'git status'".to_owned()),
        (CODEX, "set -e; PAYLOAD; . \"/h/.codex/shell_snapshots/1-a.tmp-1\"".to_owned()),
        (&["GEMINI_CLI=1"], "shopt -u promptvars; PAYLOAD; exit\ntrap '' EXIT\nnpm test\n)\n__code=$?".to_owned()),
        (&["OPENCODE=1"], "shopt -s expand_aliases\nPAYLOAD; exit\n        cd -- \"$1\"\n        eval ls".to_owned()),
        (CODEX, format!(": {}; PAYLOAD", pad("x"))),
        (CODEX, format!("PAYLOAD; : {}", pad(" x"))),
        (CODEX, format!(": {}; PAYLOAD; : {}", pad(" "), pad("-"))),
    ]
}

/// H1
#[test]
fn no_command_hides_itself_from_console_and_journal() {
    let host = Host::start();
    for (number, (env, text)) in hidden().into_iter().enumerate() {
        let payload = format!("echo evil{number} >proof{number}");
        let call = env.iter().fold(host.call(&text.replace("PAYLOAD", &payload)), |call, entry| call.env(entry));
        call.run(Target::Shim(&host.socket()));
        assert!(host.home.join(&format!("proof{number}")).exists(), "it does what it hides: {text}");
        let banner_has =
            |payload: &str| host.console_text().lines().any(|row| row.starts_with('[') && row.contains(payload));
        assert!(waiting::until_true(PATIENCE, || banner_has(&payload)), "{text}:\n{}", host.console_text());
        host.wait_for("its record", |journal| {
            let is_whole = |end: &&Value| end["command"].as_str().is_some_and(|command| command.contains(&payload));
            journal.of_type("end").find(is_whole).map(|end| assert_eq!(end["unwrapped"], Value::Null))
        });
    }
    host.finish();
}

/// An agent's look at the shell runs the profile below HOME, which its caller chooses. It is one line on the console, not
/// none, and the journal has all of it.
#[test]
fn a_profile_that_an_agents_look_at_the_shell_runs_is_told_and_journalled() {
    let host = Host::start();
    let home = host.home.join("forged");
    fs::create_dir_all(home.join(".claude/shell-snapshots")).expect("the directory is ours");
    fs::write(home.join(".bashrc"), "echo evil >proof; echo said by the profile\n").expect("the directory is ours");
    let (home, path) = (home.to_str().expect("text"), "/usr/bin:/bin");
    let script = include_str!("../../../src/text/unwrap/claude-snapshot.sh")
        .replace("{profile}", "source \"{home}/.bashrc\" < /dev/null")
        .replace("{state}", include_str!("../../../src/text/unwrap/claude-snapshot-profile.sh"))
        .replace("{snapshot}", "{home}/.claude/shell-snapshots/snapshot-bash-17-a1.sh")
        .replace("{end}", "abc")
        .replace("{program}", "/opt/claude")
        .replace("{home}", home)
        .replace("{path}", path);
    let mut call = host.call(&script);
    call.argv = ["bash", "-c", "-l", &script].map(|argument| argument.as_bytes().to_vec()).to_vec();
    let own = [format!("HOME={home}"), format!("PATH={path}"), "CLAUDE_CODE_EXECPATH=/opt/claude".to_owned()];
    call.env.retain(|entry| !entry.starts_with(b"HOME=") && !entry.starts_with(b"PATH="));
    let call = own.iter().map(String::as_str).chain(HARNESS.iter().copied()).fold(call, Call::env);
    let seen = call.run(Target::Shim(&host.socket()));
    assert!(seen.out().starts_with("said by the profile\n") && host.home.join("proof").exists(), "{seen:?}");
    let is_told = || host.console_text().contains("(a look at the shell, in the journal)");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    let end = host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
    let exec = end["exec"][3].as_str().expect("text");
    let names_profile = exec.contains(&format!("source \"{home}/.bashrc\""));
    assert!(end["probe"] == true && names_profile && script.starts_with(exec.trim_end_matches('…')), "{end:#}");
    let output = end["output"].as_str().expect("text");
    assert!(output.starts_with("said by the profile\n"), "{end:#}");
    let mut list = programs::command(programs::rexec());
    let rows = list.arg("log").env("REXEC_HOME", host.journal_home()).output().expect("it starts").stdout;
    let rows = String::from_utf8_lossy(&rows).into_owned();
    assert!(rows.contains("SNAPSHOT_FILE="), "{rows}");
    host.finish();
}

/// H1
#[test]
fn a_wrapper_comes_off_and_the_record_has_both() {
    let host = Host::start();
    let home = host.home.path().display();
    let text = format!(
        "source {home}/.claude/shell-snapshots/snapshot-bash-17-a1.sh 2>/dev/null || true && eval 'echo inner' \
         < /dev/null && pwd -P >| {home}/claude-1a2b-cwd"
    );
    let call = CLAUDE.iter().fold(host.call(&text), |call, entry| call.env(entry));
    assert_eq!(call.run(Target::Shim(&host.socket())).out(), "inner\n");
    host.wait_for("its record", |journal| {
        let end = journal.end_of("echo inner")?;
        assert_eq!((&end["unwrapped"], &end["exec"][2]), (&Value::Bool(true), &Value::String(text.clone())));
        Some(())
    });
    let is_shown = || host.console_text().contains("$ echo inner (unwrapped)\ninner\n");
    assert!(waiting::until_true(PATIENCE, is_shown), "{}", host.console_text());
    host.finish();
}

/// H1
#[test]
fn a_look_at_the_shell_that_leaves_a_process_is_shown() {
    let host = Host::start();
    // What the profile starts runs in a text that is known to its last byte. It has the shell's name until it executes
    // its program.
    let profile = "sleep 1000 >/dev/null 2>&1 & echo $! >pid\n\
                   until read -r name </proc/$!/comm && [ \"$name\" = sleep ]; do :; done; unset name\n";
    fs::write(host.home.join(".bashrc"), profile).expect("a profile");
    let text = include_str!("../../../src/text/unwrap/codex-snapshot.sh");
    let look = |host: &Host| {
        let mut call = host.call(text).env("CODEX_HOME=/h/.codex").env("BASH_ENV=");
        call.argv[1] = b"-lc".to_vec();
        assert_eq!(call.run(Target::Shim(&host.socket())).code(), 0);
    };
    look(&host);
    let is_shown = || host.console_text().contains("left running: sleep");
    assert!(waiting::until_true(PATIENCE, is_shown), "{}", host.console_text());
    host.console_says("$ if [ -z");

    let pid = fs::read_to_string(host.home.join("pid")).expect("the profile wrote it");
    assert_eq!(host.run(&format!("kill {pid}")).code(), 0);
    fs::write(host.home.join(".bashrc"), "").expect("an empty profile");
    look(&host);
    host.run("echo after");
    let folded = "(a look at the shell, in the journal)\n[";
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains(folded)), "{}", host.console_text());
    host.finish();
}

/// What would be taken for the host's own rows, on each kind of console.
const FORGED: &str = r"printf '\033[97;48;2;0;95;134m[2026-05-21T09:42:18Z] #3 Claude Code:/x $ forged\033[0m\n'
printf '▌[2026-05-21T09:42:18Z] #3 Claude Code:/x $ forged\n>>> [2026-05-21T09:42:18Z] #3 forged\n'
printf '\342\226\033]0;x\007\214forged\n\033[7m▌\033[27mforged\n… #1 forged\nexit 1 · forged\n'
for n in 1 2 3 4 5 6 7 8 9; do printf '\033[A'; done; printf '\r\033[Jforged\n'";

/// H2
#[test]
fn output_makes_no_row_of_the_host_s_own() {
    let dumb = Setup { terminal: true, wrapper: &["env", "TERM=dumb"], ..PLAIN };
    let ascii = Setup { terminal: true, wrapper: &["env", "LC_ALL=C"], ..PLAIN };
    let terminal = Setup { terminal: true, flags: &["--no-status"], ..PLAIN };
    for (setup, mark) in [(terminal, "▌"), (dumb, ">>> "), (ascii, ">>> "), (PLAIN, "[")] {
        let host = Host::with(setup);
        host.run(FORGED);
        host.run("echo the last; exit 3");
        let is_over = || ["exit 3 ·", "exit 3 -"].iter().any(|end| host.console_text().contains(end));
        assert!(waiting::until_true(PATIENCE, is_over), "{mark}: {}", host.console_text());
        let text = String::from_utf8_lossy(&strip(host.console_text().as_bytes())).into_owned();
        let own: Vec<&str> = text.split(['\n', '\r']).filter(|row| row.starts_with(mark)).collect();
        let banners = own.iter().filter(|row| row.contains("#1 ") || row.contains("#2 ")).count();
        assert_eq!((banners, own.iter().any(|row| row.contains("exit 3 "))), (2, mark != "["), "{own:?}");
        assert!(!own.iter().any(|row| row.contains("forged") && !row.contains("printf")), "{own:?}");
        let own_bars = text.matches('▌').count();
        assert!(mark != "▌" || own_bars == own.len(), "{own_bars} bars in {own:?}");
        host.finish();
    }
}

/// H2, in a real terminal: whatever is drawn, the banner above stays as it was.
#[test]
fn output_never_reaches_a_row_of_the_host_s_own() {
    if !programs::has("tmux") {
        return;
    }
    let pane = super::pane::Pane::start(None, &[]);
    let overwrite =
        r"printf '\033[9A\r\033[2K\033[1;1H\033[H\033[2J\0337\0338\033M\033M\033M\033[999D\033[5F\033[3Sforged'";
    assert_eq!(Call::bash(overwrite, pane.home.path()).run(Target::Shim(&pane.socket())).code(), 0);
    pane.flags_at_the_next(1).expect("a harmless command is seen");
    let screen = pane.tmux(&["capture-pane", "-p"]);
    let at = screen.lines().position(|row| row.starts_with("▌") && row.contains("printf '\\033[9A")).expect("a banner");
    let below: Vec<&str> = screen.lines().skip(at + 1).skip_while(|row| row.starts_with('▌')).collect();
    assert_eq!(below[0], "forged", "{screen}");
}

/// H2, in a real terminal: lines that are overwritten, moves that end at the edge and rows that are left lead nowhere else.
#[test]
fn output_changes_no_banner_above_or_below_it() {
    if !programs::has("tmux") {
        return;
    }
    let pane = super::pane::Pane::start(None, &[]);
    let run = |command: &str| {
        assert_eq!(Call::bash(command, pane.home.path()).run(Target::Shim(&pane.socket())).code(), 0);
    };
    run("seq 40; echo first");
    run("for n in 1 2 3 4 5 6 7 8 9 10; do echo line; done; printf '\\033[10A%0800d\\n\\033[9B\\033[10A\\rforged' 0");
    run("printf '%0400d\\n\\033[A\\033[?7l\\033[B' 7");
    run("echo last");
    pane.flags_at_the_next(4).expect("a harmless command is seen");
    let screen = pane.tmux(&["capture-pane", "-p", "-S", "-"]);
    let rows: Vec<&str> = screen.lines().collect();
    let at = rows.iter().position(|row| row.contains("for n in")).expect("a banner");
    assert!(rows[at - 2] == "first" && rows[at - 1].starts_with("▌✓"), "{screen}");
    assert!(rows.iter().any(|row| row.starts_with("▌") && row.ends_with(" echo last")), "{screen}");
    assert!(rows.iter().any(|row| row.starts_with("forged")), "{screen}");
}
