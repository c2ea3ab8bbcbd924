//! The recorder's reports to the host: lines of text, on the socket on which the [frames](super::frame) come.

use std::fmt::Write;

use crate::text::encode::{base64, from_base64};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecorderStatus {
    /// The recorder writes this file from now on: its name in the directory, without extension.
    File(String),
    /// A sentence for the human.
    Say(String),
    /// The recorder's work since its last such line.
    Done(Done),
    /// The recorder has dealt with all that came before a mark of this number.
    Reached {
        /// The number.
        mark: u64,
        /// The run's output by then. `None` if not all of it is known.
        so_far: Option<OutputSoFar>,
    },
    /// The last line of a recorder whose input has ended. What it has not written by now cannot be written.
    Leave,
}

/// A run's output so far, with its secrets masked: the beginning of its raw file, and the output after that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputSoFar {
    /// How much of the raw file is the beginning, bytes. With 0, nothing of it is.
    pub file_bytes: u64,
    /// Bytes behind it that are not kept.
    pub left_out: u64,
    /// The lines behind these.
    pub lines: Vec<u8>,
    /// The last line, which has no end yet.
    pub last_line: Vec<u8>,
}

/// How far the recorder has got. It acknowledges a record once the file has it, or counts it as dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// How many of the bytes that the host sent are dealt with, over all.
    pub handled: u64,
    /// The length of the file, bytes. Every acknowledged record stands before it.
    pub length: u64,
    /// The runs whose start is acknowledged.
    pub starts: Vec<u64>,
    /// The runs whose end is acknowledged.
    pub ends: Vec<u64>,
    /// How many records that the host gave up are counted in the file.
    pub dropped: u64,
    /// How many of the records that belong to no start and no end are acknowledged, in the order of their coming.
    pub asides: usize,
}

impl Done {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.ends.is_empty() && self.dropped == 0 && self.asides == 0
    }

    /// How many records of runs are acknowledged.
    #[must_use]
    pub fn records(&self) -> usize {
        self.starts.len() + self.ends.len() + self.asides
    }
}

impl RecorderStatus {
    /// Appends the line with its newline. Each control character in a text becomes `?`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let plain = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
        let mut line = match self {
            RecorderStatus::File(name) => format!("file {}", plain(name)),
            RecorderStatus::Say(text) => format!("say {}", plain(text)),
            RecorderStatus::Leave => "leave ".to_owned(),
            RecorderStatus::Reached { mark, so_far: None } => format!("unknown {mark}"),
            RecorderStatus::Reached { mark, so_far: Some(so_far) } => {
                let OutputSoFar { file_bytes, left_out, lines, last_line } = so_far;
                format!("reached {mark} {file_bytes} {left_out} {} {}", base64(lines), base64(last_line))
            }
            RecorderStatus::Done(done) => {
                let mut line = format!("done {} {} {} a{}", done.handled, done.length, done.dropped, done.asides);
                for (letter, seqs) in [('s', &done.starts), ('e', &done.ends)] {
                    for seq in seqs {
                        write!(line, " {letter}{seq}").expect("memory takes what is written");
                    }
                }
                line
            }
        };
        line.push('\n');
        out.extend_from_slice(line.as_bytes());
    }

    /// Reads a line without its newline. `None` if no recorder writes such a line.
    #[must_use]
    pub fn decode(line: &str) -> Option<RecorderStatus> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "file" => Some(RecorderStatus::File(rest.to_owned())),
            "say" => Some(RecorderStatus::Say(rest.to_owned())),
            "leave" => Some(RecorderStatus::Leave),
            "unknown" => Some(RecorderStatus::Reached { mark: rest.parse().ok()?, so_far: None }),
            "reached" => {
                let [mark, file_bytes, left_out, lines, last_line] = rest.split(' ').collect::<Vec<_>>()[..] else {
                    return None;
                };
                let so_far = OutputSoFar {
                    file_bytes: file_bytes.parse().ok()?,
                    left_out: left_out.parse().ok()?,
                    lines: from_base64(lines)?,
                    last_line: from_base64(last_line)?,
                };
                Some(RecorderStatus::Reached { mark: mark.parse().ok()?, so_far: Some(so_far) })
            }
            "done" => {
                let mut words = rest.split(' ');
                let mut number = || words.next()?.parse().ok();
                let mut done = Done { handled: number()?, length: number()?, dropped: number()?, ..Done::default() };
                for word in words {
                    let (letter, seq) = word.split_at_checked(1)?;
                    if letter == "a" {
                        done.asides = seq.parse().ok()?;
                        continue;
                    }
                    let seq = seq.parse().ok()?;
                    match letter {
                        "s" => done.starts.push(seq),
                        "e" => done.ends.push(seq),
                        _ => return None,
                    }
                }
                Some(RecorderStatus::Done(done))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_decoded_as_it_was_encoded() {
        let done = Done { handled: u64::MAX, length: 7, starts: vec![1, 2], ends: vec![1], dropped: 3, asides: 4 };
        for status in [
            RecorderStatus::File("2026-05-21-09:42:18-2".into()),
            RecorderStatus::Say("two words".into()),
            RecorderStatus::Done(done),
            RecorderStatus::Done(Done::default()),
            RecorderStatus::Leave,
            RecorderStatus::Reached { mark: 3, so_far: None },
            RecorderStatus::Reached { mark: 4, so_far: Some(OutputSoFar::default()) },
            RecorderStatus::Reached {
                mark: 5,
                so_far: Some(OutputSoFar {
                    file_bytes: 7,
                    left_out: 1,
                    lines: b"a b\n\xff\n".to_vec(),
                    last_line: b"c".to_vec(),
                }),
            },
        ] {
            let mut line = Vec::new();
            status.encode(&mut line);
            let line = String::from_utf8(line).unwrap();
            assert_eq!(RecorderStatus::decode(line.strip_suffix('\n').unwrap()), Some(status));
        }
        let mut line = Vec::new();
        RecorderStatus::Say("a\nb\x1b".into()).encode(&mut line);
        assert_eq!(line, b"say a?b?\n");
        for line in ["", "done", "done 1 2", "done 1 2 3 x4", "done 1 2 3 s", "later 1"] {
            assert_eq!(RecorderStatus::decode(line), None, "{line}");
        }
    }
}
