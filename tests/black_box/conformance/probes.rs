//! What agents read from the shell before their first command. A program parses it, so every byte counts.

use rexec_sh::protocol::environment::DEFAULTS;

use crate::support::call::Target;
use crate::support::host::Host;

/// The captured call of an agent that looks at its shell.
fn captured(agent: &str) -> Vec<Vec<u8>> {
    let captures = include_str!("../../data/wrappers.jsonl").lines();
    let mut captures = captures.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("one object a line"));
    let capture = captures.find(|capture| capture["agent"] == agent && capture["probe"] == true).expect("a capture");
    let exec = capture["exec"].as_array().expect("arguments").iter();
    exec.map(|argument| argument.as_str().expect("text").as_bytes().to_vec()).collect()
}

#[test]
fn codex_gets_its_snapshot_as_without_rexec() {
    let host = Host::start();
    std::fs::write(host.home.path().join(".bashrc"), "[ ! -t 1 ] || export ON_A_TERMINAL=1\n").expect("a file");
    let call = || {
        let mut call = host.call("");
        call.argv = captured("Codex");
        // The snapshot shows the environment, in which these would differ by design.
        call.env.extend(DEFAULTS.iter().map(|entry| entry.to_bytes().to_vec()));
        call
    };
    let theirs = call().run(Target::Real);
    assert!(theirs.stdout.contains(&0), "its parts are separated by NUL bytes: {}", theirs.out());
    for env in [&[][..], &["REXEC_SANITIZE=strip"], &["REXEC_SANITIZE=collapse"]] {
        let ours = env.iter().fold(call(), |call, entry| call.env(entry)).run(Target::Shim(&host.socket()));
        assert_eq!((theirs.code(), theirs.out(), theirs.err()), (ours.code(), ours.out(), ours.err()), "{env:?}");
    }
    host.finish();
}
