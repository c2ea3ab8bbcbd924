//! The viewers: peers that see the console, each on a terminal of its own.
//!
//! Invariants: each viewer has a console of its own with cursors that may be skipped, so a viewer that takes nothing holds
//! up neither a command nor the host nor another viewer; what is queued for it is bounded; when it goes, so do its cursors.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::peers::Peers;
use super::turn::{PeerId, Turn};
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::log::Lag;
use crate::front::answer::WrittenBefore;
use crate::front::jsonl::transcript::Transcript;
use crate::front::{WatchLook, WatchRequest};
use crate::journal::status::OutputSoFar;
use crate::limits;
use crate::sink::console::{Colours, Console, ConsoleKind, Heading, View};
use crate::text::encode::base64;
use crate::text::redact::Redactor;
use crate::text::safe_text::SafeText;

#[derive(Debug)]
enum ViewerSight {
    Console(Box<Console>),
    Transcript(Transcript),
}

#[derive(Debug)]
struct Viewer {
    sight: ViewerSight,
    /// The only command that it shows.
    only: Option<JobId>,
    /// The host's own lines since the last pump.
    said: Vec<u8>,
    /// It shows nothing before that.
    awaits: Option<AwaitedBeginning>,
}

/// A viewer of one command begins at a mark in the command's log, and gets what was before it from the recorder. So it
/// shows no byte twice and misses none.
#[derive(Debug)]
struct AwaitedBeginning {
    /// After the mark. It holds the command back, because the viewer shows everything.
    cursor: Cursor,
    heading: Heading,
    mark: u64,
    ran: Duration,
    reached: Option<OutputSoFar>,
    /// When the viewer begins, with the recorder's answer or without it.
    until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: BTreeMap<PeerId, Viewer>,
    /// The number of the last mark.
    marks: u64,
}

impl Viewers {
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= limits::VIEWERS_MAX
    }

    /// Adds a viewer, which sees the commands that begin from now on.
    pub(super) fn add(&mut self, id: PeerId, request: WatchRequest) {
        let kind = match request.look {
            WatchLook::Terminal => ConsoleKind::Terminal,
            WatchLook::Dumb => ConsoleKind::Dumb { has_utf8: true },
            WatchLook::Ascii => ConsoleKind::Dumb { has_utf8: false },
            WatchLook::Text => ConsoleKind::Text,
        };
        let colours = if request.colours { Colours::default() } else { Colours::Off };
        let mut console = Console::new(kind, View::Safe).with_colours(colours);
        console.resize(request.columns);
        let sight = ViewerSight::Console(Box::new(console));
        self.all.insert(id, Viewer { sight, only: request.seq.map(JobId), said: Vec::new(), awaits: None });
    }

    /// Shows a viewer that was just added the commands that run. A viewer of only one of them has not been told yet that
    /// the console follows.
    pub(super) fn show_running<'a>(
        &mut self,
        id: PeerId,
        running: impl Iterator<Item = (JobId, &'a Heading)>,
        engine: &mut Engine,
        now: Instant,
    ) {
        let Some(viewer) = self.all.get_mut(&id) else { return };
        for (job, heading) in running {
            if viewer.only == Some(job) {
                self.marks += 1;
                viewer.await_beginning(engine, heading, self.marks, now);
            } else {
                viewer.begin(engine, job, heading, None);
            }
        }
    }

    /// Adds a viewer that gets a transcript of each command that ends, also of those of `running`.
    pub(super) fn add_transcript<'a>(
        &mut self,
        id: PeerId,
        transcript: Transcript,
        running: impl Iterator<Item = (JobId, &'a Heading, Option<&'a Redactor>)>,
        engine: &mut Engine,
    ) {
        let mut viewer =
            Viewer { sight: ViewerSight::Transcript(transcript), only: None, said: Vec::new(), awaits: None };
        running.for_each(|(job, heading, secrets)| viewer.begin(engine, job, heading, secrets));
        self.all.insert(id, viewer);
    }

    /// The recorder has reported what was before these marks.
    pub(super) fn on_reached(&mut self, reached: impl Iterator<Item = (u64, Option<OutputSoFar>)>) {
        for (mark, so_far) in reached {
            let awaits = self.all.values_mut().filter_map(|viewer| viewer.awaits.as_mut());
            for awaits in awaits.filter(|awaits| awaits.mark == mark) {
                (awaits.reached, awaits.until) = (so_far.clone(), awaits.heading.card.at);
            }
        }
    }

    pub(super) fn resize(&mut self, id: PeerId, columns: u16) {
        if let Some(console) = self.all.get_mut(&id).and_then(Viewer::console) {
            console.resize(columns);
        }
    }

    /// A command begins. Transcripts do not show these secrets.
    pub(super) fn begin(&mut self, engine: &mut Engine, job: JobId, heading: &Heading, secrets: Option<&Redactor>) {
        self.all.values_mut().for_each(|viewer| viewer.begin(engine, job, heading, secrets));
    }

    /// Shows one line of the host's own to each viewer that has room for it, but not to those of one command.
    pub(super) fn say(&mut self, line: &SafeText) {
        let of_all = |viewer: &&mut Viewer| viewer.only.is_none() && viewer.said.len() < limits::CONSOLE_HIGH_BYTES;
        for viewer in self.all.values_mut().filter(of_all) {
            if let ViewerSight::Console(console) = &mut viewer.sight {
                console.say(line.clone(), &mut viewer.said);
            }
        }
    }

    /// Queues for each viewer what it has room for. Forgets viewers that have gone, and lets one go when its only
    /// command has ended, or when the host is about to end.
    pub(super) fn pump(&mut self, is_end: bool, turn: &mut Turn, engine: &mut Engine, peers: &mut Peers) {
        let mut over = Vec::new();
        for (&id, viewer) in &mut self.all {
            if peers.get_mut(id).is_none_or(|peer| peer.is_leaving) {
                viewer.abandon(engine);
                viewer.awaits.iter().for_each(|awaits| engine.detach(awaits.cursor));
                over.push(id);
                continue;
            }
            if let Some(awaits) = viewer.awaits.take_if(|awaits| awaits.until <= turn.now || is_end) {
                let (ran, before) = (awaits.ran, viewer.begin_only(engine, awaits));
                peers.begin_console(id, Some(ran), before);
            }
            if viewer.awaits.is_some() {
                continue;
            }
            let Some(peer) = peers.get_mut(id) else { continue };
            let before = peer.out.pending();
            let (out, most) = peer.out.room(limits::VIEWER_HIGH_BYTES);
            if out.len() < most {
                out.append(&mut viewer.said);
            }
            let is_over = !viewer.pump(engine, out, most, turn.now) || is_end;
            if is_over {
                if let Some(console) = viewer.console() {
                    console.leave(out);
                }
                viewer.abandon(engine);
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
        let of = |viewer: &Viewer| match &viewer.sight {
            ViewerSight::Console(console) => viewer.awaits.as_ref().map(|awaits| awaits.until).or(console.deadline()),
            ViewerSight::Transcript(_) => None,
        };
        self.all.values().filter_map(of).min()
    }
}

impl Viewer {
    /// Begins the viewer's only command, at this mark in its log.
    fn await_beginning(&mut self, engine: &mut Engine, heading: &Heading, mark: u64, now: Instant) {
        let job = JobId(heading.card.run);
        let ran = engine.job(job).map(|job| job.age(now)).unwrap_or_default();
        if let Some(cursor) = engine.attach_at_end(job, Lag::Hold, mark) {
            let (heading, until) = (heading.clone(), now + limits::REACHED_PATIENCE);
            self.awaits = Some(AwaitedBeginning { cursor, heading, mark, ran, reached: None, until });
        }
    }

    /// Begins, now that the output before the mark is known, or never will be. Returns that output, but for a line
    /// without an end, which this console shows.
    fn begin_only(&mut self, engine: &mut Engine, awaits: AwaitedBeginning) -> Option<WrittenBefore> {
        let AwaitedBeginning { cursor, heading, reached, .. } = awaits;
        engine.set_lag(cursor, Lag::Skip);
        let last_line = reached.as_ref().map_or(&[][..], |reached| &reached.last_line);
        if let Some(console) = self.console() {
            console.begin_only(cursor, heading, last_line);
        }
        let OutputSoFar { file_bytes, left_out, lines, .. } = reached?;
        Some(WrittenBefore { file_bytes, left_out, lines_b64: base64(&lines) })
    }

    fn begin(&mut self, engine: &mut Engine, job: JobId, heading: &Heading, secrets: Option<&Redactor>) {
        if self.only.is_none_or(|only| only == job)
            && let Some(cursor) = engine.attach(job, Lag::Skip)
        {
            match &mut self.sight {
                ViewerSight::Console(console) => console.begin(cursor, heading.clone()),
                ViewerSight::Transcript(transcript) => transcript.begin(cursor, Rc::clone(&heading.card), secrets),
            }
        }
    }

    fn console(&mut self) -> Option<&mut Console> {
        match &mut self.sight {
            ViewerSight::Console(console) => Some(console),
            ViewerSight::Transcript(_) => None,
        }
    }

    /// Queues up to `most` bytes. Returns `false` when it has seen all that it wants, or is too far behind.
    fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>, most: usize, now: Instant) -> bool {
        match &mut self.sight {
            ViewerSight::Console(console) => {
                console.pump(engine, out, most, now);
                self.only.is_none() || !console.is_empty()
            }
            ViewerSight::Transcript(transcript) => transcript.pump(engine, out, most),
        }
    }

    fn abandon(&mut self, engine: &mut Engine) {
        match &mut self.sight {
            ViewerSight::Console(console) => console.abandon(engine),
            ViewerSight::Transcript(transcript) => transcript.abandon(engine),
        }
    }
}
