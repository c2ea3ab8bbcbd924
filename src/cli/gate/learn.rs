//! `rexec gate learn`: rules that the commands of the journals suggest, as a file with the evidence for each.
//!
//! Invariants: no rule allows what a pack would ask about. A rule that would have asked often stands in a comment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::past::{Past, PastCall, Projects, Replay};
use super::{GateCall, config_file};
use crate::cli::explain::WORD_COLUMNS;
use crate::cli::log::found_something;
use crate::cli::sheet::Sheet;
use crate::cli::{put_json, with_output, written};
use crate::core::end::Stopper;
use crate::gate::{Action, Gate, Habit, Rule, RuleSource, RulesError, Value, load, packs};
use crate::text::agent_name::agent_name;
use crate::text::count::counted;
use crate::text::escape::escape_line;

/// How often a subcommand must have run before a rule allows it.
const RUNS_MIN: u64 = 3;
/// How often a tool must have run before a rule asks about its other subcommands.
const TOOL_RUNS_MIN: u64 = 10;
/// How often a person must have stopped a subcommand before a rule asks about it; and at least every second run.
const STOPS_MIN: u64 = 2;
/// A rule that would have asked about more than one of so many commands stands in a comment.
const COMMANDS_PER_ASK: u64 = 300;
/// The most subcommands that are counted, and the most that get a rule.
const SUBCOMMANDS_MAX: usize = 10_000;
const RULES_MAX: usize = 400;
/// The name under which the rules are read again.
const FILE: &str = "learned";

pub(super) fn learn(call: &GateCall) -> Result<u8, Notice> {
    let own = config_file(call.file.as_deref())?;
    let gate = own.as_ref().map_or_else(Gate::default, |own| own.loaded.gate.clone());
    let past = Past::of(call, &Sheet::standard())?;
    let mut usage = Usage::new(&past)?;
    past.for_each(|run, label| usage.add(&gate, run, label))?;
    if usage.all.runs == 0 {
        return Ok(found_something(false, call.is_json, &past.home));
    }
    // Without a file, the packs are a part of what is proposed.
    let heading = if own.is_some() { String::new() } else { format!("[gate]\npacks = {}\n", list(&packs::NAMES)) };
    let base = match &own {
        Some(_) => gate.clone(),
        None => read(&heading)?,
    };
    let mut learned = usage.rules(&gate)?;
    let replayed = |before: &Gate, learned: &[LearnedRule]| {
        let rules = learned.iter().filter(|rule| rule.form.active).map(|rule| rule.rule.clone());
        Replay::of(&past, before.clone(), base.clone().extended(rules.collect()))
    };
    let trial = replayed(&base, &learned)?;
    for rule in learned.iter_mut().filter(|rule| rule.kind == RuleKind::Rest) {
        rule.form.runs = trial.count_of(&rule.rule);
        rule.form.active = rule.form.runs * COMMANDS_PER_ASK <= usage.all.runs;
    }
    let replay = replayed(&gate, &learned)?;
    with_output(|out| match call.is_json {
        true => put_json(learned.iter().map(|rule| &rule.form), out),
        false => {
            let mut text = usage.head(own.is_some()) + &heading;
            learned.iter().for_each(|rule| text += &rule.text(usage.all.runs));
            text += "\n# The same commands, by these rules behind those in force:\n";
            replay.summary().lines().for_each(|line| _ = writeln!(text, "# {line}"));
            written(out.write_all(text.as_bytes()))
        }
    })?;
    Ok(if learned.is_empty() { exit_code::FAILURE } else { exit_code::SUCCESS })
}

/// Reads rules that were made here.
fn read(text: &str) -> Result<Gate, Notice> {
    load(text.as_bytes(), FILE).map(|loaded| loaded.gate).map_err(|error| wrong(&error))
}

fn wrong(error: &RulesError) -> Notice {
    Notice::failed(escape_line(&format!("cannot make rules of these commands: {error}"), WORD_COLUMNS), &error.hint)
}

fn list<T: AsRef<str>>(texts: &[T]) -> String {
    Value::List(texts.iter().map(|text| text.as_ref().to_owned()).collect()).to_string()
}

/// The evidence for a rule.
#[derive(Debug, Default)]
struct Evidence {
    runs: u64,
    /// Those that a person stopped.
    stopped: u64,
    agents: BTreeSet<String>,
    last_run: String,
    last_time: String,
}

impl Evidence {
    fn add(&mut self, run: &PastCall, label: &str, is_stopped: bool) {
        let card = &run.run.start.card;
        self.runs += 1;
        self.stopped += u64::from(is_stopped);
        self.agents.insert(escape_line(&agent_name(&card.whoami, 1, ""), WORD_COLUMNS));
        if card.time >= self.last_time {
            self.last_run = label.to_owned();
            self.last_time = escape_line(&card.time, WORD_COLUMNS);
        }
    }

    fn agents(&self) -> Vec<String> {
        self.agents.iter().cloned().collect()
    }
}

/// The use of tools in the commands of the journals.
struct Usage {
    /// Runs that a person stopped.
    stopped: HashSet<String>,
    packs: Gate,
    projects: Projects,
    all: Evidence,
    first_time: String,
    /// How many commands each pack asks about.
    asked: HashMap<&'static str, u64>,
    /// By tool and `run`. Without a `run`, no rule may allow it.
    tools: BTreeMap<&'static str, BTreeMap<Option<String>, Evidence>>,
    subcommands: usize,
}

impl Usage {
    fn new(past: &Past) -> Result<Self, Notice> {
        let mut stopped = HashSet::new();
        past.for_each_ended(|run, label| {
            let by = run.by.as_deref().and_then(Stopper::of_word);
            if matches!(by, Some(Stopper::Console | Stopper::Kill)) {
                stopped.insert(label);
            }
        })?;
        let (all, first_time, asked) = (Evidence::default(), String::new(), HashMap::new());
        let packs = read(&format!("[gate]\npacks = {}\n", list(&packs::NAMES)))?;
        let (projects, tools) = (Projects::default(), BTreeMap::new());
        Ok(Self { stopped, packs, projects, all, first_time, asked, tools, subcommands: 0 })
    }

    fn add(&mut self, gate: &Gate, run: PastCall, label: &str) {
        // No rule reaches into a sandbox, and a part of a text may say anything.
        if run.run.start.card.sandbox.is_some() || run.run.start.is_cut() {
            return;
        }
        let is_stopped = self.stopped.contains(label);
        let time = &run.run.start.card.time;
        if self.first_time.is_empty() || *time < self.first_time {
            self.first_time.clone_from(time);
        }
        self.all.add(&run, label, is_stopped);
        let [judged, by_packs] = run.judged([gate, &self.packs], self.projects.of(&run.directory));
        let packs = by_packs.verdicts.iter().filter(|verdict| verdict.action != Action::Allow);
        let packs = packs.filter_map(|verdict| match verdict.cause.rule()?.source {
            RuleSource::Pack(name) => Some(name),
            _ => None,
        });
        packs.collect::<BTreeSet<_>>().into_iter().for_each(|name| *self.asked.entry(name).or_default() += 1);
        let uses = judged.leaves.iter().filter_map(|leaf| gate.tool_use(leaf));
        let uses: BTreeSet<_> = uses.map(|used| (used.tool, used.run)).collect();
        // Of several programs, it is not known which one was stopped.
        let programs = judged.leaves.iter().filter(|leaf| leaf.program != b"cd").count();
        for (tool, subcommand) in uses {
            let known = self.tools.entry(tool).or_default();
            if self.subcommands < SUBCOMMANDS_MAX || known.contains_key(&subcommand) {
                self.subcommands += usize::from(!known.contains_key(&subcommand));
                known.entry(subcommand).or_default().add(&run, label, is_stopped && programs == 1);
            }
        }
    }

    /// The rules that the uses suggest, tool by tool: those that ask about a subcommand, those that allow one, and one that
    /// asks about the others. What an own rule would hide is left out.
    fn rules(&self, own: &Gate) -> Result<Vec<LearnedRule>, Notice> {
        let mut rules = Vec::new();
        for (tool, uses) in &self.tools {
            let known = || uses.iter().filter_map(|(run, evidence)| Some((run.as_ref()?, evidence)));
            let is_unwanted =
                |evidence: &Evidence| evidence.stopped >= STOPS_MIN && evidence.stopped * 2 >= evidence.runs;
            for (run, evidence) in known().filter(|(_, evidence)| is_unwanted(evidence)) {
                let why = format!("You stopped it {} of {} times.", evidence.stopped, evidence.runs);
                rules.push(LearnedRule::new(RuleKind::Stopped, run, &[], Some(why), evidence)?);
            }
            let begin = rules.len();
            for (run, evidence) in known().filter(|(_, own)| own.runs >= RUNS_MIN && !is_unwanted(own)) {
                if let Some(habit) = Habit::of(run.clone()).map_err(|error| wrong(&error))? {
                    rules.push(LearnedRule::new(RuleKind::Habit, run, &habit.without, None, evidence)?);
                }
            }
            let runs: u64 = uses.values().map(|evidence| evidence.runs).sum();
            if rules.len() > begin && runs >= TOOL_RUNS_MIN {
                let why = format!("Your agents seldom use this part of {tool}.");
                rules.push(LearnedRule::new(RuleKind::Rest, tool, &[], Some(why), &Evidence::default())?);
            }
        }
        rules.retain(|learned| !own.rules.iter().any(|rule| rule.hides(&learned.rule)));
        rules.truncate(RULES_MAX);
        Ok(rules)
    }

    fn head(&self, has_file: bool) -> String {
        let agents = self.all.agents().join(", ");
        let commands = counted(self.all.runs, "command", "commands");
        let day = |time: &str| escape_line(time, WORD_COLUMNS).chars().take(10).collect::<String>();
        let place = if has_file { "the end of your config.toml" } else { "a config.toml" };
        let packs = packs::NAMES.map(|name| format!("{name} {}", self.asked.get(name).copied().unwrap_or_default()));
        format!(
            "# Rules for {place}, by rexec gate learn. Read them before you use them.\n\
             # From {commands} of {agents}, {} to {}.\n\
             # A rule that allows lifts the asks behind it: none in front of it, and none of a pack.\n\
             # So many of the commands the packs ask about: {}.\n\n",
            day(&self.first_time),
            day(&self.all.last_time),
            packs.join(", ")
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleKind {
    /// Asks about what a person stopped.
    Stopped,
    /// Allows what agents do often.
    Habit,
    /// Asks about all other subcommands of a tool.
    Rest,
}

/// A rule with its evidence.
struct LearnedRule {
    kind: RuleKind,
    rule: Rule,
    /// As a file writes it.
    lines: String,
    form: LearnedForm,
}

/// A rule with its evidence, in `--json`.
#[derive(Debug, Serialize)]
struct LearnedForm {
    r#do: &'static str,
    run: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    /// It stands in no comment.
    active: bool,
    runs: u64,
    stopped: u64,
    agents: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    last_run: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    last_time: String,
}

impl LearnedRule {
    fn new(
        kind: RuleKind,
        run: &str,
        without: &[String],
        why: Option<String>,
        evidence: &Evidence,
    ) -> Result<Self, Notice> {
        let action = if kind == RuleKind::Habit { Action::Allow } else { Action::Ask };
        let text = |text: &str| Value::Text(text.to_owned());
        let mut lines = "[[rule]]\n".to_owned();
        if kind == RuleKind::Rest {
            let _ = writeln!(lines, "name = {}", text(&format!("{run}-seldom")));
        }
        let _ = writeln!(lines, "do = {}\nrun = {}", text(action.word()), text(run));
        if !without.is_empty() {
            let _ = writeln!(lines, "without = {}", list(without));
        }
        if let Some(why) = why {
            let _ = writeln!(lines, "why = {}", text(&why));
        }
        let [rule] = <[Rule; 1]>::try_from(read(&lines)?.rules.into_rules()).unwrap_or_default();
        let form = LearnedForm {
            r#do: action.word(),
            run: run.to_owned(),
            without: without.to_vec(),
            active: true,
            runs: evidence.runs,
            stopped: evidence.stopped,
            agents: evidence.agents(),
            last_run: evidence.last_run.clone(),
            last_time: evidence.last_time.clone(),
        };
        Ok(Self { kind, rule, lines, form })
    }

    /// Its lines in the file, below the evidence. `commands` is the number of all commands.
    fn text(&self, commands: u64) -> String {
        let form = &self.form;
        let evidence = match self.kind {
            RuleKind::Rest => {
                let asks = format!("of the {commands} commands it asks about {}", form.runs);
                match form.active {
                    true => format!("All else of {}: {asks}.", form.run),
                    false => format!("All else of {}: too often asked for a rule, {asks}.", form.run),
                }
            }
            RuleKind::Stopped | RuleKind::Habit => {
                let day: String = form.last_time.chars().take(10).collect();
                let runs = counted(form.runs, "command", "commands");
                let agents = form.agents.join(", ");
                let stopped =
                    if form.stopped > 0 { format!(", {} stopped by you", form.stopped) } else { String::new() };
                format!("{runs} of {agents}{stopped}; the last is #{}, {day}.", form.last_run)
            }
        };
        let mark = if form.active { "" } else { "# " };
        let lines: String = self.lines.lines().map(|line| format!("{mark}{line}\n")).collect();
        format!("\n# {evidence}\n{lines}")
    }
}
