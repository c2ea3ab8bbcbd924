//! The table of verbs: everything that may follow `rexec`. `rexec --help`, each verb's help, the completions and the man
//! pages are made of it.
//!
//! To add a verb, write its row (`pub(super) const VERB: Verb`) and its function in a file beside this one, and name the
//! row here. Only the rows that need the whole table stand in this file.

use lexopt::Arg;
use rexec_sh::protocol::notice::Notice;

use super::verb::{Group, Values, Verb, one_word};
use super::{completions, help, man};

/// All verbs, in the order of `rexec --help`.
pub(super) const VERBS: &[&Verb] = &[
    // Agents.
    &super::run::VERB,
    &super::exec::VERB,
    &super::init::INIT,
    &super::init::UNINIT,
    &super::exec_server::VERB,
    &super::doctor::VERB,
    &super::mcp::VERB,
    // Commands that run.
    &super::ps::VERB,
    &super::services::VERB,
    &super::projects::VERB,
    &super::wait::VERB,
    &super::kill::VERB,
    &super::pause::PAUSE,
    &super::pause::RESUME,
    &super::answer::VERB,
    &super::send::VERB,
    &super::attach::VERB,
    &super::tail::VERB,
    &super::events::VERB,
    &super::exec::shell::VERB,
    // Commands of the past.
    &super::log::VERB,
    &super::show::VERB,
    &super::out::VERB,
    &super::diff::VERB,
    &super::replay::VERB,
    &super::export::VERB,
    &super::rerun::VERB,
    &super::undo::VERB,
    &super::kept::VERB,
    &super::stats::VERB,
    &super::sessions::VERB,
    &super::schema::VERB,
    &super::otlp::VERB,
    // Host and help.
    &super::status::VERB,
    &super::explain::VERB,
    &super::gate::VERB,
    &super::config::VERB,
    &super::trust::TRUST,
    &super::trust::UNTRUST,
    &HELP,
    &MAN,
    &COMPLETIONS,
    // Options.
    &super::exec::whoami::VERB,
    &super::check::VERB,
    &super::start::VERB,
    &super::mcp::FLAG,
    &super::stop_host::VERB,
    &super::list::VERB,
    &super::print::VERB,
    &super::tail::ATTACH,
];

/// The verb of this name, written as on the command line.
pub(super) fn named(name: &str) -> Option<&'static Verb> {
    VERBS.iter().copied().find(|verb| verb.names().any(|own| own == name))
}

const HELP: Verb = Verb {
    term: "help",
    group: Group::Own,
    summary: "print the help for a command or a topic",
    text: "\
TOPIC is a command, as in rexec help kill, or one of the topics that
rexec --help lists. Without it, this lists commands and topics.
",
    codes: &[],
    examples: &["rexec help kill", "rexec help agents | less"],
    call: &one_word("[TOPIC]", Values::Topics, |topic| {
        let text = match topic {
            Some(word) => help::topic(VERBS, &word)?,
            None => help::all(VERBS),
        };
        help::say(&text)
    }),
};

const MAN: Verb = Verb {
    term: "man",
    group: Group::Own,
    summary: "print a manual page as roff",
    text: "\
Without a command this is the page rexec(1); with one it is its page, as in
rexec-kill(1). man -l - shows it. To install all pages:

  mkdir -p ~/.local/share/man/man1
  rexec man >~/.local/share/man/man1/rexec.1
  rexec man kill >~/.local/share/man/man1/rexec-kill.1
",
    codes: &[],
    examples: &["rexec man | man -l -", "rexec man kill | man -l -"],
    call: &one_word("[COMMAND]", Values::Verbs, |command| {
        let page = match command {
            Some(word) => man::page(help::verb(VERBS, &word)?),
            None => man::overview(VERBS),
        };
        super::say(&page)
    }),
};

const COMPLETIONS: Verb = Verb {
    term: "completions",
    group: Group::Own,
    summary: "print a script that completes rexec's commands in your shell",
    text: "\
SHELL is bash, zsh or fish. The script completes commands, options and their
values, and the numbers of the commands that run: it asks rexec at each Tab, so
a new rexec needs no new script. Where it goes:

  bash  ~/.local/share/bash-completion/completions/rexec
  zsh   a file _rexec in a directory of $fpath
  fish  ~/.config/fish/completions/rexec.fish
",
    codes: &[],
    examples: &["source <(rexec completions bash)", "rexec completions fish >~/.config/fish/completions/rexec.fish"],
    call: &one_word("SHELL", Values::Words(&completions::SHELLS), |shell| {
        let shell = shell.ok_or_else(|| COMPLETIONS.missing("a shell"))?;
        let script = completions::script(&shell);
        super::say(script.ok_or_else(|| COMPLETIONS.none_of("SHELL", &shell, &completions::SHELLS))?)
    }),
};

/// Does what the command line asks for; returns the exit code.
pub(super) fn run(parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    let verb = match parser.next().map_err(|error| wrong(&error))? {
        None | Some(Arg::Short('h') | Arg::Long("help")) => return help::say(&help::all(VERBS)),
        Some(Arg::Short('V') | Arg::Long("version")) => {
            return super::say(concat!("rexec ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        Some(Arg::Short(letter)) => {
            let name = format!("-{letter}");
            named(&name).ok_or_else(|| wrong(&lexopt::Error::UnexpectedOption(name)))?
        }
        // The option that names the verb may stand behind others of its options, so the line is read from its beginning.
        Some(Arg::Long(name)) if super::exec::whoami::takes(name) => {
            return help::run(&super::exec::whoami::VERB, &mut lexopt::Parser::from_env());
        }
        Some(Arg::Long(name)) => {
            let name = format!("--{name}");
            named(&name).ok_or_else(|| wrong(&lexopt::Error::UnexpectedOption(name)))?
        }
        Some(Arg::Value(word)) if word == completions::COMPLETE => return completions::complete(VERBS, parser),
        Some(Arg::Value(word)) => {
            let verb = word.to_str().filter(|name| !name.starts_with('-')).and_then(named);
            verb.ok_or_else(|| wrong(&lexopt::Error::UnexpectedArgument(word)))?
        }
    };
    // A verb that starts another program reads its options up to that program's name.
    if !matches!(verb.words().values, Values::Program(_)) && asks_for_help(parser) {
        return help::say(&help::verb_help(verb));
    }
    help::run(verb, parser)
}

/// Returns true if the rest of the command line has `-h` or `--help`. What stands behind `--` is a command's own.
fn asks_for_help(parser: &mut lexopt::Parser) -> bool {
    let Some(words) = parser.try_raw_args() else { return false };
    words.as_slice().iter().take_while(|word| *word != "--").any(|word| word == "-h" || word == "--help")
}

fn wrong(error: &lexopt::Error) -> Notice {
    let names: Vec<&str> = VERBS.iter().map(|verb| verb.name()).chain(["--help", "--version"]).collect();
    super::wrong_call(error, "rexec", &names)
}
