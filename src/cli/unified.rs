//! A unified diff of two texts, as in diff(1) and patch(1).

use std::io::{self, Write};

use super::look::Look;
use crate::text::diff::{LineChanges, compare};
use crate::text::escape::escape_text;

/// Equal lines shown around changes.
const CONTEXT: usize = 3;

/// Two texts and their differences.
#[derive(Debug)]
pub(super) struct UnifiedDiff {
    /// The texts after `---` and `+++`.
    pub(super) heads: [String; 2],
    pub(super) first: Vec<String>,
    pub(super) second: Vec<String>,
    pub(super) changes: LineChanges,
}

impl UnifiedDiff {
    /// Compares two texts. A last line without an end is marked as in diff(1).
    pub(super) fn of_texts(heads: [String; 2], texts: [&str; 2]) -> Self {
        let line = |line: &str| match line.strip_suffix('\n') {
            Some(line) => line.to_owned(),
            None => format!("{line}\n\\ No newline at end of file"),
        };
        let [first, second] = texts.map(|text| text.split_inclusive('\n').map(line).collect::<Vec<_>>());
        let changes = compare(&first, &second);
        Self { heads, first, second, changes }
    }

    /// Writes the diff: nothing if there is no change.
    pub(super) fn show(&self, look: &Look, out: &mut impl Write) -> io::Result<()> {
        let steps = self.steps();
        let is_change = |step: &DiffStep| step.sign != ' ';
        let mut at = 0;
        let mut has_head = false;
        while let Some(next) = steps[at..].iter().position(is_change) {
            if !std::mem::replace(&mut has_head, true) {
                writeln!(out, "{}", look.coloured("1", &format!("--- {}", self.heads[0])))?;
                writeln!(out, "{}", look.coloured("1", &format!("+++ {}", self.heads[1])))?;
            }
            let from = (at + next).saturating_sub(CONTEXT).max(at);
            let mut to = at + next;
            // Changes with little between them are one hunk.
            while let Some(more) = steps[to..].iter().take(2 * CONTEXT + 1).position(is_change) {
                to += more + 1;
            }
            let to = (to + CONTEXT).min(steps.len());
            hunk(&steps[from..to], look, out)?;
            at = to;
        }
        Ok(())
    }

    /// All lines of both texts in the order of the diff.
    fn steps(&self) -> Vec<DiffStep<'_>> {
        let (mut steps, mut a, mut b) = (Vec::new(), 0, 0);
        while a < self.first.len() || b < self.second.len() {
            let sign = match (self.changes.removed.get(a), self.changes.added.get(b)) {
                (Some(true), _) => '-',
                (_, Some(true)) => '+',
                _ => ' ',
            };
            let text = if sign == '+' { self.second.get(b) } else { self.first.get(a) };
            steps.push(DiffStep { sign, text: text.map_or("", String::as_str), a, b });
            a += usize::from(sign != '+');
            b += usize::from(sign != '-');
        }
        steps
    }
}

/// A line of a diff, and the numbers of lines of both texts before it.
struct DiffStep<'a> {
    sign: char,
    text: &'a str,
    a: usize,
    b: usize,
}

fn hunk(steps: &[DiffStep<'_>], look: &Look, out: &mut impl Write) -> io::Result<()> {
    let Some(first) = steps.first() else { return Ok(()) };
    let count = |sign: char| steps.iter().filter(|step| step.sign != sign).count();
    // The line before an empty range, as diff(1) has it.
    let range = |before: usize, count: usize| format!("{},{count}", if count == 0 { before } else { before + 1 });
    let head = format!("@@ -{} +{} @@", range(first.a, count('+')), range(first.b, count('-')));
    writeln!(out, "{}", look.coloured("36", &head))?;
    for step in steps {
        // A program that reads this gets the text unchanged.
        let text = if look.is_terminal() { escape_text(step.text) } else { step.text.to_owned() };
        let line = format!("{}{text}", step.sign);
        match step.sign {
            '-' => writeln!(out, "{}", look.coloured("31", &line))?,
            '+' => writeln!(out, "{}", look.coloured("32", &line))?,
            _ => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}
