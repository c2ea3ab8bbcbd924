//! Which tables and keys a TOML text has defined, because none of them may be defined twice.

use std::collections::BTreeMap;

/// By what a table or a key is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TomlDefinition {
    /// `[a.b]` has made `a`.
    Implied,
    /// `[a]`.
    Header,
    /// `a.b = 1` has made `a`.
    Dotted,
    /// `[[a]]`.
    List,
    /// `a = 1`, or `a = {}`.
    Value,
}

/// All names that a text has defined so far.
#[derive(Debug, Default)]
pub(super) struct TomlNames(BTreeMap<Vec<String>, TomlDefinition>);

impl TomlNames {
    /// Defines the table of a header, or the next table of a list. Fails with what is wrong.
    pub(super) fn header(&mut self, keys: &[String], is_list: bool) -> Result<(), String> {
        use TomlDefinition::{Header, Implied, List, Value};
        for length in 1..keys.len() {
            if *self.0.entry(keys[..length].to_vec()).or_insert(Implied) == Value {
                return Err(format!("`{}` is not a table", keys[..length].join(".")));
            }
        }
        let shown = keys.join(".");
        match (self.0.get(keys), is_list) {
            (None, true) => self.0.insert(keys.to_vec(), List),
            (None | Some(Implied), false) => self.0.insert(keys.to_vec(), Header),
            (Some(List), true) => {
                // Each table of a list has names of its own.
                self.0.retain(|other, _| other.len() <= keys.len() || !other.starts_with(keys));
                None
            }
            (Some(Value), _) => return Err(format!("`{shown}` is not a table")),
            _ => return Err(format!("the table `{shown}` is there twice")),
        };
        Ok(())
    }

    /// Defines a key. The first `header` keys are those of its table. Fails with what is wrong.
    pub(super) fn pair(&mut self, keys: &[String], header: usize) -> Result<(), String> {
        use TomlDefinition::{Dotted, Value};
        for length in header + 1..keys.len() {
            match self.0.entry(keys[..length].to_vec()).or_insert(Dotted) {
                Dotted => {}
                Value => return Err(format!("`{}` is not a table", keys[..length].join("."))),
                _ => return Err(format!("the table `{}` is there twice", keys[..length].join("."))),
            }
        }
        match self.0.insert(keys.to_vec(), Value) {
            None => Ok(()),
            Some(_) => Err(format!("`{}` is there twice", keys.join("."))),
        }
    }
}
