//! What of a record's fields is kept when they are too long for a line.
//!
//! Invariant: a start, an end and the output's excerpt, each within its bound, are a line within its own.

use super::{Left, RunEnd, StartRecord};

/// The most of each field, bytes as JSON spells them. Together with the output they stay below [`LINE_BYTES_MAX`].
const COMMAND_BYTES_MAX: usize = 192 << 10;
const EXEC_BYTES_MAX: usize = 224 << 10;
const EXEC_B64_BYTES_MAX: usize = 192 << 10;
const ENVS_BYTES_MAX: usize = 32 << 10;
const DIR_BYTES_MAX: usize = 32 << 10;
const NAME_BYTES_MAX: usize = 2 << 10;
const LEFT_MAX: usize = 256;
const COMM_BYTES_MAX: usize = 64;

impl StartRecord {
    /// The same, with every field cut to its bound; `None` when nothing needs it.
    pub(crate) fn fitted(&self) -> Option<StartRecord> {
        let twin_bytes = |twin: &Vec<String>| twin.iter().map(|argument| argument.len() + 3).sum::<usize>();
        let fits = json_len(&self.command) <= COMMAND_BYTES_MAX
            && self.exec.iter().map(|argument| json_len(argument) + 3).sum::<usize>() <= EXEC_BYTES_MAX
            && self.exec_b64.as_ref().map_or(0, twin_bytes) <= EXEC_B64_BYTES_MAX
            && self.envs.iter().map(|(name, value)| json_len(name) + json_len(value) + 6).sum::<usize>()
                <= ENVS_BYTES_MAX
            && json_len(&self.dir) <= DIR_BYTES_MAX
            && self.dir_b64.as_ref().map_or(0, String::len) <= DIR_BYTES_MAX
            && [&self.time, &self.whoami, &self.shell].iter().all(|name| json_len(name) <= NAME_BYTES_MAX);
        if fits {
            return None;
        }
        let mut room = EXEC_BYTES_MAX;
        let mut exec = Vec::new();
        for argument in &self.exec {
            if room < 8 {
                break;
            }
            let argument = clip(argument, room - 3);
            room = room.saturating_sub(json_len(&argument) + 3);
            exec.push(argument);
        }
        let mut room = ENVS_BYTES_MAX;
        let mut envs = self.envs.clone();
        envs.retain(|name, value| {
            let bytes = json_len(name) + json_len(value) + 6;
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        });
        Some(StartRecord {
            seq: self.seq,
            time: clip(&self.time, NAME_BYTES_MAX),
            whoami: clip(&self.whoami, NAME_BYTES_MAX),
            dir: clip(&self.dir, DIR_BYTES_MAX),
            envs,
            exec,
            command: clip(&self.command, COMMAND_BYTES_MAX),
            shell: clip(&self.shell, NAME_BYTES_MAX),
            // Half of a twin is of no use to anybody.
            exec_b64: self.exec_b64.clone().filter(|twin| twin_bytes(twin) <= EXEC_B64_BYTES_MAX),
            dir_b64: self.dir_b64.clone().filter(|twin| twin.len() <= DIR_BYTES_MAX),
            unwrapped: self.unwrapped,
            probe: self.probe,
            clipped: true,
            window: self.window,
            exec_text: self.exec_text.clone(),
        })
    }
}

impl RunEnd {
    /// The same within its bounds; `None` when nothing needs it.
    pub(super) fn fitted(&self) -> Option<RunEnd> {
        let fits = self.left.len() <= LEFT_MAX
            && self.unkillable.len() <= LEFT_MAX
            && self.left.iter().all(|left| json_len(&left.comm) <= COMM_BYTES_MAX)
            && self.error.as_ref().is_none_or(|error| json_len(error) <= NAME_BYTES_MAX);
        if fits {
            return None;
        }
        let shorter = |left: &Left| Left { pid: left.pid, comm: clip(&left.comm, COMM_BYTES_MAX) };
        Some(RunEnd {
            error: self.error.as_ref().map(|error| clip(error, NAME_BYTES_MAX)),
            left: self.left.iter().take(LEFT_MAX).map(shorter).collect(),
            unkillable: self.unkillable.iter().take(LEFT_MAX).copied().collect(),
            ..*self
        })
    }
}

/// The bytes `text` takes between JSON's quotes.
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

/// As much of `text` as fits `max` bytes of JSON, with an ellipsis when that is not all.
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
