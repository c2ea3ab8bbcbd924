//! Leaves in words, and the texts of the data files.

use std::process::{Command, Stdio};

use rexec_host::script::{self, Leaf, LeafState};

/// The lines of a data file that are not empty and no comments, with their line breaks.
pub(crate) fn texts(file: &str) -> Vec<String> {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    file.lines().filter(is_text).map(|line| line.replace('⏎', "\n")).collect()
}

/// The everyday commands, and those of the shell's language.
pub(crate) const EVERYDAY: &str = include_str!("../data/everyday/commands.txt");
pub(crate) const LANGUAGE: &str = include_str!("../data/script/language.txt");

/// A program with nothing of the environment that the tests were started with, such as the repository of a git hook.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/people/ann").env("LC_ALL", "C");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
    command
}

/// The leaves of a text in an environment with one variable.
pub(crate) fn leaves(text: &str) -> Vec<Leaf> {
    script::leaves(text.as_bytes(), &|name| (name == b"HOME").then(|| b"/people/ann".to_vec())).leaves
}

/// Whether a text is not read to its end. What is wrong with code within it does not matter.
pub(crate) fn is_refused(text: &[u8]) -> bool {
    let leaves = script::leaves(text, &|_| None).leaves;
    let is_refusal = |leaf: &Leaf| {
        use rexec_host::script::OpaqueReason::{NotRead, TooManyLeaves};
        matches!(leaf.state, LeafState::Opaque(NotRead(_) | TooManyLeaves)) && leaf.via.is_empty()
    };
    leaves.iter().any(is_refusal)
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A leaf in a line: `sudo > git push <file @directory !state`.
pub(crate) fn line(leaf: &Leaf) -> String {
    let via: String = leaf.via.iter().map(|via| format!("{via} > ")).collect();
    let program = if leaf.program.is_empty() { None } else { Some(lossy(&leaf.program)) };
    let arguments = leaf.arguments.iter().map(|argument| lossy(&argument.shown()));
    let targets = leaf.redirects.iter().map(|redirect| format!("<>{}", lossy(&redirect.target.shown()).trim_end()));
    let directory = leaf.directory.iter().map(|directory| format!("@{}", lossy(&directory.shown())));
    let state = match leaf.state {
        LeafState::Known => None,
        LeafState::Open => Some("!open".to_owned()),
        LeafState::Foreign => Some("!foreign".to_owned()),
        LeafState::Opaque(reason) => Some(format!("!{reason:?}")),
    };
    let words: Vec<String> =
        program.into_iter().chain(arguments).chain(targets).chain(directory).chain(state).collect();
    via + &words.join(" ")
}
