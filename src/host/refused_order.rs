//! The reason why a run does not take an order: one sentence, with a hint for people and another one for programs.
//!
//! Invariant: every door says the same sentence. It names the run as the door does.

use std::fmt::Display;

use rexec_sh::protocol::notice::Notice;

use super::notices::not_there;
use crate::core::engine::JobId;
use crate::front::rpc::error::{RUN_NOT_READY, RpcError};

#[derive(Debug)]
pub(super) struct RefusedOrder {
    pub(super) job: JobId,
    pub(super) why: Obstacle,
}

#[derive(Debug)]
pub(super) enum Obstacle {
    /// Nothing of it lives.
    NotThere,
    /// It is to be paused, but a person has not decided yet whether it begins.
    Held,
    /// It is to be paused, but has no guard yet.
    NotBegun,
    /// It is to be paused, but was told to end.
    Ending,
    /// It is to be paused, but its guard was killed.
    Unguarded,
    /// It is to be resumed.
    NotPaused,
    /// The shim in this sandbox, which has its processes, is not found.
    Lost { sandbox: String },
}

impl RefusedOrder {
    pub(super) fn new(job: JobId, why: Obstacle) -> Self {
        Self { job, why }
    }

    fn sentence(&self, run: impl Display) -> String {
        match &self.why {
            Obstacle::NotThere => format!("{run} does not run"),
            Obstacle::Held => format!("{run} cannot be paused: it is held until somebody decides on it"),
            Obstacle::NotBegun => format!("{run} cannot be paused: it has not begun"),
            Obstacle::Ending => format!("{run} cannot be paused: it is about to end"),
            Obstacle::Unguarded => format!("{run} cannot be paused: its guard is gone"),
            Obstacle::NotPaused => format!("{run} is not paused"),
            Obstacle::Lost { sandbox } => {
                format!("{run} runs in its sandbox ({sandbox}), and its process cannot be found")
            }
        }
    }

    /// The error for a program, about a run that is known.
    pub(super) fn for_program(&self) -> RpcError {
        let hint = match self.why {
            Obstacle::NotThere => return RpcError::run_is_over(self.job.0),
            Obstacle::Held => "exec.decide lets it begin, exec.cancel ends it",
            Obstacle::NotBegun => "pause it when exec.status says that it is running",
            Obstacle::Ending => "exec.wait waits for its end",
            Obstacle::Unguarded => "exec.cancel ends it",
            Obstacle::NotPaused => "exec.list shows what is paused",
            Obstacle::Lost { .. } => "end it in its agent",
        };
        RpcError::new(RUN_NOT_READY, self.sentence(format_args!("run {}", self.job.0))).hint(hint)
    }
}

impl From<RefusedOrder> for Notice {
    fn from(refused: RefusedOrder) -> Self {
        let number = refused.job.0;
        let hint = match refused.why {
            Obstacle::NotThere => return not_there(refused.job),
            Obstacle::Held => format!("rexec answer {number} yes lets it begin"),
            Obstacle::NotBegun | Obstacle::Ending => "rexec ps shows what runs".to_owned(),
            Obstacle::Unguarded => format!("rexec kill {number} ends it"),
            Obstacle::NotPaused => "rexec ps shows what is paused".to_owned(),
            Obstacle::Lost { .. } => "end it in its agent".to_owned(),
        };
        Self::failed(refused.sentence(format_args!("#{number}")), hint)
    }
}
