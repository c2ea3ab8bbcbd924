//! What a command costs that goes through the host: time, CPU, rate, throughput, memory.
//!
//! `scripts/bench.sh` builds the binaries and runs this program. It prints one table of Markdown and asserts nothing.
//! The sides of a comparison always alternate within one run, because only their ratio survives a change of machine or
//! load. All get the same environment, the same descriptors and the same way of spawning.
//!
//! ```text
//! commands --part path|load [--quick] [--only GROUP,…] --bin DIR --floor DIR [--base DIR]
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs and waits")]

mod crowd;
mod host;
mod load;
mod memory;
mod meter;
mod path;
mod scratch;
mod shell;
mod shim_alone;
mod side;
mod table;
mod turns;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use scratch::Scratch;
use table::Table;

/// The groups of measures, each with its part.
const GROUPS: [(&str, &str); 6] =
    [("path", "one"), ("path", "many"), ("path", "shim"), ("load", "volume"), ("load", "memory"), ("load", "crowd")];

/// What every group of measures needs.
#[derive(Debug)]
struct Bench {
    /// Folder with rexec-host and rexec-sh.
    bin: PathBuf,
    /// The same of another build, to compare with.
    base: Option<PathBuf>,
    /// Folder with the programs of `tests/bench/floor`.
    floor: PathBuf,
    /// Fewer rounds, for a look rather than a number.
    quick: bool,
    scratch: Scratch,
}

impl Bench {
    /// How often to repeat something, by whether there is time.
    fn rounds(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// This build and, if there is one to compare with, the other, each with the name of its column.
    fn builds(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        [("this", Some(&self.bin)), ("base", self.base.as_ref())]
            .into_iter()
            .filter_map(|(name, bin)| bin.map(|bin| (name, bin)))
    }
}

fn main() -> ExitCode {
    let said = match run() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => "commands: not everything could be measured".to_owned(),
        Err(error) => format!("commands: {error}"),
    };
    // Without a stderr there is nobody to tell.
    drop(writeln!(io::stderr(), "{said}"));
    ExitCode::FAILURE
}

/// Takes all measures asked for and prints them; says whether every group could be measured.
fn run() -> io::Result<bool> {
    // `cargo test --all-targets` runs this too, without the flag that `cargo bench` gives.
    if !std::env::args().any(|arg| arg == "--bench") {
        writeln!(io::stdout(), "commands: a benchmark; run it by scripts/bench.sh")?;
        return Ok(true);
    }
    let (bench, part, only) = parse().map_err(|error| io::Error::other(error.to_string()))?;
    let mut table = Table::default();
    let mut is_whole = true;
    for (_, group) in GROUPS.iter().filter(|(of, group)| *of == part && (only.is_empty() || only.contains(group))) {
        writeln!(io::stderr(), "commands: {group} …")?;
        if let Err(error) = measure(group, &bench, &mut table) {
            is_whole = false;
            table.remark(format!("{group}: NOT MEASURED: {error}"));
        }
    }
    write!(io::stdout().lock(), "{table}")?;
    Ok(is_whole)
}

fn measure(group: &str, bench: &Bench, table: &mut Table) -> io::Result<()> {
    match group {
        "one" => path::one(bench, table),
        "many" => path::many(bench, table),
        "shim" => shim_alone::measure(bench, table),
        "volume" => load::measure(bench, table),
        "memory" => memory::measure(bench, table),
        "crowd" => crowd::measure(bench, table),
        _ => unreachable!("GROUPS and this match name the same groups"),
    }
}

fn parse() -> Result<(Bench, String, Vec<&'static str>), lexopt::Error> {
    use lexopt::prelude::*;
    let folder = |name: &str, value: std::ffi::OsString| {
        PathBuf::from(value).canonicalize().map_err(|error| format!("{name}: {error}"))
    };
    let (mut bin, mut base, mut floor, mut part, mut only, mut quick) = (None, None, None, None, Vec::new(), false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            // What `cargo bench` adds.
            Long("bench") => {}
            Long("quick") => quick = true,
            Long("bin") => bin = Some(folder("--bin", parser.value()?)?),
            Long("base") => base = Some(folder("--base", parser.value()?)?),
            Long("floor") => floor = Some(folder("--floor", parser.value()?)?),
            Long("part") => part = Some(parser.value()?.string()?),
            Long("only") => {
                for asked in parser.value()?.string()?.split(',') {
                    let known = GROUPS.iter().find(|(_, group)| *group == asked);
                    only.push(known.ok_or_else(|| format!("--only {asked}: there is no such group"))?.1);
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    let (Some(bin), Some(floor), Some(part)) = (bin, floor, part) else {
        return Err("--bin, --floor and --part are needed; scripts/bench.sh sets them".into());
    };
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    Ok((Bench { bin, base, floor, quick, scratch }, part, only))
}
