//! What the path from an agent to its command costs: latency, rate, throughput, memory, wake-ups.
//!
//! `scripts/bench.sh` builds the binaries and runs this program; it measures, prints one table and asserts nothing.
//! Ours and the reference always alternate within one run, because only their ratio survives a change of machine or
//! load. Both sides get the same environment, the same descriptors and the same way of spawning.
//!
//! ```text
//! path [--quick] [--only GROUP,…] [--bin DIR] [--base DIR] [--console null|terminal]
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs and waits")]

mod footprint;
mod host;
mod instructions;
mod latency;
mod meter;
mod modes;
mod rate;
mod scratch;
mod shell;
mod table;
mod volume;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use host::Console;
use scratch::Scratch;
use table::Table;

const GROUPS: [&str; 7] = ["footprint", "latency", "instructions", "volume", "rate", "soak", "modes"];

/// What was asked for on the command line.
#[derive(Debug)]
struct Options {
    bin: PathBuf,
    base: Option<PathBuf>,
    console: Console,
    quick: bool,
    only: Vec<String>,
}

/// What every group of measures needs.
#[derive(Debug)]
struct Bench {
    /// Folder with rexec-host, rexec-bash and rexec-sh.
    bin: PathBuf,
    /// The same of another build, to compare with.
    base: Option<PathBuf>,
    /// The host's `--tty`.
    tty: &'static str,
    console: Console,
    /// Fewer rounds, for a look rather than a number.
    quick: bool,
    scratch: Scratch,
}

impl Bench {
    /// How often to repeat something, by whether there is time.
    fn rounds(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// The same for these binaries, with a host whose commands see what their callers have.
    fn beside(&self, bin: &Path) -> io::Result<Self> {
        let bench = Self {
            bin: bin.to_owned(),
            base: None,
            tty: "auto",
            scratch: Scratch::new()?,
            console: self.console,
            ..*self
        };
        shell::lay_links(&bench)?;
        Ok(bench)
    }
}

fn main() -> ExitCode {
    let said = match run() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => "path: not everything could be measured".to_owned(),
        Err(error) => format!("path: {error}"),
    };
    // Without a stderr there is nobody to tell.
    drop(writeln!(io::stderr(), "{said}"));
    ExitCode::FAILURE
}

/// Takes all measures asked for and prints them; says whether every group could be measured.
fn run() -> io::Result<bool> {
    // `cargo test --all-targets` runs this too, without the flag that `cargo bench` gives.
    if !std::env::args().any(|arg| arg == "--bench") {
        writeln!(io::stdout(), "path: a benchmark; run it by scripts/bench.sh")?;
        return Ok(true);
    }
    let Options { bin, base, console, quick, only } = parse().map_err(|error| io::Error::other(error.to_string()))?;
    let bench = Bench { bin, base, tty: "always", console, quick, scratch: Scratch::new()? };
    shell::lay_links(&bench)?;
    // The shim alone can be measured without a host that works.
    if only != ["instructions"] {
        shell::check(&bench)?;
    }
    let mut table = Table::default();
    let mut is_whole = true;
    for group in GROUPS {
        if !only.is_empty() && !only.iter().any(|only| only == group) {
            continue;
        }
        writeln!(io::stderr(), "path: {group} …")?;
        if let Err(error) = measure(group, &bench, &mut table) {
            is_whole = false;
            table.remark(format!("{group}: NOT MEASURED: {error}"));
        }
    }
    write!(io::stdout().lock(), "\n{table}")?;
    Ok(is_whole)
}

fn measure(group: &str, bench: &Bench, table: &mut Table) -> io::Result<()> {
    match group {
        "footprint" => footprint::measure(bench, table),
        "latency" => latency::measure(bench, table),
        "instructions" => instructions::measure(bench, table),
        "volume" => volume::measure(bench, table),
        "rate" => rate::measure(bench, table),
        "soak" => rate::soak(bench, table),
        "modes" => modes::measure(bench, table),
        _ => unreachable!("GROUPS and this match name the same groups"),
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options =
        Options { bin: PathBuf::new(), base: None, console: Console::Null, quick: false, only: Vec::new() };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            // What `cargo bench` adds.
            Long("bench") => {}
            Long("quick") => options.quick = true,
            Long("bin") => options.bin = parser.value()?.into(),
            Long("base") => {
                options.base =
                    Some(PathBuf::from(parser.value()?).canonicalize().map_err(|error| format!("--base: {error}"))?)
            }
            Long("only") => {
                options.only = parser.value()?.string()?.split(',').map(str::to_owned).collect();
                if let Some(unknown) = options.only.iter().find(|only| !GROUPS.contains(&only.as_str())) {
                    return Err(format!("--only {unknown}: the groups are {}", GROUPS.join(", ")).into());
                }
            }
            Long("console") => {
                options.console = match parser.value()?.string()?.as_str() {
                    "null" => Console::Null,
                    "terminal" => Console::Terminal,
                    other => return Err(format!("--console {other}: it is null or terminal").into()),
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    if options.bin.as_os_str().is_empty() {
        return Err("--bin DIR is needed: where rexec-host and rexec-sh are".into());
    }
    options.bin = options.bin.canonicalize().map_err(|error| format!("--bin: {error}"))?;
    Ok(options)
}
