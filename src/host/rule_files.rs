//! The files that rules come from, and the rules that hold for a command.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use super::always::{self, Proposal, Proposed, Saved};
use super::options::HostOptions;
use super::own_rules::OwnRules;
use super::project_rules::ProjectRules;
use super::rule_layers::RuleLayers;
use super::rules::{Rules, above};
use super::run::PendingStart;
use super::screen::Screen;
use crate::core::entry::Judgement;
use crate::front::command::{Command, Concern};
use crate::gate::{Gate, LearnedList, Unlearnable};

#[derive(Debug)]
pub(super) struct RuleFiles {
    /// `None` for a host without rules (`--no-config`).
    files: Option<Files>,
}

#[derive(Debug)]
struct Files {
    own: OwnRules,
    projects: ProjectRules,
    /// The settings where the person has none.
    defaults: Rc<Rules>,
    /// The journal's directory.
    home: PathBuf,
    /// What the person always allows.
    learned: LearnedList,
}

impl RuleFiles {
    /// Reads them when the host begins. Returns what a person should know of them, too.
    pub(super) fn open(options: &HostOptions) -> (Self, Vec<String>) {
        let Some(config) = options.config.clone() else { return (Self { files: None }, Vec::new()) };
        let home = std::path::absolute(&options.home).unwrap_or_else(|_| options.home.clone());
        let (own, mut said) = OwnRules::open(config, &home);
        let (projects, defaults) = (ProjectRules::new(home.clone()), Rc::new(Rules::new(Gate::default())));
        let mut files = Files { own, projects, defaults, home, learned: LearnedList::default() };
        said.extend(files.read_learned());
        (Self { files: Some(files) }, said)
    }

    /// Returns true if the person has any.
    pub(super) fn have_rules(&self) -> bool {
        self.files.as_ref().is_some_and(|files| files.own.layers().next().is_some())
    }

    /// The rules for this command, which begins in this directory, in the git project with this top. Looks for changes, if that
    /// is due.
    pub(super) fn rules(
        &mut self,
        command: &Command,
        directory: &[u8],
        top: Option<&[u8]>,
        now: Instant,
        screen: &mut Screen,
    ) -> Option<RuleLayers> {
        let Files { own, projects, defaults, .. } = self.files.as_mut()?;
        own.look(now).into_iter().for_each(|remark| say(&remark, screen));
        let settings = own.strictest().unwrap_or(defaults);
        let of_projects = projects.all_rules(command, directory, top, settings, now, |remark| say(&remark, screen));
        RuleLayers::of(own.layers().chain(of_projects))
    }

    /// A person has changed what they accept, or trust.
    pub(super) fn look_again(&mut self, now: Instant, screen: &mut Screen) {
        if let Some(files) = &mut self.files {
            let remarks = files.own.look_again(now).into_iter().chain(files.read_learned());
            remarks.for_each(|remark| say(&remark, screen));
            files.projects.look_again();
        }
    }

    /// What follows from a judgement where the person may be asked for another reason, too.
    pub(super) fn with_concern(
        &self,
        judgement: Option<Judgement>,
        command: &Command,
        is_attended: bool,
    ) -> Option<Judgement> {
        let Some(concern) = &command.concern else { return judgement };
        let is_stricter = |judgement: &Judgement| match concern {
            Concern::Restore { .. } => judgement.is_denied(),
            Concern::Unkept { .. } => judgement.consequence.holds(),
        };
        if judgement.as_ref().is_some_and(is_stricter) {
            return judgement;
        }
        let of_person = self.files.as_ref().map(|files| files.own.strictest().unwrap_or(&files.defaults));
        let asked = |rules: &Rules| rules.judgement_on(concern, command, is_attended);
        Some(of_person.map_or_else(|| asked(&Rules::new(Gate::default())), |rules| asked(rules)))
    }

    /// What would always allow what a command asks about that has not begun. `from` names its run.
    pub(super) fn propose(
        &mut self,
        pending: &PendingStart,
        from: &str,
        now: Instant,
        screen: &mut Screen,
    ) -> Proposed {
        if pending.command.concern.is_some() {
            return Err(Unlearnable::Concern);
        }
        let directory = pending.directory();
        let directory = directory.as_os_str().as_bytes();
        let top = pending.command.depth.and_then(|depth| above(directory, depth));
        let rules = self.rules(&pending.command, directory, top, now, screen).ok_or(Unlearnable::Unasked)?;
        rules.learnable(&pending.command, directory, from).map(Proposal::of)
    }

    /// Saves what the person has said they always allow.
    ///
    /// # Errors
    /// A sentence on what is wrong with the file.
    pub(super) fn learn(&mut self, proposal: Proposal, screen: &mut Screen) -> Result<(), String> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let Proposal { learned, words } = proposal;
        let saved = always::add(&files.home, &files.learned, learned);
        let Saved { list, was_changed } = saved.map_err(|problem| format!("not saved: {problem}"))?;
        files.set_learned(list);
        if was_changed {
            screen.say("… learned.toml was changed by somebody else, too: look at rexec gate learned");
        }
        screen.say(format_args!("… always allowed from now on: {words} (rexec gate learned)"));
        Ok(())
    }
}

impl Files {
    /// Reads what the person always allows. Returns what is wrong with it.
    fn read_learned(&mut self) -> Option<String> {
        let list = always::read_learned(&self.home);
        let problem = list.as_ref().err().map(|problem| format!("{problem}; what you always allow asks again"));
        self.set_learned(list.unwrap_or_default());
        problem
    }

    fn set_learned(&mut self, list: LearnedList) {
        if list.text() != self.learned.text() {
            self.own.set_learned(&list);
            self.defaults = Rc::new(self.defaults.with_learned(list.clone()));
            self.learned = list;
        }
    }
}

fn say(remark: &str, screen: &mut Screen) {
    screen.say_if_room(format!("… {remark}"));
}
