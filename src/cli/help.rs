//! What `rexec` says of itself and of each of its verbs.

/// A verb of `rexec`, or an option that is one, and its help.
#[derive(Debug)]
pub(super) struct Topic {
    /// As it is written on the command line.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// `rexec --help`.
pub(super) const ALL: &str = "\
rexec: looks after rexec-host, which runs the commands of AI coding agents

usage: rexec ps
       rexec kill N...
       rexec --check-host
       rexec --list [N]
       rexec --print NAME
       rexec help [COMMAND]

commands:
  ps                show what runs, what waits, and what ended commands left running
  kill N...         end commands, or what they left running, by their numbers
  help [COMMAND]    print this help, or the help for one command

options:
  -c, --check-host  say HOST RUNNING (exit 0) or HOST NOT FOUND (exit 127)
  -l, --list [N]    list the N newest journals (default 10)
  -p, --print NAME  print a journal as the console showed it
  -h, --help        print this help; after a command, the help for that command
  -V, --version     print the version

environment:
  REXEC_SOCKET  the host's socket (default /run/user/UID/rexec/host.sock, else
                /tmp/rexec-UID/host.sock)
  REXEC_HOME    the journals' directory (default ~/.rexec)

examples:
  rexec kill 12
  rexec --list 3
  rexec --print 2026-05-21-09:42:18
";

/// Every verb with a help text of its own.
pub(super) const TOPICS: [Topic; 6] = [
    Topic {
        name: "ps",
        text: "\
rexec ps: shows the commands of the host, oldest first

usage: rexec ps

One line for each command: its number, its state, its age, its caller and its
text. Below it stand its processes with their process ids. The states:

  queued    waits for its start
  running   its shell runs
  stopping  was asked to end
  left      its shell has ended, and processes that it started go on

exit code: 0, or 127 when no host runs
",
    },
    Topic {
        name: "kill",
        text: "\
rexec kill: ends commands, or what they left running

usage: rexec kill N...

N is a command's number, as rexec ps and the console show it; #N works too.
All processes of the command get TERM, and KILL after the host's --grace.
rexec kill returns when they have ended, or after ten seconds with what still
lives; a second one kills at once.

exit code: 0, 127 when no host runs, or 1 when a command does not run or has
           processes that cannot be killed

examples:
  rexec kill 12
  rexec kill 12 14
",
    },
    Topic {
        name: "--check-host",
        text: "\
rexec --check-host: says whether a host runs

usage: rexec --check-host

Prints HOST RUNNING and exits with 0 when a host answers on the socket, else
prints HOST NOT FOUND and exits with 127.
",
    },
    Topic {
        name: "--list",
        text: "\
rexec --list: lists the newest journals

usage: rexec --list [N]

One line for each journal, newest first: its name and how many commands it has.
N is how many journals are listed (default 10).

example:
  rexec --list 3
",
    },
    Topic {
        name: "--print",
        text: "\
rexec --print: prints a journal as the console showed it

usage: rexec --print NAME

NAME is a journal's name as rexec --list shows it, or a path with a slash in it.
Control characters are printed in an escaped form.

example:
  rexec --print 2026-05-21-09:42:18
",
    },
    Topic {
        name: "help",
        text: "\
rexec help: prints help

usage: rexec help [COMMAND]

COMMAND is ps, kill, check-host, list or print.
",
    },
];

/// The help for a verb, written with or without its dashes.
pub(super) fn topic(word: &str) -> Option<&'static str> {
    let bare = |name: &str| name.trim_start_matches('-').to_owned();
    TOPICS.iter().find(|topic| bare(topic.name) == bare(word)).map(|topic| topic.text)
}

/// All that `rexec` understands, for a hint to who misspelt it.
pub(super) fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|topic| topic.name).chain(["--help", "--version"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_help_that_fits_a_terminal() {
        for topic in &TOPICS {
            assert!(ALL.contains(topic.name), "{}", topic.name);
            assert!(topic.text.contains(&format!("usage: rexec {}", topic.name)), "{}", topic.name);
        }
        for text in TOPICS.iter().map(|topic| topic.text).chain([ALL]) {
            assert!(text.lines().all(|line| line.len() <= 84), "{text}");
        }
        assert_eq!(topic("list"), topic("--list"));
        assert_eq!(topic("dance"), None);
    }
}
