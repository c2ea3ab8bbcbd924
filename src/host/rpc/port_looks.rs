//! Decides when to look for the ports on which a run listens, and keeps the findings.
//!
//! Nothing reports when a program begins to listen. So a look follows soon after output, because servers say that they
//! are ready, and then ever more seldom. Invariants: two looks at any runs keep [`limits::RPC_PORT_LOOK_PAUSE`], so
//! that many watched runs cost no more than a few; nobody looks at a run that nobody asks about.

use std::time::{Duration, Instant};

use crate::limits;

#[derive(Debug)]
pub(super) struct PortLooks {
    /// Each port with the last chunk of output before it.
    found: Vec<(u64, u16)>,
    due: Instant,
    pause: Duration,
    /// Nobody else looks when it is due.
    is_reserved: bool,
}

impl PortLooks {
    /// The first look is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Self { found: Vec::new(), due: now, pause: limits::RPC_PORT_LOOK, is_reserved: false }
    }

    /// The ports, in the order in which they were found.
    pub(super) fn found(&self) -> &[(u64, u16)] {
        &self.found
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Looks sooner, because the run has written something.
    pub(super) fn hasten(&mut self, now: Instant) {
        self.pause = limits::RPC_PORT_LOOK;
        if !self.is_reserved {
            self.due = self.due.min(now + self.pause);
        }
    }

    /// Looks, if that is due and no other look is. `free_from` is the time from which none is. `last` is the last chunk of
    /// output.
    pub(super) fn look(&mut self, now: Instant, free_from: &mut Instant, last: u64, ports: impl FnOnce() -> Vec<u16>) {
        if now < self.due {
            return;
        }
        let is_turn = self.is_reserved || now >= *free_from;
        if !self.is_reserved {
            self.due = now.max(*free_from);
            *free_from = self.due + limits::RPC_PORT_LOOK_PAUSE;
        }
        self.is_reserved = !is_turn;
        if !is_turn {
            return;
        }
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(limits::RPC_PORT_LOOK_MAX);
        let room = limits::RPC_PORTS_MAX.saturating_sub(self.found.len());
        let new = ports().into_iter().filter(|port| !self.found.iter().any(|(_, known)| known == port));
        let new: Vec<(u64, u16)> = new.take(room).map(|port| (last, port)).collect();
        self.found.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_and_output_hastens_them() {
        let mut now = Instant::now();
        let (mut looks, mut free_from, mut count) = (PortLooks::new(now), now, 0);
        for _ in 0..6_000 {
            looks.look(now, &mut free_from, 0, || {
                count += 1;
                vec![8_000]
            });
            now += Duration::from_millis(10);
        }
        assert!((10..50).contains(&count), "{count} looks in a minute");
        assert_eq!(looks.found(), [(0, 8_000)], "a port is told once");
        looks.hasten(now);
        assert!(looks.due() <= now + limits::RPC_PORT_LOOK);
        now = looks.due();
        looks.look(now, &mut free_from, 7, || vec![8_000, 8_001]);
        assert_eq!(looks.found(), [(0, 8_000), (7, 8_001)]);
    }

    #[test]
    fn many_runs_share_the_looks() {
        let mut now = Instant::now();
        let (mut free_from, mut count) = (now, 0);
        let mut all: Vec<PortLooks> = (0..1_000).map(|_| PortLooks::new(now)).collect();
        for _ in 0..1_000 {
            for looks in &mut all {
                looks.look(now, &mut free_from, 0, || {
                    count += 1;
                    Vec::new()
                });
            }
            now += Duration::from_millis(1);
        }
        let most = 1_000 / limits::RPC_PORT_LOOK_PAUSE.as_millis() + 1;
        assert!(count <= most && count + 2 > most, "{count} looks in a second");
    }
}
