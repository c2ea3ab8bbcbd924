//! The opening: the order in which a host takes what it needs, and the lines that it shows first.

use std::io;
use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::door::{self, Door};
use super::json_command::Inherited;
use super::options::HostOptions;
use super::project_sessions::ProjectSessions;
use super::prompt_policy::PromptPolicy;
use super::recorder_link::RecorderLink;
use super::runs::Runs;
use super::sandbox_check::SandboxCheck;
use super::screen::Screen;
use super::turn::{Source, Turn};
use crate::front::projects::Projects;
use crate::io::poller::Poller;
use crate::recorder;
use crate::sys::own_table;
use crate::sys::signal::HostSignals;
use crate::sys::{self, closer, looker, process, pty};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Columns that a path may take.
const PATH_COLUMNS: usize = 1_024;

/// The parts of a host that may be refused, or tell the human something.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) turn: Turn,
    pub(super) inherited: Inherited,
    pub(super) sandbox_check: SandboxCheck,
    pub(super) runs: Runs,
    pub(super) signals: HostSignals,
    pub(super) recorder: RecorderLink,
    pub(super) door: Door,
    pub(super) screen: Screen,
    /// The size of the human's terminal.
    pub(super) console: Option<pty::Size>,
    pub(super) projects: ProjectSessions,
    /// What the human should know of all that.
    said: Vec<String>,
}

impl Opened {
    /// Takes the lock, opens journal and socket, takes the terminal over.
    ///
    /// # Errors
    /// See [`super::Host::open`].
    pub(super) fn take(options: &HostOptions) -> Result<Self, Notice> {
        let inherited = Inherited::read();
        let sandbox_check = SandboxCheck::new(options);
        own_table::reserve().map_err(|error| cannot_start("reserve descriptors", &error))?;
        let lock = door::claim(&options.socket)?;
        // A host that ends in order removes its socket.
        let is_after_kill = options.socket.exists();
        let runs = Runs::new(PromptPolicy::new(options.prompts, options.prompt_wait));
        let mut poller = Poller::new().map_err(|error| cannot_start("wait for events", &error))?;
        let signals = HostSignals::take().map_err(|error| cannot_start("take signals", &error))?;
        let (recorder, mut said) = RecorderLink::start(&mut poller, &options.home, options.journal_bounds())?;
        process::raise_descriptor_limit();
        process::keep_large_blocks_apart();
        process::adopt_orphans().map_err(|error| cannot_start("adopt orphans (PR_SET_CHILD_SUBREAPER)", &error))?;
        closer::begin().map_err(|error| cannot_start("start the process that closes descriptors", &error))?;
        looker::begin().map_err(|error| cannot_start("start the process that looks at others", &error))?;
        let door = Door::open(&mut poller, options.socket.clone(), lock)?;
        let signals_token = poller.register(&signals).map_err(|error| cannot_start("wait for signals", &error))?;
        // Last: until then standard error is the caller's own, and its text has arrived when this process ends.
        let mut screen = Screen::take(&mut poller, options, is_after_kill)
            .map_err(|error| cannot_start("use the terminal", &error))?;
        let console = screen.measure(std::time::Instant::now());
        let mut turn = Turn::new(poller);
        turn.name(signals_token, Source::Signals);
        door.name_sources(&mut turn);
        let named =
            [(recorder.token(), Source::Recorder), (screen.token, Source::Screen), (screen.keys_token, Source::Keys)];
        for (token, source) in named {
            token.into_iter().for_each(|token| turn.name(token, source));
        }
        let projects = projects(&options.home, &mut said);
        Ok(Self { turn, inherited, sandbox_check, runs, signals, recorder, door, screen, console, projects, said })
    }

    /// The lines that the host shows first. `of_rules` are those about rules.
    pub(super) fn greeting(&self, options: &HostOptions, of_rules: Vec<String>) -> Vec<String> {
        let name = |path: &Path| escape_line(&path.to_string_lossy(), PATH_COLUMNS);
        let journal = self.recorder.path().unwrap_or_else(|| options.home.clone());
        let mut lines = vec![
            format!("rexec host listening on {}", name(self.door.path())),
            format!("rexec journal: {}", name(&journal)),
        ];
        let warning = (process::uid() == 0)
            .then(|| "this host is root's: whoever reaches its socket as root runs commands as root".to_owned());
        let said = self.said.iter().chain(&options.of_file).map(|text| escape_line(text, PATH_COLUMNS));
        lines.extend(
            said.chain(of_rules)
                .chain(warning)
                .chain(self.sandbox_check.warning())
                .map(|text| format!("rexec: {text}")),
        );
        lines
    }
}

/// The project sessions that earlier hosts have kept. Puts a damaged file aside and says so.
fn projects(home: &Path, said: &mut Vec<String>) -> ProjectSessions {
    let (mut known, is_all) = match recorder::read_projects(home, process::uid()) {
        Ok(text) => Projects::read(&text),
        Err(error) if recorder::is_damage(&error) => (Projects::default(), false),
        Err(error) => {
            said.push(format!("the project sessions of earlier hosts cannot be read: {}", reason(&error)));
            (Projects::default(), true)
        }
    };
    if !is_all {
        said.push(recorder::set_projects_aside(home, process::uid()));
        known.keep_anew();
    }
    ProjectSessions::new(known)
}

fn cannot_start(what: &str, error: &io::Error) -> Notice {
    let hint = if error.raw_os_error().is_some_and(sys::is_shortage) {
        "raise the limits on descriptors and processes (ulimit -n, ulimit -u)"
    } else {
        "rexec needs Linux 5.11 or newer; an emulation of it, or a filter of system calls, may refuse this"
    };
    Notice::failed(format_args!("the host cannot start: it cannot {what}: {}", reason(error)), hint)
}
