//! What the person always allows: a program about which a rule asked, in one project, for one agent, for a month. The file
//! is `learned.toml`.
//!
//! A tool with subcommands is allowed by its subcommand, as `git push`, unless one of the words is there with which a pack
//! may ask, or which lead to another place. Everything else is allowed word by word, in the same directory.
//!
//! Invariants: only the rule that asked is lifted, and none that denies; nothing is lifted of which not all words that
//! count are known; no secret is kept.

use std::fmt::{self, Write};

use super::document::{Document, RulesError, Table, Value};
use super::habits::{Habit, ToolUse};
use super::places::{Facts, Path, Place};
use super::rule::{Action, Rule, RuleSource};
use super::subject::Subject;
use super::words::Wanted;
use super::{Answer, Cause, Gate, Glob, Verdict};
use crate::limits;
use crate::script::{Argument, Leaf, LeafState};

const KEYS: [&str; 10] = ["run", "without", "words", "in", "via", "rule", "agent", "project", "saved", "from"];
const HEAD: &str = "\
# What you always allow, by the key `a` on the console of rexec-host or by rexec
# answer. rexec gate learned lists it, rexec gate forget takes one off.
";

/// Options with which tools act on another project, machine or account.
const ELSEWHERE: &str = "-C|--git-dir|--work-tree|--prefix|--manifest-path|--cwd|--dir|--project|--project-directory|-H|\
                         --host|--context|--cluster|--kubeconfig|--profile|--account|--registry|-R|--repo|--config|-c";

/// All that is allowed, oldest first.
#[derive(Debug, Clone, Default)]
pub struct LearnedList {
    all: Vec<Learned>,
}

/// One thing that the person always allows.
#[derive(Debug, Clone)]
pub struct Learned {
    what: What,
    /// What leads to it: empty, or as `sudo`.
    via: String,
    /// The rule that it lifts. `None` for a setting.
    rule: Option<String>,
    agent: String,
    /// The top of the project. Without one, the directory in which the command began.
    project: String,
    /// The day on which it was saved, as `2026-05-21`, and the run that asked.
    saved: String,
    from: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// The subcommand of a tool, as `run` and `without` of a rule.
    Subcommand { run: String, without: Vec<String> },
    /// Exactly these words, in this directory.
    Words { words: Vec<String>, directory: String },
}

/// Why nothing can be saved that would allow a leaf the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlearnable {
    Opaque,
    Open,
    ReadsInput,
    Redirected,
    Long,
    Secret,
    NoPlace,
    Unwritable,
    Unasked,
    Concern,
}

impl Unlearnable {
    /// As a sentence goes on that says that it can be allowed only once.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Opaque => "it is not known what it runs",
            Self::Open => "its words are not all known",
            Self::ReadsInput => "it depends on its input",
            Self::Redirected => "its input or output is redirected",
            Self::Long => "it is too long",
            Self::Secret => "a secret may be in it",
            Self::NoPlace => "its directory is not known",
            Self::Unwritable => "a name in it cannot be written down",
            Self::Unasked => "no rule asks about it any more",
            Self::Concern => "you are asked about that whatever the rules say",
        }
    }
}

impl fmt::Display for Learned {
    /// `git push`, and what leads to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Subcommand { run, .. } => f.write_str(run)?,
            What::Words { words, .. } => {
                let words = words.iter().map(|word| super::leaf_words::word(&Argument::from(word.as_bytes())));
                f.write_str(&words.collect::<Vec<_>>().join(" "))?;
            }
        }
        if self.via.is_empty() { Ok(()) } else { write!(f, " (via {})", self.via) }
    }
}

impl Learned {
    #[must_use]
    pub fn project(&self) -> &str {
        &self.project
    }

    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The rule that it lifts. `None` for a setting.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    #[must_use]
    pub fn saved(&self) -> &str {
        &self.saved
    }

    /// The run that asked.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Returns true if it counts on this day.
    #[must_use]
    pub fn counts_on(&self, today: &str) -> bool {
        let age = day_number(today).zip(day_number(&self.saved)).map(|(today, saved)| today - saved);
        age.is_some_and(|age| (0..=limits::LEARNED_DAYS).contains(&age))
    }

    /// Returns true if it takes the ask of this rule, or of a setting, off a leaf.
    fn lifts(&self, rule: Option<&Rule>, subject: &Subject<'_>) -> bool {
        let (leaf, facts) = (subject.leaf, subject.facts);
        let is_here = facts.project.or(facts.directory) == Some(self.project.as_bytes());
        let is_same = facts.agent == Some(&self.agent) && self.rule == rule.map(identity) && self.via == via(leaf);
        is_here
            && is_same
            && facts.today.is_some_and(|today| self.counts_on(today))
            && match &self.what {
                What::Subcommand { run, without } => {
                    subcommand_rule(run, without, &self.project).answer(subject) == Answer::Yes
                }
                What::Words { words, directory } => {
                    words_of(leaf).is_ok_and(|own| own == *words)
                        && directory_of(leaf, facts).as_ref() == Some(directory)
                }
            }
    }

    fn is_same(&self, other: &Self) -> bool {
        let Self { what, via, rule, agent, project, saved: _, from: _ } = self;
        *what == other.what
            && *rule == other.rule
            && [via, agent, project] == [&other.via, &other.agent, &other.project]
    }

    /// The same, if a file can have it.
    fn readable(self) -> Result<Self, Unlearnable> {
        let list = LearnedList { all: vec![self.clone()] };
        LearnedList::read(list.text().as_bytes()).map(|_| self).map_err(|_| Unlearnable::Unwritable)
    }

    fn put(&self, text: &mut String) {
        let mut pair = |key: &str, value: Value| _ = writeln!(text, "{key} = {value}");
        match &self.what {
            What::Subcommand { run, without } => {
                pair("run", Value::Text(run.clone()));
                pair("without", Value::List(without.clone()));
            }
            What::Words { words, directory } => {
                pair("words", Value::List(words.clone()));
                pair("in", Value::Text(directory.clone()));
            }
        }
        let optional = [("via", Some(&self.via).filter(|via| !via.is_empty())), ("rule", self.rule.as_ref())];
        let others = [("agent", &self.agent), ("project", &self.project), ("saved", &self.saved), ("from", &self.from)];
        let others = others.map(|(key, text)| (key, Some(text)));
        for (key, text) in optional.into_iter().chain(others) {
            text.into_iter().for_each(|text| pair(key, Value::Text(text.clone())));
        }
    }

    fn read(table: &Table) -> Result<Self, RulesError> {
        if let Some(pair) = table.pairs.iter().find(|pair| !KEYS.contains(&pair.key.as_str())) {
            return Err(pair.unknown_key("learned", &KEYS));
        }
        let find = |key: &str| table.pairs.iter().find(|pair| pair.key == key);
        let text =
            |key: &str| find(key).map(|pair| pair.line(limits::LEARNED_BYTES_MAX).map(str::to_owned)).transpose();
        let lacks =
            |what: &str| RulesError::new(table.place, format!("this entry has no {what}"), "take the entry out");
        let needed = |key: &str| text(key)?.ok_or_else(|| lacks(&format!("`{key}`")));
        let what = match (find("run"), find("without"), find("words"), find("in")) {
            (Some(run), Some(without), None, None) => {
                // A rule that cannot be read must not pass for one with fewer conditions.
                run.words().and(without.groups())?;
                What::Subcommand { run: needed("run")?, without: without.list()?.to_vec() }
            }
            (None, None, Some(words), Some(_)) if !words.list()?.is_empty() => {
                What::Words { words: words.list()?.to_vec(), directory: needed("in")? }
            }
            _ => return Err(lacks("`run` with `without`, or `words` with `in`")),
        };
        let saved = needed("saved")?;
        if let Some(pair) = find("saved").filter(|_| day_number(&saved).is_none()) {
            return Err(pair.wrong("`saved` is not a day", "as in \"2026-05-21\""));
        }
        let (via, rule, from) = (text("via")?.unwrap_or_default(), text("rule")?, text("from")?.unwrap_or_default());
        Ok(Self { what, via, rule, agent: needed("agent")?, project: needed("project")?, saved, from })
    }
}

/// The rule that allows a subcommand below a project.
fn subcommand_rule(run: &str, without: &[String], project: &str) -> Rule {
    let run = run.split_whitespace().map(Glob::new).collect();
    let without = without.iter().map(|group| group.split('|').map(Wanted::new).collect()).collect();
    Rule { action: Action::Allow, run, without, cwd: vec![Place::Absolute(project.into())], ..Rule::default() }
}

/// A rule as it is known when its file has changed: by its name, or else by its place.
fn identity(rule: &Rule) -> String {
    match (&rule.source, &rule.name) {
        (RuleSource::Pack(_), _) | (_, None) => rule.to_string(),
        (_, Some(name)) => name.clone(),
    }
}

fn via(leaf: &Leaf) -> String {
    leaf.via.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The words of a leaf that is nothing but its words.
fn words_of(leaf: &Leaf) -> Result<Vec<String>, Unlearnable> {
    match leaf.state {
        LeafState::Opaque(_) => return Err(Unlearnable::Opaque),
        LeafState::Open => return Err(Unlearnable::Open),
        LeafState::Known | LeafState::Foreign => {}
    }
    if leaf.pipes.reads || leaf.input.is_some() {
        return Err(Unlearnable::ReadsInput);
    }
    if !leaf.redirects.is_empty() {
        return Err(Unlearnable::Redirected);
    }
    let arguments = leaf.arguments.iter().map(Argument::text);
    let word = |word: Option<&[u8]>| String::from_utf8(word?.to_vec()).ok();
    let words = std::iter::once(Some(&leaf.program[..])).chain(arguments).map(word);
    let words: Vec<String> = words.collect::<Option<_>>().ok_or(Unlearnable::Open)?;
    let bytes = words.iter().map(String::len).sum::<usize>();
    if bytes > limits::LEARNED_BYTES_MAX || words.len() > limits::LEARNED_WORDS_MAX {
        Err(Unlearnable::Long)
    } else {
        Ok(words)
    }
}

fn directory_of(leaf: &Leaf, facts: &Facts<'_>) -> Option<String> {
    String::from_utf8(Path::of_directory(leaf, facts).text()?).ok()
}

/// The number of a day that is written as `2026-05-21`, counted by the calendar. `None` if it is none.
fn day_number(day: &str) -> Option<i64> {
    let (year, rest) = day.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let number = |text: &str, length| {
        let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse::<i64>().ok() } else { None }
    };
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day);
    // Of years that begin in March, the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    is_day.then(|| year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day)
}

impl LearnedList {
    /// Reads the file.
    pub fn read(bytes: &[u8]) -> Result<Self, RulesError> {
        let document = Document::read(bytes)?;
        let mut list = Self::default();
        for table in &document.tables {
            if !table.is_list || table.name != ["learned"] {
                let hint = "write entries as [[learned]], or take it out";
                return Err(RulesError::new(table.place, "this is no entry", hint));
            }
            list.all.push(Learned::read(table)?);
        }
        Ok(list)
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for learned in &self.all {
            text += "\n[[learned]]\n";
            learned.put(&mut text);
        }
        text
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Learned> {
        self.all.iter()
    }

    /// The entry in this place, from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&Learned> {
        self.all.get(at)
    }

    #[must_use]
    pub fn place_of(&self, learned: &Learned) -> Option<usize> {
        self.all.iter().position(|own| std::ptr::eq(own, learned))
    }

    /// Adds an entry, in the place of an older one that says the same. Entries that are over go, and then the oldest, where
    /// there are [`limits::LEARNED_MAX`].
    pub fn add(&mut self, learned: Learned) {
        self.all.retain(|own| own.counts_on(&learned.saved) && !own.is_same(&learned));
        let surplus = (self.all.len() + 1).saturating_sub(limits::LEARNED_MAX);
        self.all.drain(..surplus);
        self.all.push(learned);
    }

    /// Keeps the entries for which this returns true. It is given their places, from 0.
    pub fn retain(&mut self, mut keeps: impl FnMut(usize, &Learned) -> bool) {
        let mut at = 0;
        self.all.retain(|own| {
            at += 1;
            keeps(at - 1, own)
        });
    }

    /// The entry that takes the ask of a rule, or of a setting, off a leaf.
    pub(super) fn lifting(&self, rule: Option<&Rule>, subject: &Subject<'_>) -> Option<&Learned> {
        self.all.iter().find(|learned| learned.lifts(rule, subject))
    }
}

impl Gate {
    /// What would take this verdict's ask off a leaf of the run `from`, if it were saved today. `is_secret` is asked about
    /// the words.
    ///
    /// # Errors
    /// Nothing that is narrow enough would.
    pub fn learnable(
        &self,
        leaf: &Leaf,
        verdict: &Verdict<'_>,
        facts: &Facts<'_>,
        from: &str,
        is_secret: impl Fn(&[&[u8]]) -> bool,
    ) -> Result<Learned, Unlearnable> {
        let facts = &self.own_facts(facts);
        let project = facts.project.or(facts.directory).and_then(|project| std::str::from_utf8(project).ok());
        // A name with a star stands for others in a rule.
        let project = project.filter(|path| path.starts_with('/') && !path.contains('*'));
        let project = project.ok_or(Unlearnable::NoPlace)?.to_owned();
        let (Some(agent), Some(today)) = (facts.agent, facts.today) else { return Err(Unlearnable::NoPlace) };
        if matches!(verdict.cause, Cause::Opaque) {
            return Err(Unlearnable::Opaque);
        }
        let rule = verdict.cause.rule();
        let made = |what| Learned {
            what,
            via: via(leaf),
            rule: rule.map(identity),
            agent: agent.to_owned(),
            project: project.clone(),
            saved: today.to_owned(),
            from: from.to_owned(),
        };
        let subject = Subject::of(leaf, &self.programs, facts);
        let subcommand = self.tool_use(leaf).and_then(|ToolUse { run, .. }| habit(run?));
        let subcommand = subcommand.map(|Habit { run, mut without }| {
            without.push(ELSEWHERE.to_owned());
            made(What::Subcommand { run, without })
        });
        if let Some(learned) = subcommand.filter(|learned| learned.lifts(rule, &subject)) {
            return learned.readable();
        }
        let words = words_of(leaf)?;
        if is_secret(&words.iter().map(String::as_bytes).collect::<Vec<_>>()) {
            return Err(Unlearnable::Secret);
        }
        let directory = directory_of(leaf, facts).ok_or(Unlearnable::NoPlace)?;
        made(What::Words { words, directory }).readable()
    }
}

/// The habit of a subcommand, unless a pack may ask about it whatever its other words are.
fn habit(run: String) -> Option<Habit> {
    Habit::of(run).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_by_the_calendar() {
        let between = |from, to| day_number(to).unwrap() - day_number(from).unwrap();
        assert_eq!(between("2026-02-28", "2026-03-01"), 1);
        assert_eq!(between("2028-02-28", "2028-03-01"), 2);
        assert_eq!(between("2026-12-31", "2027-01-01"), 1);
        assert_eq!(between("2026-01-01", "2027-01-01"), 365);
        for other in ["", "2026", "2026-1-01", "2026-13-01", "2026-01-32", "2026-00-10", "+026-01-01"] {
            assert_eq!(day_number(other), None, "{other}");
        }
    }
}
