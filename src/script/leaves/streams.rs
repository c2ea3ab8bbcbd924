//! The streams of a command: its redirections, and what it reads.

use std::rc::Rc;

use crate::script::leaf::{Argument, HoleKind, Pipes, Redirection};
use crate::script::tree::RedirectKind;

/// The streams of a command.
#[derive(Debug, Default)]
pub(super) struct LeafStreams {
    pub(super) redirects: Vec<Redirection>,
    pub(super) pipes: Pipes,
    /// The standard input that it has without redirections of its own.
    pub(super) around: StandardInput,
    /// What a process substitution writes into its standard input, if it is known.
    pub(super) process: Option<StandardInput>,
}

/// The source of what a command reads.
#[derive(Debug, Clone, Default)]
pub(super) enum StandardInput {
    /// That of the text itself, or nothing.
    #[default]
    Outer,
    /// A pipe or a file of unknown content.
    Stream,
    File,
    /// It stands in the text.
    Text(Rc<Argument>),
    /// Some lines of this text.
    Lines(Rc<Argument>),
}

impl LeafStreams {
    /// What it reads: its last redirection counts.
    pub(super) fn input(&self) -> StandardInput {
        let Some(own) = self.redirects.iter().rev().find(|redirect| redirect.descriptor == Some(0)) else {
            return self.around.clone();
        };
        let is_process = own.target.is_only(&HoleKind::Process);
        match own.kind {
            RedirectKind::HereDocument | RedirectKind::HereString => StandardInput::Text(Rc::new(own.target.clone())),
            RedirectKind::Duplicate => match own.target.text() {
                Some(b"-") => StandardInput::Outer,
                Some(b"0") => self.around.clone(),
                _ => StandardInput::Stream,
            },
            _ if is_process => self.process.clone().unwrap_or(StandardInput::Stream),
            _ if own.target.text() == Some(b"/dev/null") => StandardInput::Outer,
            _ => StandardInput::File,
        }
    }

    /// The streams with another descriptor as standard input.
    pub(super) fn with_input(&self, descriptor: u32) -> Self {
        let is_it = |redirect: &&Redirection| redirect.descriptor == Some(descriptor);
        let redirects =
            self.redirects.iter().filter(is_it).map(|own| Redirection { descriptor: Some(0), ..own.clone() });
        let around = if descriptor == 0 { self.around.clone() } else { StandardInput::Stream };
        Self { redirects: redirects.collect(), pipes: self.pipes, around, process: None }
    }

    /// Returns true if the output goes into a pipe: no redirection says otherwise.
    pub(super) fn writes_pipe(&self) -> bool {
        let keeps = |redirect: &Redirection| redirect.descriptor.is_some_and(|descriptor| descriptor != 1);
        self.pipes.writes && self.redirects.iter().all(keeps)
    }

    /// The streams of a program that a layer runs. The layer itself has the redirections but for standard input.
    pub(super) fn inherited(&self) -> Self {
        let redirects = self.redirects.iter().filter(|redirect| redirect.descriptor == Some(0)).cloned().collect();
        Self { redirects, pipes: self.pipes, around: self.around.clone(), process: self.process.clone() }
    }
}
