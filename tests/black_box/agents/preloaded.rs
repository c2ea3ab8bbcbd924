//! Agents that rexec does not know: the preload hands the shells that their own programs start to the shim, and nothing
//! else notices it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Place, host, said};
use crate::support::host::Host;
use crate::support::{programs, waiting};

/// What an agent prints.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The commands of a journal, in order.
fn commands(host: &Host) -> Vec<String> {
    let journal = host.journal();
    journal.of_type("start").filter_map(|start| start["command"].as_str().map(str::to_owned)).collect()
}

/// An agent, the program that executes it, and the commands that it gives to shells.
const AGENTS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "sketch",
        "node",
        r#"process.env.OPENCODE = "1";
const { execSync, spawnSync, execFileSync } = require("child_process");
const say = (text) => process.stdout.write(`${text}`.replaceAll(/REXEC_INSIDE=1\n/g, ""));
say(execSync("echo exec; sh -c 'echo nested'"));
say(spawnSync("bash", ["-c", "echo $0 by name; exit 3"]).status);
say(spawnSync("/bin/bash", ["--norc", "-o", "pipefail", "-c", "echo by path; echo $1", "me", "first"]).stdout);
say(spawnSync("env", [], { env: { A: "1", PATH: process.env.PATH } }).stdout);
say(spawnSync("sh", ["-c", "echo empty; env | sort | grep -v -e ^_= -e ^PWD= -e ^SHLVL="], { env: { A: "1" } }).stdout);
say(spawnSync("env", []).stdout.toString().split("\n").filter((line) => /^(LD_PRELOAD|REXEC_(RUN|PRELOAD|WHOAMI))/.test(line)));
say(spawnSync("/bin/bash", [], { input: "echo fed $0 $-; env | grep -c REXEC_PRELOAD; bash -c 'echo inner'; exit 3" }).stdout);
say(spawnSync("nosuchprogram-zz", ["-c", "x"]).error.code);
say(spawnSync("/nowhere/bash", ["-c", "x"]).error.code);
say(spawnSync("sh", ["unseen.sh"], { cwd: __dirname }).stdout);
const inner = `process.stdout.write(require("child_process").execSync("echo own child"))`;
say(execFileSync(process.execPath, ["-e", inner], { env: {} }));
"#,
        &[
            "echo exec; sh -c 'echo nested'",
            "echo $0 by name; exit 3",
            "echo by path; echo $1",
            "echo empty;",
            "/bin/bash",
            "echo own child",
        ],
    ),
    (
        "draft",
        "python3",
        r#"import asyncio, os, pty, subprocess, sys
def say(text):
    print(text, flush=True)
say(subprocess.run("echo run; exit 4", shell=True))
say(subprocess.check_output(["/bin/sh", "-c", 'exec "$0" "$@"', "/bin/bash", "-c", "echo inner"]))
say(os.popen("echo popen").read())
say(os.system("echo system; exit 5"))
say(os.system("kill -9 $$"))
async def ask():
    process = await asyncio.create_subprocess_shell("echo asyncio", stdout=subprocess.PIPE)
    say(await process.stdout.read())
asyncio.run(ask())
say(subprocess.check_output(["bash", "-c", "echo close_fds"], close_fds=False))
spawned = {"close_fds": False, "text": True, "stdout": subprocess.PIPE}
say(subprocess.run(["/bin/bash"], input="echo spawned $0 $-; env | grep -c REXEC_PRELOAD; exit 6", **spawned))
with open(sys.argv[0] + ".sh", "w") as file:
    file.write("env | grep -e ^LD_PRELOAD -e ^REXEC_ | grep -v -e _SOCKET= -e _HOME=; echo from a file $0")
with open(sys.argv[0] + ".sh") as file:
    say(subprocess.run(["/bin/bash"], stdin=file, **spawned))
fed = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for word in ["one", "two"]:
    print(f"echo {word}", file=fed.stdin, flush=True)
    say(fed.stdout.readline())
fed.stdin.close()
say(fed.wait())
if os.fork() == 0:
    os.execlp("sh", "sh", "-c", "echo execlp")
os.wait()
os.spawnle(os.P_WAIT, "/bin/sh", "sh", "-c", "echo spawnle $A", {"A": "1"})
"#,
        &[
            "echo run; exit 4",
            r#"exec "$0" "$@""#,
            "echo popen",
            "echo system; exit 5",
            "kill -9 $$",
            "echo asyncio",
            "echo close_fds",
            "/bin/bash",
            "bash",
            "echo execlp",
            "echo spawnle $A",
        ],
    ),
    (
        "outline",
        "perl",
        r#"$| = 1;
system("echo system; true");
print `echo backquotes; true`, $? >> 8, "\n";
open(my $out, "echo pipe; true |"); print <$out>; close($out);
system("sh", "-c", "echo list");
exec("echo exec; true");
"#,
        &["echo system; true", "echo backquotes; true", "echo pipe; true", "echo list", "echo exec; true"],
    ),
    (
        "plan",
        "ruby",
        r#"$stdout.sync = true
system("echo system; true")
puts `echo backquotes; true`
puts IO.popen("echo popen; true").read
Process.wait(Process.spawn({ "A" => "1" }, "echo spawn $A; true", unsetenv_others: true))
puts IO.popen(["/bin/bash", "-c", "echo array $0; true"]).read
puts IO.popen(["bash"], "r+") { |shell| shell.write("echo fed $-; exit 4"); shell.close_write; shell.read }, $?.exitstatus
puts IO.popen(["env"]).read.lines.grep(/^(LD_PRELOAD|REXEC_(RUN|PRELOAD|WHOAMI))/)
exec("echo exec; true")
"#,
        &[
            "echo system; true",
            "echo backquotes; true",
            "echo popen; true",
            "echo spawn $A; true",
            "echo array $0; true",
            "bash",
            "echo exec; true",
        ],
    ),
];

#[test]
fn every_shell_of_an_unknown_agent_is_seen_and_its_results_are_the_same() {
    for (name, program, text, expected) in AGENTS {
        if !programs::has(program) {
            continue;
        }
        let (place, host) = (Place::new(), host());
        let agent = place.program(name, &format!("#!/usr/bin/env {program}\n{text}"));
        programs::write(&agent.with_file_name("unseen.sh"), b"echo a script\n");
        let agent = agent.to_str().expect("a path in UTF-8");
        let alone = printed(&mut place.alone(agent));
        assert_eq!(printed(&mut place.run(&host, &[agent])), alone, "{name}");
        let last = expected.last().expect("a command");
        let is_last = |end: &serde_json::Value| end["command"].as_str().is_some_and(|command| command.contains(last));
        host.wait_for("the end of the last one", |journal| journal.of_type("end").any(is_last).then_some(()));
        let seen = commands(&host);
        assert_eq!(seen.len(), expected.len(), "{seen:#?}");
        assert!(seen.iter().zip(expected).all(|(seen, expected)| seen.contains(expected)), "{seen:#?}");
        assert!(host.journal().of_type("start").all(|start| start["whoami"] == name));
        host.finish();
    }
}

/// Agents with a row that names the preload: program, name, what they print by a shell, and the command, its agent, version
/// and session in the journal.
const KNOWN: [(&str, &str, &str, [&str; 4]); 5] = [(
    "kilo",
    "Kilo Code",
    "Object.assign(process.env, { OPENCODE: '1', KILO_PID: '7', KILO_RUN_ID: 'a-b', KILOCODE_VERSION: '7.7.7' });
console.log(require('child_process').spawnSync('/bin/bash', ['-c', 'echo in $OPENCODE']).stdout.toString());",
    ["echo in $OPENCODE", "kilo", "7.7.7", "a-b"],
), (
    "letta",
    "Letta Code",
    "const env = { ...process.env, LETTA_CONVERSATION_ID: 'conv-1' };
console.log(require('child_process').spawnSync('bash', ['-c', 'echo $LETTA_CONVERSATION_ID'], { env }).stdout.toString());",
    ["echo $LETTA_CONVERSATION_ID", "letta", "", "conv-1"],
),
    (
        "cn",
        "Continue",
        "const { spawnSync } = require('child_process');
const env = spawnSync('sh', ['unseen.sh'], { cwd: __dirname }).stdout;
console.log(`${env}`, spawnSync(process.env.SHELL, ['-l', '-c', 'echo in $SHELL']).stdout.toString());",
        ["echo in $SHELL", "", "", ""],
    ),
    (
        "kimi",
        "Kimi Code",
        "const text = \"cd '\" + process.cwd() + \"' && echo in $TERM\";
const env = { ...process.env, SHELL: '/bin/bash', TERM: 'dumb', PWD: process.cwd() };
console.log(require('child_process').spawnSync('/bin/bash', ['-c', text], { env }).stdout.toString());",
        ["echo in $TERM", "kimi", "", ""],
    ),
    (
        "vibe",
        "Mistral Vibe",
        "const first = '{ echo 1000 >/proc/self/oom_score_adj; } 2>&-; exec \"$0\" \"$@\"';
const env = { ...process.env, VIBE_APP_SERVER_BIN: '/x' };
const call = ['-c', first, '/bin/bash', '-c', 'echo in $0; cat /proc/self/oom_score_adj'];
console.log(require('child_process').spawnSync('/bin/sh', call, { env }).stdout.toString());",
        ["echo in $0; cat /proc/self/oom_score_adj", "vibe", "", ""],
    ),
];

#[test]
fn a_known_agent_with_the_preload_is_named_and_its_command_is_what_its_model_wrote() {
    if !programs::has("node") {
        return;
    }
    let (place, host) = (Place::new(), host());
    place.program("unseen.sh", "env | grep -e ^SHELL= -e ^LD_PRELOAD -e ^REXEC_RUN -e ^REXEC_PRELOAD\n");
    for (program, name, text, [command, agent, version, session]) in KNOWN {
        let path = place.program(program, &format!("#!/usr/bin/env node\n{text}\n"));
        let path = path.to_str().expect("a path in UTF-8");
        let alone = printed(&mut place.alone(path));
        assert_eq!(super::printed(&mut place.run(&host, &[path])), alone, "{program}: rexec says nothing");
        let end = host.wait_for(command, |journal| {
            journal.of_type("end").find(|end| end["whoami"] == name && end["command"] == command).cloned()
        });
        for (field, expected) in [("agent", agent), ("agent_version", version), ("session", session)] {
            assert!(expected.is_empty() || end[field] == expected, "{program}: {field}: {end}");
        }
    }
    host.finish();
}

#[test]
fn what_cannot_be_loaded_gets_variables_and_is_told_so() {
    let (place, host) = (Place::new(), host());
    let kilo = place.program("kilo", "#!/bin/sh\n/bin/bash -c 'echo from kilo'\n");
    let output = place.run(&host, &[kilo.to_str().expect("a path in UTF-8")]).output().expect("it starts");
    assert!(said(&output).contains("the agent `kilo` takes no preload: it is a shell script, so some"), "{output:?}");
    let is_kilos = |end: &serde_json::Value| end["command"] == "echo from kilo" && end["whoami"] == "Kilo Code";
    host.wait_for("its command", |journal| journal.of_type("end").any(is_kilos).then_some(()));
    let agent = place.program("sketch", "#!/bin/sh\nenv | grep ^LD_PRELOAD=; $SHELL -c 'echo seen'\n");
    let output = place.run(&host, &[agent.to_str().expect("a path in UTF-8")]).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "seen\n");
    assert!(said(&output).contains("the agent `sketch` is not known, and it is a shell script, so some"), "{output:?}");
    host.wait_for("its command", |journal| journal.end_of("echo seen").map(drop));
    host.finish();
}

/// The second one runs as another user, so the loader would take the preload out of its environment, and nothing else.
#[test]
fn an_own_program_that_takes_no_preload_gets_nothing_of_rexecs() {
    if !programs::has("python3") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let package = place.home.join("node_modules");
    fs::create_dir(&package).expect("a directory");
    let text =
        "import os, subprocess, sys\n[subprocess.run([os.path.dirname(sys.argv[0]) + own]) for own in sys.argv[1:]]\n";
    let agent = place.program("node_modules/sketch", &format!("#!/usr/bin/env python3\n{text}"));
    let agent = agent.to_str().expect("a path in UTF-8");
    for (own, mode) in [("loaded", 0o755), ("other", 0o4755)] {
        fs::copy("/usr/bin/env", package.join(own)).expect("a copy");
        fs::set_permissions(package.join(own), fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let set = |own| {
        let printed = printed(&mut place.run(&host, &[agent, own]));
        printed.lines().filter(|line| line.starts_with("LD_PRELOAD=") || line.starts_with("REXEC_RUN")).count()
    };
    assert_eq!((set("/loaded"), set("/other")), (3, 0));
    host.finish();
}

/// Threads that start shells all the time, as a busy agent does.
const CROWD: &str = r#"import subprocess, sys, threading
def work(number):
    for at in range(int(sys.argv[1])):
        word = f"{number}.{at}"
        if subprocess.run(f"echo {word}", shell=True, capture_output=True, text=True).stdout != word + "\n":
            print("wrong", word, flush=True)
threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done")
"#;

#[test]
#[ignore = "long: hundreds of shells from 16 threads"]
fn threads_that_start_shells_at_once_get_what_each_has_asked_for() {
    if !programs::has("python3") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let agent = place.program("crowd", &format!("#!/usr/bin/env python3\n{CROWD}"));
    let each = waiting::size(40, 625);
    let agent = agent.to_str().expect("a path in UTF-8");
    assert_eq!(printed(&mut place.run(&host, &[agent, &each.to_string()])), "done\n");
    host.wait_for("all of them", |journal| (journal.of_type("end").count() == 16 * each).then_some(()));
    host.finish();
}
