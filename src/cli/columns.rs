//! Tables on a terminal: columns beside a last one that takes the rest of the line.
//!
//! Invariant: no line is wider than the terminal. If it is narrow, columns are left out, the least useful first.

use super::look::{Look, columns_of};

/// Columns that the last one should have. With fewer, another one is left out.
pub(super) const LAST_COLUMNS_MIN: usize = 24;
/// The space between two columns.
const GAP: &str = "  ";

/// A column beside the last one.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) is_number: bool,
    /// The columns with the highest rank are left out first. Rank 0 always stays.
    pub(super) rank: u8,
    pub(super) cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| columns_of(cell)).max().unwrap_or(0);
        cells.max(self.name.len())
    }

    /// Gives every cell the column's width: numbers to the right.
    fn pad(&mut self) {
        let width = self.width();
        self.cells.iter_mut().for_each(|cell| *cell = padded(cell, width, self.is_number));
    }
}

fn padded(cell: &str, width: usize, is_number: bool) -> String {
    let space = " ".repeat(width.saturating_sub(columns_of(cell)));
    if is_number { space + cell } else { cell.to_owned() + &space }
}

/// Leaves columns out until the last one has enough room, and pads the cells of the others; returns the width of the last.
pub(super) fn fit(columns: &mut Vec<Column>, look: &Look) -> usize {
    let used = leave_out(columns, look.columns.saturating_sub(LAST_COLUMNS_MIN));
    columns.iter_mut().for_each(Column::pad);
    look.columns.saturating_sub(used).max(1)
}

/// Leaves columns out until the others with their gaps need no more than `most`; returns their width.
fn leave_out(columns: &mut Vec<Column>, most: usize) -> usize {
    let used = |columns: &[Column]| columns.iter().map(|column| column.width() + GAP.len()).sum::<usize>();
    let highest = columns.iter().map(|column| column.rank).max().unwrap_or(0);
    for rank in (1..=highest).rev() {
        if used(columns) > most {
            columns.retain(|column| column.rank != rank);
        }
    }
    used(columns)
}

/// A table in which no column takes the rest of the line: its head, and its rows.
pub(super) fn whole_table(mut columns: Vec<Column>, look: &Look) -> (String, Vec<String>) {
    // After the last column there is no gap.
    leave_out(&mut columns, look.columns + GAP.len());
    columns.iter_mut().for_each(Column::pad);
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let row = |at: usize| columns.iter().filter_map(|column| Some(column.cells.get(at)?.as_str())).collect();
    let joined = |cells: Vec<&str>| look.cut(cells.join(GAP).trim_end(), look.columns);
    (head(&columns, "", look), (0..rows).map(row).map(joined).collect())
}

/// The line of names above a table. `last` is the name of the last column.
pub(super) fn head(columns: &[Column], last: &str, look: &Look) -> String {
    let names: Vec<String> =
        columns.iter().map(|column| padded(column.name, column.width(), column.is_number)).collect();
    look.dim(look.cut((names.join(GAP) + GAP + last).trim_end(), look.columns).trim_end()) + "\n"
}
