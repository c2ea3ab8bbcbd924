//! Habits: the subcommands of tools that agents use, in the words of rules that allow them.
//!
//! Invariant: a rule made of a [`Habit`] and its exceptions allows nothing that a rule of a pack asks about, whether that
//! pack is in use or not.

use super::Gate;
use super::answer::Glob;
use super::document::{Document, Pair, RulesError, Table, Value};
use super::packs;
use super::words::Words;
use crate::script::{Leaf, Via};

/// The tools whose first operand says what they do, each with the first operands that need a second one for that. `*` is
/// any operand.
const TOOLS: [(&str, &str); 37] = [
    ("apt", ""),
    ("apt-get", ""),
    ("aws", "*"),
    ("brew", " services "),
    ("bundle", ""),
    ("bun", " pm "),
    ("cargo", ""),
    ("composer", ""),
    ("conda", " env "),
    ("docker", " builder buildx compose container context image network plugin system volume "),
    ("docker-compose", ""),
    ("dotnet", " nuget tool "),
    ("firebase", ""),
    ("flutter", " pub "),
    ("gem", ""),
    (
        "gh",
        " auth cache codespace extension gist gpg-key issue label org pr project release repo ruleset run secret ssh-key \
        variable workflow ",
    ),
    ("git", " bisect lfs notes worktree "),
    ("glab", " auth ci issue label mr release repo snippet variable "),
    ("go", " mod tool work "),
    ("helm", " dependency plugin repo "),
    ("kubectl", " auth config rollout set top "),
    ("npm", " run "),
    ("oc", " adm auth config rollout set top "),
    ("pip", ""),
    ("pip3", ""),
    ("pnpm", " run store "),
    ("podman", " compose container image network system volume "),
    ("poetry", " env self source "),
    ("pulumi", " config stack "),
    ("rustup", " component target toolchain "),
    ("supabase", " db functions migration secrets storage "),
    ("systemctl", ""),
    ("terraform", " state workspace "),
    ("tofu", " state workspace "),
    ("uv", " cache pip python tool "),
    ("wrangler", " d1 kv pages r2 secret "),
    ("yarn", " run workspaces "),
];

/// The subcommands that run or fetch whatever their words say.
const NEVER: [&str; 8] = [
    "docker run",
    "docker compose run",
    "gh api",
    "git bisect run",
    "git config",
    "git submodule",
    "glab api",
    "go run",
];

/// A tool in a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub tool: &'static str,
    /// Its subcommand, as `run` of a rule. `None` where no rule may allow it: it runs another program, or its words are not
    /// known.
    pub run: Option<String>,
}

/// A subcommand that a rule may allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habit {
    pub run: String,
    /// Groups of words with which a pack may ask about it.
    pub without: Vec<String>,
}

impl Gate {
    /// The tool of a leaf. `None` for all other programs.
    #[must_use]
    pub fn tool_use(&self, leaf: &Leaf) -> Option<ToolUse> {
        let (tool, deeper) = TOOLS.iter().find(|(tool, _)| tool.as_bytes() == leaf.program)?;
        let is_plain = !leaf.is_layer() && !leaf.via.iter().any(|via| matches!(via, Via::Variable(_)));
        let words = Words::of(leaf, &self.programs);
        let operands = if is_plain { subcommand(&words, deeper) } else { None };
        let run = operands.map(|operands| format!("{tool} {operands}"));
        Some(ToolUse { tool, run: run.filter(|run| !NEVER.contains(&run.as_str())) })
    }
}

impl Habit {
    /// The habit of a tool's subcommand. `None` if a pack may ask about it whatever its other words are.
    pub fn of(run: String) -> Result<Option<Self>, RulesError> {
        let words: Vec<&str> = run.split(' ').collect();
        let without = exceptions(&words)?;
        Ok(without.map(|without| Self { run, without }))
    }
}

/// The operands up to the subcommand, if they are known for certain.
fn subcommand(words: &Words<'_>, deeper: &str) -> Option<String> {
    let operand = |at: usize| {
        let operand = words.operands.get(at).filter(|operand| operand.is_certain)?;
        let word = operand.word.text().and_then(|text| std::str::from_utf8(text).ok())?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || ":._-".contains(c);
        (!word.is_empty() && word.chars().all(is_name)).then(|| word.to_owned())
    };
    let first = operand(0)?;
    let is_deeper = deeper == "*" || deeper.split(' ').any(|name| name == first);
    Some(if is_deeper { first + " " + &operand(1)? } else { first })
}

/// The words without which no pack asks about a subcommand. `None` if a pack may ask about it whatever its words are.
fn exceptions(run: &[&str]) -> Result<Option<Vec<String>>, RulesError> {
    let mut without = Vec::new();
    for pack in packs::NAMES {
        let document = Document::read(packs::text(pack).unwrap_or_default().as_bytes())?;
        for rule in document.tables.iter().filter(|table| may_match(table, run)) {
            match exception(rule, run) {
                Some(words) if !without.contains(&words) => without.push(words),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
    Ok(Some(without))
}

fn texts<'t>(table: &'t Table, key: &str) -> &'t [String] {
    match table.pairs.iter().find(|pair| pair.key == key) {
        Some(Pair { value: Value::List(texts), .. }) => texts,
        Some(Pair { value: Value::Text(text), .. }) => std::slice::from_ref(text),
        _ => &[],
    }
}

fn words_of_run(table: &Table) -> impl Iterator<Item = &str> {
    texts(table, "run").iter().flat_map(|run| run.split_whitespace())
}

/// Returns true if a pack's rule may match a leaf that begins so. A rule about written files stands beside all that allow.
fn may_match(rule: &Table, run: &[&str]) -> bool {
    // No tool writes files or signals processes as its subcommand.
    let is_about_others = |key: &str| rule.pairs.iter().any(|pair| pair.key == key);
    let is_about_program = words_of_run(rule).next().is_some() || !["writes", "kills"].into_iter().any(is_about_others);
    is_about_program && words_of_run(rule).zip(run).all(|(wanted, word)| Glob::new(wanted).matches(word.as_bytes()))
}

/// Words one of which a pack's rule needs beside those of `run`.
fn exception(rule: &Table, run: &[&str]) -> Option<String> {
    let own = words_of_run(rule).count();
    if let Some(next) = words_of_run(rule).nth(run.len()) {
        return (next != "*").then(|| next.to_owned());
    }
    // A word of `run` itself may be what the rule looks for.
    let is_there = |group: &str| {
        let mut operands = group.split('|').filter(|word| !word.starts_with('-'));
        operands.any(|word| run[own..].iter().any(|there| Glob::new(word).matches(there.as_bytes())))
    };
    texts(rule, "with").iter().find(|group| !is_there(group)).cloned()
}
