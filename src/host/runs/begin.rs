//! Lets guards begin with their commands.
//!
//! ```text
//! guard:  has the whole command ─▶ Ready ─▶ waits ─▶ told in time ─────────────▶ makes the shell's process
//!                                                └─▶ in vain, then says Begun ─▶
//! ```
//!
//! While the host holds what the caller has sent, another guard can get the command; while it holds that, the command has
//! not let go of it. So the host closes it at the last moment, when the guard is ready and the shim has let go of its own.
//! Invariants: a guard that was neither told to begin nor said that it does has started nothing, and the command goes to
//! another one when it dies; a guard that was told, or said so, may have started the shell, and no other one gets the
//! command.

use super::Runs;
use crate::core::engine::JobId;
use crate::core::job::Order;
use crate::guard::spawn;
use crate::host::context::Context;
use crate::host::run::GuardLink;

impl Runs {
    /// A guard has the whole command and waits for the order to begin.
    pub(super) fn on_ready(&mut self, job: JobId, is_detached: bool, cx: &mut Context<'_>) {
        self.link(job).into_iter().for_each(|link| link.orders.on_ready(is_detached));
        self.let_begin(job, cx);
    }

    /// A shim has let go of what its command may let go of.
    pub(in crate::host) fn on_shim_let_go(&mut self, job: JobId, cx: &mut Context<'_>) {
        self.get_mut(job).into_iter().for_each(|run| run.is_held_by_shim = false);
        self.let_begin(job, cx);
    }

    /// Lets the guard begin, once it is ready and the shim holds nothing that the command may let go of.
    fn let_begin(&mut self, job: JobId, cx: &mut Context<'_>) {
        let Some(run) = self.get(job).filter(|run| !run.is_held_by_shim) else { return };
        // One that died while it waited is noticed by reading, and the host still has what the next one needs.
        let is_awaited = |link: &GuardLink| link.orders.is_awaited() && !spawn::has_left(link.control.fd());
        if run.guard.as_ref().is_some_and(is_awaited) {
            self.begin(job, Some(Order::Begin), cx);
        }
    }

    /// The guard begins, by this order or by itself.
    pub(super) fn begin(&mut self, job: JobId, order: Option<Order>, cx: &mut Context<'_>) {
        let Some(run) = self.get_mut(job).filter(|run| run.is_unbegun()) else { return };
        let is_detached = run.guard.as_ref().is_some_and(|link| link.orders.is_detached());
        run.on_begun();
        order.into_iter().for_each(|order| self.order(job, order, cx.turn.now));
        let Some(run) = self.get_mut(job) else { return };
        if let Some(peer) = run.peer.filter(|_| run.relay.is_some()) {
            cx.peers.attach_terminal(peer);
        }
        if is_detached {
            self.lose_terminal(job, cx.turn, cx.engine);
        }
        self.close_unread(job, cx.turn, cx.engine);
        self.pause_begun(job, cx.turn.now);
        cx.turn.touch(job);
    }
}
