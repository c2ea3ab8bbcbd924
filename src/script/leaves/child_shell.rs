//! Shells that run code in a process of their own, here or on another machine.

use super::{LeafStreams, StandardInput, Walk};
use crate::limits;
use crate::script::leaf::{Argument, ArgumentPiece, HoleKind, HoleReach, OpaqueReason, Via};
use crate::script::programs::{self, ShellReads};

/// The variables that code sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sees {
    /// A child sees what is exported.
    Exported,
    /// Another machine or a remote shell sees nothing.
    Nothing,
}

/// A shell that runs code in its own process.
#[derive(Debug)]
pub(super) struct ChildShell {
    pub(super) layer: Vec<u8>,
    pub(super) arguments: Vec<Argument>,
    pub(super) input: StandardInput,
    pub(super) sees: Sees,
}

impl ChildShell {
    /// A shell here, without arguments.
    pub(super) fn of(layer: impl Into<Vec<u8>>, input: StandardInput) -> Self {
        Self { layer: layer.into(), arguments: Vec::new(), input, sees: Sees::Exported }
    }
}

impl Walk<'_> {
    /// Code for a shell of its own.
    pub(super) fn child_code(&mut self, code: &[u8], child: ChildShell) {
        let ChildShell { layer, arguments, input, sees } = child;
        let outer = self.input.clone();
        self.apart(|walk| {
            walk.arguments = Some(arguments.into());
            match sees {
                Sees::Exported => {
                    walk.values.hide_unexported();
                    walk.input = input;
                    walk.code(code, Via::Layer(layer));
                }
                Sees::Nothing => walk.elsewhere(|walk| {
                    walk.input = input;
                    // It begins in a home.
                    walk.values.set_directory(Some(Argument::of_hole(HoleKind::Home(Vec::new()), HoleReach::Within)));
                    walk.code(code, Via::Layer(layer));
                }),
            }
        });
        self.input = outer;
    }

    /// Reads the code of a shell: the argument of `-c`, or its standard input.
    pub(super) fn shell(&mut self, name: &str, words: &[Argument], streams: &LeafStreams) {
        match programs::shell_call(&words.iter().map(Argument::text).collect::<Vec<_>>()).reads {
            ShellReads::Code(at) => {
                let code = words[at].marked();
                let arguments = words.get(at + 2..).unwrap_or_default().to_vec();
                let child = ChildShell::of(format!("{name} -c"), streams.input());
                self.child_code(&code, ChildShell { arguments, ..child });
            }
            ShellReads::Script(at) => {
                let is_process = |piece: &ArgumentPiece| matches!(piece, ArgumentPiece::Hole(hole) if hole.kind == HoleKind::Process);
                if words[at].pieces.iter().any(is_process) {
                    self.opaque(OpaqueReason::SourcesStream, Vec::new());
                } else if let Some(path) = words[at].text()
                    && (path.starts_with(b"/dev/") || path.starts_with(b"/proc/"))
                {
                    let number = std::str::from_utf8(programs::base_name(path)).ok().and_then(|name| name.parse().ok());
                    let arguments = words[at + 1..].to_vec();
                    self.shell_input(name, &streams.with_input(number.unwrap_or(0)), arguments, Sees::Exported);
                }
            }
            ShellReads::Input(at) => {
                let arguments = words.get(at..).unwrap_or_default().to_vec();
                self.shell_input(name, streams, arguments, Sees::Exported);
            }
        }
    }

    /// Reads the standard input of a shell, here or elsewhere, as its commands.
    pub(super) fn shell_input(&mut self, name: &str, streams: &LeafStreams, arguments: Vec<Argument>, sees: Sees) {
        match streams.input() {
            StandardInput::Text(code) => {
                // The code reads what is left of it.
                let child = ChildShell::of(name, StandardInput::Outer);
                self.child_code(&code.marked(), ChildShell { arguments, sees, ..child });
            }
            StandardInput::Stream | StandardInput::Lines(_) => self.opaque(OpaqueReason::ShellReadsPipe, Vec::new()),
            StandardInput::Outer => {
                let function = self.via.iter().rev().find_map(|via| match via {
                    Via::Function(name) => Some(name.clone()),
                    _ => None,
                });
                if self.shell_functions.len() < limits::SCRIPT_VARIABLES_MAX {
                    self.shell_functions.extend(function);
                }
            }
            StandardInput::File => {}
        }
    }
}
