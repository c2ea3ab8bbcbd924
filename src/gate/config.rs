//! A person's file: which tables and keys it has, and what they mean. What `[host]` means is known to rexec-host's own
//! table of options.

use std::rc::Rc;
use std::time::Duration;

use super::answer::{Answer, Glob};
use super::document::{Document, Pair, RulesError, Table, Value};
use super::kept::UndoSettings;
use super::kills::Others;
use super::places::{Facts, Place};
use super::rule::{Action, Away, Group, Rule, RuleSource};
use super::subject::Subject;
use super::words::{ValueOptions, Wanted};
use super::{Gate, GateMode, RuleList, packs};
use crate::limits;
use crate::text::nearest::nearest;
use crate::text::span::span;

const ACTIONS: [(&str, Action); 3] = [("allow", Action::Allow), ("ask", Action::Ask), ("deny", Action::Deny)];
const MODES: [(&str, GateMode); 2] = [("watch", GateMode::Watch), ("enforce", GateMode::Enforce)];
const AWAY: [(&str, Away); 2] = [("deny", Away::Deny), ("wait", Away::Wait)];

/// The keys of `[gate]`, each with its default.
pub const GATE_KEYS: [(&str, &str); 8] = [
    ("mode", "watch"),
    ("opaque", "allow"),
    ("foreign", "allow"),
    ("perhaps", "ask"),
    ("away", "deny"),
    ("ask_wait", "60s"),
    ("wrappers", "[]"),
    ("packs", "[]"),
];
const RULE_KEYS: [&str; 19] = [
    "name", "do", "run", "with", "without", "outside", "inside", "writes", "kills", "agent", "session", "cwd", "via",
    "why", "wait", "away", "lenient", "yes", "no",
];

/// Words by which Codex knows a refusal of its sandbox: it would offer to run the command without one.
const FORBIDDEN: [&str; 7] = [
    "permission denied",
    "operation not permitted",
    "sandbox",
    "seccomp",
    "landlock",
    "read-only file system",
    "failed to write file",
];

/// Around the examples of a rule.
const EXAMPLE_HOME: &[u8] = b"/home/you";
const EXAMPLE_PROJECT: &[u8] = b"/home/you/project";

/// Rules, and what a person should be told of their file.
#[derive(Debug, Default)]
pub struct Loaded {
    pub gate: Gate,
    pub undo: UndoSettings,
    /// The file as it is written.
    pub document: Document,
    pub warnings: Vec<RulesError>,
}

/// Reads a file of rules. `name` is how a person is told which file it is.
pub fn load(bytes: &[u8], name: &str) -> Result<Loaded, RulesError> {
    let document = Document::read(bytes)?;
    let file: Rc<str> = Rc::from(name);
    let source = |table: &Table| RuleSource::File(Rc::clone(&file), table.place.line);
    let mut loaded = read(&document, &source)?;
    for name in std::mem::take(&mut loaded.gate.packs) {
        loaded.gate.rules.extend(rules_of_pack(name)?);
    }
    loaded.document = document;
    Ok(loaded)
}

/// The name of the file with a project's own rules, at the top of the project.
pub const PROJECT_FILE: &str = ".rexec.toml";

/// Reads the rules of a project: they ask or deny, and a person's file has the settings.
pub fn load_project(bytes: &[u8]) -> Result<RuleList, RulesError> {
    let document = Document::read(bytes)?;
    let refuse = |table: &Table, problem: String, hint: &str| Err(RulesError::new(table.place, problem, hint));
    for table in &document.tables {
        let name = table.name.join(".");
        match (name.as_str(), table.is_list) {
            ("rule", true) => {}
            ("lane", _) => return refuse(table, "lanes are not known yet".to_owned(), "take the table out"),
            ("", _) => {
                let problem = format!("`{}` stands above all tables", table.pairs[0].key);
                return refuse(table, problem, "write it below [[rule]]");
            }
            _ => {
                let problem = format!("a project's file has no table `{name}`");
                return refuse(table, problem, "it has [[rule]] alone; settings stand in config.toml");
            }
        }
        if let Some(pair) = table
            .pairs
            .iter()
            .find(|pair| matches!(&pair.value, Value::Text(text) if pair.key == "do" && text == "allow"))
        {
            let hint = "write do = \"ask\" or \"deny\", or write the rule in config.toml";
            return Err(pair.wrong("a project's rule cannot allow", hint));
        }
    }
    let file: Rc<str> = Rc::from(PROJECT_FILE);
    let source = |table: &Table| RuleSource::File(Rc::clone(&file), table.place.line);
    Ok(read(&document, &source)?.gate.rules)
}

fn rules_of_pack(name: &'static str) -> Result<Vec<Rule>, RulesError> {
    let document = Document::read(packs::text(name).unwrap_or_default().as_bytes())?;
    read(&document, &|_| RuleSource::Pack(name)).map(|loaded| loaded.gate.rules.into_rules())
}

/// Reads tables as they stand, without the packs that they name.
fn read(document: &Document, source: &dyn Fn(&Table) -> RuleSource) -> Result<Loaded, RulesError> {
    let mut loaded = Loaded::default();
    let gate = &mut loaded.gate;
    let mut examples = Vec::new();
    for table in &document.tables {
        let name: Vec<&str> = table.name.iter().map(String::as_str).collect();
        match (&name[..], table.is_list) {
            ([], _) => {
                let problem = format!("`{}` stands above all tables", table.pairs[0].key);
                return Err(RulesError::new(table.place, problem, "write it below [host], [undo], [gate] or [[rule]]"));
            }
            (["host"], false) => {}
            (["gate"], false) => settings(table, gate)?,
            (["undo"], false) => loaded.undo.read(table)?,
            (["rule"], true) => {
                let (rule, own) = rule(table, source(table))?;
                if let Some(other) = gate.rules.iter().find(|other| other.hides(&rule)) {
                    let problem = format!("this rule never counts, because rule {other} allows all that it matches");
                    return Err(RulesError::new(table.place, problem, "write it above that one"));
                }
                gate.rules.push(rule);
                examples.push(own);
            }
            (["program", program], false) => gate.programs.push(program_options(program, table)?),
            (["rule"] | ["gate"] | ["undo", ..] | ["host", ..] | ["program", ..], _) => {
                let problem = format!("`{}` is not a table of this kind", name.join("."));
                let hint = "write [host], [undo], [gate], [[rule]] or [program.NAME]";
                return Err(RulesError::new(table.place, problem, hint));
            }
            _ => {
                let problem = format!("the table `{}` is not known", name.join("."));
                // A slip of the pen would pass over what it is to guard.
                if let Some(meant) = nearest(&name[0].to_lowercase(), &["host", "gate", "undo", "rule", "program"]) {
                    return Err(RulesError::new(table.place, problem, format!("did you mean {meant}?")));
                }
                loaded.warnings.push(RulesError::new(table.place, problem + ", and is passed over", ""));
            }
        }
    }
    for (at, own) in examples.iter().enumerate() {
        own.iter().try_for_each(|example| example.check(&loaded.gate, at))?;
    }
    Ok(loaded)
}

/// A command that a rule must match, or must not.
struct Example<'d> {
    pair: &'d Pair,
    command: &'d str,
    is_matched: bool,
}

impl Example<'_> {
    fn check(&self, gate: &Gate, at: usize) -> Result<(), RulesError> {
        let facts = Facts {
            directory: Some(EXAMPLE_PROJECT),
            project: Some(EXAMPLE_PROJECT),
            home: Some(EXAMPLE_HOME),
            processes: Some(&Others),
            ..Facts::default()
        };
        let leaves = gate.leaves(self.command.as_bytes(), &|name| (name == b"HOME").then(|| EXAMPLE_HOME.to_vec()));
        let subject = |leaf| Subject::of(leaf, &gate.programs, &facts);
        let answers = leaves.iter().map(|leaf| gate.rules[at].answer_on_command(&subject(leaf)));
        let answer = Answer::any(answers);
        let rule = &gate.rules[at];
        // What is not known asks, too, unless the file says otherwise.
        let asks_anyway = rule.action == Action::Ask && gate.perhaps >= Action::Ask;
        let problem = match (self.is_matched, answer) {
            (true, Answer::Yes) | (false, Answer::No) => return Ok(()),
            (true, Answer::Perhaps) if asks_anyway && rule.action_if_perhaps(gate.perhaps) == Action::Ask => {
                return Ok(());
            }
            (true, Answer::No) => "does not match",
            (true, Answer::Perhaps) | (false, Answer::Perhaps) => "may match or not, depending on what is not known,",
            (false, Answer::Yes) => "matches",
        };
        let problem = format!("this rule {problem} `{}`", self.command);
        let hint = format!("change the rule, or take the command out of `{}`", self.pair.key);
        Err(RulesError::new(self.pair.value_place, problem, hint))
    }
}

fn settings(table: &Table, gate: &mut Gate) -> Result<(), RulesError> {
    for pair in &table.pairs {
        match pair.key.as_str() {
            "mode" => gate.mode = pair.choice(&MODES)?,
            "opaque" => gate.opaque = pair.choice(&ACTIONS)?,
            "foreign" => gate.foreign = pair.choice(&ACTIONS)?,
            "perhaps" => gate.perhaps = pair.choice(&ACTIONS)?,
            "away" => gate.away = pair.choice(&AWAY)?,
            "ask_wait" => gate.ask_wait = pair.span()?,
            "wrappers" => gate.wrappers = pair.list()?.to_vec(),
            "packs" => {
                let named = |name: &String| {
                    let found = packs::NAMES.into_iter().find(|known| known == name);
                    found.ok_or_else(|| pair.wrong(format!("there is no pack `{name}`"), meant(name, &packs::NAMES)))
                };
                gate.packs = pair.list()?.iter().map(named).collect::<Result<_, _>>()?;
            }
            _ => return Err(pair.unknown_key("gate", &GATE_KEYS.map(|(key, _)| key))),
        }
    }
    Ok(())
}

fn program_options(program: &str, table: &Table) -> Result<ValueOptions, RulesError> {
    let mut options: &[String] = &[];
    for pair in &table.pairs {
        if pair.key != "values" {
            return Err(pair.unknown_key("program", &["values"]));
        }
        options = pair.list()?;
        if let Some(wrong) = options.iter().find(|option| !option.starts_with('-')) {
            return Err(pair.wrong(format!("`{wrong}` is not an option"), "as in values = [\"-C\", \"--file\"]"));
        }
    }
    Ok(ValueOptions::new(program, options))
}

fn rule(table: &Table, source: RuleSource) -> Result<(Rule, Vec<Example<'_>>), RulesError> {
    let mut rule = Rule { source, ..Rule::default() };
    let mut action = None;
    let mut examples = Vec::new();
    for pair in &table.pairs {
        match pair.key.as_str() {
            "name" => rule.name = Some(pair.line(limits::RULE_GLOB_BYTES_MAX)?.to_owned()),
            "do" => action = Some(pair.choice(&ACTIONS)?),
            "run" => rule.run = pair.words()?,
            "with" => rule.with = pair.groups()?,
            "without" => rule.without = pair.groups()?,
            "outside" => rule.outside = pair.directories()?,
            "inside" => rule.inside = pair.places()?,
            "cwd" => rule.cwd = pair.directories()?,
            "writes" => rule.writes = pair.places()?,
            "kills" => rule.kills_others = pair.choice(&[("others", true)])?,
            "agent" => rule.agent = Some(pair.glob()?),
            "session" => rule.session = Some(pair.glob()?),
            "via" => rule.via = Some(pair.glob()?),
            "why" => rule.why = Some(pair.why()?),
            "wait" => rule.wait = Some(pair.span()?),
            "away" => rule.away = Some(pair.choice(&AWAY)?),
            "lenient" => rule.is_lenient = pair.flag()?,
            "yes" | "no" => {
                let is_matched = pair.key == "yes";
                examples.extend(pair.list()?.iter().map(|command| Example { pair, command, is_matched }));
            }
            _ => return Err(pair.unknown_key("rule", &RULE_KEYS)),
        }
    }
    rule.action = action.ok_or_else(|| {
        RulesError::new(table.place, "this rule has no `do`", "write do = \"ask\", \"deny\" or \"allow\"")
    })?;
    if !rule.has_subject() {
        let hint = "write `run`, `with`, `outside`, `inside`, `writes`, `kills` or `via`";
        return Err(RulesError::new(table.place, "this rule says nothing of a command", hint));
    }
    Ok((rule, examples))
}

fn meant(given: &str, names: &[&str]) -> String {
    match nearest(given, names) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("one of {}", names.join(", ")),
    }
}

impl Pair {
    pub(super) fn wrong(&self, problem: impl Into<String>, hint: impl Into<String>) -> RulesError {
        RulesError::new(self.value_place, problem, hint)
    }

    pub(super) fn unknown_key(&self, table: &str, keys: &[&str]) -> RulesError {
        let problem = format!("[{table}] has no key `{}`", self.key);
        RulesError::new(self.place, problem, meant(&self.key, keys))
    }

    fn text(&self) -> Result<&str, RulesError> {
        match &self.value {
            Value::Text(text) if !text.trim().is_empty() => Ok(text),
            Value::Text(_) => Err(self.wrong(format!("`{}` is empty", self.key), "take the line out, or fill it")),
            _ => Err(self.wrong(format!("`{}` is a text", self.key), "write it in double quotes")),
        }
    }

    /// A text that stands in one line where it is shown.
    pub(super) fn line(&self, most: usize) -> Result<&str, RulesError> {
        let text = self.text()?;
        if text.chars().any(char::is_control) {
            return Err(self.wrong(format!("`{}` has a control character", self.key), "write one line of text"));
        }
        if text.len() > most {
            return Err(self.wrong(format!("`{}` is too long", self.key), format!("{most} bytes are the most")));
        }
        Ok(text)
    }

    pub(super) fn list(&self) -> Result<&[String], RulesError> {
        match &self.value {
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(format!("`{}` is an array of texts", self.key), "as in [\"a\", \"b\"]")),
        }
    }

    /// A list with something in it, or one text.
    fn some(&self) -> Result<&[String], RulesError> {
        let list = match &self.value {
            Value::Text(text) => std::slice::from_ref(text),
            _ => self.list()?,
        };
        let is_filled = !list.is_empty() && !list.iter().any(|text| text.trim().is_empty());
        if !is_filled {
            return Err(self.wrong(format!("`{}` is empty", self.key), "take the line out, or fill it"));
        }
        if list.iter().any(|text| text.len() > limits::RULE_GLOB_BYTES_MAX) {
            let hint = format!("{} bytes are the most", limits::RULE_GLOB_BYTES_MAX);
            return Err(self.wrong(format!("a text of `{}` is too long", self.key), hint));
        }
        Ok(list)
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, RulesError> {
        let text = self.text()?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        found.ok_or_else(|| self.wrong(format!("`{}` cannot be \"{text}\"", self.key), meant(text, &words)))
    }

    fn flag(&self) -> Result<bool, RulesError> {
        match &self.value {
            Value::Flag(flag) => Ok(*flag),
            _ => Err(self.wrong(format!("`{}` is true or false", self.key), "write it without quotes")),
        }
    }

    fn span(&self) -> Result<Duration, RulesError> {
        let read = span(self.text()?).filter(|span| *span <= limits::TIMEOUT_MAX);
        read.ok_or_else(|| self.wrong(format!("`{}` is not a length of time", self.key), "as in \"60s\" or \"5m\""))
    }

    /// A pattern, in which nothing but `*` and `|` has a meaning. An empty part of it would match no word.
    fn checked<'t>(&self, glob: &'t str) -> Result<&'t str, RulesError> {
        if glob.split('|').any(str::is_empty) {
            return Err(self.wrong(format!("a part of `{glob}` is empty"), "write words with | between them"));
        }
        Ok(glob)
    }

    fn glob(&self) -> Result<Glob, RulesError> {
        self.checked(self.line(limits::RULE_GLOB_BYTES_MAX)?).map(Glob::new)
    }

    /// A program and its operands.
    pub(super) fn words(&self) -> Result<Vec<Glob>, RulesError> {
        let words = self.line(limits::RULE_GLOB_BYTES_MAX)?.split_whitespace();
        let word = |word| match str::starts_with(word, '-') {
            true => Err(self.wrong(format!("`run` has the option {word}"), format!("write with = [\"{word}\"]"))),
            false => self.checked(word).map(Glob::new),
        };
        words.map(word).collect()
    }

    pub(super) fn groups(&self) -> Result<Vec<Group>, RulesError> {
        let group = |written: &String| Ok(self.checked(written)?.split('|').map(Wanted::new).collect());
        self.some()?.iter().map(group).collect()
    }

    fn directories(&self) -> Result<Vec<Place>, RulesError> {
        let place = |written: &String| match self.place(written)? {
            Place::Named(_) => {
                let problem = format!("`{written}` has no beginning");
                Err(self.wrong(problem, "write a path that begins with /, ~, $HOME or $PROJECT"))
            }
            place => Ok(place),
        };
        self.some()?.iter().map(place).collect()
    }

    fn places(&self) -> Result<Vec<Place>, RulesError> {
        self.some()?.iter().map(|written| self.place(written)).collect()
    }

    /// A directory, a file, or the end of a path.
    fn place(&self, written: &str) -> Result<Place, RulesError> {
        let place = Place::new(written);
        if let (Place::Named(_), Some(name)) = (&place, written.strip_prefix('$')) {
            let name = name.split('/').next().unwrap_or(name);
            return Err(self.wrong(format!("`${name}` is not known"), meant(name, &["HOME", "PROJECT"])));
        }
        if written.split('/').any(|name| name == "..") {
            let problem = format!("`{written}` has `..` in it");
            return Err(self.wrong(problem, "write where it leads: paths are compared as they are written"));
        }
        Ok(place)
    }

    fn why(&self) -> Result<String, RulesError> {
        let text = self.line(limits::RULE_WHY_BYTES_MAX)?;
        match sandbox_words(text) {
            Some(words) => Err(self.wrong(format!("`why` says \"{words}\""), SANDBOX_WORDS_HINT)),
            None => Ok(text.to_owned()),
        }
    }
}

/// What to do about words by which an agent knows its own sandbox.
pub const SANDBOX_WORDS_HINT: &str =
    "an agent would take it for its own sandbox, and offer to leave that: say it in other words";

/// The words in a text by which an agent knows its own sandbox.
#[must_use]
pub fn sandbox_words(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    FORBIDDEN.iter().copied().find(|words| lower.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_the_defaults_changes_nothing() {
        let line = |(key, default)| match default {
            "[]" => format!("{key} = []\n"),
            text => format!("{key} = \"{text}\"\n"),
        };
        let text = format!("[gate]\n{}", GATE_KEYS.map(line).concat());
        let loaded = load(text.as_bytes(), "config.toml").unwrap();
        assert_eq!(format!("{:?}", loaded.gate), format!("{:?}", Gate::default()));
    }
}
