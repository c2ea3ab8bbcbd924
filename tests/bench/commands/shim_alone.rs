//! What the shim alone costs: instructions from exec to exit, and time, with a host that answers at once.
//!
//! The stand-in reads the RUN frame and answers EXIT; it runs nothing.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{Decoded, FromHost, FromShim, HELLO_BYTES, Hello};

use crate::Bench;
use crate::shell::{Shell, nowhere};
use crate::table::{Goal, Row, SIDES, Table, median_and_best, millis};

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let (nowhere, least, shim) = (nowhere()?, Shell::real("true"), shim_to_stand_in(bench)?);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..bench.rounds(500, 100) {
        for (shell, times) in [&least, &shim].into_iter().zip(&mut times) {
            times.push(shell.time("true", &nowhere)?);
        }
    }
    let cells = times.each_ref().map(|times| {
        let (median, best) = median_and_best(times);
        format!("{} ({})", millis(median), millis(best))
    });
    let [least, ours] = cells;
    table.push(Row::new("the shim alone; reference: `/bin/true`, ms").cell(SIDES[0], least).cell(SIDES[2], ours));
    match instructions(&shim)? {
        None => table.remark("the shim's instructions were not counted: valgrind is missing".to_owned()),
        Some(count) => {
            let row = Row::new("the shim alone, instructions").cell(SIDES[2], format!("{count}"));
            table.push(row.goal(count, Goal::AtMost(90_000.0)));
        }
    }
    Ok(())
}

/// This build's shim, calling a stand-in that lives as long as this program. Other builds may speak another version of
/// the protocol.
fn shim_to_stand_in(bench: &Bench) -> io::Result<Shell> {
    let folder = bench.scratch.folder()?;
    let (socket, link) = (folder.join("host.sock"), folder.join("rexec-sh"));
    std::os::unix::fs::symlink(bench.bin.join("rexec-sh"), &link)?;
    let listener = UnixListener::bind(&socket)?;
    std::thread::spawn(move || listener.incoming().flatten().for_each(|peer| drop(answer(peer))));
    Ok(Shell::at(link).with("REXEC_SOCKET", &socket.to_string_lossy()))
}

/// What callgrind counts for one command through the shim; nothing when there is no valgrind.
fn instructions(shim: &Shell) -> io::Result<Option<f64>> {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match valgrind {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = shim.command_below(&wrapper, "true").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    if !output.status.success() || count.is_none() {
        let last = said.lines().next_back().unwrap_or_default();
        return Err(Error::other(format!("the shim below callgrind: {}: {last}", output.status)));
    }
    Ok(count)
}

fn answer(mut peer: UnixStream) -> io::Result<()> {
    peer.set_read_timeout(Some(Duration::from_secs(10)))?;
    peer.write_all(&Hello::OURS.encode())?;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        // Descriptors that travel with the bytes are closed by the kernel, because this reads without taking them.
        let read = peer.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(frames) = bytes.get(HELLO_BYTES..) else { continue };
        match FromShim::decode(frames) {
            Ok(Decoded::Incomplete) => {}
            Ok(Decoded::Item(FromShim::Run(_), _)) => {
                let mut reply = Vec::new();
                FromHost::Exit(Exit::Code(0)).encode(&mut reply);
                return peer.write_all(&reply);
            }
            other => return Err(Error::other(format!("not a RUN: {other:?}"))),
        }
    }
}
