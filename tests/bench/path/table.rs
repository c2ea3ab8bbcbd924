//! The table: measure, ours, reference, ratio, goal, met or missed, and remarks below it.

use std::fmt;
use std::time::Duration;

/// What a measure should reach; the number it is held against is a ratio when there is a reference, else the measure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Nothing was promised; the number explains another.
    None,
}

impl Goal {
    fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::AtMost(most) => Some(value <= most),
            Self::AtLeast(least) => Some(value >= least),
            Self::None => None,
        }
    }
}

#[derive(Debug)]
struct Row {
    cells: [String; 6],
    is_met: Option<bool>,
}

/// The measures in the order in which they were taken.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    remarks: Vec<String>,
}

impl Table {
    /// Adds a measure that is held against a reference; `ratio` is judged.
    pub(crate) fn compare(&mut self, measure: &str, [ours, reference]: [String; 2], ratio: f64, goal: Goal) {
        let (goal_text, is_met) = (number(goal), goal.is_met(ratio));
        self.push(measure, [ours, reference, format!("{ratio:.2}"), goal_text], is_met);
    }

    /// Adds a measure that is held against a fixed number of the same unit.
    pub(crate) fn absolute(&mut self, measure: &str, (value, unit): (f64, &str), goal: Goal) {
        let goal_text = match goal {
            Goal::None => "–".to_owned(),
            _ => format!("{} {unit}", number(goal)),
        };
        let ours = format!("{} {unit}", trim(value));
        self.push(measure, [ours, "–".to_owned(), "–".to_owned(), goal_text], goal.is_met(value));
    }

    /// Adds a line below the table.
    pub(crate) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    fn push(&mut self, measure: &str, [ours, reference, ratio, goal]: [String; 4], is_met: Option<bool>) {
        let verdict = match is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        self.rows.push(Row { cells: [measure.to_owned(), ours, reference, ratio, goal, verdict.to_owned()], is_met });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["measure", "ours", "reference", "ratio", "goal", ""].map(str::to_owned);
        let lines: Vec<&[String; 6]> = std::iter::once(&head).chain(self.rows.iter().map(|row| &row.cells)).collect();
        if lines.len() > 1 {
            writeln!(f, "{}", columns(&lines))?;
        }
        for remark in &self.remarks {
            writeln!(f, "  {remark}")?;
        }
        let met = self.rows.iter().filter(|row| row.is_met == Some(true)).count();
        let missed = self.rows.iter().filter(|row| row.is_met == Some(false)).count();
        if lines.len() > 1 {
            writeln!(f, "{met} goals met, {missed} missed")?;
        }
        Ok(())
    }
}

/// Lines of cells as text: the first column to the left, the others to the right, as wide as their widest cell.
pub(crate) fn columns<L: AsRef<[String]>>(lines: &[L]) -> String {
    let width = |at: usize| lines.iter().map(|cells| cells.as_ref()[at].chars().count()).max().unwrap_or(0);
    let padded = |cells: &L| -> String {
        let cells = cells.as_ref().iter().enumerate();
        let cells: Vec<String> = cells
            .map(|(at, cell)| match at {
                0 => format!("{cell:<0$}", width(at)),
                _ => format!("{cell:>0$}", width(at)),
            })
            .collect();
        cells.join("  ")
    };
    lines.iter().map(padded).collect::<Vec<_>>().join("\n")
}

fn number(goal: Goal) -> String {
    match goal {
        Goal::AtMost(most) => format!("≤ {}", trim(most)),
        Goal::AtLeast(least) => format!("≥ {}", trim(least)),
        Goal::None => "–".to_owned(),
    }
}

/// Two decimals for small numbers, none for large ones.
fn trim(value: f64) -> String {
    if value.abs() < 100.0 && value.fract() != 0.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// A duration in milliseconds, as the table shows it.
pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

/// The middle of a list of measures, and the 95th of a hundred.
pub(crate) fn median_and_p95<T: Copy + PartialOrd>(values: &[T]) -> (T, T) {
    let sorted = sorted(values);
    (sorted[sorted.len() / 2], sorted[sorted.len() * 95 / 100])
}

/// The middle of a list of measures, and the tenth of a hundred.
pub(crate) fn median_and_best<T: Copy + PartialOrd>(values: &[T]) -> (T, T) {
    let sorted = sorted(values);
    (sorted[sorted.len() / 2], sorted[sorted.len() / 10])
}

fn sorted<T: Copy + PartialOrd>(values: &[T]) -> Vec<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("measures are never NaN"));
    sorted
}

/// The middle of a list of measures.
pub(crate) fn median<T: Copy + PartialOrd>(values: &[T]) -> T {
    median_and_p95(values).0
}
