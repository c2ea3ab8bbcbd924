//! Cuts a record's fields that are too long for a line.
//!
//! Invariant: a start, an end and the output's excerpt, each within its bound, make a line within [`LINE_BYTES_MAX`].
//!
//! [`LINE_BYTES_MAX`]: super::LINE_BYTES_MAX

use super::{GateRecord, RunEnd, StartRecord, Straggler};

/// The longest `command`. This and the following bounds count bytes as JSON spells them.
const COMMAND_BYTES_MAX: usize = 192 << 10;
/// The longest `exec`, all arguments together.
const EXEC_BYTES_MAX: usize = 224 << 10;
/// The longest `exec_b64`. A longer one is left out.
const EXEC_B64_BYTES_MAX: usize = 192 << 10;
/// The longest `envs`, all names and values together. Variables that do not fit are left out.
const ENVS_BYTES_MAX: usize = 32 << 10;
/// The longest `dir`, and the longest `dir_b64`.
const DIR_BYTES_MAX: usize = 32 << 10;
/// The longest other text of a card, and the longest `error`, `by` and text of `gate`.
const NAME_BYTES_MAX: usize = 2 << 10;
/// The most processes in `left`, and in `unkillable`.
const LEFT_MAX: usize = 256;
/// The longest `comm`.
const COMM_BYTES_MAX: usize = 64;

impl StartRecord {
    /// The record with every field cut to its bound. `None` if all of them fit.
    pub(crate) fn fitted(&self) -> Option<StartRecord> {
        let fits = self.card.texts().all(|(name, text)| json_len(text) <= most(name))
            && self.exec.iter().map(|argument| json_len(argument) + 3).sum::<usize>() <= EXEC_BYTES_MAX
            && self.exec_b64.as_deref().is_none_or(fits_exec_b64)
            && self.envs.iter().map(|(name, value)| variable_len(name, value)).sum::<usize>() <= ENVS_BYTES_MAX
            && self.dir_b64.as_deref().is_none_or(fits_dir_b64);
        if fits {
            return None;
        }
        let mut fitted = self.clone();
        fitted.clipped = true;
        fitted.card.texts_mut().for_each(|(name, text)| *text = clip(text, most(name)));
        fitted.exec = clip_all(&self.exec, EXEC_BYTES_MAX);
        let mut room = ENVS_BYTES_MAX;
        fitted.envs.retain(|name, value| {
            let bytes = variable_len(name, value);
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        });
        // Part of a base64 field would be useless.
        fitted.exec_b64 = fitted.exec_b64.filter(|arguments| fits_exec_b64(arguments));
        fitted.dir_b64 = fitted.dir_b64.filter(|dir| fits_dir_b64(dir));
        Some(fitted)
    }
}

impl RunEnd {
    /// The end with every field cut to its bound. `None` if all of them fit.
    pub(crate) fn fitted(&self) -> Option<RunEnd> {
        let fits = self.left.len() <= LEFT_MAX
            && self.unkillable.len() <= LEFT_MAX
            && self.left.iter().all(|left| json_len(&left.comm) <= COMM_BYTES_MAX)
            && [&self.error, &self.by].into_iter().flatten().all(|word| json_len(word) <= NAME_BYTES_MAX)
            && self.gate.iter().flat_map(GateRecord::texts).all(|text| json_len(text) <= NAME_BYTES_MAX);
        if fits {
            return None;
        }
        let shorter = |left: &Straggler| Straggler { comm: clip(&left.comm, COMM_BYTES_MAX), ..left.clone() };
        Some(RunEnd {
            error: self.error.as_ref().map(|error| clip(error, NAME_BYTES_MAX)),
            by: self.by.as_ref().map(|by| clip(by, NAME_BYTES_MAX)),
            left: self.left.iter().take(LEFT_MAX).map(shorter).collect(),
            unkillable: self.unkillable.iter().take(LEFT_MAX).copied().collect(),
            gate: self.gate.as_ref().map(GateRecord::clipped),
            kept: self.kept.clone(),
            ..*self
        })
    }
}

impl GateRecord {
    fn texts(&self) -> impl Iterator<Item = &String> {
        [&self.r#do, &self.leaf, &self.by].into_iter().chain(&self.rule)
    }

    fn clipped(&self) -> GateRecord {
        let clip = |text: &String| clip(text, NAME_BYTES_MAX);
        GateRecord {
            r#do: clip(&self.r#do),
            rule: self.rule.as_ref().map(clip),
            leaf: clip(&self.leaf),
            by: clip(&self.by),
            after_ms: self.after_ms,
        }
    }
}

/// The longest text of a card under this name.
fn most(name: &str) -> usize {
    match name {
        "command" => COMMAND_BYTES_MAX,
        "dir" => DIR_BYTES_MAX,
        _ => NAME_BYTES_MAX,
    }
}

fn fits_exec_b64(arguments: &[String]) -> bool {
    arguments.iter().map(|argument| argument.len() + 3).sum::<usize>() <= EXEC_B64_BYTES_MAX
}

fn fits_dir_b64(dir: &str) -> bool {
    dir.len() <= DIR_BYTES_MAX
}

/// The bytes that a variable takes in JSON, with its quotes, colon and comma.
fn variable_len(name: &str, value: &str) -> usize {
    json_len(name) + json_len(value) + 6
}

/// The first arguments that fit `max` bytes of JSON together, the last of them cut.
fn clip_all(exec: &[String], max: usize) -> Vec<String> {
    let mut room = max;
    let mut clipped = Vec::new();
    for argument in exec {
        if room < 8 {
            break;
        }
        let argument = clip(argument, room - 3);
        room = room.saturating_sub(json_len(&argument) + 3);
        clipped.push(argument);
    }
    clipped
}

/// The bytes that `text` takes between JSON's quotes.
fn json_len(text: &str) -> usize {
    text.chars().map(json_width).sum()
}

fn json_width(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\x08' | '\x0c' => 2,
        '\0'..='\x1f' => 6,
        c => c.len_utf8(),
    }
}

/// As much of `text` as fits `max` bytes of JSON, with an ellipsis if that is not all.
pub(super) fn clip(text: &str, max: usize) -> String {
    const ELLIPSIS: char = '…';
    if json_len(text) <= max {
        return text.to_owned();
    }
    let mut room = max.saturating_sub(ELLIPSIS.len_utf8());
    let fitting = text.chars().take_while(|&c| {
        let width = json_width(c);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    });
    fitting.chain([ELLIPSIS]).collect()
}
