//! What a caught agent's command starts itself: other programs that call a shell, and `rexec run` once more. Nothing comes
//! round to the shim again without end, and raw bytes pass.

use std::fs;
use std::process::{Command, Stdio};

use super::{Place, host, printed, said};
use crate::support::call::pattern;
use crate::support::host::Host;
use crate::support::programs;
use crate::support::waiting;

/// An agent that runs its argument by each shell that `rexec run` may give it.
const STARTER: &str = "#!/bin/sh
for shell in \"$SHELL\" \"$CLAUDE_CODE_SHELL\" bash /bin/bash; do
    $shell -c \"$1\" || exit
done
";

/// Runs a command by an agent as by plain bash. It must print the same, and be one run each of the four times: what it
/// starts is a part of it.
fn is_one_run(place: &Place, host: &Host, command: &str) -> String {
    let starter = place.program("starter", STARTER);
    let starter = starter.to_str().expect("a path in UTF-8");
    let alone = printed(place.alone(starter).arg(command).env("CLAUDE_CODE_SHELL", "/bin/bash"));
    let mut run = place.run(host, &[starter, command]);
    let output = run.env("CLAUDE_CODE_SHELL", "/bin/bash").output().expect("it starts");
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), alone, "{command}");
    let all = host.wait_for(command, |journal| {
        let ends = journal.of_type("end").filter(|end| end["command"] == *command).count();
        (ends == 4).then(|| journal.of_type("start").count())
    });
    assert_eq!(all, 4, "{command}: what it starts is not a run of its own");
    alone
}

#[test]
fn an_inner_agent_has_its_own_name_if_rexec_run_has_started_it() {
    let (place, host) = (Place::new(), host());
    let inner = place.program("goose", "#!/bin/sh\nGOOSE_TERMINAL=1 /bin/bash -c \"echo goose $1\"\n");
    let (rexec, inner) = (programs::rexec(), inner.display().to_string());
    let text = format!("#!/bin/sh\n{inner} alone\n{} run {inner} run\n", rexec.display());
    let outer = place.program("pi", &text);
    assert_eq!(printed(&mut place.run(&host, &[outer.to_str().expect("a path in UTF-8")])), "goose alone\ngoose run\n");
    for (command, name) in [("echo goose alone", "pi"), ("echo goose run", "Goose")] {
        let end = host.wait_for(command, |journal| journal.end_of(command).cloned());
        assert_eq!(end["whoami"], name, "{command}");
    }
    host.finish();
}

#[test]
fn what_make_starts_is_part_of_the_command() {
    if !programs::has("make") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let makefile = "all:\n\t@echo $(SHELL) $$REXEC_INSIDE | sed s/1$$//; bash -c 'echo from bash'\n\t@$(MAKE) -s inner\ninner:\n\t@echo inner\n";
    place.program("Makefile", makefile);
    let printed =
        is_one_run(&place, &host, "unset REXEC_INSIDE; make -s --no-print-directory; SHELL=$SHELL make -s inner");
    assert!(printed.contains("from bash\ninner\ninner\n"), "{printed}");
    host.finish();
}

#[test]
#[ignore = "long: starts npm 16 times"]
fn what_npm_starts_is_part_of_the_command() {
    if !programs::has("npm") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let package =
        r#"{ "scripts": { "hello": "echo hello; bash -c 'echo from bash'", "outer": "npm run --silent hello" } }"#;
    place.program("package.json", package);
    let printed = is_one_run(&place, &host, "npm run --silent outer --script-shell bash");
    assert!(printed.starts_with("hello\nfrom bash\n"), "{printed}");
    host.finish();
}

#[test]
fn what_git_starts_is_part_of_the_command() {
    if !programs::has("git") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let git = "git -c user.name=x -c user.email=x@example.org -c core.hooksPath=hooks";
    fs::create_dir(place.home.join("hooks")).expect("a directory");
    place.program("hooks/pre-commit", "#!/usr/bin/env bash\necho the hook; bash -c 'echo from bash'\n");
    place.program("hooks/post-commit", "#!/bin/bash\necho the second hook\n");
    let commit = format!(
        "rm -rf project && git init -q project && cp -r hooks project && cd project && \
         {git} -c alias.hello='!echo alias; bash -c \"echo in it\"' hello && {git} commit -q --allow-empty -m x 2>&1"
    );
    let printed = is_one_run(&place, &host, &commit);
    assert!(printed.starts_with("alias\nin it\nthe hook\nfrom bash\nthe second hook\n"), "{printed}");
    host.finish();
}

#[test]
fn rexec_run_inside_a_run_finds_the_same_host() {
    let (place, host) = (Place::new(), host());
    let inner = place.program("inner", "#!/bin/sh\nPI_CODING_AGENT=1 $SHELL -c 'echo inner $REXEC_INSIDE'\n");
    let outer = place.program("pi", "#!/bin/sh\nPI_CODING_AGENT=1 /bin/bash -c \"$1\"\n");
    let (rexec, inner) = (programs::rexec().display(), inner.display());
    // An agent of its own, at one and at two removes. Its commands are runs of their own at the same host.
    let command = format!(
        "{rexec} run -- {inner} 2>/dev/null; {rexec} run {rexec} run {inner} 2>/dev/null; {rexec} exec -- echo words"
    );
    let outer = outer.to_str().expect("a path in UTF-8");
    assert_eq!(printed(&mut place.run(&host, &[outer, &command])), "inner 1\ninner 1\nwords\n");
    host.wait_for("all four commands", |journal| (journal.of_type("end").count() == 4).then_some(()));
    // The other verbs find the host and its journal, too.
    let command = format!("{rexec} status >status && echo found; {rexec} out 1");
    assert_eq!(printed(&mut place.run(&host, &[outer, &command])), "found\ninner 1\ninner 1\nwords\n");
    host.finish();
}

#[test]
fn panes_of_tmux_are_commands_and_shells() {
    if !programs::has("tmux") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let tmux = "tmux -S socket -f /dev/null";
    let pane = "echo pane $REXEC_INSIDE ${SHELL##*/} >out; [ -t 0 ] && [ -t 1 ] && echo terminal >>out";
    // tmux runs the command of a pane by SHELL, and starts SHELL as a login shell in a pane without one.
    let text =
        format!("#!/bin/sh\n{tmux} new-session -d -x 80 -y 24 '{pane}; sleep 300' && {tmux} new-window -d -n shell\n");
    let starter = place.program("starter", &text);
    let mut run = place.run(&host, &[starter.to_str().expect("a path in UTF-8")]);
    // What tmux starts has this environment, and none of a test that runs in a tmux.
    assert!(run.env("TERM", "xterm-256color").output().expect("it starts").status.success());
    let text = |name: &str| fs::read_to_string(place.home.join(name)).unwrap_or_default();
    waiting::wait_until("the command of the pane", || text("out").ends_with("terminal\n"));
    assert_eq!(text("out"), "pane 1 bash\nterminal\n");
    let tmux = |args: &[&str]| printed(place.alone("tmux").args(["-S", "socket"]).args(args));
    let typed = "echo typed $REXEC_INSIDE $0 >typed";
    tmux(&["send-keys", "-t", "shell", typed, "Enter"]);
    waiting::wait_until("the line that is typed", || text("typed").ends_with('\n'));
    assert!(text("typed").starts_with("typed -"), "a login shell of its own: {}", text("typed"));
    tmux(&["kill-server"]);
    // The command is hung up as a shell of a pane is.
    host.wait_for("the pane's command", |journal| {
        let mut ends = journal.of_type("end");
        ends.find(|end| end["command"].as_str().is_some_and(|command| command.starts_with("echo pane"))).map(|_| ())
    });
    host.finish();
}

/// OpenHands types its commands into a `/bin/bash` in a tmux of its own.
#[test]
fn a_shell_that_openhands_types_into_is_one_run_on_a_terminal() {
    if !programs::has("tmux") {
        return;
    }
    let (place, host) = (Place::new(), host());
    let tmux = "tmux -S socket -f /dev/null";
    let text =
        format!("#!/bin/sh\n{tmux} new-session -d -s first -x 80 -y 24\n{tmux} new-window -n agents /bin/bash\n");
    let agent = place.program("openhands", &text);
    let mut run = place.run(&host, &[agent.to_str().expect("a path in UTF-8")]);
    let output = run.env("TERM", "xterm-256color").output().expect("it starts");
    assert!(output.status.success() && said(&output).is_empty(), "{output:?}");
    let tmux = |args: &[&str]| printed(place.alone("tmux").args(["-S", "socket"]).args(args));
    tmux(&["send-keys", "-t", "agents", "[ -t 0 ] && echo typed $REXEC_INSIDE $SHELL >typed", "Enter"]);
    let typed = || fs::read_to_string(place.home.join("typed")).unwrap_or_default();
    waiting::wait_until("the line that is typed", || typed().ends_with('\n'));
    assert_eq!(typed(), "typed 1 /bin/bash\n");
    tmux(&["kill-server"]);
    let is_it = |end: &serde_json::Value| end["command"] == "/bin/bash" && end["whoami"] == "OpenHands";
    host.wait_for("its shell", |journal| journal.of_type("end").any(is_it).then_some(()));
    host.finish();
}

/// ssh runs `$SHELL -c "exec COMMAND"` for its `ProxyCommand`, and talks to it on pipes.
#[test]
fn raw_bytes_pass_both_ways() {
    let (place, host) = (Place::new(), host());
    fs::write(place.home.join("bytes"), raw_bytes()).expect("a file");
    let proxy = place.program("proxy", "#!/bin/sh\n$SHELL -c 'exec cat' <bytes | cat >back\n");
    let run = place.run(&host, &[proxy.to_str().expect("a path in UTF-8")]).output().expect("it starts");
    assert!(run.status.success(), "{run:?}");
    assert!(fs::read(place.home.join("back")).expect("a file") == raw_bytes(), "the bytes are the same");
    host.finish();
}

/// Text with returns at first, as ssh begins, and then everything.
fn raw_bytes() -> Vec<u8> {
    let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    [&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..], &all.repeat(256), &pattern(1 << 18), &all].concat()
}

#[test]
fn ssh_reaches_a_server_through_its_proxy_command() {
    let server = "/usr/sbin/sshd";
    if !programs::has("ssh") || !std::path::Path::new(server).exists() {
        return programs::skipped("ssh or sshd is not installed");
    }
    let (place, host) = (Place::new(), host());
    let home = place.home.path().display().to_string();
    for key in ["host", "own"] {
        let key = format!("{home}/{key}");
        printed(place.alone("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]));
    }
    let settings =
        format!("HostKey {home}/host\nAuthorizedKeysFile {home}/own.pub\nStrictModes no\nUsePAM no\nPidFile none\n");
    place.program("sshd_config", &settings);
    fs::write(place.home.join("bytes"), raw_bytes()).expect("a file");
    let text = format!(
        "#!/bin/sh\ntimeout 120 ssh -F none -o ProxyCommand='{server} -i -f {home}/sshd_config -E {home}/log' -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o LogLevel=ERROR -i {home}/own -T server cat <bytes >back\n"
    );
    let ssh = place.program("starter", &text);
    let ssh = ssh.to_str().expect("a path in UTF-8");
    let transfer = |command: &mut Command| {
        let _ = fs::remove_file(place.home.join("back"));
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        (fs::read(place.home.join("back")).unwrap_or_default() == raw_bytes(), said(&output))
    };
    if let (false, why) = transfer(&mut place.alone(ssh)) {
        let log = fs::read_to_string(place.home.join("log")).unwrap_or_default();
        return programs::skipped(&format!("sshd does not serve here: {why}{log}"));
    }
    let (is_same, said) = transfer(&mut place.run(&host, &[ssh]));
    assert!(is_same, "{said}");
    host.wait_for("the proxy's command", |journal| {
        let mut ends = journal.of_type("end");
        ends.find(|end| end["command"].as_str().is_some_and(|command| command.starts_with("exec /usr/sbin/sshd")))
            .map(|_| ())
    });
    host.finish();
}
