//! The files that rules come from, and the rules that hold for a command.

use std::time::Instant;

use super::options::HostOptions;
use super::own_rules::OwnRules;
use super::rule_layers::RuleLayers;
use super::screen::Screen;

#[derive(Debug)]
pub(super) struct RuleFiles {
    /// `None` for a host without a file.
    own: Option<OwnRules>,
}

impl RuleFiles {
    /// Reads them when the host begins. Returns what a person should know of them, too.
    pub(super) fn open(options: &HostOptions) -> (Self, Vec<String>) {
        let home = std::path::absolute(&options.home).unwrap_or_else(|_| options.home.clone());
        let own = options.config.clone().map(|path| OwnRules::open(path, &home));
        let (own, said) = own.map_or((None, Vec::new()), |(own, said)| (Some(own), said));
        (Self { own }, said)
    }

    /// Returns true if there are any.
    pub(super) fn have_rules(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.layers().next().is_some())
    }

    /// The rules for a command. Looks for changes, if that is due.
    pub(super) fn rules(&mut self, now: Instant, screen: &mut Screen) -> Option<RuleLayers> {
        let own = self.own.as_mut()?;
        say(own.look(now), screen);
        RuleLayers::of(own.layers())
    }

    /// A person has changed them.
    pub(super) fn look_again(&mut self, now: Instant, screen: &mut Screen) {
        if let Some(own) = &mut self.own {
            say(own.look_again(now), screen);
        }
    }
}

fn say(remark: Option<String>, screen: &mut Screen) {
    if let Some(remark) = remark {
        screen.say_if_room(format!("… {remark}"));
    }
}
