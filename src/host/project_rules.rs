//! The rules of projects: `.rexec.toml` at the top of a git project, which an agent may have written.
//!
//! Invariants: only a text that a person trusts counts, and it counts as it was then, whatever becomes of the file, in all
//! directories below it, whatever a caller says of its project, and for what a command from elsewhere does there, as far as
//! its text tells; such rules ask or deny, and never loosen what others say.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use super::rules::Rules;
use super::watched_file::{Content, Texts, WatchedFile, Whose};
use crate::front::command::Command;
use crate::gate::{self, PROJECT_FILE, Reach, RuleList};
use crate::limits;
use crate::recorder;
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::plain_path::plain_path;

/// Columns of a sentence about such a file.
const SENTENCE_COLUMNS: usize = 400;

#[derive(Debug)]
pub(super) struct ProjectRules {
    /// The journal's directory.
    home: PathBuf,
    /// The tops of the projects whose files a person trusts.
    trusted: Vec<PathBuf>,
    /// By their tops.
    known: BTreeMap<Vec<u8>, Project>,
}

#[derive(Debug)]
struct Project {
    watched: WatchedFile,
    rules: RuleList,
    /// They with the person's settings.
    with_settings: Vec<WithSettings>,
}

#[derive(Debug)]
struct WithSettings {
    settings: Rc<Rules>,
    reach: Reach,
    rules: Rc<Rules>,
}

impl ProjectRules {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { trusted: trusted(&home), home, known: BTreeMap::new() }
    }

    /// The rules of the projects that a directory lies in: those that are trusted, and the one with this top; and of the
    /// trusted ones that a command goes into from there. Looks for changes, if that is due; `say` is told what a person
    /// should know.
    pub(super) fn all_rules(
        &mut self,
        command: &Command,
        directory: &[u8],
        top: Option<&[u8]>,
        settings: &Rc<Rules>,
        now: Instant,
        mut say: impl FnMut(String),
    ) -> Vec<Rc<Rules>> {
        let here = Path::new(OsStr::from_bytes(directory));
        // A program that names a directory may write it so.
        let plain = plain_path(PathBuf::new(), here);
        let is_around = |other: &&Path| here.starts_with(other) || plain.starts_with(other);
        let (mut around, others): (Vec<&Path>, Vec<&Path>) =
            self.trusted.iter().map(PathBuf::as_path).partition(is_around);
        around.extend(top.map(OsStr::from_bytes).map(Path::new).filter(|top| !around.contains(top)));
        let others = others.into_iter().filter(|other| !around.contains(other)).collect();
        let entered = settings.entered(command, directory, others).into_iter().map(|other| (other, Reach::Entering));
        let tops = around.into_iter().map(|top| (top, Reach::All)).chain(entered);
        let tops: Vec<(Vec<u8>, Reach)> =
            tops.map(|(top, reach)| (top.as_os_str().as_bytes().to_vec(), reach)).collect();
        tops.iter().filter_map(|(top, reach)| self.rules(top, *reach, settings, now, &mut say)).collect()
    }

    fn rules(
        &mut self,
        top: &[u8],
        reach: Reach,
        settings: &Rc<Rules>,
        now: Instant,
        say: &mut impl FnMut(String),
    ) -> Option<Rc<Rules>> {
        if !self.known.contains_key(top) && self.known.len() >= limits::PROJECTS_MAX {
            let oldest = self.known.iter().min_by_key(|(_, project)| project.watched.looked_at());
            let oldest = oldest.map(|(top, _)| top.clone());
            oldest.map(|top| self.known.remove(&top));
        }
        let project = self.known.entry(top.to_vec()).or_insert_with(|| {
            let path = Path::new(OsStr::from_bytes(top)).join(PROJECT_FILE);
            let watched = WatchedFile::new(path, Whose::Projects, &self.home);
            Project { watched, rules: RuleList::default(), with_settings: Vec::new() }
        });
        if let Some(texts) = project.watched.look(now)
            && let Some(remark) = project.take(texts)
        {
            say(escape_line(&remark, SENTENCE_COLUMNS));
        }
        project.with(top, settings, reach)
    }

    /// A person has changed what is trusted.
    pub(super) fn look_again(&mut self) {
        self.trusted = trusted(&self.home);
        self.known.values_mut().for_each(|project| project.watched.look_again());
    }
}

impl Project {
    /// Takes what was read. Returns what a person should know of it.
    fn take(&mut self, Texts { file, accepted }: Texts) -> Option<String> {
        let path = self.watched.path.display();
        let top = self.watched.path.parent().unwrap_or(&self.watched.path).display();
        let trust = format!("rexec trust {top} shows it and asks you");
        let mut remark = match (&file, &accepted) {
            (Content::Nothing, None) | (Content::Far, _) => None,
            (Content::Text(text), Some(trusted)) if text == trusted => None,
            (Content::Text(_), None) => Some(format!("{path} is not trusted, and does not count: {trust}")),
            (Content::Text(_), Some(_)) => {
                Some(format!("{path} has changed, and what you have trusted holds: {trust}"))
            }
            (Content::Nothing, Some(_)) => {
                Some(format!("{path} is gone, and what you have trusted holds: rexec untrust {top} ends that"))
            }
            (Content::Unfit(why), None) => Some(format!("{path} does not count: {why}")),
            (Content::Unfit(why), Some(_)) => Some(format!("{path}: {why}; what you have trusted holds")),
        };
        (self.rules, self.with_settings) = (RuleList::default(), Vec::new());
        match accepted.map(|trusted| gate::load_project(&trusted)).transpose() {
            Ok(rules) => self.rules = rules.unwrap_or_default(),
            Err(error) => remark = Some(format!("what you have trusted of {path} says nothing to this rexec: {error}")),
        }
        remark
    }

    fn with(&mut self, top: &[u8], settings: &Rc<Rules>, reach: Reach) -> Option<Rc<Rules>> {
        if self.rules.is_empty() {
            return None;
        }
        self.with_settings.retain(|known| Rc::ptr_eq(&known.settings, settings));
        if let Some(known) = self.with_settings.iter().find(|known| known.reach == reach) {
            return Some(Rc::clone(&known.rules));
        }
        let rules = Rc::new(settings.for_project(top, self.rules.clone(), reach));
        self.with_settings.push(WithSettings { settings: Rc::clone(settings), reach, rules: Rc::clone(&rules) });
        Some(rules)
    }
}

/// The tops of the projects whose files a person trusts. None if those cannot be read.
fn trusted(home: &Path) -> Vec<PathBuf> {
    let all = recorder::all_accepted(home, process::uid()).unwrap_or_default().into_iter();
    all.filter(|(path, _)| path.ends_with(PROJECT_FILE))
        .filter_map(|(path, _)| Some(path.parent()?.to_owned()))
        .collect()
}
