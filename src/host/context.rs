//! The context of a change to a run: the parts of the host that nearly every step of one touches besides the run itself.

use super::peers::Peers;
use super::turn::Turn;
use crate::core::engine::Engine;

#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) turn: &'a mut Turn,
    pub(super) engine: &'a mut Engine,
    pub(super) peers: &'a mut Peers,
}
