//! What `[undo]` of a person's file says: within which bounds their files are kept before a command destroys them.

use std::time::Duration;

use super::document::{Pair, RulesError, Table, Value};
use crate::limits;

/// The keys of `[undo]`, each with its default.
pub const UNDO_KEYS: [(&str, &str); 4] = [("copy", "1M"), ("wait", "10"), ("except", "[]"), ("unkept", "run")];

/// What is done with a command that destroys what cannot be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unkept {
    #[default]
    Run,
    Ask,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoSettings {
    pub bounds: KeepingBounds,
    pub unkept: Unkept,
}

/// How much is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepingBounds {
    /// The largest file that is copied where it cannot be linked, bytes.
    pub copy_max: u64,
    /// The time for which a collector begins to keep more.
    pub wait: Duration,
    /// Patterns of what is not kept, as they are written.
    pub except: Vec<String>,
}

impl Default for KeepingBounds {
    fn default() -> Self {
        Self { copy_max: limits::COPIED_FILE_BYTES, wait: limits::KEEPING, except: Vec::new() }
    }
}

impl UndoSettings {
    pub(super) fn read(&mut self, table: &Table) -> Result<(), RulesError> {
        let bounds = &mut self.bounds;
        for pair in &table.pairs {
            match pair.key.as_str() {
                "copy" => bounds.copy_max = pair.size(limits::COPIED_FILE_BYTES_MAX)?,
                "wait" => bounds.wait = pair.seconds(limits::KEEPING_MAX)?,
                "except" => bounds.except = pair.exceptions()?,
                "unkept" => self.unkept = pair.choice(&[("run", Unkept::Run), ("ask", Unkept::Ask)])?,
                _ => return Err(pair.unknown_key("undo", &UNDO_KEYS.map(|(key, _)| key))),
            }
        }
        Ok(())
    }
}

impl Pair {
    fn size(&self, most: u64) -> Result<u64, RulesError> {
        let size = match &self.value {
            Value::Text(text) => size(text),
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            _ => None,
        };
        let hint = format!("as in \"64M\"; {} MiB are the most", most >> 20);
        let problem = || self.wrong(format!("`{}` is not a size up to that", self.key), hint);
        size.filter(|size| *size <= most).ok_or_else(problem)
    }

    fn seconds(&self, most: Duration) -> Result<Duration, RulesError> {
        let seconds = match &self.value {
            Value::Integer(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            _ => None,
        };
        let hint = format!("seconds from 1 to {}, as in {} = 10", most.as_secs(), self.key);
        let is_valid = |time: &Duration| (Duration::from_secs(1)..=most).contains(time);
        seconds.filter(is_valid).ok_or_else(|| self.wrong(format!("`{}` is not a number of seconds", self.key), hint))
    }

    fn exceptions(&self) -> Result<Vec<String>, RulesError> {
        let list = self.list()?;
        if list.len() > limits::EXCEPTIONS_MAX {
            let hint = format!("{} are the most", limits::EXCEPTIONS_MAX);
            return Err(self.wrong(format!("`{}` has too many patterns", self.key), hint));
        }
        for pattern in list {
            let is_line = pattern.len() <= limits::RULE_GLOB_BYTES_MAX && !pattern.chars().any(char::is_control);
            let inner = pattern.strip_suffix('/').unwrap_or(pattern);
            let is_anchored = pattern.starts_with('/') || pattern.starts_with("~/");
            if !is_line || inner.split('|').any(str::is_empty) || inner.contains('/') && !is_anchored {
                let hint = "as in \"*.iso\", \"build/\" (a directory), \"~/VMs/\" or \"/var/lib/*.db\"";
                return Err(self.wrong(format!("`{pattern}` is neither a name nor a path"), hint));
            }
        }
        Ok(list.to_vec())
    }
}

/// A number of bytes, or of `K`, `M` or `G` of them.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        b'G' | b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::load;

    fn read(text: &str) -> Result<UndoSettings, String> {
        let loaded = load(format!("[undo]\n{text}\n").as_bytes(), "config.toml");
        loaded.map(|loaded| loaded.undo).map_err(|error| error.problem)
    }

    #[test]
    fn settings_have_bounds() {
        let usual = UndoSettings::default();
        assert_eq!(read(""), Ok(usual.clone()));
        assert_eq!(read("copy = '64M'").map(|settings| settings.bounds.copy_max), Ok(64 << 20));
        assert_eq!(read("copy = 0").map(|settings| settings.bounds.copy_max), Ok(0));
        assert_eq!(read("wait = 30").map(|settings| settings.bounds.wait), Ok(Duration::from_secs(30)));
        let except = read("except = ['*.iso', 'build/', '~/VMs/', '/srv/*']").map(|settings| settings.bounds.except);
        assert_eq!(except.map(|patterns| patterns.len()), Ok(4));
        assert_eq!(read("unkept = 'ask'").map(|settings| settings.unkept), Ok(Unkept::Ask));
        for wrong in [
            "copy = '2G'",
            "copy = -1",
            "copy = 'M'",
            "copy = '1.5M'",
            "copy = '+1'",
            "wait = 0",
            "wait = 301",
            "wait = '10s'",
            "except = 'x'",
            "except = ['']",
            "except = ['/']",
            "except = ['a/b']",
            "except = ['a||b']",
            "except = [\"a\\n\"]",
            "keep = true",
            "unkept = 'deny'",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (key, default) in UNDO_KEYS {
            let quote = if matches!(key, "copy" | "unkept") { "'" } else { "" };
            assert_eq!(read(&format!("{key} = {quote}{default}{quote}")), Ok(usual.clone()), "{key}");
        }
    }
}
