//! The sides of a comparison: the real shell, the floor in C, this build, and another build.

use std::io::{self, Error};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Bench;
use crate::host::{Console, Host};
use crate::meter::Meter;
use crate::shell::{Shell, environment};

const START_MAX: Duration = Duration::from_secs(10);

/// One way to run commands.
#[derive(Debug)]
pub(crate) struct Side {
    /// The name of its column.
    pub(crate) name: &'static str,
    pub(crate) shell: Shell,
    pub(crate) host: Option<Host>,
    _floor: Option<FloorHost>,
    /// Dropped last, when the host is gone.
    pub(crate) meter: Meter,
}

impl Side {
    /// The system's shell of this name.
    pub(crate) fn real(shell: &str) -> Self {
        Self {
            name: "reference",
            shell: Shell::real(shell),
            host: None,
            _floor: None,
            meter: Meter::new(&format!("real-{shell}")),
        }
    }

    /// The host and the shell of the floor, whose commands are run by `sh`.
    pub(crate) fn floor(bench: &Bench) -> io::Result<Self> {
        let meter = Meter::new("floor");
        meter.enter()?;
        let (shell, floor) = FloorHost::start(bench)?;
        Ok(Self { name: "C floor", shell, host: None, _floor: Some(floor), meter })
    }

    /// Each build with a host of its own with this console, and the shim that stands for the shell of this name.
    pub(crate) fn builds(bench: &Bench, shell: &str, console: Console) -> io::Result<Vec<Self>> {
        let builds = bench.builds().map(|(name, bin)| {
            let meter = Meter::new(&format!("{name}-{shell}"));
            meter.enter()?;
            let host = Host::start(bench, bin, console)?;
            let shell = host.shell(shell)?;
            Ok(Self { name, shell, host: Some(host), _floor: None, meter })
        });
        builds.collect()
    }
}

/// The floor's host; its end comes with the drop.
#[derive(Debug)]
struct FloorHost(Child);

impl FloorHost {
    /// Starts it, and returns the shell that calls it.
    fn start(bench: &Bench) -> io::Result<(Shell, Self)> {
        let socket = bench.scratch.folder()?.join("floor.sock");
        let mut command = Command::new(bench.floor.join("host"));
        command.arg(&socket).env_clear().envs(environment()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut host = Self(command.spawn()?);
        let start = Instant::now();
        // The host gives the socket this name when it listens.
        while !socket.exists() {
            if let Some(status) = host.0.try_wait()? {
                return Err(Error::other(format!("the floor's host ended at its start: {status}")));
            }
            if start.elapsed() > START_MAX {
                return Err(Error::other("the floor's host does not listen"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let shell = Shell::at(bench.floor.join("shell")).with("FLOOR_SOCKET", &socket.to_string_lossy());
        Ok((shell, host))
    }
}

impl Drop for FloorHost {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
