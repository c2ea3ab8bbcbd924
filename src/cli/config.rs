//! `rexec config`: the options and rules of config.toml, and what holds where it says nothing.

use std::fmt::Write as _;
use std::path::PathBuf;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::config_file::{self, ConfigFile};
use super::project_file::{ProjectFile, project_of};
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use super::{accepted, host, person, quoted, told};
use crate::gate::{Document, GATE_KEYS, PROJECT_FILE, RuleSource, UNDO_KEYS, Value};
use crate::host::read_learned;
use crate::text::count::counted;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "config",
    group: Group::Own,
    summary: "show the options of config.toml, and accept changes of it",
    text: "\
~/.config/rexec/config.toml ($XDG_CONFIG_HOME) has the options of rexec-host
that you would type each time, and rules for rexec gate. Under [host], the key
of an option is its long name, and a flag is true:

  [host]
  prompts = \"ask\"
  grace = 5
  no-status = true

A host reads it at its start, also the one that rexec run starts, and says
which options it found there; --no-config makes it start without them. What
stands on its command line counts before the file. Options that let commands
out of a sandbox stand on the command line alone. A file with a mistake, or
one that others can write to, is refused with its place.

Under [undo] stands within which bounds the host keeps files for rexec undo:

  [undo]
  copy = \"64M\"
  wait = 10
  except = [\"*.iso\", \"build/\", \"~/VMs/\"]
  unkept = \"ask\"

copy is the largest file that is copied where it cannot be linked (default 1M),
wait for how many seconds files are kept before a command begins, and except
what is not kept: names, with / behind them those of directories, and paths. In
these * is any text, and | stands between two of them. With unkept = \"ask\" you
are asked before a command that destroys files of which the text does not tell
which, or of which its caller wants none kept, and before one of more than 8
KiB; a file that turns out to be too large, or not reached in time, asks not.

rexec config shows each option with its value and the line of the file that it
comes from, as lines of such a file.

An agent can change the file, too. So the text that you have accepted is kept
with the journal, the first one without a question. When the file differs from
it, the rules of both hold, also in a host that starts later, and the console
says so; what is stricter counts. rexec config diff shows what has changed, and
rexec config accept makes the file count alone, if you say yes. A process of an
agent cannot accept, as far as that is seen: see rexec help answer. Options in
[host] and [undo] are not held back: the next host takes them as they stand.

A host that runs looks at the file when it judges a command, and at most once
in a second. A file with a mistake then changes nothing, and the console says
where the mistake is. A host that began without a file looks for none, until
rexec init or rexec config accept tell it. On a network file system, or one in
user space, no host looks again: it might wait there. What can write to all of
your files can write to the accepted text, too: this is for agents that meddle,
not for attackers.
",
    codes: &[(1, "the file cannot be used; diff: it has changed; accept: nothing was accepted")],
    examples: &[
        "rexec config",
        "rexec config --json | jq -r 'select(.from == \"file\").key'",
        "rexec config diff",
        "rexec config accept",
    ],
    call: &Call::<ConfigCall> {
        options: &[Opt::flag("-y, --yes", |q| q.is_sure = true, "accept: do not ask"), json(|q| q.is_json = true)],
        words: Words::one("[diff | accept]", Values::Words(&ACTIONS), |q, w| q.action = Some(w.text())),
        run: |call| match call.action.as_deref() {
            None => show(call.is_json),
            Some("diff") => diff(),
            Some("accept") => accept(call.is_sure),
            Some(other) => Err(VERB.none_of("ACTION", other, &ACTIONS)),
        },
    },
};

const ACTIONS: [&str; 2] = ["diff", "accept"];

#[derive(Default)]
struct ConfigCall {
    action: Option<String>,
    is_sure: bool,
    is_json: bool,
}

/// An option and its value, in `--json`.
#[derive(Debug, Serialize)]
struct OptionForm {
    table: &'static str,
    key: &'static str,
    /// As the file writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

fn show(is_json: bool) -> Result<u8, Notice> {
    let file = ConfigFile::own()?;
    let keys = host::keys(file.as_ref())?;
    let document = file.as_ref().map(|file| &file.loaded.document);
    let tables = [(host::TABLE, &keys[..]), (host::UNDO_TABLE, &UNDO_KEYS[..]), ("gate", &GATE_KEYS[..])];
    let options = tables
        .into_iter()
        .flat_map(|(table, keys)| keys.iter().map(move |(key, default)| option(table, key, default, document)));
    if is_json {
        return super::with_output(|out| super::put_json(options, out));
    }
    let mut text = first_line(file.as_ref());
    let own = config_file::own_path().map(|path| Acceptance::of(path, file.as_ref())).transpose()?;
    if own.is_some_and(|own| !own.is_same()) {
        text += "# it is not as you have accepted it: rexec config diff\n";
    }
    let mut table = "";
    for option in options {
        if option.table != table {
            table = option.table;
            let _ = write!(text, "\n[{table}]\n");
        }
        let _ = match (option.value, option.line) {
            (None, _) => writeln!(text, "# {} is not set", option.key),
            (Some(value), None) => writeln!(text, "{:<30}  # default", format!("{} = {value}", option.key)),
            (Some(value), Some(line)) => writeln!(text, "{:<30}  # line {line}", format!("{} = {value}", option.key)),
        };
    }
    text += &rules(file.as_ref());
    text += &of_project();
    super::say(&text)
}

/// The person's file, and the text of it that was accepted.
struct Acceptance {
    path: PathBuf,
    now: Option<Vec<u8>>,
    accepted: Option<Vec<u8>>,
}

impl Acceptance {
    fn read() -> Result<Self, Notice> {
        let Some(path) = config_file::own_path() else {
            let hint = "set HOME or XDG_CONFIG_HOME to an absolute path";
            return Err(Notice::failed("there is no place for config.toml", hint));
        };
        let file = ConfigFile::own()?;
        host::keys(file.as_ref())?;
        Self::of(path, file.as_ref())
    }

    fn of(path: PathBuf, file: Option<&ConfigFile>) -> Result<Self, Notice> {
        Ok(Self { accepted: accepted::text_of(&path)?, now: file.map(|file| file.text.clone()), path })
    }

    /// Returns true if no host holds anything back.
    fn is_same(&self) -> bool {
        self.accepted.is_none() || self.accepted == self.now
    }

    fn print(&self) -> Result<(), Notice> {
        accepted::print_change(&self.path, self.accepted.as_deref(), self.now.as_deref())
    }
}

fn diff() -> Result<u8, Notice> {
    let acceptance = Acceptance::read()?;
    if acceptance.is_same() {
        return Ok(exit_code::SUCCESS);
    }
    acceptance.print()?;
    Ok(exit_code::FAILURE)
}

fn accept(is_sure: bool) -> Result<u8, Notice> {
    let acceptance = Acceptance::read()?;
    let shown = quoted(&acceptance.path);
    if acceptance.accepted == acceptance.now {
        return super::say(&format!("{shown} is as you have accepted it\n"));
    }
    person::check()?;
    acceptance.print()?;
    if !is_sure && !told::is_wanted("Accept this? [y/N] ", "rexec config accept")? {
        return super::say("nothing was accepted\n").map(|_| exit_code::FAILURE);
    }
    accepted::keep(&acceptance.path, acceptance.now.as_deref())?;
    super::say(&format!("{shown} is accepted\n"))
}

fn first_line(file: Option<&ConfigFile>) -> String {
    let path = match file {
        Some(file) => Some(file.path.clone()),
        None => config_file::own_path(),
    };
    let path = path.map(|path| escape_line(&path.to_string_lossy(), usize::MAX));
    match (path, file) {
        (Some(path), Some(_)) => format!("# {path}\n"),
        (Some(path), None) => format!("# {path} is not there\n"),
        (None, _) => "# neither XDG_CONFIG_HOME nor HOME says where config.toml is\n".to_owned(),
    }
}

fn option(table: &'static str, key: &'static str, default: &str, document: Option<&Document>) -> OptionForm {
    let pairs = document.map_or(&[][..], |document| document.pairs(table));
    let found = pairs.iter().find(|pair| pair.key == key);
    let value = match found {
        Some(pair) => Some(pair.value.to_string()),
        None => (!default.is_empty()).then(|| written(default)),
    };
    let from = if found.is_some() { "file" } else { "default" };
    OptionForm { table, key, value, from, line: found.map(|pair| pair.place.line) }
}

/// A default as a file writes it.
fn written(default: &str) -> String {
    let is_bare = matches!(default, "false" | "[]") || default.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare { default.to_owned() } else { Value::Text(default.to_owned()).to_string() }
}

/// How the rules of the project stand that this directory is in.
fn of_project() -> String {
    let Some(directory) = std::env::current_dir().ok() else { return String::new() };
    let Some(top) = project_of(&directory) else { return String::new() };
    let path = top.join(PROJECT_FILE);
    let file = ProjectFile::of(top).map(|file| file.map(|file| file.text));
    let how = match (file, accepted::text_of(&path).ok().flatten()) {
        (Ok(None), None) => return String::new(),
        (Ok(Some(now)), Some(trusted)) if now == trusted => "is trusted",
        (_, None) => "is not trusted, and does not count: rexec trust",
        (_, Some(_)) => "is not as you have trusted it; what you have trusted holds: rexec trust",
    };
    format!("# {} {how}\n", escape_line(&path.to_string_lossy(), usize::MAX))
}

/// How many rules there are.
fn rules(file: Option<&ConfigFile>) -> String {
    let rules = file.map_or(&[][..], |file| &file.loaded.gate.rules);
    let own = rules.iter().filter(|rule| matches!(rule.source, RuleSource::File(..))).count();
    let of_packs = (rules.len() - own) as u64;
    let learned = super::home().ok().and_then(|home| read_learned(&home).ok()).map_or(0, |list| list.iter().len());
    let learned = if learned == 0 { String::new() } else { format!("; {learned} always allowed (rexec gate learned)") };
    format!("\n# {} of your own, {of_packs} of packs{learned}\n", counted(own as u64, "rule", "rules"))
}
