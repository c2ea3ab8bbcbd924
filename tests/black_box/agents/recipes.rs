//! Each recipe catches an agent that calls its shell in that way, and no command can tell the difference.

use super::{Place, host, printed};
use crate::support::programs;

/// A stand-in for an agent.
struct Agent {
    /// The name of its program.
    program: &'static str,
    /// As the journal names it.
    name: &'static str,
    /// How it runs a command: words of sh in which `$command` is the command.
    call: &'static str,
}

/// How each agent runs a command. Its own variables name it there.
const AGENTS: [Agent; 11] = [
    Agent {
        program: "claude",
        name: "Claude Code",
        call: r#"CLAUDECODE=1 "${CLAUDE_CODE_SHELL:-/bin/bash}" -c "$command""#,
    },
    Agent { program: "codex", name: "Codex", call: r#"CODEX_CI=1 /bin/bash -lc "$command""# },
    Agent { program: "gemini", name: "Gemini CLI", call: r#"GEMINI_CLI=1 bash -c "$command""# },
    Agent { program: "qwen", name: "Qwen Code", call: r#"QWEN_CODE=1 bash -c "$command""# },
    Agent {
        program: "opencode",
        name: "opencode",
        call: r#"shell=$(printf %s "$OPENCODE_CONFIG_CONTENT" | sed -n 's/.*"shell":"\([^"]*\)".*/\1/p')
OPENCODE=1 "${shell:-$SHELL}" -c "$command""#,
    },
    Agent { program: "pi", name: "pi", call: r#"PI_CODING_AGENT=true /bin/bash -c "$command""# },
    Agent {
        program: "copilot",
        name: "Copilot CLI",
        call: r#"COPILOT_CLI=1 /bin/bash --norc --noprofile -c "$command""#,
    },
    Agent { program: "cline", name: "Cline", call: r#"CLINE_CONNECTOR_CLI_LAUNCH=x /bin/bash -c "$command""# },
    Agent { program: "cn", name: "Continue", call: r#""$SHELL" -l -c "$command""# },
    Agent { program: "aider", name: "Aider", call: r#""$SHELL" -i -c "$command" 2>/dev/null"# },
    Agent { program: "goose", name: "Goose", call: r#"GOOSE_TERMINAL=1 /bin/bash -c "$command""# },
];

/// Everything by which a command could tell how it was started.
const COMMAND: &str = "env | grep -v -e ^_= -e ^REXEC_INSIDE= | sort; type -a bash; echo $0 $#";

#[test]
fn each_agent_is_caught_and_its_commands_cannot_tell() {
    let (place, host) = (Place::new(), host());
    let own = place.program("own.sh", "export OWN_FILE=read\n");
    for agent in AGENTS {
        let text = format!("#!/bin/sh\ncommand='{COMMAND} {}'\n{}\n", agent.program, agent.call);
        let program = place.program(agent.program, &text);
        let program = program.to_str().expect("a path in UTF-8");
        let settings = [
            &[("SHLVL", "3")][..],
            &[("SHLVL", "3"), ("BASH_ENV", own.to_str().expect("a path in UTF-8"))],
            &[("OPENCODE_CONFIG_CONTENT", r#"{"theme":"x"}"#), ("CLAUDE_CODE_SHELL", "/bin/bash")],
        ];
        for user in settings {
            let alone = printed(place.alone(program).envs(user.iter().copied()));
            let ours = printed(place.run(&host, &[program]).envs(user.iter().copied()));
            assert_eq!(ours, alone, "{} with {user:?}", agent.program);
            assert!(alone.contains("PATH="), "the command has run: {alone}");
        }
        let command = format!("{COMMAND} {}", agent.program);
        let caught = |journal: &crate::support::journal::Journal| {
            let ends = journal.of_type("end").filter(|end| end["command"] == *command);
            (ends.filter(|end| end["whoami"] == agent.name).count() == settings.len()).then_some(())
        };
        host.wait_for(&format!("{} commands of {}", settings.len(), agent.name), caught);
    }
    host.finish();
}

#[test]
fn with_all_variables_at_once_each_agent_is_caught_as_well() {
    let (place, host) = (Place::new(), host());
    // rexec does not know this program, and sets whatever may help.
    let starter = place.program("starter", "#!/bin/sh\nexec \"$@\"\n");
    let starter = starter.to_str().expect("a path in UTF-8");
    for agent in AGENTS {
        let text = format!("#!/bin/sh\ncommand='{COMMAND} all {}'\n{}\n", agent.program, agent.call);
        let program = place.program(agent.program, &text);
        let program = program.to_str().expect("a path in UTF-8");
        let alone = printed(place.alone(program).env("SHLVL", "3"));
        let output = place.run(&host, &[starter, program]).env("SHLVL", "3").output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), alone, "{}", agent.program);
        let command = format!("{COMMAND} all {}", agent.program);
        host.wait_for(&command, |journal| journal.end_of(&command).map(|_| ()));
    }
    host.finish();
}

#[test]
fn a_command_has_the_users_own_shell_or_none() {
    let (place, host) = (Place::new(), host());
    for (agent, shells, users) in [
        ("cn", r#""${SHELL:-/bin/bash}""#, &[None, Some("/bin/dash")][..]),
        // rexec does not know this one, and stands for bash where it does not know the user's shell.
        ("sketch", "bash /bin/bash", &[None, Some("/bin/dash"), Some("/usr/bin/nu")]),
    ] {
        let text = format!(
            "#!/bin/sh\nfor shell in {shells}; do $shell -c 'env | grep ^SHELL=; echo end$REXEC_INSIDE'; done\n"
        );
        let program = place.program(agent, &text);
        let program = program.to_str().expect("a path in UTF-8");
        for user in users {
            let of = |mut command: std::process::Command| {
                command.env_remove("SHELL").envs(user.map(|shell| ("SHELL", shell)));
                String::from_utf8(command.output().expect("it starts").stdout).expect("text")
            };
            let alone = of(place.alone(program));
            assert_eq!(of(place.run(&host, &[program])), alone.replace("end\n", "end1\n"), "{agent} with {user:?}");
        }
    }
    host.finish();
}

/// The class that mini-swe-agent imports, as far as our own uses it.
const LOCAL: &str = r#"
import os, subprocess
class LocalEnvironment:
    def execute(self, command):
        return subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
"#;

const MINI: &str = r#"#!/usr/bin/env python3
import importlib, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["HOME"])
name = sys.argv[sys.argv.index("--environment-class") + 1] if "--environment-class" in sys.argv else None
module, name = name.rsplit(".", 1) if name else ("minisweagent.environments.local", "LocalEnvironment")
print(getattr(importlib.import_module(module), name)().execute(os.environ["COMMAND"]), end="")
"#;

#[test]
fn mini_swe_agent_is_caught_by_its_own_extension_point() {
    if !programs::has("python3") {
        return;
    }
    let (place, host) = (Place::new(), host());
    std::fs::create_dir_all(place.home.join("minisweagent/environments")).expect("a directory");
    place.program("minisweagent/environments/local.py", LOCAL);
    let program = place.program("mini", MINI);
    let program = program.to_str().expect("a path in UTF-8");
    let command = "env | grep -v -e ^_= -e ^REXEC_INSIDE= | sort; echo $0 mini";
    for path in [None, Some("/nowhere:/else")] {
        let user = || path.map(|path| ("PYTHONPATH", path)).into_iter().chain([("COMMAND", command)]);
        let alone = printed(place.alone(program).envs(user()));
        let ours = printed(place.run(&host, &[program]).envs(user()));
        assert_eq!(ours, alone);
    }
    let ends = |journal: &crate::support::journal::Journal| {
        let ends = journal.of_type("end").filter(|end| end["command"] == *command);
        (ends.filter(|end| end["whoami"] == "mini-swe-agent").count() == 2).then_some(())
    };
    host.wait_for("both commands", ends);
    host.finish();
}

#[test]
fn scripts_of_a_caught_agent_still_read_the_users_own_file() {
    let (place, host) = (Place::new(), host());
    let own = place.program("own.sh", "own_file=read\n");
    place.program("script", "#!/bin/bash\necho script $own_file\n");
    let program = place.program("pi", "#!/bin/sh\n./script\n/bin/bash -c './script; echo command $own_file'\n");
    let program = program.to_str().expect("a path in UTF-8");
    let printed = printed(place.run(&host, &[program]).env("BASH_ENV", own));
    assert_eq!(printed, "script read\nscript read\ncommand read\n");
    host.finish();
}

#[test]
fn an_agent_that_starts_zsh_by_its_full_path_is_caught_for_accounts_with_zsh() {
    let Some(zsh) = programs::has("zsh").then(|| programs::find("zsh")).flatten() else { return };
    let (place, host) = (Place::new(), host());
    place.program(".zshenv", "export FROM=home\n");
    std::fs::create_dir(place.home.join("dots")).expect("a directory");
    place.program("dots/.zshenv", "export FROM=dots\n");
    place.program("script", "#!/usr/bin/env zsh\necho script $FROM $ZDOTDIR\n");
    // The account of the tests may have another shell, so the agent sets what `rexec run` would.
    let recipe = "[ -z \"$BASH_ENV\" ] || { [ -z \"$ZDOTDIR\" ] || export REXEC_OWN_ZDOTDIR=$ZDOTDIR
export ZDOTDIR=${BASH_ENV%/*}/rexec-zdotdir REXEC_RUN_SET=$REXEC_RUN_SET:ZDOTDIR; }";
    let zsh = zsh.display();
    let calls = [
        "-c \"$command\"",
        "-lc \"$command\"",
        "-c \"$command\" name one 'two words'",
        "-o pipefail -o extendedglob -ec \"$command\"",
    ];
    // With extendedglob a bare `^` would match files.
    let command = "env | grep -v \"^\\(_\\|REXEC_INSIDE\\)=\" | sort; echo $0 $# $1 $2; setopt; echo $options[login]";
    let lines: Vec<String> = calls.iter().map(|call| format!("PI_CODING_AGENT=1 {zsh} {call}\n")).collect();
    let text = format!("#!/bin/sh\n{recipe}\ncommand='{command}'\n{}./script\n", lines.concat());
    let program = place.program("pi", &text);
    let program = program.to_str().expect("a path in UTF-8");
    let dots = place.home.join("dots");
    for (round, own) in [None, Some(dots.to_str().expect("a path in UTF-8"))].into_iter().enumerate() {
        let own = || own.map(|path| ("ZDOTDIR", path));
        let alone = printed(place.alone(program).envs(own()));
        assert_eq!(printed(place.run(&host, &[program]).envs(own())), alone);
        let seen = |journal: &crate::support::journal::Journal| {
            (journal.of_type("end").filter(|end| end["whoami"] == "pi").count() == calls.len() * (round + 1))
                .then_some(())
        };
        host.wait_for("each call", seen);
    }
    host.finish();
}

#[test]
fn each_agent_that_is_offered_is_driven_for_real_by_the_script() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |name: &str| std::fs::read_to_string(root.join(name)).expect("a text");
    let (readme, script) = (text("README.md"), text("scripts/agents.sh"));
    let driven = |list: &str| -> Vec<String> {
        let (_, from) = script.split_once(&format!("\n{list}=(")).expect("the list is there");
        from[..from.find(')').expect("an end")].split_whitespace().map(str::to_owned).collect()
    };
    let (always, on_request) = (driven("all"), driven("on_request"));
    let is_in = |list: &[String], program: &str| {
        list.iter().any(|name| name == program || name.strip_suffix("-terminal") == Some(program))
    };
    let is_driven = |program: &&str| is_in(&always, program) || is_in(&on_request, program) || *program == "PROGRAM";
    let rows = readme.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split_once("`rexec run "));
    let table: Vec<&str> = rows.filter_map(|(_, rest)| Some(rest.split_once('`')?.0)).collect();
    assert!(table.len() > 10 && table.iter().all(is_driven), "{table:?} of {always:?}");
    let listed = printed(Place::new().alone(programs::rexec()).args(["run", "--list"]));
    let offered: Vec<&str> =
        listed.lines().filter_map(|line| line.split_once("rexec run ")).map(|(_, rest)| rest).collect();
    // It has gigabytes; a stand-in for its tmux is tried in nesting.rs.
    let is_tried = |program: &&str| *program == "openhands" || is_driven(program);
    assert!(offered.len() > 10 && offered.iter().all(is_tried), "{offered:?} of {always:?}");
    // The table leaves out only what is too large to be driven every time.
    let is_told = |program: &&&str| table.contains(*program) || !is_in(&always, program);
    assert_eq!(offered.iter().filter(|program| !is_told(program)).count(), 0, "{offered:?} but {table:?}");
}
