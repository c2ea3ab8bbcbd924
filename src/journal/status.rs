//! What the recorder tells the host: lines of text, on the socket on which the [frames](super::frame) come.

use std::fmt::Write;

/// One line of the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecorderStatus {
    /// The file that the recorder writes from now on: its name in the directory, without extension.
    File(String),
    /// A sentence for the human.
    Say(String),
    /// What the recorder has done since its last such line.
    Done(Done),
    /// The last line of a recorder whose input has ended. What it has not written by now cannot be written.
    Leave,
}

/// How far the recorder has got. It acknowledges a record once the file has it, or counts it as dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// How many of all the bytes that it was sent the recorder has dealt with.
    pub handled: u64,
    /// The length of the file, bytes. Every acknowledged record stands before it.
    pub length: u64,
    /// The runs whose start is acknowledged.
    pub starts: Vec<u64>,
    /// The runs whose end is acknowledged.
    pub ends: Vec<u64>,
    /// How many records that the host gave up the file counts.
    pub dropped: u64,
}

impl Done {
    /// Whether no record is acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.ends.is_empty() && self.dropped == 0
    }

    /// How many starts and ends are acknowledged.
    #[must_use]
    pub fn records(&self) -> usize {
        self.starts.len() + self.ends.len()
    }
}

impl RecorderStatus {
    /// Appends the line with its newline. A control character in a text becomes `?`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let plain = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
        let mut line = match self {
            RecorderStatus::File(name) => format!("file {}", plain(name)),
            RecorderStatus::Say(text) => format!("say {}", plain(text)),
            RecorderStatus::Leave => "leave ".to_owned(),
            RecorderStatus::Done(done) => {
                let mut line = format!("done {} {} {}", done.handled, done.length, done.dropped);
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

    /// Reads a line without its newline; `None` if no recorder writes such a line.
    #[must_use]
    pub fn decode(line: &str) -> Option<RecorderStatus> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "file" => Some(RecorderStatus::File(rest.to_owned())),
            "say" => Some(RecorderStatus::Say(rest.to_owned())),
            "leave" => Some(RecorderStatus::Leave),
            "done" => {
                let mut words = rest.split(' ');
                let mut number = || words.next()?.parse().ok();
                let mut done = Done { handled: number()?, length: number()?, dropped: number()?, ..Done::default() };
                for word in words {
                    let (letter, seq) = word.split_at_checked(1)?;
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
        let done = Done { handled: u64::MAX, length: 7, starts: vec![1, 2], ends: vec![1], dropped: 3 };
        for status in [
            RecorderStatus::File("2026-05-21-09:42:18-2".into()),
            RecorderStatus::Say("two words".into()),
            RecorderStatus::Done(done),
            RecorderStatus::Done(Done::default()),
            RecorderStatus::Leave,
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
