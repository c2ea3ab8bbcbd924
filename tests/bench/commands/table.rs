//! The table: a measure, a column for each side, and the goal with its verdict. It is Markdown.

use std::fmt;
use std::time::Duration;

/// The columns between the measure and the goal.
pub(crate) const SIDES: [&str; 4] = ["reference", "C floor", "this", "base"];

/// What a measure should reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Nothing was promised; the number explains another.
    None,
}

/// One measure: a cell for each of [`SIDES`] that took part.
#[derive(Debug, Default)]
pub(crate) struct Row {
    measure: String,
    cells: [String; SIDES.len()],
    goal: String,
}

impl Row {
    /// A row without cells.
    pub(crate) fn new(measure: impl Into<String>) -> Self {
        Self { measure: measure.into(), ..Self::default() }
    }

    /// The row with this cell in the column of a side.
    pub(crate) fn cell(mut self, side: &str, text: String) -> Self {
        let column = SIDES.iter().position(|name| *name == side).expect("a side has a column");
        self.cells[column] = text;
        self
    }

    /// The row with a goal, and whether `value` meets it.
    pub(crate) fn goal(mut self, value: f64, goal: Goal) -> Self {
        let (sign, bound, is_met) = match goal {
            Goal::AtMost(most) => ("≤", most, value <= most),
            Goal::AtLeast(least) => ("≥", least, value >= least),
            Goal::None => return self,
        };
        self.goal = format!("{sign} {bound} {}", if is_met { "met" } else { "MISSED" });
        self
    }
}

/// The measures in the order in which they were taken.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    remarks: Vec<String>,
}

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a line below the table.
    pub(crate) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A side that took no part has no column.
        let columns: Vec<usize> =
            (0..SIDES.len()).filter(|&side| self.rows.iter().any(|row| !row.cells[side].is_empty())).collect();
        let mut lines = vec![vec!["measure".to_owned()]];
        lines[0].extend(columns.iter().map(|&side| SIDES[side].to_owned()).chain(["goal".to_owned()]));
        for row in &self.rows {
            let mut line = vec![row.measure.clone()];
            line.extend(columns.iter().map(|&side| row.cells[side].clone()).chain([row.goal.clone()]));
            lines.push(line);
        }
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0))
            .collect();
        for (at, line) in lines.iter().enumerate() {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                writeln!(f, "| {} |", rule.join(" | "))?;
            }
        }
        if !self.remarks.is_empty() {
            writeln!(f)?;
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "* {remark}"))
    }
}

/// A duration in milliseconds, as the table shows it.
pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// The middle of a list of measures, and the best tenth, which is steadier on a busy machine.
pub(crate) fn median_and_best<T: Copy + PartialOrd>(values: &[T]) -> (T, T) {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("measures are never NaN"));
    (sorted[sorted.len() / 2], sorted[sorted.len() / 10])
}

/// The middle of a list of measures.
pub(crate) fn median<T: Copy + PartialOrd>(values: &[T]) -> T {
    median_and_best(values).0
}
