//! Commands in the background: `rexec exec --bg`, `rexec wait`, `rexec services`, and the names of services.

mod terminal;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::exec::{rexec, said};
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR};
use crate::support::journal;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Listens on a free port and writes its number to the file `port`.
const SERVER: &str = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); \
                      open('part', 'w').write(str(s.getsockname()[1])); import os; os.rename('part', 'port'); \
                      time.sleep(0.3); s.listen(); time.sleep(1000)";

/// Starts this in the background; it must say nothing on standard error.
fn start(host: &Host, args: &[&str]) -> String {
    let (code, out, err) = said(rexec(host, &[&["exec", "--bg"], args].concat()));
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

fn services(host: &Host, more: &[&str]) -> Vec<Value> {
    let (code, out, err) = said(rexec(host, &[&["services", "--json"], more].concat()));
    assert_eq!((code, err.as_str()), (0, ""));
    out.lines().map(json).collect()
}

/// The exit code, and what is said on both outputs.
fn told(host: &Host, args: &[&str]) -> (i32, String) {
    let (code, out, err) = said(rexec(host, args));
    (code, out + &err)
}

fn end(host: &Host, which: &str) {
    assert_eq!(said(rexec(host, &["kill", which])).0, 0, "{which}");
}

#[test]
fn a_command_in_the_background_outlives_its_caller_and_has_its_directory_and_environment() {
    let host = Host::with(MIRROR);
    let script =
        "echo $MINE $OWN; pwd; read x || echo no input; until test -e go; do sleep 0.05; done; echo end; exit 7";
    let args = ["--env", "MINE=a b", "--dir", "/usr", "--why", "to see", "--as", "Ann", "--", "sh", "-c", script];
    let script = script.replace("test -e go", &format!("test -e {}", host.home.join("go").display()));
    let args = [&args[..args.len() - 1], &[script.as_str()]].concat();
    let out = start(&host, &args);
    assert!(out.starts_with("#1 runs: echo $MINE"), "{out}");
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(|| told(&host, &["wait", "1"]));
        fs::write(host.home.join("go"), "").expect("a file");
        waiting.join().expect("it ends")
    });
    assert_eq!(waiting.0, 7);
    assert!(waiting.1.starts_with("#1 ended with 7 after "), "{}", waiting.1);
    let record = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.of_type("end").next().cloned());
    let record = record.expect("a record");
    assert_eq!((record["whoami"].as_str(), record["why"].as_str()), (Some("Ann"), Some("to see")));
    assert_eq!(record["output"].as_str(), Some("a b caller\n/usr\nno input\nend\n"));
    assert_eq!(told(&host, &["wait", "1"]).0, 7, "again, when it has ended");
    let bare = ["--clear-env", "--env", "A=1", "--wait", "100", "--json", "--", "/bin/sh", "-c", "echo ${OWN-none} $A"];
    let (_, out, _) = said(rexec(&host, &[&["exec", "--bg"], &bare[..]].concat()));
    assert_eq!((json(&out)["result"].as_str(), json(&out)["exit"].as_u64()), (Some("ended"), Some(0)));
    waiting::wait_until("it is written down", || said(rexec(&host, &["out", "2"])).1 == "none 1\n");
    let script = "echo ${OWN-none} $A";
    let (_, out, _) = said(rexec(&host, &["exec", "--clear-env", "--env", "A=1", "--", "/bin/sh", "-c", script]));
    assert_eq!(out, "none 1\n", "in the foreground, too");
}

/// The host's would do for nobody: an agent's umask keeps its files from others.
#[test]
fn a_service_has_its_callers_umask_and_limits_and_its_name_in_the_journal() {
    let host = Host::with(MIRROR);
    let service = ["exec", "--bg", "--name", "web", "--wait", "60", "--", "sh", "-c", "umask; ulimit -n"];
    let inner = rexec(&host, &service);
    let mut outer = programs::command("sh");
    outer.args(["-c", "umask 077; ulimit -n 333; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    outer.current_dir(inner.get_current_dir().expect("a directory")).env_clear();
    outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(said(outer).0, 0);
    let record = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.of_type("end").next().cloned());
    let record = record.expect("a record");
    let output = record["output"].as_str().expect("output");
    assert!(output.ends_with("077\n333\n"), "{output}");
    assert_eq!(record["name"], "web");
    assert_eq!(record["envs"], serde_json::json!({}), "the variables that its caller passed on are not written down");
    let (_, log, _) = said(rexec(&host, &["log"]));
    assert!(log.contains(" web: umask"), "{log}");
}

#[test]
fn it_is_told_when_a_command_is_ready_has_ended_or_takes_too_long() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(MIRROR);
    let port = host.home.join("port");
    let serving = ["exec", "--bg", "--wait-text", "ready to", "--wait-timeout", "100", "--", "sh", "-c"];
    let (code, out) = told(&host, &[&serving[..], &["echo one; echo all ready to serve; exec sleep 1000"]].concat());
    assert_eq!(code, 0);
    assert!(out.contains("#1 wrote `all ready to serve`, after "), "{out}");
    start(&host, &["--name", "web", "--", "python3", "-c", SERVER]);
    let port = waiting::until(PATIENCE, || fs::read_to_string(&port).ok()).expect("the server starts");
    let (code, out) = told(&host, &["wait", "web", "--port", &port, "--timeout", "100"]);
    assert_eq!(code, 0);
    assert!(out.starts_with(&format!("#2 web listens on port {port}, after ")), "{out}");
    let (code, out) = told(&host, &["exec", "--bg", "--wait-port", &port, "--", "sh", "-c", "echo bye; exit 4"]);
    assert_eq!(code, 4);
    assert!(out.contains("\n  bye\nrexec: #3 ended with 4 after ") && out.contains("before it listened"), "{out}");
    assert!(out.contains("hint: rexec out 3 "), "{out}");
    let (code, out) = told(&host, &["exec", "--bg", "--wait-text", "never", "--", "true"]);
    assert_eq!(code, 1, "it ended well, and was not ready: {out}");
    assert!(out.contains("\nhint: rexec out 4 "), "{out}");
    let (code, out) = told(&host, &["exec", "--bg", "--wait", "100", "--", "no-such-program"]);
    assert_eq!(code, 127);
    assert!(out.contains("rexec: no-such-program: not found\nhint: "), "{out}");
    assert_eq!(told(&host, &["exec", "--bg", "--wait", "0.1", "--", "sleep", "1000"]).0, 0);
    assert_eq!(told(&host, &["wait", "6", "--timeout", "0.1"]).0, 124);
    for run in ["1", "web", "6"] {
        end(&host, run);
    }
}

#[test]
fn standard_input_is_empty_or_kept_open_and_who_does_not_read_it_is_told_nothing_of_it() {
    let host = Host::with(MIRROR);
    for (seq, command) in [(1, "cat"), (2, "true")] {
        let (code, out, err) = said(rexec(&host, &["exec", "--bg", "--", command]));
        assert!(code == 0 && out.starts_with(&format!("#{seq} ended with 0 after ")), "{out}");
        assert_eq!(err, "", "{command}");
    }
    for args in [&["--keep-stdin", "--", "cat"][..], &["--tty", "--", "cat"]] {
        let out = start(&host, args);
        let seq = out.strip_prefix('#').and_then(|rest| rest.split(' ').next()).expect("a number");
        end(&host, seq);
    }
}

#[test]
fn a_command_that_is_not_ready_in_time_is_told_with_what_it_wrote() {
    let host = Host::with(MIRROR);
    // On a busy machine the command may need longer for its first line than the shortest of these.
    let has_written = ["0.2", "1", "5", "25"].iter().zip(1..).any(|(seconds, seq)| {
        let late =
            ["exec", "--bg", "--wait-port", "1", "--wait-timeout", seconds, "--", "sh", "-c", "echo so; sleep 1000"];
        let (code, out) = told(&host, &late);
        assert_eq!(code, 124, "{out}");
        let words = format!("rexec: #{seq} has not listened on");
        assert!(out.contains(&words) && out.contains("it still runs\nhint: "), "{out}");
        end(&host, &seq.to_string());
        out.contains(&format!("\n  so\n{words}"))
    });
    assert!(has_written, "it never wrote in time");
}

#[test]
fn a_service_is_one_per_name_and_project() {
    let host = Host::with(MIRROR);
    for project in ["shop", "blog"] {
        fs::create_dir_all(host.home.join(project).join(".git")).expect("a project");
        fs::create_dir_all(host.home.join(project).join("src")).expect("a directory");
    }
    let at = |dir: &str, args: &[&str]| {
        let mut command = rexec(&host, args);
        command.current_dir(host.home.join(dir));
        said(command)
    };
    let web = ["exec", "--bg", "--name", "web", "--", "sleep", "1000"];
    assert_eq!(at("shop", &web), (0, "#1 web runs: sleep 1000\n".into(), String::new()));
    assert_eq!(at("shop/src", &web), (0, "#1 web runs already: sleep 1000\n".into(), String::new()));
    let other = ["exec", "--bg", "--name", "web", "--", "sleep", "1001"];
    let (code, out, err) = at("shop/src", &other);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("rexec: #1 web runs already: sleep 1000\nhint: nothing was started; --restart "), "{err}");
    assert_eq!(at("blog", &other).1, "#2 web runs: sleep 1001\n", "another project");
    assert_eq!(at("shop", &["wait", "web", "--timeout", "0.01", "--json"]).1.matches("\"seq\":1,").count(), 1);
    let (code, _, err) = at(".", &["kill", "web"]);
    assert!(code == 3 && err.contains("several services") && err.contains("#1 in ") && err.contains("#2 in "), "{err}");
    let restart = ["exec", "--bg", "--name", "web", "--restart", "--", "sleep", "1001"];
    assert_eq!(at("shop", &restart).1, "#3 web runs: sleep 1001\n");
    assert_eq!(at("shop", &["wait", "1"]).0, 143, "the old one was ended");
    let names = |more: &[&str]| -> Vec<(u64, String)> {
        let of =
            |line: &Value| (line["seq"].as_u64().expect("a number"), line["project"].as_str().unwrap_or("").into());
        services(&host, more).iter().map(of).collect()
    };
    assert_eq!(names(&[]), [(2, "blog".into()), (3, "shop".into())]);
    assert_eq!(names(&["--all"]).len(), 3);
    assert_eq!(at("shop/src", &["kill", "web"]).1, "#3 has ended\n");
    assert_eq!(at("shop", &web).1, "#4 web runs: sleep 1000\n", "the name is free again");
    assert_eq!(at(".", &["kill", "2", "4"]).0, 0);
    let ended = services(&host, &[]);
    assert!(ended.iter().all(|line| line["exit"] == 143 && line["signal"] == 15), "{ended:?}");
    let table = said(rexec(&host, &["services"])).1;
    assert!(table.starts_with("NAME  #  STATE") && table.contains("ended 143 SIGTERM"), "{table}");
}

#[test]
fn of_callers_that_race_for_a_name_one_starts_it() {
    let host = Host::with(MIRROR);
    let args = ["exec", "--bg", "--name", "job", "--json", "--", "sleep", "1000"];
    let start = |args: &[&str]| rexec(&host, args).stdout(Stdio::piped()).spawn().expect("the program starts");
    let racing: Vec<_> = (0..8).map(|_| start(&args)).collect();
    let results = racing.into_iter().map(|child| {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        let line = json(&String::from_utf8_lossy(&output.stdout));
        (line["seq"].as_u64().expect("a number"), line["result"].as_str().expect("a word").to_owned())
    });
    let results: Vec<_> = results.collect();
    assert!(results.iter().all(|(seq, _)| *seq == 1), "{results:?}");
    assert_eq!(results.iter().filter(|(_, result)| result == "started").count(), 1, "{results:?}");
    let args = ["exec", "--bg", "--name", "job", "--restart", "--json", "--", "sleep", "1000"];
    let racing: Vec<_> = (0..3).map(|_| start(&args)).collect();
    racing.into_iter().for_each(|child| _ = child.wait_with_output().expect("it ends"));
    let live: Vec<_> = services(&host, &["--all"]).into_iter().filter(|line| line["exit"].is_null()).collect();
    assert_eq!(live.len(), 1, "{live:?}");
    end(&host, "job");
}

#[test]
fn names_stand_for_numbers_where_a_run_is_named() {
    let host = Host::with(MIRROR);
    start(&host, &["--name", "asks", "--keep-stdin", "--", "sh", "-c", "echo name?; read name; echo hello $name"]);
    assert_eq!(told(&host, &["wait", "asks", "--text", "name?", "--timeout", "100"]).0, 0);
    waiting::wait_until("it is written down", || said(rexec(&host, &["tail", "asks"])).1 == "name?\n");
    assert_eq!(told(&host, &["pause", "asks"]).0, 0);
    assert_eq!(told(&host, &["resume", "asks"]).0, 0);
    assert_eq!(told(&host, &["send", "asks", "Ann"]).0, 0);
    assert_eq!(told(&host, &["wait", "asks"]).0, 0);
    host.wait_for("its end", |journal| journal.of_type("end").next().map(drop));
    assert_eq!(said(rexec(&host, &["out", "asks"])).1, "name?\nhello Ann\n");
    assert!(said(rexec(&host, &["show", "asks"])).1.contains("hello Ann"));
    waiting::wait_until("it is forgotten", || told(&host, &["kill", "asks"]).0 == 3);
    let (code, words) = told(&host, &["tail", "other"]);
    assert!(code == 3 && words.contains("there is no service `other`\nhint: rexec services"), "{words}");
}

#[test]
fn waiting_for_several_ends_with_the_first_failure_in_the_callers_order() {
    let host = Host::with(MIRROR);
    for script in ["exit 0", "sleep 0.3; exit 5", "exit 6"] {
        told(&host, &["exec", "--bg", "--", "sh", "-c", script]);
    }
    let (code, words) = told(&host, &["wait", "1", "2", "3"]);
    assert_eq!((code, words.lines().count()), (5, 3), "{words}");
    assert_eq!(told(&host, &["wait", "3", "#2"]).0, 6);
    assert_eq!(told(&host, &["wait", "1", "--text", "x"]).0, 1);
    let (code, words) = told(&host, &["wait", "2", "9"]);
    assert!(code == 5 && words.contains("there is no run 9") || words.contains("no run 9"), "{code} {words}");
}

#[test]
fn a_kill_ends_a_wait_and_a_host_that_goes_away_fails_it() {
    let host = Host::with(MIRROR);
    start(&host, &["--name", "web", "--", "sleep", "1000"]);
    let mut wait = rexec(&host, &["wait", "web", "--port", "1"]).stderr(Stdio::piped()).spawn().expect("it starts");
    end(&host, "web");
    assert_eq!(wait.wait().expect("it ends").code(), Some(143));
    let mut command = rexec(&host, &["exec", "--bg", "--wait-text", "never", "--", "sleep", "1000"]);
    let mut wait = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(wait.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "#2 runs: sleep 1000\n");
    let (home, warden) = host.kill();
    let output = wait.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{err}");
    assert!(err.contains("the host went away while #2 ran; nobody knows how it ended\nhint: "), "{err}");
    drop((home, warden));
}

#[test]
fn wrong_calls_say_what_is_right() {
    let host = Host::with(MIRROR);
    for (args, words) in [
        (&["exec", "--bg", "--name", "a b", "--", "true"][..], "--name: `a b` is not valid"),
        (&["exec", "--bg", "--name", "2", "--", "true"], "--name: `2` is not valid"),
        (&["exec", "--bg", "--wait-port", "70000", "--", "true"], "a port is a number from 1 to 65535"),
        (&["exec", "--bg", "--wait-port", "0", "--", "true"], "a port is a number from 1 to 65535"),
        (&["exec", "--bg", "--wait-port", "1", "--wait-text", "a", "--", "true"], "only one of --wait, --wait-port"),
        (&["exec", "--bg", "--restart", "--", "true"], "needs --name with --restart"),
        (&["exec", "--bg", "--wait-timeout", "1", "--", "true"], "needs --wait-port or --wait-text"),
        (&["exec", "--name", "web", "--", "true"], "exec needs --bg with --name"),
        (&["exec", "--bg"], "exec needs a command"),
        (&["exec", "--bg", "--wait", "soon", "--", "true"], "--wait: `soon` is not valid"),
        (&["wait"], "wait needs a command number"),
        (&["wait", "1", "--port", "x"], "--port: `x` is not valid"),
        (&["wait", "1", "--port", "1", "--exit"], "only one of --port, --text and --exit"),
        (&["wait", "12x"], "`12x` is not a command number"),
        (&["services", "web"], "`web` is too much"),
    ] {
        let (code, out, err) = said(rexec(&host, args));
        assert!(code == 2 && out.is_empty() && err.contains(words) && err.contains("hint: "), "{args:?}: {code} {err}");
    }
    assert_eq!(told(&host, &["exec", "--bg", "--dir", "/no/such", "--", "true"]).0, 126);
    let (code, out, _) = said(rexec(&host, &["services"]));
    assert!(code == 0 && out.starts_with("no command runs in the background\nstart one: "), "{out}");
    assert!(services(&host, &[]).is_empty());
    for args in [&["exec", "--bg", "--", "true"][..], &["wait", "1"], &["wait", "web"], &["services"], &["kill", "web"]]
    {
        let mut absent: Command = rexec(&host, args);
        absent.env("REXEC_SOCKET", host.home.join("none.sock"));
        let (code, _, err) = said(absent);
        assert_eq!((code, err.lines().next()), (127, Some("HOST NOT FOUND")), "{args:?}");
    }
}

/// The journal does not have yet that the command began.
#[test]
fn a_text_is_awaited_although_the_recorder_is_behind() {
    let host = Host::with(MIRROR);
    let recorder = host.recorder();
    recorder.signal(Signal::SIGSTOP);
    let call = host.call("echo Local: http://x/; touch begun; sleep 1000");
    let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    waiting::wait_until("it has written", || host.home.join("begun").exists());
    let (code, said) = thread::scope(|scope| {
        let waiting = scope.spawn(|| told(&host, &["wait", "1", "--text", "Local:", "--timeout", "60"]));
        // It has looked by then.
        waiting::wait_until("it is noticed", || host.console_text().contains("the journal is 3 s behind"));
        recorder.signal(Signal::SIGCONT);
        waiting.join().expect("it ends")
    });
    assert!(code == 0 && said.contains("Local: http://x/"), "{code}: {said}");
    end(&host, "1");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 143);
    host.finish();
}

/// An agent's command has often written what is awaited before anybody asks.
#[test]
fn a_text_is_awaited_from_the_beginning_of_an_agents_command_too() {
    let host = Host::with(MIRROR);
    let call = host
        .call("echo Local: http://x/; touch begun; until test -e go; do sleep 0.05; done; echo then done; sleep 1000");
    let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    waiting::wait_until("it has written", || host.home.join("begun").exists());
    // What the recorder has not written yet when somebody asks may be missed.
    waiting::wait_until("it is written down", || said(rexec(&host, &["out", "1"])).1.contains("Local:"));
    let (code, said) = told(&host, &["wait", "1", "--text", "Local:", "--timeout", "60"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Local: http://x/"), "{said}");
    let (code, said) = told(&host, &["wait", "1", "--text", "done", "--timeout", "0.2"]);
    assert_eq!(code, 124, "{said}");
    let waiting = thread::scope(|scope| {
        let waiting = scope.spawn(|| told(&host, &["wait", "1", "--text", "done"]));
        fs::write(host.home.join("go"), "").expect("a file");
        waiting.join().expect("it ends")
    });
    assert_eq!(waiting.0, 0, "{}", waiting.1);
    end(&host, "1");
    assert_eq!(calling.finish(PATIENCE).expect("it ends").code(), 143);
    // What was over when somebody asked is looked up in the journal.
    assert_eq!(host.run("echo Local: http://y/; exit 3").code(), 3);
    let (code, said) = told(&host, &["wait", "2", "--text", "Local:"]);
    assert!(code == 0 && said.contains("#2 wrote `Local: http://y/`"), "{code} {said}");
    let (code, said) = told(&host, &["wait", "2", "--text", "done"]);
    assert!(code == 3 && said.contains("before it wrote `done`"), "{code} {said}");
    host.finish();
}
