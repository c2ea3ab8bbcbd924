//! Journals made by hand, as a recorder writes them.

use std::fs;
use std::path::Path;

/// A journal's file of a host that does not run.
#[derive(Debug)]
pub(crate) struct Sample {
    name: String,
    pub(crate) text: String,
}

impl Sample {
    pub(crate) fn new(name: &str) -> Self {
        let text = "{\"v\":1,\"type\":\"open\",\"time\":\"2026-05-21T09:00:00.000Z\",\"pid\":1,\"version\":\"0\"}\n";
        Self { name: name.to_owned(), text: text.to_owned() }
    }

    /// The file after this one, which begins with the starts that are given to it next.
    pub(crate) fn continues(&self, name: &str) -> Self {
        let text = format!(
            "{{\"v\":1,\"type\":\"open\",\"time\":\"t\",\"pid\":1,\"version\":\"0\",\"continues\":\"{}\"}}\n",
            self.name
        );
        Self { name: name.to_owned(), text }
    }

    pub(crate) fn line(mut self, line: &str) -> Self {
        self.text.push_str(line);
        self.text.push('\n');
        self
    }

    pub(crate) fn start(self, seq: u64, command: &str) -> Self {
        self.line(&format!("{{\"v\":1,\"type\":\"start\",\"seq\":{seq},{}}}", common(seq, command)))
    }

    /// The end of a run with more fields: `"exit":1,"output":"x"`.
    pub(crate) fn end(self, seq: u64, command: &str, fields: &str) -> Self {
        self.line(&format!("{{\"v\":1,\"type\":\"end\",\"seq\":{seq},{},{fields}}}", common(seq, command)))
    }

    pub(crate) fn run(self, seq: u64, command: &str, fields: &str) -> Self {
        self.start(seq, command).end(seq, command, fields)
    }

    pub(crate) fn write(&self, home: &Path) {
        fs::write(home.join(format!("{}.jsonl", self.name)), &self.text).unwrap();
    }
}

fn common(seq: u64, command: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    let (minute, second) = (seq / 60 % 60, seq % 60);
    format!(
        "\"time\":\"2026-05-21T10:{minute:02}:{second:02}.000Z\",\"whoami\":\"Codex\",\"dir\":\"/srv/api\",\
         \"exec\":[\"sh\",\"-c\",{command}],\"command\":{command},\"shell\":\"/bin/sh\""
    )
}
