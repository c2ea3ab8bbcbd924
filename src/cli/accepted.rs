//! The texts of files of rules that a person has accepted, for verbs that accept or show them.

use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::look::Look;
use super::person;
use super::told::tell;
use super::unified::UnifiedDiff;
use super::{home, quoted, with_output, written};
use crate::recorder;
use crate::sys::process;
use crate::text::reason::reason;

/// The accepted text of a file.
pub(super) fn text_of(path: &Path) -> Result<Option<Vec<u8>>, Notice> {
    let home = absolute_home()?;
    recorder::read_accepted(&home, process::uid(), path).map_err(|error| cannot("read", &home, &error))
}

/// All files with their accepted texts.
pub(super) fn all() -> Result<Vec<(PathBuf, Vec<u8>)>, Notice> {
    let home = absolute_home()?;
    recorder::all_accepted(&home, process::uid()).map_err(|error| cannot("read", &home, &error))
}

/// Prints how a file differs from the text that was accepted.
pub(super) fn print_change(path: &Path, accepted: Option<&[u8]>, now: Option<&[u8]>) -> Result<(), Notice> {
    let path = path.display().to_string();
    let texts = [accepted, now].map(|text| String::from_utf8_lossy(text.unwrap_or_default()));
    let heads = [format!("{path} (accepted)"), path];
    let diff = UnifiedDiff::of_texts(heads, [&texts[0], &texts[1]]);
    with_output(|out| written(diff.show(&Look::of_output(), out))).map(|_| ())
}

/// Keeps the text of a file as accepted, or forgets what was, and tells a host that runs. Before it asks, a verb has
/// [`person::check`] look who calls.
pub(super) fn keep(path: &Path, text: Option<&[u8]>) -> Result<(), Notice> {
    let home = absolute_home()?;
    let kept = match text {
        Some(text) => recorder::accept(&home, process::uid(), path, text),
        None => recorder::forget_accepted(&home, process::uid(), path),
    };
    kept.map_err(|error| cannot("change", &home, &error))?;
    person::tell_host()
}

/// A person has had a file changed. The change counts as accepted if the file was as accepted before. Where there is no
/// journal, the first host accepts the file as it is.
pub(super) fn follow(path: &Path, before: Option<&[u8]>, after: Option<&[u8]>) -> Result<(), Notice> {
    let accepted = text_of(path)?;
    if !absolute_home()?.exists() || (accepted.is_some() && accepted.as_deref() != before) {
        return Ok(());
    }
    match person::check() {
        Ok(()) => keep(path, after),
        Err(notice) => {
            tell(format_args!("{}; rexec config accept accepts the change", notice.problem));
            Ok(())
        }
    }
}

fn absolute_home() -> Result<PathBuf, Notice> {
    let home = home()?;
    Ok(std::path::absolute(&home).unwrap_or(home))
}

fn cannot(verb: &str, home: &Path, error: &std::io::Error) -> Notice {
    let problem = format_args!("cannot {verb} what is accepted in {}: {}", quoted(home), reason(error));
    Notice::failed(problem, "set REXEC_HOME to the directory of the journal, which must be yours")
}
