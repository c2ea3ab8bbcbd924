//! An agent's own looks at the shell, and commands that only begin like one.

use super::*;

/// The script of the Claude Code at this path for a user without a profile, and for one with it.
fn of_users(program: &str) -> [String; 2] {
    let script = include_str!("../claude-snapshot.sh")
        .replace("{snapshot}", "/h/.claude/shell-snapshots/snapshot-bash-17-a1.sh")
        .replace("{end}", "abc")
        .replace("{program}", program)
        .replace("{home}", "/h")
        .replace("{path}", "/bin");
    let alias = "      echo \"shopt -s expand_aliases\" >> \"$SNAPSHOT_FILE\"\n\n      \n";
    let without = script.replace("{profile}", "# No user config file to source").replace("{state}", alias);
    let state = include_str!("../claude-snapshot-profile.sh");
    [without, script.replace("{profile}", "source \"/h/.bashrc\" < /dev/null").replace("{state}", state)]
}

#[test]
fn a_look_at_the_shell_with_the_users_own_profile_counts_as_one() {
    let env = ["CLAUDECODE=1", "AI_AGENT=claude-code_2_harness", "HOME=/h", "PATH=/bin", "CLAUDE_CODE_EXECPATH=/c"];
    let probe = |text: &str| call_by(Some(Agent::Claude), &env, &[b"bash", b"-c", b"-l", text.as_bytes()]).is_probe;
    let [without, with] = of_users("/c");
    assert!(probe(&without) && probe(&with));
    for text in [
        with.replace("/h/.bashrc", "/tmp/EVIL"),
        with.replace("      set -f &&\n", "      EVIL\n"),
        with.replace("source \"/h/.bashrc\" < /dev/null", "# No user config file to source"),
        without.replace("# No user config file to source", "source \"/h/.bashrc\" < /dev/null"),
    ] {
        assert!(!probe(&text), "{text}");
    }
}

#[test]
fn a_look_at_zsh_and_one_with_other_comments_count_as_well() {
    let env = ["CLAUDECODE=1", "AI_AGENT=claude-code_2_harness", "HOME=/h", "PATH=/bin", "CLAUDE_CODE_EXECPATH=/c"];
    let probe = |text: &str| call_by(Some(Agent::Claude), &env, &[b"zsh", b"-c", b"-l", text.as_bytes()]).is_probe;
    let [bash, _] = of_users("/c");
    let alias = "      echo \"shopt -s expand_aliases\" >> \"$SNAPSHOT_FILE\"\n";
    let zsh = bash.replace("snapshot-bash-", "snapshot-zsh-").replace(alias, "");
    let state = concat!(include_str!("../claude-snapshot-zsh.sh"), "      cat >> ");
    let with = zsh.replace("# No user config file to source", "source \"/h/.zshrc\" < /dev/null").replacen(
        "      cat >> ",
        state,
        1,
    );
    assert!(probe(&zsh) && probe(&with));
    assert!(probe(&zsh.replace("\n      echo", "\n\n      # One more comment; not a command\n      echo")));
    for text in [
        with.replace("/h/.zshrc", "/tmp/EVIL"),
        with.replace(".zshrc", ".bashrc"),
        zsh.replace("      echo", "      EVIL\n      echo"),
        zsh.replace("      echo", "      # it's\nEVIL\n      # it's\n      echo"),
        zsh.replace("      echo", "      # $(EVIL)\n      echo"),
        zsh.replace("      echo", "      # \\\n      echo"),
        bash.replace("snapshot-bash-", "snapshot-zsh-"),
    ] {
        assert!(!probe(&text), "{text}");
    }
}

#[test]
fn a_look_that_names_a_program_which_the_environment_does_not_is_one_line_with_it() {
    let env = ["CLAUDECODE=1", "AI_AGENT=claude-code_2_harness", "HOME=/h", "PATH=/bin"];
    let call = |text: &str| call_by(Some(Agent::Claude), &env, &[b"bash", b"-c", b"-l", text.as_bytes()]);
    for program in ["/opt/claude.exe", "/tmp/EVIL"] {
        for text in of_users(program) {
            let look = call(&text);
            let shown = format!("a look at the shell; rg, find and grep become {program}");
            assert_eq!(String::from_utf8(look.command).unwrap(), shown);
            assert!(look.is_unwrapped && look.is_for_program && !look.is_probe);
            let other = text.replacen(program, "/tmp/OTHER", 1);
            assert_eq!(call(&other).command, other.as_bytes(), "it is the same everywhere");
        }
    }
}

#[test]
fn only_an_agents_own_look_at_the_shell_counts_as_one() {
    let harness = [
        "CLAUDECODE=1",
        "AI_AGENT=claude-code_2-1-329_harness",
        "HOME=/h",
        "PATH=/bin",
        "CLAUDE_CODE_EXECPATH=/c/claude.exe",
    ];
    let [snapshot, _] = of_users("/c/claude.exe");
    let probe = |agent, env: &[&str], argv: &[&str]| {
        let argv: Vec<&[u8]> = argv.iter().map(|argument| argument.as_bytes()).collect();
        call_by(agent, env, &argv).is_probe
    };
    let claude = Some(Agent::Claude);
    assert!(probe(claude, &harness, &["bash", "-c", "env"]));
    assert!(probe(claude, &harness, &["bash", "-c", "-l", &snapshot]));
    let codex = include_str!("../codex-snapshot.sh");
    assert!(probe(Some(Agent::Codex), &CODEX, &["bash", "-lc", codex]));
    assert!(probe(Some(Agent::Codex), &CODEX, &["bash", "-l", "-c", codex]), "by BASH_ENV");

    for (agent, env) in
        [(claude, &CLAUDE[..]), (None, &harness), (Some(Agent::Codex), &harness), (claude, &harness[1..])]
    {
        assert!(!probe(agent, env, &["bash", "-c", "env"]), "{agent:?} {env:?}");
        assert!(!probe(agent, env, &["bash", "-c", "-l", &snapshot]), "{agent:?} {env:?}");
    }
    for text in [
        "SNAPSHOT_FILE=x\nEVIL",
        "env; EVIL",
        "env ",
        "ENV",
        "cargo test",
        &format!("{snapshot}EVIL"),
        &snapshot.replace("/bin\n", "/tmp/EVIL:/bin\n"),
        &snapshot.replace("/c/claude.exe", "/tmp/EVIL"),
        &snapshot.replacen("abc'", "abd'", 1),
        &snapshot.replace("snapshot-bash-17-a1.sh", "snapshot-bash-17-a1.sh;EVIL"),
        &snapshot.replace("snapshot-bash-17-a1.sh", "$(EVIL)"),
        &snapshot.replace("/h/.claude/", "/tmp/.claude/"),
    ] {
        assert!(!probe(claude, &harness, &["bash", "-c", "-l", text]), "{text}");
        assert!(!probe(claude, &harness, &["bash", "-c", text]), "{text}");
    }
    for text in
        [format!("{codex}EVIL"), codex.replace("declare -f", "declare -f; EVIL"), codex.replacen('\n', "\nEVIL\n", 1)]
    {
        assert!(!probe(Some(Agent::Codex), &CODEX, &["bash", "-lc", &text]), "{text}");
    }
    assert!(!probe(None, &[], &["bash", "-lc", codex]));
    assert!(!probe(Some(Agent::Codex), &CODEX, &["bash", "-lc", codex, "EVIL", "x"]));
    let check = "set -e; . \"/h/.codex/shell_snapshots/1-a.tmp-17\"";
    assert!(!probe(Some(Agent::Codex), &CODEX, &["bash", "-c", check]), "it executes a file, so it is shown");
}
