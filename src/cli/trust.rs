//! `rexec trust` and `rexec untrust`: whether the rules of a project's file count.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::project_file::{ProjectFile, project_of};
use super::verb::{Call, Group, Opt, Values, Verb, Words};
use super::{accepted, person, quoted, told};
use crate::gate::PROJECT_FILE;
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

pub(super) const TRUST: Verb = Verb {
    term: "trust",
    group: Group::Own,
    summary: "let the rules of a project's .rexec.toml count",
    text: "\
A project can have rules for the commands that run in it, in .rexec.toml at the
top of its git project:

  [[rule]]
  do = \"ask\"
  run = \"git push\"
  why = \"Releases are made by CI.\"

Such rules ask or deny. They can only make your own rules (rexec help gate)
stricter, and have their settings: without mode = \"enforce\" in config.toml they
are watched. Anybody who can write to the project can write such a file, also
an agent. So it counts only when you have trusted it: rexec trust shows the
file of the project that DIR (default: this directory) is in, and asks. Its
text is kept with the journal, up to 256 KiB.

What you have trusted holds as it was. When the file changes or goes, the
console says so once, and the old text holds on until you trust the new one, or
rexec untrust. A file that you have not trusted does not count, and is named on
the console once. A process of an agent can neither trust nor untrust, as far
as that is seen: see rexec help answer.

They hold for each command that begins in the project's directory or below it,
also in a repository within it, which may have further rules of its own. A cd
in a command's text changes nothing. The host looks for a changed file when it
judges a command, and at most once in a second; never behind a symbolic link,
or on a network file system or one in user space, where looking might wait:
there, what you have trusted holds unseen, and it holds nowhere where the
journal's directory is on one. Commands in an agent's sandbox are not judged,
and a host with --no-config judges none.
",
    codes: &[(1, "there is no such file, it has a mistake, or nothing was changed")],
    examples: &["rexec trust", "rexec trust --yes ~/src/web", "rexec trust --list"],
    call: &Call::<TrustCall> {
        options: &[
            Opt::flag("-y, --yes", |q| q.is_sure = true, "do not ask"),
            Opt::flag("--list", |q| q.lists = true, "list the files that are trusted, and what became of them"),
        ],
        words: Words::one("[DIR]", Values::Nothing, |q, w| q.directory = Some(w.raw())),
        run: |call| if call.lists { list() } else { trust(&call) },
    },
};

pub(super) const UNTRUST: Verb = Verb {
    term: "untrust",
    group: Group::Own,
    summary: "let the rules of a project's .rexec.toml count no more",
    text: "\
DIR (default: this directory) is the project's, or one in it. It need not be
there any more.
",
    codes: &[(1, "nothing is trusted there, or this is an agent's process")],
    examples: &["rexec untrust", "rexec untrust ~/src/web"],
    call: &Call::<Option<OsString>> {
        options: &[],
        words: Words::one("[DIR]", Values::Nothing, |q, w| *q = Some(w.raw())),
        run: untrust,
    },
};

#[derive(Default)]
struct TrustCall {
    directory: Option<OsString>,
    is_sure: bool,
    lists: bool,
}

fn trust(call: &TrustCall) -> Result<u8, Notice> {
    let directory = directory(call.directory.as_ref())?;
    let top = project_of(&directory).ok_or_else(|| {
        Notice::failed(format_args!("{} is in no git project", quoted(&directory)), "name a directory in one")
    })?;
    let file = ProjectFile::of(top)?.ok_or_else(|| {
        let problem = format_args!("there is no {PROJECT_FILE} in {}", quoted(top));
        Notice::failed(problem, "rexec help trust says what it may have")
    })?;
    let count = file.rules()?.len() as u64;
    let (shown, trusted) = (quoted(&file.path), accepted::text_of(&file.path)?);
    if trusted.as_ref() == Some(&file.text) {
        return super::say(&format!("{shown} is trusted already\n"));
    }
    person::check()?;
    accepted::print_change(&file.path, trusted.as_deref(), Some(&file.text))?;
    if !call.is_sure && !told::is_wanted("Trust this? [y/N] ", "rexec trust")? {
        return super::say("nothing was changed\n").map(|_| exit_code::FAILURE);
    }
    accepted::keep(&file.path, Some(&file.text))?;
    super::say(&format!("{shown} is trusted: {}\n", counted(count, "rule", "rules")))
}

fn list() -> Result<u8, Notice> {
    let all = accepted::all()?.into_iter().filter(|(path, _)| path.ends_with(PROJECT_FILE));
    let row = |(path, trusted): (PathBuf, Vec<u8>)| {
        let state = match path.parent().map(ProjectFile::of) {
            Some(Ok(Some(file))) if file.text == trusted => "trusted",
            Some(Ok(None)) | None => "gone",
            _ => "changed",
        };
        format!("{state:<8} {}\n", escape_line(&path.to_string_lossy(), usize::MAX))
    };
    super::say(&all.map(row).collect::<String>())
}

fn untrust(directory: Option<OsString>) -> Result<u8, Notice> {
    let directory = self::directory(directory.as_ref())?;
    for above in directory.ancestors() {
        let path = above.join(PROJECT_FILE);
        if accepted::text_of(&path)?.is_some() {
            person::check()?;
            accepted::keep(&path, None)?;
            return super::say(&format!("{} is not trusted any more\n", quoted(&path)));
        }
    }
    let problem = format!("nothing is trusted in {}", quoted(&directory));
    Err(Notice::failed(problem, "rexec trust --list lists what is"))
}

/// A directory without links, as far as it is there.
fn directory(given: Option<&OsString>) -> Result<PathBuf, Notice> {
    let given = given.map_or(Path::new("."), |given| Path::new(given));
    let failed = |error: std::io::Error| {
        Notice::failed(format_args!("cannot find {}: {}", quoted(given), reason(&error)), "name a directory")
    };
    fs::canonicalize(given).or_else(|_| std::path::absolute(given)).map_err(failed)
}
