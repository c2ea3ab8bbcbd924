//! The files that rules come from, and the rules that hold for a command.

use std::rc::Rc;
use std::time::Instant;

use super::options::HostOptions;
use super::own_rules::OwnRules;
use super::project_rules::ProjectRules;
use super::rule_layers::RuleLayers;
use super::rules::Rules;
use super::screen::Screen;
use crate::gate::Gate;

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
}

impl RuleFiles {
    /// Reads them when the host begins. Returns what a person should know of them, too.
    pub(super) fn open(options: &HostOptions) -> (Self, Vec<String>) {
        let Some(config) = options.config.clone() else { return (Self { files: None }, Vec::new()) };
        let home = std::path::absolute(&options.home).unwrap_or_else(|_| options.home.clone());
        let (own, said) = OwnRules::open(config, &home);
        let (projects, defaults) = (ProjectRules::new(home), Rc::new(Rules::new(Gate::default())));
        (Self { files: Some(Files { own, projects, defaults }) }, said)
    }

    /// Returns true if the person has any.
    pub(super) fn have_rules(&self) -> bool {
        self.files.as_ref().is_some_and(|files| files.own.layers().next().is_some())
    }

    /// The rules for a command in the project with this top. Looks for changes, if that is due.
    pub(super) fn rules(&mut self, top: Option<&[u8]>, now: Instant, screen: &mut Screen) -> Option<RuleLayers> {
        let Files { own, projects, defaults } = self.files.as_mut()?;
        own.look(now).into_iter().for_each(|remark| say(&remark, screen));
        let settings = own.strictest().unwrap_or(defaults);
        let of_project = top.and_then(|top| projects.rules(top, settings, now, |remark| say(&remark, screen)));
        RuleLayers::of(own.layers().chain(of_project))
    }

    /// A person has changed what they accept, or trust.
    pub(super) fn look_again(&mut self, now: Instant, screen: &mut Screen) {
        if let Some(Files { own, projects, .. }) = &mut self.files {
            own.look_again(now).into_iter().for_each(|remark| say(&remark, screen));
            projects.look_again();
        }
    }
}

fn say(remark: &str, screen: &mut Screen) {
    screen.say_if_room(format!("… {remark}"));
}
