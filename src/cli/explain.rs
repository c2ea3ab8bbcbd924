//! `rexec explain`: the programs that a command's text runs, what they would destroy, and whether it runs with a terminal.
//! Nothing is run.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::Serialize;

use super::columns::{self, Column};
use super::look::Look;
use super::verb::{Call, Group, Values, Verb, Words, json};
use crate::gate::{leaf_words, problem_in_words, redirection_words, why_opaque};
use crate::script::{self, Excuse, Fed, FedBy, FedCommand, Leaf, LeafState, SudoAsks, Via};
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::undo::{self, Extent, Loss, Losses, Operand, OwnFiles, RepositoryLoss};

pub(super) const VERB: Verb = Verb {
    term: "explain",
    group: Group::Own,
    summary: "show what a command would run, feed and destroy",
    text: "\
COMMAND is a text for the shell, as one word. Each program in it has one line,
also behind sudo, in $(...) and in the code of bash -c. VIA is what leads to
it.

  known    all of it
  open     a word has a part that only the shell will know, such as $x or *
  foreign  it runs code of another language, which is not read
  opaque   what runs is not known; WHY says the reason

Variables have the values of your environment. Below stand the programs that
are fed: something is piped or redirected into them. A fed program that may
read answers there finds them only without a terminal: with one, ssh-keygen,
openssl and others would ask at the terminal, and leave their input unread.
Filters such as grep do not count, nor do sudo, ssh, git and gpg, which never
take an answer from a pipe. The last line says which of the two the command
wants, as far as its text tells.

Before it stands what the command would destroy: files and directories that rm,
find -delete, mv, cp, sed -i, a redirection and others take away, replace or
write over, if they are there. Scripts and other languages are not read.
",
    codes: &[],
    examples: &[
        "rexec explain 'cd web && git push 2>&1 | tail -5'",
        "rexec explain --json 'yes | ./setup'",
        "rexec explain 'cd build && rm -rf *'",
    ],
    call: &Call::<ExplainCall> {
        options: &[json(|q| q.is_json = true)],
        words: Words::one("COMMAND", Values::Nothing, |q, w| q.text = Some(w.raw())),
        run: |ExplainCall { text, is_json }| {
            let text = text.ok_or_else(|| VERB.missing("a command"))?;
            let explained = Explained::read(text.as_bytes());
            super::with_output(|out| match is_json {
                true => super::put_json(std::iter::once(&explained.form()), out),
                false => super::written(out.write_all(explained.draw(&Look::of_output()).as_bytes())),
            })
        },
    },
};

#[derive(Default)]
struct ExplainCall {
    text: Option<OsString>,
    is_json: bool,
}

/// Columns of the way to a program.
pub(super) const VIA_COLUMNS: usize = 32;
/// Columns of a word that is shown whole.
pub(super) const WORD_COLUMNS: usize = 400;

/// The programs that a command's text runs and feeds.
#[derive(Debug)]
struct Explained {
    leaves: Vec<Leaf>,
    fed: Vec<FedCommand>,
    losses: Losses,
    verdict: Fed,
}

/// The form of `--json`.
#[derive(Debug, Serialize)]
struct ExplainForm {
    leaves: Vec<LeafForm>,
    fed: Vec<FedForm>,
    destroys: Vec<LossForm>,
    terminal: bool,
    why: String,
}

/// A program, in `--json`.
#[derive(Debug, Serialize)]
struct LeafForm {
    program: String,
    arguments: Vec<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    via: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<String>,
    redirects: Vec<String>,
    reads_pipe: bool,
    writes_pipe: bool,
}

/// A program that is fed, in `--json`.
#[derive(Debug, Serialize)]
struct FedForm {
    program: String,
    by: &'static str,
    counts: bool,
}

/// What would be destroyed, in `--json`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum LossForm {
    Known {
        path: String,
        what: &'static str,
        all_below: bool,
    },
    /// A command of git, and what it is asked for the paths.
    Asked {
        by: String,
        asks: Vec<String>,
        own_files: bool,
    },
    /// The program whose operands are not known.
    Unknown {
        by: String,
    },
}

impl Explained {
    fn read(text: &[u8]) -> Self {
        let environment = |name: &[u8]| std::env::var_os(std::ffi::OsStr::from_bytes(name)).map(OsStringExt::into_vec);
        let sudo = SudoAsks::of(process::uid());
        let feeding = script::feeding(text, sudo);
        let leaves = script::leaves(text, &environment).leaves;
        Self { losses: undo::losses(&leaves), leaves, verdict: feeding.fed(), fed: feeding.commands }
    }

    fn form(&self) -> ExplainForm {
        let leaf = |leaf: &Leaf| LeafForm {
            program: lossy(&leaf.program),
            arguments: leaf.arguments.iter().map(|argument| lossy(&argument.shown())).collect(),
            state: state(leaf),
            why: why_opaque(leaf),
            via: leaf.via.iter().map(Via::to_string).collect(),
            dir: leaf.directory.as_ref().map(|directory| lossy(&directory.shown())),
            redirects: leaf.redirects.iter().map(redirection_words).collect(),
            reads_pipe: leaf.pipes.reads,
            writes_pipe: leaf.pipes.writes,
        };
        let fed = |fed: &FedCommand| {
            let counts = fed.excuse.is_none();
            FedForm { program: lossy(&fed.name), by: source(fed.by), counts }
        };
        let loss = |operand: &Operand| LossForm::Known {
            path: lossy(&operand.path.shown()),
            what: match operand.loss {
                Loss::Name => "name",
                Loss::Bytes => "content",
            },
            all_below: operand.extent == Extent::Tree,
        };
        let asked = |loss: &RepositoryLoss| LossForm::Asked {
            by: format!("git {}", lossy(&loss.subcommand)),
            asks: asks(loss),
            own_files: loss.all_own() != OwnFiles::Kept,
        };
        let asked = self.losses.repositories.iter().map(asked);
        let unknown = self.losses.unknown.iter().map(|by| LossForm::Unknown { by: lossy(by) });
        ExplainForm {
            leaves: self.leaves.iter().map(leaf).collect(),
            fed: self.fed.iter().map(fed).collect(),
            destroys: self.losses.expected().map(loss).chain(asked).chain(unknown).collect(),
            terminal: self.verdict == Fed::Nothing,
            why: self.why(),
        }
    }

    fn draw(&self, look: &Look) -> String {
        let column = |name, rank, cell: &dyn Fn(&Leaf) -> String| Column {
            name,
            is_number: false,
            rank,
            cells: self.leaves.iter().map(cell).collect(),
        };
        let some = |text: String| if text.is_empty() { look.dash().to_owned() } else { text };
        let vias = |leaf: &Leaf| leaf.via.iter().map(Via::to_string).collect::<Vec<_>>().join(", ");
        let mut columns = vec![
            column("STATE", 0, &|leaf| state(leaf).to_owned()),
            column("VIA", 2, &|leaf| look.cut(&some(escape_line(&vias(leaf), WORD_COLUMNS)), VIA_COLUMNS)),
        ];
        if self.leaves.iter().any(|leaf| why_opaque(leaf).is_some()) {
            columns.push(column("WHY", 1, &|leaf| some(why_opaque(leaf).unwrap_or_default().to_owned())));
        }
        let room = columns::fit(&mut columns, look);
        let mut text = columns::head(&columns, "COMMAND", look);
        for (at, leaf) in self.leaves.iter().enumerate() {
            for column in &columns {
                text += &column.cells[at];
                text += "  ";
            }
            text += look.cut(&some(leaf_words(leaf)), room).trim_end();
            text.push('\n');
        }
        for fed in &self.fed {
            let excuse = match fed.excuse {
                None => "may read answers there",
                Some(Excuse::Filter) => "a filter, which asks nobody",
                Some(Excuse::AsksElsewhere) => "never reads an answer there",
            };
            text += &format!("fed: {} by {}: {excuse}\n", named(&fed.name), source(fed.by));
        }
        for operand in self.losses.expected() {
            let how = match (operand.loss, &operand.extent) {
                (_, Extent::Overlay { sources, .. }) => {
                    format!(", what has names of {}", escape_line(&lossy(&sources.shown()), WORD_COLUMNS))
                }
                (Loss::Bytes, _) => ": its content".to_owned(),
                (Loss::Name, Extent::Patched { diff: list })
                | (Loss::Name, Extent::Below { archive: Some(list), strip: Some(_) }) => {
                    format!(", what is named in {}", escape_line(&lossy(&list.shown()), WORD_COLUMNS))
                }
                (Loss::Name, Extent::Below { .. }) => ", some of what is below it".to_owned(),
                (Loss::Name, Extent::Found(finding)) => {
                    format!(", what find finds there: {}", escape_line(&finding.shown(), WORD_COLUMNS))
                }
                (Loss::Name, Extent::Tree) => ", with all below it".to_owned(),
                (Loss::Name, Extent::Itself) => String::new(),
            };
            text += &format!("destroys: {}{how}\n", escape_line(&lossy(&operand.path.shown()), WORD_COLUMNS));
        }
        for loss in &self.losses.repositories {
            for asked in asks(loss) {
                text += &format!("destroys: what {} lists\n", escape_line(&asked, WORD_COLUMNS));
            }
            if loss.all_own() != OwnFiles::Kept {
                let name = escape_line(&lossy(&loss.subcommand), WORD_COLUMNS);
                text += &format!("destroys: files of git itself, by git {name}\n");
            }
        }
        for program in &self.losses.unknown {
            text += &format!("destroys: by {}, not known what\n", escape_line(&lossy(program), WORD_COLUMNS));
        }
        let terminal = if self.verdict == Fed::Nothing { "yes" } else { "no" };
        text + &format!("terminal: {terminal}: {}\n", self.why())
    }

    /// The reason for having a terminal or not.
    fn why(&self) -> String {
        match &self.verdict {
            Fed::Nothing => "it feeds no program that may read answers".to_owned(),
            Fed::Program { name, by } => format!("{} is fed by {}", named(name), source(*by)),
            Fed::ControlsJobs => {
                "a shell in it turns on job control, and would stop what asks at the terminal".to_owned()
            }
            Fed::NamesTerminal => "it feeds a program and names /dev/tty".to_owned(),
            Fed::NotUnderstood(problem) => format!("it is not understood: {}", problem_in_words(*problem)),
        }
    }
}

/// What git is asked, as it would be typed without quotes.
fn asks(loss: &RepositoryLoss) -> Vec<String> {
    let globals = loss.globals.iter().map(Vec::as_slice);
    let call = |words: Vec<&[u8]>| {
        let words = [&b"git"[..]].into_iter().chain(globals.clone()).chain(words);
        words.map(lossy).collect::<Vec<_>>().join(" ")
    };
    loss.all_listings().map(|listing| call(listing.call())).collect()
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn named(name: &[u8]) -> String {
    if name.is_empty() { "an unknown program".to_owned() } else { escape_line(&lossy(name), WORD_COLUMNS) }
}

fn source(by: FedBy) -> &'static str {
    match by {
        FedBy::Pipe => "a pipe",
        FedBy::File => "a file",
        FedBy::HereDocument => "a here-document",
        FedBy::HereString => "a here-string",
        FedBy::Descriptor => "another descriptor",
    }
}

pub(super) fn state(leaf: &Leaf) -> &'static str {
    match leaf.state {
        LeafState::Known => "known",
        LeafState::Open => "open",
        LeafState::Foreign => "foreign",
        LeafState::Opaque(_) => "opaque",
    }
}
