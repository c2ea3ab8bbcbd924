//! One interaction with a shell at a terminal, and how the real shell and the shim are compared in it.

use std::path::{Path, PathBuf};

use crate::support::host::Host;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};
use crate::support::warden::Ended;

pub(crate) const TERMINAL: [At; 3] = [At::Terminal; 3];

/// What a person does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Types(&'static [u8]),
    /// Waits for bytes behind those that were waited for before.
    Sees(&'static str),
    /// Waits for a screen with this text.
    Shows(&'static str),
    /// Waits until this program waits for keys. Between its screen and that it may take a signal and forget it: less(1)
    /// looks at its flags, draws, and then reads.
    Listens(&'static str),
    Resizes(u16, u16),
}

/// What has to be the same with both shells, besides the end, the modes, and what is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Same {
    /// Every byte that came to the terminal.
    Bytes,
    /// What stands on the screen in the end, where the cursor is, and which modes programs have set.
    Screen,
    /// Nothing: it depends on the moment.
    Nothing,
}

/// One interaction with `bash -c SCRIPT` at a terminal of 80×24.
#[derive(Debug)]
pub(crate) struct Interaction {
    pub(crate) name: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) script: &'static str,
    pub(crate) steps: &'static [Step],
    pub(crate) ends: Ended,
    pub(crate) needs: &'static [&'static str],
    pub(crate) same: Same,
}

pub(crate) const PLAIN: Interaction = Interaction {
    name: "",
    options: &["-c"],
    script: "",
    steps: &[],
    ends: Ended::Code(0),
    needs: &[],
    same: Same::Bytes,
};

pub(crate) fn perform(typist: &mut Typist, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Types(keys) => typist.types(keys),
            Step::Sees(text) => drop(typist.sees(text)),
            Step::Shows(text) => typist.shows(text),
            Step::Listens(program) => typist.listens(program),
            Step::Resizes(cols, rows) => typist.resizes(*cols, *rows),
        }
    }
}

/// The real shell and the shim, with the variables that they need.
pub(crate) fn shells(host: &Host) -> [(PathBuf, Vec<String>); 2] {
    let socket = format!("REXEC_SOCKET={}", host.socket().display());
    [("/bin/bash".into(), vec!["REXEC_INSIDE=1".into()]), (programs::shims().join("rexec-bash"), vec![socket])]
}

/// Those interactions whose programs are there.
pub(crate) fn possible(table: &'static [Interaction]) -> impl Iterator<Item = &'static Interaction> {
    table.iter().filter(|case| case.needs.iter().all(|program| programs::has(program)))
}

/// Has every interaction with both shells.
pub(crate) fn compare(host: &Host, table: &'static [Interaction]) {
    let mut count = 0;
    for case in possible(table) {
        let [theirs, ours] = shells(host).map(|(shell, env)| seen(case, &shell, &env));
        assert!(theirs == ours, "{}\n{theirs}\n-- and by the shim --\n{ours}", case.name);
        count += 1;
    }
    host.wait_for("all of them", |journal| (journal.of_type("end").count() >= count).then_some(()));
}

/// Has one interaction with one shell; gives what has to be the same.
fn seen(case: &Interaction, shell: &Path, env: &[String]) -> String {
    let home = TempDir::new(None);
    let argv: Vec<&str> = ["bash"].iter().chain(case.options).copied().chain([case.script]).collect();
    let mut typist = Typist::start(shell, &argv, env, home.path(), TERMINAL);
    perform(&mut typist, case.steps);
    let ended = typist.ends();
    assert_eq!(ended, case.ends, "{} by {}: {}", case.name, shell.display(), typist.screen());
    assert!(typist.has_its_modes(true), "{} by {}", case.name, shell.display());
    let seen = match case.same {
        Same::Bytes => typist.screen(),
        Same::Screen => typist.drawn().state(),
        Same::Nothing => String::new(),
    };
    seen.replace(home.path().to_str().expect("a path in UTF-8"), "~")
}
