//! A thousand commands in the background and a hundred subscribers: what their host weighs, and whether an agent's command
//! takes longer beside them than at a host that has nothing to do.

use std::io::{self, BufRead, BufReader, Error, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::Bench;
use crate::host::{Console, Host};
use crate::shell::nowhere;
use crate::table::{Goal, Row, SIDES, Table, millis};

const SUBSCRIBERS: usize = 100;
/// What each of them runs.
const COMMAND: &str = "echo ready; exec sleep 100000";

/// The clients of a host; their runs end with the host.
struct Crowd {
    _calls: UnixStream,
    _subscribers: Vec<UnixStream>,
}

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let start = || Host::start(bench, &bench.bin, Console::Terminal);
    let (quiet, busy) = (start()?, start()?);
    let runs = bench.rounds(1_000, 200);
    let _crowd = Crowd::gather(&busy, runs)?;
    let peak = busy.status("VmHWM")? as f64 * 1024.0 / 1e6;
    let what = format!("{runs} commands in the background and {SUBSCRIBERS} subscribers");
    let row = Row::new(format!("host's memory, peak, {what}, MB"));
    table.push(row.cell(SIDES[2], format!("{peak:.1}")).goal(peak, Goal::AtMost(64.0)));
    let (shells, silence) = ([quiet.shell("sh")?, busy.shell("sh")?], nowhere()?);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..bench.rounds(500, 50) {
        for (shell, times) in shells.iter().zip(&mut times) {
            times.push(shell.time("true", &silence)?);
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    for percent in [50, 99] {
        let [alone, beside] = times.each_ref().map(|times| times[times.len() * percent / 100]);
        let row = Row::new(format!("`true` beside them, {percent} %, ms (then at an idle host)"));
        table.push(row.cell(SIDES[2], format!("{} ({})", millis(beside), millis(alone))));
    }
    Ok(())
}

impl Crowd {
    /// Starts them, and waits until every subscriber knows of the last one.
    fn gather(host: &Host, runs: usize) -> io::Result<Self> {
        let mut subscribers = Vec::new();
        for _ in 0..SUBSCRIBERS {
            let mut subscriber = UnixStream::connect(host.socket())?;
            ask(&mut subscriber, r#"{"id":1,"method":"events.subscribe"}"#)?;
            let mut reader = subscriber.try_clone()?;
            // It ends with the host.
            std::thread::spawn(move || while matches!(reader.read(&mut [0; 16 << 10]), Ok(1..)) {});
            subscribers.push(subscriber);
        }
        let mut calls = UnixStream::connect(host.socket())?;
        for _ in 0..runs {
            let params = format!(r#"{{"command":"{COMMAND}","background":true}}"#);
            ask(&mut calls, &format!(r#"{{"id":1,"method":"exec.start","params":{params}}}"#))?;
        }
        let last = format!(r#"{{"id":1,"method":"exec.wait","params":{{"run":{runs},"for":"text","text":"ready"}}}}"#);
        ask(&mut calls, &last)?;
        std::thread::sleep(Duration::from_secs(2));
        Ok(Self { _calls: calls, _subscribers: subscribers })
    }
}

/// Asks a host; it must do what is asked.
fn ask(stream: &mut UnixStream, line: &str) -> io::Result<()> {
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::with_capacity(1, stream).read_line(&mut answer)?;
    if answer.contains("\"result\"") { Ok(()) } else { Err(Error::other(format!("{line}: {answer}"))) }
}
