//! A line of a journal that the tool before this one wrote: one object for each run, without version, type and number.
//!
//! ```text
//! {"whoami":"Codex","dir":"/srv/api","envs":{},"exec":["id","-un"],"exit":0,"output":"ann\n","time":"2026-05-21T09:42:24Z"}
//! ```
//!
//! Its output is whole, so a line may be long.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::record::{EndRecord, PublishedCard, RecordedOutput, RunEnd, StartRecord};

/// The longest line that is read, bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

#[derive(Deserialize)]
struct PriorRecord {
    #[serde(default)]
    whoami: String,
    #[serde(default)]
    dir: String,
    #[serde(default)]
    envs: BTreeMap<String, String>,
    exec: Vec<String>,
    exit: i64,
    #[serde(default)]
    output: String,
    #[serde(default)]
    time: String,
    error: Option<String>,
}

/// Reads a line. The run gets the number `seq`. `None` if it is not such a record.
pub(super) fn parse(line: &[u8], seq: u64) -> Option<EndRecord> {
    let PriorRecord { whoami, dir, envs, exec, exit, output, time, error } = serde_json::from_slice(line).ok()?;
    let exit = u8::try_from(exit).unwrap_or(u8::MAX);
    let command = shell_words(&exec);
    let start = StartRecord {
        card: PublishedCard { seq, time, whoami, dir, command, ..PublishedCard::default() },
        envs,
        exec,
        ..StartRecord::default()
    };
    let signal = exit.checked_sub(128).filter(|signal| (1..=64).contains(signal));
    let bytes = output.len() as u64;
    let end = RunEnd { seq, exit, signal, bytes, error, ..RunEnd::default() };
    Some(EndRecord { start, end, output: RecordedOutput { text: output, ..RecordedOutput::default() } })
}

/// An argument vector as a shell would read it.
fn shell_words(exec: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    let quoted = exec.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_tool_before() {
        let line = br#"{"whoami":"Codex","dir":"/p","envs":{},"exec":["sh","-c","it's"],"exit":143,"output":"x\n","time":"t","error":"aborted"}"#;
        let EndRecord { start, end, output } = parse(line, 3).unwrap();
        assert_eq!((start.card.seq, start.card.command.as_str(), end.signal), (3, r"sh -c 'it'\''s'", Some(15)));
        assert_eq!((output.text.as_str(), end.bytes, end.error.as_deref()), ("x\n", 2, Some("aborted")));
        for line in ["{}", "[]", r#"{"exec":["ls"]}"#, r#"{"exec":"ls","exit":0}"#, r#"{"exec":["ls"],"exit":0"#] {
            assert!(parse(line.as_bytes(), 1).is_none(), "{line}");
        }
    }
}
