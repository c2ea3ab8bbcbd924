//! `rexec-host`: its command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rexec_sh::protocol::choice::{self, Sanitize, Tty};
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::config_file::{ConfigFile, own_path};
use super::help;
use super::verb::{Call, Given, Group, Opt, Values, Verb, Words};
use crate::gate::{Pair, UndoSettings};
use crate::host::{Color, Host, HostOptions, PromptChoice};
use crate::limits;
use crate::sink::console::View;
use crate::sys::terminal;
use crate::text::escape::escape_line;

pub(super) const PROGRAM: Verb = Verb {
    term: "rexec-host",
    group: Group::Program,
    summary: "runs AI coding agents' commands on one console, under your eye",
    text: "\
Start it in a terminal of its own and leave it there. Agents whose shell is
rexec-sh send it their commands. It runs each command, shows it here, journals
it, and sends output and exit code back. ^C stops the command that is shown, q
ends the host, ? lists the other keys.
",
    codes: &[],
    examples: &[],
    call: &CALL,
};

type Row = Opt<HostCall>;

const CALL: Call<HostCall> = Call {
    options: &[
        Row::value(
            "--pty-size COLSxROWS",
            |q, v| q.options.pty_size = size(v),
            "size of the commands' terminals\n\
             (default 160x48, larger if this terminal is)",
        )
        .in_file(""),
        Row::value(
            "--tty WHEN",
            |q, v| q.options.tty = word(v, Tty::named, Tty::WORDS),
            "where a command's output goes: auto, to a terminal\n\
             where its caller's does, else to a pipe (default);\n\
             always, to a terminal, for colours and progress\n\
             bars here; never, and no command can ask you",
        )
        .in_file("auto"),
        Row::flag("--no-pty", |q| q.options.tty = Tty::Never, "the same as --tty never"),
        Row::flag(
            "--live",
            |q| q.options.live = true,
            "show lines when a program prints them: set\n\
             PYTHONUNBUFFERED=1 and\n\
             GFORTRAN_UNBUFFERED_PRECONNECTED=y, unless they are\n\
             set, for commands that write to a pipe",
        )
        .in_file("false"),
        Row::flag(
            "--markers",
            |q| q.options.markers = true,
            "set REXEC_SEQ and REXEC_AGENT in the commands of\n\
             rexec-sh, too; they differ from run to run, which\n\
             the environment of an agent's own shell does not",
        )
        .in_file("false"),
        Row::value(
            "--sanitize HOW",
            |q, v| q.options.sanitize = word(v, Sanitize::named, Sanitize::WORDS),
            "what agents get of output on a terminal: collapse\n\
             resolves redraws (default), strip deletes escape\n\
             sequences, tidy deletes escape sequences and the\n\
             earlier states of rewritten lines, raw deletes\n\
             nothing. On pipes it is tidy, unless you say raw",
        )
        .in_file("collapse"),
        Row::value(
            "--console HOW",
            |q, v| q.options.view = word(v, view, "safe, raw"),
            "what reaches this terminal: safe passes text,\n\
             colours and moves within a command's lines\n\
             (default). raw passes everything and resets modes\n\
             after each command; output can then imitate and\n\
             overwrite the console's own lines",
        )
        .in_file("safe"),
        Row::value(
            "--color WHEN",
            |q, v| q.options.color = word(v, color, "auto, always, never"),
            "auto: colours on this terminal unless NO_COLOR is set\n\
             or TERM is dumb (default); always; never, those of\n\
             commands neither",
        )
        .in_file("auto"),
        Row::flag(
            "--no-highlight",
            |q| q.options.highlights = false,
            "do not mark errors, diffs and the like in output\n\
             that has no colours of its own",
        )
        .in_file("false"),
        Row::flag(
            "--no-status",
            |q| q.options.has_status = false,
            "no status line in the terminal's last row, no title",
        )
        .in_file("false"),
        Row::value(
            "--notify COMMAND",
            |q, v| q.options.notify = Some(v.text()),
            "run sh -c COMMAND when a command waits for you, or\n\
             was refused because you are not there; what it is\n\
             about is in REXEC_RUN, REXEC_AGENT, REXEC_COMMAND\n\
             and REXEC_MESSAGE",
        )
        .in_file(""),
        Row::flag(
            "--trace",
            |q| q.options.traces = true,
            "give each command a TRACEPARENT, which continues its\n\
             caller's; rexec otlp exports the spans",
        )
        .in_file("false"),
        Row::flag("--redact-agents", |q| q.options.redact_agents = true, "mask secrets in what agents get, too")
            .in_file("false"),
        Row::value(
            "--prompts HOW",
            |q, v| q.options.prompts = word(v, PromptChoice::named, PromptChoice::WORDS),
            "whether commands can ask you: auto, while this is a\n\
             terminal and a key was pressed in the last 5 minutes\n\
             (default); ask, always; fail, never: then they have\n\
             no terminal",
        )
        .in_file("auto"),
        Row::value(
            "--prompt-wait SECONDS",
            |q, v| q.options.prompt_wait = seconds(v, limits::PROMPT_WAIT_MAX, "as in 60 or 300"),
            "how long it waits, then it gets end of file\n\
             (default 60)",
        )
        .in_file("60"),
        Row::value(
            "--grace SECONDS",
            |q, v| q.options.grace = seconds(v, limits::GRACE_MAX, "as in 2 or 0.5"),
            "from SIGTERM to SIGKILL when you end a command\n\
             (default 2)",
        )
        .in_file("2"),
        Row::value(
            "--raw-cap MIB",
            |q, v| q.options.raw_cap = raw_cap(v),
            "how much of the beginning, and of the end, of a\n\
             long output the journal keeps as bytes (default 16;\n\
             0 keeps nothing)",
        )
        .in_file("16"),
        Row::value(
            "--budget SIZE",
            |q, v| q.options.budget = budget(v),
            "give agents this much of each output, as in 256K:\n\
             its beginning and its end, and between them one\n\
             line with the command that prints the rest\n\
             (default off; REXEC_BUDGET for one caller)",
        )
        .in_file("off"),
        Row::flag(
            "--no-record",
            |q| q.options.records = false,
            "keep no recordings, which have a command's output\n\
             with its times, for rexec replay",
        )
        .in_file("false"),
        Row::flag(
            "--no-environments",
            |q| q.options.environments = false,
            "keep no variables of commands in the journal; rexec\n\
             rerun needs them (secrets are never kept)",
        )
        .in_file("false"),
        Row::value(
            "--undo HOW",
            |q, v| q.options.undo = word(v, switch, "on, off"),
            "on: before a command destroys files, keep them, as\n\
             rexec help undo says; off: do not (default on)",
        )
        .in_file("on"),
        Row::flag(
            "--unseen-landlock",
            |q| q.options.unseen_landlock = true,
            "for a host with no_new_privs, which cannot see\n\
             Landlock sandboxes: run commands of callers that\n\
             differ from the host in nothing else",
        ),
        Row::flag(
            "--allow-sandboxed",
            |q| q.options.allow_sandboxed = true,
            "run commands of sandboxed callers, outside of their\n\
             sandboxes; without it they stay inside, and are\n\
             only reported",
        ),
        Row::value(
            "--end-idle MINUTES",
            |q, v| q.options.end_idle = minutes(v),
            "end when nobody has needed the host for this long, and\n\
             at most twice as long: no command, no rexec tail, no\n\
             agent of rexec run (default 0: never; 30 for the one\n\
             that rexec run starts)",
        )
        .in_file("0"),
        Row::flag("--no-reports", |q| q.options.reports = false, "do not show what sandboxed callers run")
            .in_file("false"),
        Row::flag(
            "--require-descriptor",
            |q| q.options.require_descriptor = true,
            "refuse requests that bring no file descriptor, as\n\
             those through a relay of bytes (rexec and rexec-sh\n\
             always send one)",
        )
        .in_file("false"),
        Row::flag("--no-config", |q| q.uses_file = false, "start as if there were no config.toml"),
        Row::flag("-V, --version", |q| q.says = Some(VERSION), "print the version"),
        Row::value("--otlp TARGET", otlp, ""),
    ],
    words: Words::many("", Values::Nothing, no_word),
    run,
};

const VERSION: &str = concat!("rexec-host ", env!("CARGO_PKG_VERSION"), "\n");

#[must_use]
pub fn main() -> ExitCode {
    super::finish(read_and_run(&mut lexopt::Parser::from_env()))
}

/// The options of the command line, and of the person's file. Empty paths come from the environment.
struct HostCall {
    options: HostOptions,
    uses_file: bool,
    /// The text to print instead of starting a host.
    says: Option<&'static str>,
}

impl Default for HostCall {
    fn default() -> Self {
        Self { options: defaults(), uses_file: true, says: None }
    }
}

/// The default options.
fn defaults() -> HostOptions {
    HostOptions {
        socket: PathBuf::new(),
        home: PathBuf::new(),
        pty_size: None,
        tty: Tty::default(),
        live: false,
        grace: limits::GRACE,
        sanitize: Sanitize::default(),
        view: View::default(),
        color: Color::default(),
        highlights: true,
        markers: false,
        has_status: true,
        notify: None,
        traces: false,
        prompts: PromptChoice::default(),
        prompt_wait: limits::PROMPT_WAIT,
        redact_agents: false,
        raw_cap: limits::RAW_CAP_BYTES,
        records: true,
        environments: true,
        undo: true,
        keeping: UndoSettings::default(),
        budget: 0,
        allow_sandboxed: false,
        unseen_landlock: false,
        require_descriptor: false,
        end_idle: None,
        reports: true,
        of_file: None,
        config: None,
    }
}

/// Carries out these arguments of rexec-host; returns the exit code. `help` is the only known word.
pub(super) fn read_and_run(parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    if parser.try_raw_args().is_some_and(|words| words.peek().is_some_and(|word| word == "help")) {
        return help::say(&help::verb_help(&PROGRAM));
    }
    // What is asked of the command line alone is answered whatever the file is like.
    let Some(call) = CALL.read(&PROGRAM, &mut parser.clone())? else {
        return help::say(&help::verb_help(&PROGRAM));
    };
    match (call.says, call.uses_file) {
        (Some(text), _) => super::say(text),
        (None, false) => run(call),
        (None, true) => CALL.read_into(&PROGRAM, with_file()?, parser)?.map_or(Ok(exit_code::SUCCESS), run),
    }
}

/// The options of the person's file, which stand behind those of the command line.
fn with_file() -> Result<HostCall, Notice> {
    let mut call = HostCall::default();
    call.options.config = own_path();
    let Some(file) = ConfigFile::own()? else { return Ok(call) };
    set(&mut call, &file)?;
    call.options.keeping = file.loaded.undo.clone();
    call.options.keeping.bounds.except.iter_mut().for_each(at_home);
    let pairs = [TABLE, UNDO_TABLE].map(|table| file.loaded.document.pairs(table)).concat();
    let given: Vec<String> = pairs.iter().map(Pair::to_string).collect();
    call.options.of_file =
        (!given.is_empty()).then(|| format!("options of {}: {}", file.path.display(), given.join(", ")));
    Ok(call)
}

/// Puts this person's home in the place of `~` in a pattern.
fn at_home(pattern: &mut String) {
    let home = std::env::var("HOME").ok().filter(|home| home.starts_with('/'));
    if let (Some(below), Some(home)) = (pattern.strip_prefix("~/"), home) {
        *pattern = format!("{}/{below}", home.trim_end_matches('/'));
    }
}

/// Does to a call what a file says of the host.
fn set(call: &mut HostCall, file: &ConfigFile) -> Result<(), Notice> {
    file.loaded.document.pairs(TABLE).iter().try_for_each(|pair| {
        let set = CALL.set(&PROGRAM, call, &pair.key, &pair.value);
        set.map_err(|notice| file.wrong(pair.place, &notice.problem, &notice.hint))
    })
}

/// The host's options, each with its default as a file writes it, after those of a file were tried.
pub(super) fn keys(file: Option<&ConfigFile>) -> Result<Vec<(&'static str, &'static str)>, Notice> {
    file.map_or(Ok(()), |file| set(&mut HostCall::default(), file))?;
    Ok(CALL.keys().collect())
}

/// Returns true if a file has this option of the host.
pub(super) fn says(file: Option<&ConfigFile>, key: &str) -> bool {
    file.is_some_and(|file| file.loaded.document.pairs(TABLE).iter().any(|pair| pair.key == key))
}

/// The file's table of the host's options.
pub(super) const TABLE: &str = "host";
/// That of what is kept for undo.
pub(super) const UNDO_TABLE: &str = "undo";

fn run(HostCall { options, .. }: HostCall) -> Result<u8, Notice> {
    std::panic::set_hook(Box::new({
        let before = std::panic::take_hook();
        move |info| {
            terminal::restore_in_panic();
            before(info);
        }
    }));
    if super::installed::shim().is_none() {
        // Agents may use a shell that is installed elsewhere, so the host starts all the same.
        super::told::put(NO_SHIM);
    }
    let (socket, home) = (super::socket_path()?, super::home()?);
    Host::open(HostOptions { socket, home, ..options })?.run()?;
    Ok(exit_code::SUCCESS)
}

/// The warning when no shell for agents is installed with the host.
const NO_SHIM: Notice = Notice::fixed(
    exit_code::SUCCESS,
    "rexec-sh, the shell for agents, is not installed with this rexec-host",
    "install rexec again, or move its programs together",
);

fn no_word(_: &mut HostCall, given: &mut Given<'_>) {
    let problem = format!("rexec-host takes options only, not {}", super::quoted(given.raw()));
    given.refuse(Notice::usage(problem, "rexec-host --help shows them"));
}

fn otlp(_: &mut HostCall, given: &mut Given<'_>) {
    let target = escape_line(&given.text(), super::ARGUMENT_COLUMNS);
    let hint = format_args!("rexec-host --trace; beside it rexec otlp --follow --to {target}");
    given.refuse(Notice::usage("--otlp is now a command of rexec", hint));
}

/// The value, or a default with the notice that it is not valid.
fn read<T: Default>(given: &mut Given<'_>, read: Option<T>, is_not: &str, hint: &str) -> T {
    if read.is_none() {
        let problem = format_args!("{}: {} is not {is_not}", given.name(), super::quoted(given.raw()));
        given.refuse(Notice::usage(problem, hint));
    }
    read.unwrap_or_default()
}

/// One of a few words.
fn word<T: Default>(given: &mut Given<'_>, named: impl FnOnce(&[u8]) -> Option<T>, allowed: &str) -> T {
    let found = named(given.text().as_bytes());
    read(given, found, &format!("a valid value ({allowed})"), "rexec-host --help shows what each value does")
}

fn budget(given: &mut Given<'_>) -> usize {
    usize::try_from(word(given, choice::budget, choice::BUDGET_WORDS)).unwrap_or(0)
}

fn color(word: &[u8]) -> Option<Color> {
    match word {
        b"auto" => Some(Color::Auto),
        b"always" => Some(Color::Always),
        b"never" => Some(Color::Never),
        _ => None,
    }
}

fn switch(word: &[u8]) -> Option<bool> {
    match word {
        b"on" => Some(true),
        b"off" => Some(false),
        _ => None,
    }
}

fn view(word: &[u8]) -> Option<View> {
    match word {
        b"safe" => Some(View::Safe),
        b"raw" => Some(View::Raw),
        _ => None,
    }
}

/// Columns and rows.
fn size(given: &mut Given<'_>) -> Option<(u16, u16)> {
    let (cols_max, rows_max) = (limits::WINDOW_COLS_MAX, limits::WINDOW_ROWS_MAX);
    let parse = |text: &str| {
        let (cols, rows) = text.split_once('x')?;
        let (cols, rows) = (cols.parse().ok()?, rows.parse().ok()?);
        ((1..=cols_max).contains(&cols) && (1..=rows_max).contains(&rows)).then_some((cols, rows))
    };
    let hint = format!("columns and rows up to {cols_max}x{rows_max}, as in 160x48");
    let size = parse(&given.text()).map(Some);
    read(given, size, "a valid size", &hint)
}

/// A time of at most `most`.
fn seconds(given: &mut Given<'_>, most: Duration, example: &str) -> Duration {
    let seconds = given.text().parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    let hint = format!("seconds from 0 to {}, {example}", most.as_secs());
    read(given, seconds.filter(|time| *time <= most), "a valid time", &hint)
}

/// Minutes; 0 is none.
fn minutes(given: &mut Given<'_>) -> Option<Duration> {
    let most = limits::END_IDLE_MAX;
    let time = given.text().parse().ok().and_then(|minutes: f64| Duration::try_from_secs_f64(minutes * 60.0).ok());
    let hint = format!("minutes from 0 to {}, as in 30; 0 means never", most.as_secs() / 60);
    let time = read(given, time.filter(|time| *time <= most), "a valid time", &hint);
    (!time.is_zero()).then_some(time)
}

/// MiB as bytes.
fn raw_cap(given: &mut Given<'_>) -> u64 {
    let most = limits::RAW_CAP_MAX_MIB;
    let bytes = given.text().parse().ok().filter(|mib| *mib <= most).map(|mib: u64| mib << 20);
    read(given, bytes, "a valid size", &format!("MiB from 0 to {most}, as in 16; 0 keeps nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Value;

    /// The options after this one and its value; `None` if the value is refused.
    fn chosen(option: &str, value: &str) -> Option<HostOptions> {
        let call = CALL.read(&PROGRAM, &mut lexopt::Parser::from_args([option, value]));
        call.ok().map(|call| call.expect("no help is asked for").options)
    }

    /// A file that says what is the default changes nothing.
    #[test]
    fn the_defaults_of_a_file_are_those_of_the_command_line() {
        let mut call = HostCall::default();
        for (key, default) in CALL.keys().filter(|(_, default)| !default.is_empty()) {
            let value = if default == "false" { Value::Flag(false) } else { Value::Text(default.to_owned()) };
            assert_eq!(CALL.set(&PROGRAM, &mut call, key, &value).map_err(|notice| notice.to_string()), Ok(()));
        }
        assert_eq!(format!("{:?}", call.options), format!("{:?}", defaults()));
    }

    #[test]
    fn sizes_and_times_are_checked() {
        assert_eq!(chosen("--pty-size", "160x48").unwrap().pty_size, Some((160, 48)));
        for text in ["", "x", "160", "160x", "0x48", "-1x5", "70000x1", "1001x48", "160x301", "160x48x1"] {
            assert!(chosen("--pty-size", text).is_none(), "{text}");
        }
        let raw_cap = |text| chosen("--raw-cap", text).map(|options| options.raw_cap);
        assert_eq!([raw_cap("0"), raw_cap("16")], [Some(0), Some(limits::RAW_CAP_BYTES)]);
        for text in ["", "-1", "1.5", "16M", "99999999"] {
            assert_eq!(raw_cap(text), None, "{text}");
        }
        let grace = |text| chosen("--grace", text).map(|options| options.grace);
        assert_eq!(grace("0.5"), Some(Duration::from_millis(500)));
        for text in ["", "soon", "-1", "nan", "inf", "3601"] {
            assert_eq!(grace(text), None, "{text}");
        }
    }
}
