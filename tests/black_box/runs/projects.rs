//! Project sessions: which commands they have, what these are given, and that definitions outlive the host.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::call::{self, Call, Target};
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::strip::strip;
use crate::support::waiting::{self, PATIENCE};
use crate::verbs::live;

/// A program that speaks JSON-RPC, and asks one thing after the other.
struct Client(BufReader<UnixStream>);

impl Client {
    fn of(host: &Host) -> Self {
        let stream = UnixStream::connect(host.socket()).expect("a host");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(BufReader::new(stream))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.0.get_mut().write_all(format!("{request}\n").as_bytes()).expect("it takes bytes");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    fn code(&mut self, method: &str, params: &Value) -> i64 {
        let answer = self.ask(method, params);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method} {params}: {answer}"))
    }

    fn session(&mut self, name: &str) -> Value {
        let all = self.result("session.list", &json!({}));
        let all = all["sessions"].as_array().expect("an array");
        all.iter().find(|known| known["name"] == name).unwrap_or_else(|| panic!("{name}: {all:#?}")).clone()
    }

    fn wait_for_state(&mut self, name: &str, state: &str) {
        let is_so = || self.session(name)["state"] == state;
        assert!(waiting::until_true(PATIENCE, is_so), "{name} is never {state}");
    }
}

/// A directory below the host's that is a git project.
fn project(host: &Host, name: &str) -> String {
    let place = host.home.join(name);
    fs::create_dir_all(place.join(".git")).expect("a directory");
    fs::create_dir(place.join("src")).expect("a directory");
    fs::canonicalize(place).expect("it is there").display().to_string()
}

#[test]
fn the_first_command_in_a_git_project_makes_its_session() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    assert_eq!(client.result("session.list", &json!({}))["sessions"], json!([]));
    let run = json!({"command": "true", "dir": format!("{shop}/src")});
    assert_eq!(client.result("exec.run", &run)["exit"], 0);
    let seen = client.session("shop");
    assert_eq!((&seen["dir"], &seen["state"], &seen["implied"]), (&json!(shop), &json!("idle"), &json!(true)));
    let of_shim = format!("cd {shop}/src && exec {} -c 'sleep 1000'", "/bin/sh");
    assert_eq!(client.result("exec.run", &json!({"command": "true", "dir": "/"}))["exit"], 0);
    assert_eq!(client.result("session.list", &json!({}))["sessions"].as_array().map(Vec::len), Some(1));
    let started =
        client.result("exec.start", &json!({"command": of_shim, "dir": shop, "background": true}))["run"].clone();
    let seen = client.session("shop");
    assert_eq!((&seen["runs"], &seen["background"]), (&json!([started]), &json!([started])));
    assert_eq!(client.result("exec.list", &json!({"session": "shop"}))["runs"][0]["session"], seen["session"]);
    assert_eq!(client.result("session.destroy", &json!({"session": shop}))["ended"], json!([started]));
    assert_eq!(client.result("session.list", &json!({}))["sessions"], json!([]));
    assert_eq!(client.result("exec.wait", &json!({"run": started, "for": "exit"}))["met"], "exit");
}

#[test]
fn a_banner_names_the_place_of_a_programs_command_from_its_project() {
    let host = Host::with(Setup { terminal: true, ..MIRROR });
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    client.result("exec.run", &json!({"command": "echo in src", "dir": format!("{shop}/src"), "whoami": "ann"}));
    let says = || String::from_utf8_lossy(&strip(host.console_text().as_bytes())).contains("ann shop/src  echo in src");
    assert!(waiting::until_true(PATIENCE, says), "{}", host.console_text());
}

#[test]
fn a_session_gives_its_commands_directory_shell_variables_and_ports() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    let made =
        json!({"dir": shop, "name": "web", "env": {"MODE": "dev", "KIND": "s"}, "shell": "/bin/bash", "ports": 10});
    let made = client.result("session.create", &made);
    assert_eq!(
        (&made["name"], &made["ports"], &made["env"]),
        (&json!("web"), &json!([3100, 3109]), &json!(["KIND", "MODE"]))
    );
    let mut run = json!({"session": "web", "env": {"KIND": "own"},
        "command": "pwd; echo $MODE $KIND $PORT $DEV_SERVER_PORT ${BASH_VERSION:+bash}"});
    assert_eq!(client.result("exec.run", &run)["stdout"], format!("{shop}\ndev own 3100 3101 bash\n"));
    run["session"] = made["session"].clone();
    run["dir"] = json!("/");
    assert_eq!(client.result("exec.run", &run)["stdout"], "/\ndev own 3100 3101 bash\n");
    let outside = json!({"dir": "/", "command": "echo ${MODE-none} ${PORT-none}"});
    assert_eq!(client.result("exec.run", &outside)["stdout"], "none none\n", "only where it is asked for");
    let asked = json!({"session": format!("{shop}/src"), "ports": 2, "command": "echo $PORT"});
    assert_eq!(client.result("exec.run", &asked)["stdout"], "3200\n", "a directory is a session's name, too");
    for (params, code) in [
        (json!({"dir": "relative"}), -32_602),
        (json!({"dir": "/a", "ports": [3105, 3106]}), -32_602),
        (json!({"dir": "/a", "name": "web"}), -32_006),
        (json!({"dir": shop}), -32_006),
        (json!({"dir": "/a", "env": {"A=B": "c"}}), -32_602),
    ] {
        assert_eq!(client.code("session.create", &params), code, "{params}");
    }
    assert_eq!(client.code("exec.run", &json!({"session": "nowhere", "command": "true"})), -32_007);
    assert_eq!(client.code("session.suspend", &json!({"session": "nowhere"})), -32_007);
    assert_eq!(client.code("exec.run", &json!({"ports": 3, "command": "true"})), -32_602);
}

#[test]
fn a_session_is_paused_and_goes_on_as_a_whole() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    let ticks = json!({"command": "while sleep 0.02; do echo tick; done", "dir": shop, "background": true});
    let runs: Vec<Value> = (0..2).map(|_| client.result("exec.start", &ticks)["run"].clone()).collect();
    let bytes = |client: &mut Client, run: &Value| {
        client.result("exec.status", &json!({"run": run}))["bytes"].as_u64().expect("a number")
    };
    for run in &runs {
        let wait = json!({"run": run, "for": "text", "text": "tick"});
        assert_eq!(client.result("exec.wait", &wait)["met"], "text");
    }
    assert_eq!(client.result("session.suspend", &json!({"session": "shop"}))["state"], "suspended");
    for run in &runs {
        assert_eq!(client.result("exec.status", &json!({"run": run}))["state"], "paused");
    }
    assert_eq!(client.code("exec.run", &json!({"session": "shop", "command": "true"})), -32_003);
    assert_eq!(client.result("session.resume", &json!({"session": "shop"}))["state"], "active");
    for run in &runs {
        let before = bytes(&mut client, run);
        assert!(waiting::until_true(PATIENCE, || bytes(&mut client, run) > before), "{run} goes on");
    }
    client.result("session.suspend", &json!({"session": "shop"}));
    client.result("session.destroy", &json!({"session": "shop"}));
    for run in &runs {
        assert_eq!(
            client.result("exec.wait", &json!({"run": run, "for": "exit"}))["met"],
            "exit",
            "paused ones end, too"
        );
    }
}

fn in_dir(call: Call, dir: &str) -> Call {
    Call { dir: call::dir(Path::new(dir)), ..call }
}

/// A command of an agent, too. One that is ended meanwhile never runs.
#[test]
fn what_comes_into_a_suspended_session_begins_when_it_goes_on() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    for (end, code, out) in [("session.resume", 0, "done\n"), ("session.destroy", 125, "")] {
        assert_eq!(client.result("exec.run", &json!({"command": "true", "dir": shop}))["exit"], 0);
        client.result("session.suspend", &json!({"session": "shop"}));
        let calling = in_dir(host.call("touch begun; echo done"), &shop).start(Target::Shim(&host.socket()));
        let mut agent = calling.expect("it starts");
        let mut waits = || client.result("exec.list", &json!({}))["runs"][0]["state"] == "queued";
        assert!(waiting::until_true(PATIENCE, &mut waits), "{}", host.console_text());
        assert_eq!(host.run("echo elsewhere").out(), "elsewhere\n");
        assert!(!Path::new(&shop).join("begun").exists(), "{end}");
        client.result(end, &json!({"session": "shop"}));
        let seen = agent.finish(PATIENCE).expect("it ends");
        assert_eq!((seen.code(), seen.out().as_str()), (code, out), "{end}: {seen:?}");
        assert_eq!(fs::remove_file(Path::new(&shop).join("begun")).is_ok(), code == 0, "{end}");
    }
    let told = || host.console_text().matches("waits: the project session shop is suspended").count() == 2;
    assert!(waiting::until_true(PATIENCE, told), "{}", host.console_text());
}

#[test]
fn one_service_of_a_name_runs_in_a_project() {
    let host = Host::with(MIRROR);
    let (shop, other) = (project(&host, "shop"), project(&host, "other"));
    let mut client = Client::of(&host);
    let web = |dir: &str| json!({"command": "sleep 1000", "dir": dir, "name": "web", "background": true});
    let first = client.result("exec.start", &web(&shop))["run"].clone();
    let second = client.ask("exec.start", &web(&format!("{shop}/src")));
    assert_eq!((&second["error"]["code"], &second["error"]["data"]["run"]), (&json!(-32_006), &first), "{second}");
    client.result("exec.start", &web(&other));
    let mut again = web(&format!("{shop}/src"));
    again["restart"] = json!(true);
    let third = client.result("exec.start", &again)["run"].clone();
    assert_ne!(third, first);
    assert_eq!(client.session("shop")["background"], json!([third]));
    assert_eq!(client.result("exec.wait", &json!({"run": first, "for": "exit"}))["met"], "exit");
    for project in ["shop", "other"] {
        client.result("session.destroy", &json!({"session": project}));
    }
}

#[test]
fn definitions_outlive_the_host_but_secrets_do_not() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let mut client = Client::of(&host);
    let env = json!({"MODE": "dev", "API_TOKEN": "hunter2hunter2"});
    client.result("session.create", &json!({"dir": shop, "name": "web", "env": env, "ports": [4000, 4009]}));
    let shows = json!({"session": "web", "command": "echo $MODE ${API_TOKEN-none} $PORT"});
    assert_eq!(client.result("exec.run", &shows)["stdout"], "dev hunter2hunter2 4000\n");
    let file = host.journal_home().join("projects.json");
    assert!(waiting::until_true(PATIENCE, || fs::read_to_string(&file).is_ok_and(|text| text.contains("web"))));
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).expect("a file").contains("hunter2"));
    drop(client);
    let home = host.leave();
    let host = Host::in_dir(home, MIRROR);
    let mut client = Client::of(&host);
    let seen = client.session("web");
    assert_eq!((&seen["state"], &seen["lost_env"]), (&json!("idle"), &json!(["API_TOKEN"])), "{seen}");
    assert_eq!(client.result("exec.run", &shows)["stdout"], "dev none 4000\n");
    client.wait_for_state("web", "idle");
    client.result("session.destroy", &json!({"session": "web"}));
    assert!(waiting::until_true(PATIENCE, || fs::read_to_string(&file).is_ok_and(|text| text == "[]")));
}

/// Defines a project session within a command of the host.
const DEFINES: &str = "import socket, sys, json; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                       s.sendall((json.dumps({'id': 1, 'method': 'session.create', 'params': {'dir': sys.argv[2], \
                       'env': {'MODE': 'forged'}}}) + '\\n').encode()); print(s.makefile().readline())";

#[test]
fn commands_in_a_project_of_a_persons_get_what_they_lack() {
    let host = Host::with(MIRROR);
    let (shop, other) = (project(&host, "shop"), project(&host, "other"));
    let mut client = Client::of(&host);
    let env = json!({"MODE": "dev", "API_TOKEN": "hunter2hunter2", "KIND": "shop"});
    let made = client.result("session.create", &json!({"dir": shop, "env": env, "ports": [4000, 4001]}));
    assert_eq!((&made["given"], &made["implied"]), (&json!(true), &json!(false)));
    let below = format!("{shop}/below");
    fs::create_dir(&below).expect("a directory");
    let says = |dir: &str, own: &[&str]| {
        let script = "echo $MODE $API_TOKEN $PORT $DEV_SERVER_PORT $STORYBOOK_PORT $KIND";
        let call = Call { dir: call::dir(Path::new(dir)), ..host.call(script).env("KIND=/mine") };
        own.iter().fold(call, |call, entry| call.env(entry)).run(Target::Shim(&host.socket())).out()
    };
    assert_eq!(says(&shop, &[]), "dev hunter2hunter2 4000 4001 /mine\n");
    assert_eq!(says(&below, &["PORT=1", "MODE="]), "hunter2hunter2 1 4001 /mine\n", "what its caller has set stays");
    assert_eq!(says(&other, &[]), "/mine\n");
    let ends = |count: usize| host.wait_for("the ends", |journal| journal.of_type("end").nth(count - 1).map(|_| ()));
    ends(3);
    assert!(!format!("{:?}", host.journal()).contains("hunter2"), "the journal masks what they are given");
    let words = json!({"command": "echo $MODE $PORT", "dir": shop});
    assert_eq!(client.result("exec.run", &words)["stdout"], "dev 4000\n");
    let whole = json!({"command": "echo $MODE $PORT", "dir": shop, "env": {"MODE": "own"}, "env_mode": "whole"});
    assert_eq!(client.result("exec.run", &whole)["stdout"], "own\n");
    if programs::has("python3") {
        let defines = json!({"argv": ["python3", "-c", DEFINES, host.socket(), other]});
        let seen = client.result("exec.run", &defines)["stdout"].clone();
        assert!(seen.as_str().is_some_and(|seen| seen.contains("\"given\":false")), "{seen}");
        assert_eq!(says(&other, &[]), "/mine\n", "no agent chooses what another one's commands get");
    }
}

#[test]
fn a_damaged_file_of_definitions_is_kept_and_told() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let other = project(&host, "other");
    let mut client = Client::of(&host);
    for dir in [&shop, &other] {
        client.result("session.create", &json!({"dir": dir}));
    }
    let file = host.journal_home().join("projects.json");
    assert!(waiting::until_true(PATIENCE, || fs::read_to_string(&file).is_ok_and(|text| text.contains(&*other))));
    drop(client);
    let home = host.leave();
    let damaged = fs::read_to_string(&file).expect("a file").replace(&format!("\"dir\":\"{other}\""), "\"dir\":7");
    fs::write(&file, &damaged).expect("it is ours");
    let host = Host::in_dir(home, MIRROR);
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("projects.json.damaged-1")));
    assert_eq!(fs::read_to_string(file.with_extension("json.damaged-1")).expect("it is kept"), damaged);
    let mut client = Client::of(&host);
    assert_eq!(client.session("shop")["state"], "idle", "what could be read is known");
    client.result("session.create", &json!({"dir": other}));
    let is_whole = |text: String| text.contains(&*shop) && text.contains(&*other);
    assert!(waiting::until_true(PATIENCE, || fs::read_to_string(&file).is_ok_and(is_whole)));
}

#[test]
fn a_person_lists_pauses_resumes_and_ends_projects() {
    let host = Host::with(MIRROR);
    let shop = project(&host, "shop");
    let rexec = |words: &[&str]| live::rexec(&host, words);
    assert_eq!(rexec(&["projects"]).out, "no command has run in a project\n");
    let mut client = Client::of(&host);
    let sleeps = json!({"command": "echo up; sleep 1000", "dir": shop, "background": true});
    let run = client.result("exec.start", &sleeps)["run"].as_u64().expect("a number");
    client.result("exec.wait", &json!({"run": run, "for": "text", "text": "up"}));
    let table = rexec(&["projects"]).out;
    let row: Vec<&str> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..3], ["shop", "active", &format!("#{run}")], "{table}");
    assert_eq!(rexec(&["projects", "--pause", "shop"]).out, format!("shop: 1 command paused #{run}\n"));
    assert_eq!(client.result("exec.status", &json!({"run": run}))["state"], "paused");
    let listed: Value = serde_json::from_str(&rexec(&["projects", "--json"]).out).expect("one line");
    assert_eq!((&listed["state"], &listed["runs"]), (&json!("suspended"), &json!([run])));
    assert_eq!(rexec(&["projects", "--resume", &shop]).out, format!("shop: 1 command resumed #{run}\n"));
    let nowhere = rexec(&["projects", "--end", "nowhere"]);
    assert_eq!((nowhere.code, nowhere.err.contains("there is no project")), (1, true), "{}", nowhere.err);
    assert_eq!(rexec(&["projects", "--pause", "a", "--end", "b"]).code, 2);
    assert_eq!(rexec(&["projects", "--end", "shop"]).out, format!("shop: 1 command ended #{run}\n"));
    assert_eq!(client.result("exec.wait", &json!({"run": run, "for": "exit"}))["met"], "exit");
}

/// A directory may be called like the identifier of another project.
#[test]
fn a_word_that_may_mean_two_projects_ends_neither() {
    let host = Host::with(MIRROR);
    let mut client = Client::of(&host);
    let shop = project(&host, "shop");
    let other = project(&host, "p1");
    let sleeps = |dir: &str| json!({"command": "sleep 1000", "dir": dir, "background": true});
    let first = client.result("exec.start", &sleeps(&shop))["run"].clone();
    let second = client.result("exec.start", &sleeps(&other))["run"].clone();
    assert_eq!((&client.session("shop")["session"], &client.session("p1-2")["session"]), (&json!("p1"), &json!("p2")));
    for verb in ["--end", "--pause", "--resume"] {
        let said = live::rexec(&host, &["projects", verb, "p1"]);
        let expected = format!(
            "rexec: `p1` may mean several projects: p1 shop in {shop}, p2 p1-2 in {other}\nhint: give the directory"
        );
        assert!(said.code == 1 && said.err.starts_with(&expected), "{verb}: {}", said.err);
    }
    assert_eq!((&client.session("shop")["runs"], &client.session("p1-2")["runs"]), (&json!([first]), &json!([second])));
    let ended = live::rexec(&host, &["projects", "--end", &other]);
    assert_eq!(ended.out, format!("p1-2: 1 command ended #{second}\n"), "{}", ended.err);
    // The directory is known no more, so the identifier means one project.
    let ended = live::rexec(&host, &["projects", "--end", "p1"]);
    assert_eq!(ended.out, format!("shop: 1 command ended #{first}\n"), "{}", ended.err);
    let none = live::rexec(&host, &["projects", "--end", "nowhere"]);
    assert!(none.code == 1 && none.err.contains("there is no project `nowhere`\nhint: "), "{}", none.err);
}
