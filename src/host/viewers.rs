//! The viewers: peers that see the console, each on a terminal of its own.
//!
//! Invariants: each viewer has a console of its own with cursors that may be skipped, so a viewer that takes nothing holds
//! up neither a command nor the host nor another viewer; what is queued for it is bounded; when it goes, so do its cursors.

use std::collections::BTreeMap;
use std::time::Instant;

use super::peers::Peers;
use super::turn::{PeerId, Turn};
use crate::core::engine::{Engine, JobId};
use crate::core::log::Lag;
use crate::front::{WatchLook, WatchRequest};
use crate::journal::record::Straggler;
use crate::limits;
use crate::sink::console::{Colours, Console, ConsoleKind, Heading, View};

#[derive(Debug)]
struct Viewer {
    console: Console,
    /// The only command that is shown.
    only: Option<JobId>,
    /// What the host said since the last pump.
    said: Vec<u8>,
}

/// All viewers.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: BTreeMap<PeerId, Viewer>,
}

impl Viewers {
    /// Whether there are as many as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= limits::VIEWERS_MAX
    }

    /// Adds a viewer, to which the commands of `running` are shown from now on.
    pub(super) fn add<'a>(
        &mut self,
        id: PeerId,
        request: WatchRequest,
        running: impl Iterator<Item = (JobId, &'a Heading)>,
        engine: &mut Engine,
    ) {
        let kind = match request.look {
            WatchLook::Terminal => ConsoleKind::Terminal,
            WatchLook::Dumb => ConsoleKind::Dumb { has_utf8: true },
            WatchLook::Ascii => ConsoleKind::Dumb { has_utf8: false },
            WatchLook::Text => ConsoleKind::Text,
        };
        let colours = if request.colours { Colours::default() } else { Colours::Off };
        let mut console = Console::new(kind, View::Safe).with_colours(colours);
        console.resize(request.columns);
        let mut viewer = Viewer { console, only: request.seq.map(JobId), said: Vec::new() };
        running.for_each(|(job, heading)| viewer.begin(engine, job, heading));
        self.all.insert(id, viewer);
    }

    /// Notes the new width of a viewer's terminal.
    pub(super) fn resize(&mut self, id: PeerId, columns: u16) {
        if let Some(viewer) = self.all.get_mut(&id) {
            viewer.console.resize(columns);
        }
    }

    /// A command begins.
    pub(super) fn begin(&mut self, engine: &mut Engine, job: JobId, heading: &Heading) {
        self.all.values_mut().for_each(|viewer| viewer.begin(engine, job, heading));
    }

    /// A command left these processes running.
    pub(super) fn on_left(&mut self, job: JobId, left: &[Straggler]) {
        self.all.values_mut().for_each(|viewer| viewer.console.on_left(job, left));
    }

    /// Shows one line of the host's own, where there is room for it.
    pub(super) fn say(&mut self, line: &str) {
        let of_all = |viewer: &&mut Viewer| viewer.only.is_none() && viewer.said.len() < limits::CONSOLE_HIGH_BYTES;
        self.all.values_mut().filter(of_all).for_each(|viewer| viewer.console.say(line, &mut viewer.said));
    }

    /// Queues for each viewer what it has room for. Viewers that have gone are forgotten, and one is let go when its only
    /// command has ended, or when the host is about to end.
    pub(super) fn pump(&mut self, is_end: bool, turn: &mut Turn, engine: &mut Engine, peers: &mut Peers) {
        let mut over = Vec::new();
        for (&id, viewer) in &mut self.all {
            let Some(peer) = peers.get_mut(id).filter(|peer| !peer.is_leaving) else {
                viewer.console.abandon(engine);
                over.push(id);
                continue;
            };
            let before = peer.out.pending();
            let (out, most) = peer.out.room(limits::VIEWER_HIGH_BYTES);
            if out.len() < most {
                out.append(&mut viewer.said);
            }
            viewer.console.pump(engine, out, most, turn.now);
            let is_over = is_end || (viewer.only.is_some() && viewer.console.is_empty());
            if is_over {
                viewer.console.leave(out);
                viewer.console.abandon(engine);
                over.push(id);
            }
            if peer.out.pending() > before {
                peers.touch(id);
            }
            if is_over {
                peers.let_go(id, turn, engine);
            }
        }
        over.into_iter().for_each(|id| _ = self.all.remove(&id));
    }

    /// When a viewer has something to show although no command writes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.all.values().filter_map(|viewer| viewer.console.deadline()).min()
    }
}

impl Viewer {
    fn begin(&mut self, engine: &mut Engine, job: JobId, heading: &Heading) {
        if self.only.is_none_or(|only| only == job)
            && let Some(cursor) = engine.attach(job, Lag::Skip)
        {
            self.console.begin(engine, cursor, heading.clone());
        }
    }
}
