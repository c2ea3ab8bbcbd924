//! What `rexec help` prints: a text for each verb, and the pages of the manual.
//!
//! Invariants: every verb and every page is listed in [`ALL`]; a line of a verb's text has 79 columns or fewer, a page's
//! line 80. The pages' facts are checked against the code in `tests/manual.rs`.

/// A verb of `rexec`, or an option that acts as one, and its help.
#[derive(Debug)]
pub(super) struct Topic {
    /// As it is written on the command line.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// `rexec --help`.
pub(super) const ALL: &str = include_str!("help/rexec.txt");

/// The pages of the manual, in the order of [`ALL`]: Markdown that reads well as it is.
pub(super) const PAGES: [Topic; 10] = [
    Topic { name: "agents", text: include_str!("help/agents.md") },
    Topic { name: "console", text: include_str!("help/console.md") },
    Topic { name: "shell", text: include_str!("help/shell.md") },
    Topic { name: "environment", text: include_str!("help/environment.md") },
    Topic { name: "exit-codes", text: include_str!("help/exit-codes.md") },
    Topic { name: "journal", text: include_str!("help/journal.md") },
    Topic { name: "security", text: include_str!("help/security.md") },
    Topic { name: "json", text: include_str!("help/json.md") },
    Topic { name: "limits", text: include_str!("help/limits.md") },
    Topic { name: "measured", text: include_str!("help/measured.md") },
];

/// Every verb with a help text of its own.
pub(super) const TOPICS: [Topic; 6] = [
    Topic {
        name: "ps",
        text: "\
rexec ps: shows the host's commands, oldest first

usage: rexec ps

Each command has one line: number, state, age, caller and text. The line below
it names its processes and their process ids. The states:

  queued    it waits for its start
  running   its shell runs
  stopping  it was told to end
  left      its shell has ended; processes that it started go on

exit code: 0, or 127 when no host runs
",
    },
    Topic {
        name: "kill",
        text: "\
rexec kill: ends commands, or what they left running

usage: rexec kill N...

N is a command's number, as rexec ps and the console show it; #N works too.
All processes of the command get SIGTERM, and SIGKILL after the host's --grace.
rexec kill returns when they have ended, or after ten seconds with what still
lives. A second rexec kill kills at once.

exit code: 0; 127 when no host runs; 1 when the command does not run or has
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

Each journal has one line, newest first: its name and how many commands it
holds. N is the number of journals (default 10).

example:
  rexec --list 3
",
    },
    Topic {
        name: "--print",
        text: "\
rexec --print: prints a journal as the console showed it

usage: rexec --print NAME

NAME is a journal's name as rexec --list shows it, or a path with a slash in
it. Control characters are printed as escapes.

example:
  rexec --print 2026-05-21-09:42:18
",
    },
    Topic {
        name: "help",
        text: "\
rexec help: prints help

usage: rexec help [TOPIC]

TOPIC is a command (ps, kill, check-host, list or print) or one of the topics
that rexec --help lists.
",
    },
];

/// The help for a verb, written with or without its dashes, or a page of the manual.
pub(super) fn topic(word: &str) -> Option<&'static str> {
    let bare = word.trim_start_matches('-');
    all().find(|topic| topic.name.trim_start_matches('-') == bare).map(|topic| topic.text)
}

/// What may follow `rexec`, for a hint at a misspelt word.
pub(super) fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|topic| topic.name).chain(["--help", "--version"]).collect()
}

/// What may follow `rexec help`.
pub(super) fn topics() -> Vec<&'static str> {
    all().map(|topic| topic.name).collect()
}

fn all() -> impl Iterator<Item = &'static Topic> {
    TOPICS.iter().chain(&PAGES)
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
            assert!(text.lines().all(|line| line.len() <= 79), "{text}");
        }
        assert_eq!(topic("list"), topic("--list"));
        assert_eq!(topic("dance"), None);
    }

    #[test]
    fn every_page_is_listed_and_fits_a_terminal() {
        let listed = ALL.split("\ntopics").nth(1).expect("a list of topics").lines().skip(1);
        let listed: Vec<_> = listed.map_while(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed, PAGES.map(|page| page.name));
        for page in &PAGES {
            assert_eq!(topic(page.name), Some(page.text));
            assert!(page.text.starts_with("# "), "{}", page.name);
            for line in page.text.lines() {
                assert!(line.chars().count() <= 80 && line == line.trim_end(), "{}: {line}", page.name);
            }
        }
    }
}
