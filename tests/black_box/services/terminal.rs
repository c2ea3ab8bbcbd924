//! Commands in the background with a terminal of their own, and the person's own shell.

use crate::exec::{rexec, said};
use crate::support::host::{Host, MIRROR};
use crate::support::journal;
use crate::support::programs;
use crate::support::typist::{At, Typist};
use crate::support::waiting::PATIENCE;

fn at_terminal(host: &Host, args: &[&str]) -> Typist {
    programs::shims();
    let argv: Vec<&str> = ["rexec"].iter().chain(args).copied().collect();
    let socket = format!("REXEC_SOCKET={}", host.socket().display());
    let env = [socket, "TERM=xterm".into(), "SHELL=/bin/sh".into(), "PS1=ready> ".into(), "REXEC_WHOAMI=Ann".into()];
    Typist::start(programs::rexec(), &argv, &env, host.home.path(), [At::Terminal; 3])
}

fn does(host: &Host, args: &[&str]) -> String {
    let (code, out, err) = said(rexec(host, args));
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

#[test]
fn a_terminal_of_its_own_takes_texts_keys_and_a_person() {
    let host = Host::with(MIRROR);
    let script = "trap 'echo interrupted; n=1' INT; test -t 0 && echo asks; read a; read b; echo \"<$a|$b>\"; \
                  until [ \"$n\" ]; do sleep 0.05; done; stty size; read c; echo \"<$c>\"; read d || echo end of input";
    let start = ["exec", "--bg", "--tty", "--name", "asks", "--wait-text", "asks", "--", "sh", "-c", script];
    does(&host, &start);
    assert_eq!(does(&host, &["send", "asks", "one"]), "");
    does(&host, &["send", "asks", "twx", "--key", "backspace", "--key", "enter"]);
    does(&host, &["wait", "asks", "--text", "<one|tw>", "--timeout", "100"]);
    does(&host, &["send", "asks", "--key", "^C"]);
    does(&host, &["wait", "asks", "--text", "interrupted", "--timeout", "100"]);
    let mut person = at_terminal(&host, &["attach", "asks"]);
    assert!(person.is_raw());
    person.types(b"three\r");
    person.sees("<three>");
    person.types(b"\x1d");
    person.sees("#1 goes on");
    person.ends();
    does(&host, &["send", "asks", "--eof"]);
    assert_eq!(said(rexec(&host, &["wait", "asks"])).0, 0);
    host.wait_for("its end", |journal| journal.of_type("end").next().map(drop));
    let out = does(&host, &["out", "asks"]);
    assert!(out.contains("<one|tw>") && out.contains("<three>") && out.ends_with("end of input\n"), "{out}");
}

#[test]
fn a_key_is_a_signal_where_there_is_no_terminal_and_an_unknown_one_is_told() {
    let host = Host::with(MIRROR);
    let script = "trap 'echo interrupted; exit 9' INT; echo begun; while :; do sleep 0.05; done";
    does(&host, &["exec", "--bg", "--wait-text", "begun", "--", "sh", "-c", script]);
    does(&host, &["send", "1", "--key", "ctrl-c"]);
    assert_eq!(said(rexec(&host, &["wait", "1"])).0, 9);
    let (code, _, err) = said(rexec(&host, &["send", "1", "--key", "hyper"]));
    assert!(code == 2 && err.contains("--key: `hyper` is not valid\nhint: known keys: ctrl-c"), "{err}");
    let (code, _, err) = said(rexec(&host, &["send", "1", "--key", "ctrl-c"]));
    assert!(code == 3 && err.contains("no command #1 runs"), "{err}");
}

#[test]
fn a_persons_shell_runs_in_the_host_and_what_it_hides_is_not_recorded() {
    let host = Host::with(MIRROR);
    std::fs::create_dir_all(host.home.join("shop/.git")).expect("a project");
    let mut person = at_terminal(&host, &["shell", "shop"]);
    person.sees("ready> ");
    person.types(b"pwd; echo in${REXEC_INSIDE}side\r");
    person.sees("/shop\r\n");
    person.sees("in1side");
    person.types(b"stty -echo; echo hid''den; read x; stty echo; echo \"got ${#x}\"\r");
    person.sees("hidden");
    person.types(b"a-secret-word\r");
    person.sees("got 13");
    person.types(b"sh -c 'echo star\"\"ted; exec sleep 1000'\r");
    person.sees("started");
    person.types(b"\x03");
    person.sees("ready> ");
    person.resizes(90, 31);
    person.types(b"stty size\r");
    person.sees("31 90");
    person.types(b"exit 7\r");
    assert_eq!(person.ends().code(), 7);
    assert!(person.has_its_modes(true));
    let end = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.of_type("end").next().cloned());
    let end = end.expect("a record");
    assert_eq!((end["whoami"].as_str(), end["exit"].as_u64()), (Some("Ann"), Some(7)));
    assert!(
        end["output"].as_str().is_some_and(|output| output.contains("got 13") && !output.contains("a-secret-word"))
    );
    let (code, _, err) = said(rexec(&host, &["shell"]));
    assert!(code == 1 && err.starts_with("rexec: shell needs a terminal\nhint: "), "{err}");
    let mut lost = at_terminal(&host, &["shell", "no-such-project"]);
    lost.sees("is neither a directory nor a project of the host");
    assert_eq!(lost.ends().code(), 1);
}
