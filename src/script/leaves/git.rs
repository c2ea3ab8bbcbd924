//! The code that git runs: aliases, settings, and commands in its arguments.

use super::child_shell::ChildShell;
use super::{LeafStreams, Walk};
use crate::limits;
use crate::script::leaf::{Argument, Via};
use crate::script::programs::is_listed;

impl Walk<'_> {
    /// Reads the code that git runs: that of aliases and of settings in its arguments or its environment, and the commands of
    /// `rebase --exec` and its like.
    pub(super) fn git(&mut self, words: &[Argument], streams: &LeafStreams) {
        let verb = git_verb(words);
        // An alias may lead to another one, and to itself.
        let depth = self.via.iter().filter(|via| matches!(via, Via::Layer(name) if name == b"git")).count();
        let alias = [b"alias.", words.get(verb).and_then(Argument::text).unwrap_or_default()].concat();
        let settings = if depth < 2 { self.git_settings(&words[..verb.min(words.len())], &alias) } else { Vec::new() };
        for (name, value) in settings {
            let is_alias = name == alias;
            let rest = words.get(verb + 1..).unwrap_or_default().iter().map(Argument::as_code);
            let code = match value.strip_prefix(b"!") {
                _ if !is_alias && !runs_value(&name) => continue,
                Some(code) => code.to_vec(),
                None if is_alias => [b"git ", &value[..]].concat(),
                None => value,
            };
            let words = [code].into_iter().chain(rest.filter(|_| is_alias)).collect::<Vec<_>>();
            self.child_code(&words.join(&b' '), ChildShell::of("git", streams.input()));
        }
        match words.get(verb).and_then(Argument::text) {
            Some(b"config") => {
                let pair = words[verb + 1..].windows(2).find(|pair| pair[0].with_marks().starts_with(b"alias."));
                if let Some([name, value]) = pair
                    && self.aliases.len() < limits::SCRIPT_VARIABLES_MAX
                {
                    self.aliases.push(([b"git ", &name.with_marks()[..]].concat(), value.with_marks()));
                }
            }
            Some(b"submodule") => {
                let begin = words.iter().position(|word| word.text() == Some(b"foreach")).map(|at| at + 1);
                let rest = words.get(begin.unwrap_or(words.len())..).unwrap_or_default();
                let options = rest.iter().take_while(|word| word.with_marks().starts_with(b"-")).count();
                match &rest[options..] {
                    [code] => self.child_code(&code.with_marks(), ChildShell::of("git", streams.input())),
                    program => {
                        let program = program.to_vec();
                        self.apart(|walk| {
                            walk.behind(b"git submodule foreach".to_vec(), program, &LeafStreams::default())
                        });
                    }
                }
            }
            _ => {}
        }
        let mut before: &[u8] = b"";
        for word in &words[1..] {
            let bytes = word.with_marks();
            let is_code = matches!(before, b"--exec" | b"-x" | b"--tree-filter" | b"--index-filter");
            let code = if is_code { Some(&bytes[..]) } else { bytes.strip_prefix(b"--exec=") };
            if let Some(code) = code {
                self.child_code(code, ChildShell::of("git", streams.input()));
            }
            before = word.text().unwrap_or_default();
        }
        let bisects = words.iter().position(|word| word.text() == Some(b"bisect"));
        if let Some(at) = bisects
            && words.get(at + 1).and_then(Argument::text) == Some(b"run")
        {
            self.apart(|walk| {
                walk.behind(b"git bisect run".to_vec(), words[at + 2..].to_vec(), &LeafStreams::default())
            });
        }
    }

    /// The settings that git with these options sees, as far as the text tells. Of stored aliases, the one of this name.
    fn git_settings(&self, options: &[Argument], alias: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let pair = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=')?;
            Some((text[..at].to_vec(), text[at + 1..].to_vec()))
        };
        let value = |name: &[u8]| self.values.get(name).map(|value| value.with_marks());
        let mut settings: Vec<_> = options
            .windows(2)
            .filter_map(|two| {
                let text = two[1].with_marks();
                match two[0].text() {
                    Some(b"-c") => pair(&text),
                    Some(b"--config-env") => pair(&text).and_then(|(name, variable)| Some((name, value(&variable)?))),
                    _ => text
                        .strip_prefix(b"--config-env=")
                        .and_then(pair)
                        .and_then(|(name, variable)| Some((name, value(&variable)?))),
                }
            })
            .collect();
        for number in 0..limits::SCRIPT_GIT_SETTINGS_MAX {
            let Some(name) = value(format!("GIT_CONFIG_KEY_{number}").as_bytes()) else { break };
            settings.extend(value(format!("GIT_CONFIG_VALUE_{number}").as_bytes()).map(|value| (name, value)));
        }
        for name in [&b"GIT_PAGER"[..], b"GIT_EDITOR", b"GIT_SSH_COMMAND", b"GIT_EXTERNAL_DIFF"] {
            let own = value(name).filter(|_| self.values.is_set(name));
            settings.extend(own.map(|value| (b"core.editor".to_vec(), value)));
        }
        let stored = self.aliases.iter().rev().find(|(name, _)| name.strip_prefix(b"git ") == Some(alias));
        settings.extend(stored.map(|(_, code)| (alias.to_vec(), code.clone())));
        settings
    }
}

/// The place of git's subcommand, behind its own options.
pub(super) fn git_verb(words: &[Argument]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.with_marks().starts_with(b"-")) {
        at += 1 + usize::from(word.text().is_some_and(|word| is_listed(word, VALUE_OPTIONS)));
    }
    at
}

/// The options of git's own whose value is the next word.
const VALUE_OPTIONS: &str = " -c -C --git-dir --work-tree --namespace --exec-path --config-env --attr-source ";

/// Returns true if git runs the value of this setting.
fn runs_value(name: &[u8]) -> bool {
    let names: [&[u8]; 7] = [b"pager", b"editor", b"sshcommand", b"external", b"fsmonitor", b"textconv", b"askpass"];
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name).to_ascii_lowercase();
    names.contains(&&last[..]) || name.starts_with(b"pager.")
}
