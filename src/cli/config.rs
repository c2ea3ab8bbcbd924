//! `rexec config`: the options and rules of config.toml, and what holds where it says nothing.

use std::fmt::Write as _;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::config_file::{self, ConfigFile};
use super::host;
use super::verb::{Call, Group, Verb, Words, json};
use crate::gate::{Document, GATE_KEYS, RuleSource, Value};
use crate::text::count::counted;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "config",
    group: Group::Own,
    summary: "show the options of config.toml, and the defaults",
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

rexec config shows each option with its value and the line of the file that it
comes from, as lines of such a file.
",
    codes: &[(1, "the file cannot be used")],
    examples: &["rexec config", "rexec config --json | jq -r 'select(.from == \"file\").key'"],
    call: &Call::<bool> { options: &[json(|q| *q = true)], words: Words::NONE, run: config },
};

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

fn config(is_json: bool) -> Result<u8, Notice> {
    let file = ConfigFile::own()?;
    let keys = host::keys(file.as_ref())?;
    let document = file.as_ref().map(|file| &file.loaded.document);
    let tables = [(host::TABLE, &keys[..]), ("gate", &GATE_KEYS[..])];
    let options = tables
        .into_iter()
        .flat_map(|(table, keys)| keys.iter().map(move |(key, default)| option(table, key, default, document)));
    if is_json {
        return super::with_output(|out| super::put_json(options, out));
    }
    let mut text = first_line(file.as_ref());
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
    super::say(&text)
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

/// How many rules there are.
fn rules(file: Option<&ConfigFile>) -> String {
    let rules = file.map_or(&[][..], |file| &file.loaded.gate.rules);
    let own = rules.iter().filter(|rule| matches!(rule.source, RuleSource::File(..))).count();
    let of_packs = (rules.len() - own) as u64;
    format!("\n# {} of your own, {of_packs} of packs\n", counted(own as u64, "rule", "rules"))
}
