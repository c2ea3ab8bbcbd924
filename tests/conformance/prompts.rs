//! Programs that ask the terminal when nobody is there to answer: all of them end.

use std::time::Duration;

use super::case::{Bench, users};
use crate::support::call::Target;
use crate::support::programs;

/// Far above what the host takes to end any of them, far below what a person would bear.
const HANG: Duration = Duration::from_secs(30);

struct Prompt {
    name: &'static str,
    script: &'static str,
    needs: &'static [&'static str],
    /// What the output contains.
    out: &'static str,
    /// Whether the caller is told that the terminal was asked.
    note: bool,
}

const QUIET: Prompt = Prompt { name: "", script: "", needs: &[], out: "", note: false };
const ASKS: Prompt = Prompt { note: true, ..QUIET };

const TABLE: &[Prompt] = &[
    Prompt { name: "read from the terminal", script: "read x </dev/tty; echo $? end", out: "1 end", ..ASKS },
    Prompt { name: "read with a prompt", script: "read -p 'name? ' x </dev/tty; echo end", out: "end", ..ASKS },
    Prompt { name: "a silent read", script: "read -s x </dev/tty; echo end", out: "end", ..ASKS },
    Prompt { name: "cat of the terminal", script: "cat /dev/tty; echo end", out: "end", ..ASKS },
    Prompt { name: "two reads", script: "read x </dev/tty; read y </dev/tty; echo end", out: "end", ..ASKS },
    Prompt {
        name: "a password",
        script: "python3 -c 'import getpass; getpass.getpass()'; echo end",
        needs: &["python3"],
        out: "end",
        ..ASKS
    },
    Prompt { name: "less", script: "less /etc/passwd; echo end", needs: &["less"], out: "end", ..ASKS },
    Prompt { name: "less in a pipe", script: "seq 1 1000 | less; echo end", needs: &["less"], out: "end", ..ASKS },
    Prompt {
        name: "less below timeout",
        script: "timeout 25 less /etc/passwd; echo end",
        needs: &["less"],
        out: "end",
        ..ASKS
    },
    Prompt { name: "vi", script: "vim -u NONE file </dev/tty; echo end", needs: &["vim"], out: "end", ..QUIET },
    Prompt { name: "python", script: "python3 -i </dev/tty; echo end", needs: &["python3"], out: "end", ..ASKS },
    Prompt { name: "node", script: "node -i </dev/tty; echo end", needs: &["node"], out: "end", ..ASKS },
    Prompt { name: "stty sane", script: "stty sane </dev/tty; sleep 1; echo end", out: "end", ..QUIET },
    Prompt { name: "stty tostop", script: "stty tostop </dev/tty; echo end; echo again", out: "end\nagain", ..QUIET },
    Prompt {
        name: "stty -echo, then a read",
        script: "stty -echo </dev/tty; read x </dev/tty; stty echo </dev/tty; echo end",
        out: "end",
        ..ASKS
    },
    Prompt {
        name: "an interactive shell",
        script: "bash --norc -ic 'echo in; sleep 1; echo end'",
        out: "in\nend",
        ..QUIET
    },
    Prompt { name: "a shell at the terminal", script: "bash --norc -i </dev/tty; echo end", out: "end", ..QUIET },
    Prompt {
        name: "tput",
        script: "tput cols; tput bold | od -An -c; echo end",
        needs: &["tput"],
        out: "160",
        ..QUIET
    },
    Prompt { name: "a read with a default", script: "read -t 1 x </dev/tty; echo end", out: "end", ..ASKS },
    Prompt { name: "nobody reads for long", script: "read x </dev/tty; sleep 2; echo end", out: "end", ..ASKS },
];

#[test]
fn prompts_end() {
    let mut wrong = Vec::new();
    for user in users() {
        let bench = Bench::new(user);
        let Some(host) = &bench.host else { return };
        for prompt in TABLE.iter().filter(|prompt| prompt.needs.iter().all(|program| programs::has(program))) {
            for mode in ["REXEC_SANITIZE=strip", "REXEC_TTY=never"] {
                let what = format!("{} ({mode}, user {user:?})", prompt.name);
                let call = host.call(prompt.script).env(mode);
                let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
                let Some(seen) = calling.finish(HANG) else {
                    wrong.push(format!("{what} hangs: {:#?}", host.tree()));
                    continue;
                };
                let told = seen.err().contains("rexec: command asked for terminal input");
                let is_cols = prompt.name == "tput";
                let expected = is_cols && mode != "REXEC_SANITIZE=strip" || seen.out().contains(prompt.out);
                if !expected || (prompt.note && !told) || seen.code() != 0 {
                    wrong.push(format!("{what}: {seen:?}\n  out: {}\n  err: {}", seen.out(), seen.err()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} prompts do not end as they should:\n{}", wrong.len(), wrong.join("\n"));
}
