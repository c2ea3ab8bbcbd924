//! How long a login shell takes to start, and which line of which file takes most of that time.
#![expect(clippy::disallowed_methods, reason = "a person has asked for these probes, and waits for them")]

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{CheckResult, FindingState};
use crate::text::escape::escape_line;
use crate::text::reason::reason;
use crate::text::redact::Redactor;

/// A login shell that takes longer makes agents slow that start one for each command.
const SLOW: Duration = Duration::from_millis(200);
/// How long a shell may take. It is ended then.
const PATIENCE: Duration = Duration::from_secs(10);
/// Columns of a line of a profile that are shown. The rest is cut.
const LINE_COLUMNS: usize = 60;
/// What a shell prints when it has started.
const STARTED: &str = "rexec doctor: started";
/// Reads the files of a login shell as bash(1) names them, and prints for each command in them when it began and where it
/// stands. What they print themselves goes nowhere.
const TRACED: &str = r#"exec {BASH_XTRACEFD}>&1 >/dev/null 2>&1
PS4='+$EPOCHREALTIME	${BASH_SOURCE[0]-}	$LINENO	'
set -x
[ ! -r /etc/profile ] || . /etc/profile
for rexec_file in ~/.bash_profile ~/.bash_login ~/.profile; do
    if [ -r "$rexec_file" ]; then . "$rexec_file"; break; fi
done
set +x
echo "rexec doctor: started" >&$BASH_XTRACEFD"#;

/// How long a login shell takes to start.
pub(super) fn check() -> CheckResult {
    let from = Instant::now();
    let started = start(&["-lc", "echo \"$0\"", STARTED], |_| {});
    let took = from.elapsed();
    let found = match started {
        Err(error) => {
            return CheckResult::new(
                FindingState::Note,
                "shell",
                format!("/bin/bash: {}", reason(&error)),
                "install bash",
            );
        }
        Ok(StartOfBash::Started) if took <= SLOW => {
            return CheckResult::ok("shell", format!("bash -lc true takes {} ms", took.as_millis()));
        }
        Ok(StartOfBash::Started) => format!("bash -lc true takes {} ms", took.as_millis()),
        Ok(StartOfBash::Ended) => "bash -lc true ends in a profile, before the command".to_owned(),
        Ok(StartOfBash::Late) => format!("bash -lc true has not ended after {} s", PATIENCE.as_secs()),
    };
    let cause = cause().map(|cause| format!("\n{cause}")).unwrap_or_default();
    let fix = match cause.is_empty() {
        true => "see what ~/.bash_profile, ~/.profile and ~/.bashrc start; some agents run them for every command",
        false => "do that in terminals only; some agents start such a shell for every command",
    };
    CheckResult::new(FindingState::Note, "shell", found + &cause, fix)
}

/// How the start of a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartOfBash {
    Started,
    /// The shell ended first.
    Ended,
    /// It took too long.
    Late,
}

/// Starts bash with these arguments, and hands on the lines that it prints until it says that it has started.
fn start(args: &[&str], mut line: impl FnMut(&str)) -> io::Result<StartOfBash> {
    // A process that a profile leaves behind may keep its end open, so nobody waits for the end of file.
    let (ours, its) = UnixStream::pair()?;
    ours.set_read_timeout(Some(PATIENCE))?;
    let mut command = Command::new("/bin/bash");
    // As a command's shell starts, which has no recipe.
    command.args(args).env_remove("BASH_ENV").stdin(Stdio::null()).stdout(OwnedFd::from(its)).stderr(Stdio::null());
    let mut bash = command.spawn()?;
    drop(command);
    let (until, mut reader, mut text) = (Instant::now() + PATIENCE, BufReader::new(ours), Vec::new());
    let how = loop {
        text.clear();
        let read = reader.read_until(b'\n', &mut text);
        let said = String::from_utf8_lossy(&text);
        match said.trim_end() {
            STARTED => break StartOfBash::Started,
            _ if read.is_err() || Instant::now() > until => break StartOfBash::Late,
            "" if text.is_empty() => break StartOfBash::Ended,
            said => line(said),
        }
    };
    if how == StartOfBash::Late {
        bash.kill()?;
    }
    bash.wait().map(|_| how)
}

/// A place in a profile, and how long it took, microseconds.
#[derive(Debug, Clone)]
struct TracedLine {
    file: String,
    line: String,
    command: String,
    took: u64,
}

/// What takes most of the time.
fn cause() -> Option<String> {
    let from = Instant::now();
    let (mut lines, mut last) = (Vec::<TracedLine>::new(), None);
    let how = start(&["-c", TRACED], |text| {
        if let Some((at, line)) = traced(text) {
            took(&mut lines, last.replace(at), at);
            lines.push(line);
        }
    });
    match how.ok()? {
        StartOfBash::Started => heaviest(lines),
        StartOfBash::Late => {
            // The rest of the time is that of the last line.
            lines.last_mut()?.took = u64::try_from(from.elapsed().as_micros()).ok()?;
            heaviest(lines)
        }
        StartOfBash::Ended => {
            let TracedLine { file, line, command, .. } = lines.last().filter(|line| !line.file.is_empty())?;
            let (file, command) = (escape_line(file, LINE_COLUMNS), shown_command(command));
            Some(format!("the last command is in {file}, line {line}: {command}"))
        }
    }
}

/// The line before has taken the time until now.
fn took(lines: &mut [TracedLine], from: Option<u64>, until: u64) {
    if let (Some(line), Some(from)) = (lines.last_mut(), from) {
        line.took = until.saturating_sub(from);
    }
}

/// A line of the trace: when its command began, microseconds, and which one it is.
fn traced(text: &str) -> Option<(u64, TracedLine)> {
    let mut fields = text.trim_start_matches('+').splitn(4, '\t').map(str::to_owned);
    // The separator of its decimals is that of the locale.
    let at = fields.next()?.replace(['.', ','], "").parse().ok()?;
    let (file, line, command) = (fields.next()?, fields.next()?, fields.next()?);
    Some((at, TracedLine { file, line, command, took: 0 }))
}

/// A command of a profile without its secrets: the report may be passed on.
fn shown_command(command: &str) -> String {
    let mut masked = Vec::new();
    Redactor::new(std::iter::empty::<(&str, &str)>()).redact_command(command.as_bytes(), &mut masked);
    escape_line(&String::from_utf8_lossy(&masked), LINE_COLUMNS)
}

/// The file that takes most of the time, and its line if one stands out.
fn heaviest(mut lines: Vec<TracedLine>) -> Option<String> {
    // Those without a file are our own.
    lines.retain(|line| !line.file.is_empty());
    let (mut files, mut places) = (HashMap::<&str, u64>::new(), HashMap::<(&str, &str), u64>::new());
    for line in &lines {
        *files.entry(&line.file).or_default() += line.took;
        *places.entry((&line.file, &line.line)).or_default() += line.took;
    }
    let (file, of_file) = files.into_iter().max_by_key(|(_, took)| *took)?;
    let of_this = places.into_iter().filter(|((other, _), _)| *other == file);
    let ((_, number), of_line) = of_this.max_by_key(|(_, took)| *took)?;
    let shown = |took: u64| format!("{} ms of it", took / 1_000);
    if of_line * 2 < of_file {
        return Some(format!("{} in {}", shown(of_file), escape_line(file, LINE_COLUMNS)));
    }
    let here = lines.iter().filter(|line| line.file == file && line.line == number);
    let command = shown_command(&here.max_by_key(|line| line.took)?.command);
    Some(format!("{} in {}, line {number}: {command}", shown(of_line), escape_line(file, LINE_COLUMNS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause_of(trace: &str) -> Option<String> {
        let (mut lines, mut last) = (Vec::new(), None);
        for (at, line) in trace.lines().filter_map(traced) {
            took(&mut lines, last.replace(at), at);
            lines.push(line);
        }
        heaviest(lines)
    }

    #[test]
    fn the_line_that_takes_most_of_the_time_is_named() {
        let trace = "+1700000000.000000\t\t4\t. /etc/profile\n+1700000000.001000\t/etc/profile\t1\tPATH=/bin\n\
            ++1700000000.002000\t/h/.bashrc\t7\tslow --init\nits second line\n+1700000000.502000\t/h/.bashrc\t8\ttrue\n\
            +1700000000.512000\t\t9\tset +x\n";
        assert_eq!(cause_of(trace).as_deref(), Some("500 ms of it in /h/.bashrc, line 7: slow --init"));
        let many = "+1,000000\t/n.sh\t1\ta\n+1,100000\t/n.sh\t2\tb\n+1,200000\t/n.sh\t3\tc\n+1,300000\t\t9\tset +x\n";
        assert_eq!(cause_of(many).as_deref(), Some("300 ms of it in /n.sh"));
        assert_eq!(cause_of("+\t/h/.bashrc\t7\tslow\n"), None);
        let secret = "+1,000000\t/p\t1\tcurl -u ann:geheim http://x/\n+1,300000\t\t9\tset +x\n";
        let cause = cause_of(secret).expect("a cause");
        assert!(cause.contains("curl") && !cause.contains("geheim"), "{cause}");
    }
}
