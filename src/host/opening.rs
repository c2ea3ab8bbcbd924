//! How a host begins: in what order it takes what it needs, and what it says first.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::time::Instant;

use rexec_sh::protocol::notice::Notice;

use super::door::{self, Door};
use super::recorder_process::RecorderProcess;
use super::sandbox_check::SandboxCheck;
use super::screen::Screen;
use super::spares::Spares;
use super::{Closing, Host, HostOptions, Source, json_command};
use crate::core::engine::Engine;
use crate::front::budget::Budget;
use crate::io::poller::Poller;
use crate::limits;
use crate::sink::console::Console;
use crate::sink::feed::Feed;
use crate::sys::cgroup::Groups;
use crate::sys::orphans::Kin;
use crate::sys::signal::Signals;
use crate::sys::{process, pty};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The most of a path that is shown, columns.
const PATH_COLUMNS: usize = 1_024;

impl Host {
    /// Becomes the host: takes the lock, opens journal and socket, takes the terminal over.
    ///
    /// # Errors
    /// A sentence and a hint for the person who started it.
    pub fn open(options: HostOptions) -> Result<Self, Notice> {
        let own = json_command::Inherited::read();
        let sandbox_check = SandboxCheck::new(&options);
        let lock = door::claim(&options.socket)?;
        let failed = |error: std::io::Error| {
            Notice::failed(
                format_args!("the host cannot start: {}", reason(&error)),
                "raise the limits on descriptors (ulimit -n)",
            )
        };
        let kin = Kin::now();
        let mut poller = Poller::new().map_err(failed)?;
        let signals = Signals::take().map_err(failed)?;
        let (scribe, said) = RecorderProcess::start(&mut poller, &options.home, options.raw_cap)?;
        process::raise_descriptor_limit();
        process::keep_large_blocks_apart();
        process::adopt_orphans().map_err(failed)?;
        let screen = Screen::take(&mut poller).map_err(failed)?;
        let door = Door::open(&mut poller, options.socket.clone(), lock)?;
        let size = terminal_size(options.pty_size, screen.size());
        let mut sources = HashMap::new();
        sources.insert(poller.register(&signals).map_err(failed)?, Source::Signals);
        sources.extend(scribe.token().map(|token| (token, Source::Recorder)));
        sources.insert(door.token, Source::Door);
        sources.extend(door.watch_token.map(|token| (token, Source::Watch)));
        sources.extend(screen.token.map(|token| (token, Source::Screen)));
        sources.extend(screen.keys_token.map(|token| (token, Source::Keys)));
        let mut host = Self {
            own,
            sandbox_check,
            now: Instant::now(),
            poller,
            sources,
            ready: BTreeSet::new(),
            dirty: BTreeSet::new(),
            roomy: BTreeSet::new(),
            engine: Engine::default(),
            door,
            signals,
            console: Console::new(screen.kind(), options.view),
            screen,
            scribe,
            has_recorder_room: false,
            journal: Feed::default(),
            groups: Groups::read(),
            told_of_groups: BTreeSet::new(),
            outputs: Budget::new(limits::JSON_OUTPUTS_BYTES, limits::JSON_OUTPUT_OWN_BYTES),
            requests: Budget::new(limits::QUEUED_REQUESTS_BYTES, 0),
            peers: BTreeMap::new(),
            last_peer: 0,
            peers_max: limits::peers_max(process::descriptor_limit()),
            greeting: BTreeSet::new(),
            leaving: BTreeSet::new(),
            settling: BTreeSet::new(),
            runs: BTreeMap::new(),
            stragglers: VecDeque::new(),
            endings: BTreeSet::new(),
            answers: BTreeSet::new(),
            owing: BTreeSet::new(),
            kin,
            timeouts: BTreeSet::new(),
            spares: Spares::new(size),
            size,
            start_retry: None,
            closing: Closing::No,
            buffer: vec![0; limits::READ_BUDGET_BYTES].into(),
            options,
        };
        host.measure_console();
        host.greet(&said);
        Ok(host)
    }

    fn greet(&mut self, said: &[String]) {
        let name = |path: &Path| escape_line(&path.to_string_lossy(), PATH_COLUMNS);
        let journal = self.scribe.path().unwrap_or_else(|| self.options.home.clone());
        let mut lines = vec![
            format!("rexec host listening on {}", name(self.door.path())),
            format!("rexec journal: {}", name(&journal)),
        ];
        let warning = (process::uid() == 0)
            .then(|| "this host is root's: whoever reaches its socket as root runs commands as root".to_owned());
        let said = said.iter().map(|text| escape_line(text, PATH_COLUMNS));
        lines.extend(said.chain(warning).chain(self.sandbox_check.warning()).map(|text| format!("rexec: {text}")));
        let out = self.screen.out.buffer();
        lines.iter().for_each(|line| self.console.say(line, out));
        out.push(b'\n');
    }
}

/// Large enough that programs do not cut what an agent needs, larger if the console is, or as the human says.
pub(super) fn terminal_size(chosen: Option<(u16, u16)>, console: Option<pty::Size>) -> pty::Size {
    match (chosen, console) {
        (Some((cols, rows)), _) => pty::Size { rows, cols },
        (None, None) => pty::Size { rows: limits::PTY_ROWS, cols: limits::PTY_COLS },
        (None, Some(console)) => {
            let rows = console.rows.clamp(limits::PTY_ROWS, limits::WINDOW_ROWS_MAX);
            pty::Size { rows, cols: console.cols.clamp(limits::PTY_COLS, limits::WINDOW_COLS_MAX) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_as_large_as_the_console_and_no_smaller_than_an_agent_needs() {
        let size = |cols, rows| pty::Size { rows, cols };
        let least = size(limits::PTY_COLS, limits::PTY_ROWS);
        assert_eq!(terminal_size(None, None), least);
        assert_eq!(terminal_size(None, Some(size(80, 24))), least);
        assert_eq!(terminal_size(None, Some(size(200, 24))), size(200, limits::PTY_ROWS));
        assert_eq!(terminal_size(None, Some(size(80, 60))), size(limits::PTY_COLS, 60));
        let most = size(limits::WINDOW_COLS_MAX, limits::WINDOW_ROWS_MAX);
        assert_eq!(terminal_size(None, Some(size(5_000, 5_000))), most);
        assert_eq!(terminal_size(Some((20, 10)), Some(size(200, 60))), size(20, 10), "a person knows better");
    }
}
