//! Turns: all sides do the same work, one after the other, round by round.

use std::io::{self, Error};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, wait};

use crate::meter;
use crate::side::Side;

/// What one side did.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// The time of each round.
    pub(crate) times: Vec<Duration>,
    /// User and system time of all processes that took part, in all rounds; nothing where it cannot be counted.
    cpu: Option<Duration>,
    rounds: usize,
}

impl Taken {
    /// The CPU time of one of so many commands in each round.
    pub(crate) fn cpu_of_each(&self, commands: usize) -> Option<Duration> {
        let count = u32::try_from(self.rounds * commands).expect("few commands");
        self.cpu.map(|cpu| cpu / count)
    }
}

/// Lets every side work once in each round. A round more comes first, which fills the page cache and does not count.
pub(crate) fn take(
    sides: &[Side],
    rounds: usize,
    mut work: impl FnMut(&Side) -> io::Result<()>,
) -> io::Result<Vec<Taken>> {
    let mut all: Vec<Taken> = sides.iter().map(|_| Taken { rounds, ..Taken::default() }).collect();
    let mut before = Vec::new();
    for round in 0..=rounds {
        if round == 1 {
            before = sides.iter().map(|side| side.meter.used()).collect::<io::Result<Vec<_>>>()?;
        }
        for (side, taken) in sides.iter().zip(&mut all) {
            side.meter.enter()?;
            let (own, start) = (meter::own()?, Instant::now());
            work(side)?;
            if round > 0 {
                taken.times.push(start.elapsed());
                // This program is a member of the group, too. Its own time does not count as a cost of the side.
                *taken.cpu.get_or_insert_default() += meter::own()?.saturating_sub(own);
            }
        }
    }
    for ((side, taken), before) in sides.iter().zip(&mut all).zip(before) {
        let own = taken.cpu.unwrap_or_default();
        taken.cpu = side.meter.used()?.zip(before).map(|(after, before)| after.saturating_sub(before + own));
    }
    Ok(all)
}

/// Runs `true` so often, with so many callers at a time, and waits for all.
pub(crate) fn run_many(side: &Side, commands: usize, callers: usize) -> io::Result<()> {
    let (_reader, writer) = io::pipe()?;
    for started in 0..commands + callers {
        if started >= callers {
            match wait()? {
                WaitStatus::Exited(_, 0) => {}
                other => return Err(Error::other(format!("{}: {other:?}", side.name))),
            }
        }
        if started < commands {
            let mut command = side.shell.command("true");
            command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
            // Reaped above by wait(), which takes whichever ends first; dropping a Child does nothing.
            drop(command.spawn()?);
        }
    }
    Ok(())
}
