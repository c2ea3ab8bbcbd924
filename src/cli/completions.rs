//! The words that a shell offers after `rexec`. The scripts for bash, zsh and fish only hand the words to `rexec
//! complete`, and offer what it prints.
//!
//! Invariants: no text from the host or a journal makes a line of its own, and the shells' scripts quote each word; a
//! name that no verb would take is not offered. A host that cannot be asked offers nothing.

use std::collections::BTreeMap;
use std::io::Write;

use rexec_sh::protocol::notice::Notice;

use super::help::PAGES;
use super::host_calls::HostCalls;
use super::record_reference::{self, Shelf};
use super::service::{self, KnownRuns};
use super::verb::{OptionText, Values, Verb};
use super::{chosen, with_output, written};
use crate::recorder;
use crate::text::escape::escape_line;
use crate::undo::manifest::Head;
use crate::undo::record::RecordName;

/// The shells with a script.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// The verb that the scripts call. It is for them alone, so no help lists it.
pub(super) const COMPLETE: &str = "complete";
/// The most records and journals that are offered.
const RECORDS_MAX: usize = 50;
const JOURNALS_MAX: usize = 50;
/// Columns of a command that are shown after its number.
const COMMAND_COLUMNS: usize = 60;

/// bash offers only words that begin with the typed text, and puts them into the command line unchanged. It makes words
/// of their own of the `=` in `--option=value` and of what follows.
const BASH: &str = r#"# bash completion for rexec
_rexec() {
    local word=${COMP_WORDS[COMP_CWORD]} line
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        if [[ $line == "${word#=}"* ]]; then
            printf -v line %q "$line"
            COMPREPLY+=("$line")
        fi
    done < <(rexec complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _rexec rexec
"#;

/// `_describe` reads the shown texts up to a colon, and takes the words unchanged.
const ZSH: &str = r#"#compdef rexec
# zsh completion for rexec
_rexec() {
    local line word
    local -a words_found shown
    for line in ${(f)"$(rexec complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"}; do
        word=${line%%$'\t'*}
        words_found+=("$word")
        shown+=("${${word//\\/\\\\}//:/\\:}${${line#$word}/$'\t'/:}")
    done
    _describe rexec shown words_found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _rexec "$@"; else compdef _rexec rexec; fi
"#;

const FISH: &str = r#"# fish completion for rexec
function __rexec_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -e words[1]
    rexec complete -- $words "$word" 2>/dev/null
end
complete -c rexec -f -a '(__rexec_complete)'
"#;

pub(super) fn script(shell: &str) -> Option<&'static str> {
    match shell {
        "bash" => Some(BASH),
        "zsh" => Some(ZSH),
        "fish" => Some(FISH),
        _ => None,
    }
}

/// Prints the words that may stand in place of the last of these, each with a tab and its meaning, if it has one. The
/// given words are those after `rexec`, up to the one being typed. A shell picks those that fit.
pub(super) fn complete(verbs: &[&Verb], parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    let words = parser.raw_args().into_iter().flatten();
    let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if words.first().is_some_and(|word| word == "--") {
        words.remove(0);
    }
    let offers = Place::of(verbs, &words).map(|place| place.offers(verbs)).unwrap_or_default();
    let line = |(word, meaning): &Offer| if meaning.is_empty() { word.clone() } else { format!("{word}\t{meaning}") };
    with_output(|out| written(offers.iter().try_for_each(|offer| writeln!(out, "{}", line(offer)))))
}

/// A word and its meaning.
type Offer = (String, String);

/// The help option, which every verb has.
const HELP: OptionText = OptionText::help("print the help for this command");

/// The kind of words that fit where the last one stands.
enum Place<'a> {
    Verb,
    /// A flag that acts as a verb.
    Flag,
    Option(&'a Verb),
    /// The value of the option written in the same word, as in `--signal=TERM`.
    Attached(&'a str, Values),
    Value(Values),
}

impl<'a> Place<'a> {
    fn of(verbs: &'a [&'a Verb], words: &'a [String]) -> Option<Place<'a>> {
        let (word, before) = words.split_last()?;
        let Some((first, before)) = before.split_first() else {
            return Some(if word.starts_with('-') { Place::Flag } else { Place::Verb });
        };
        let verb = verbs.iter().copied().find(|verb| verb.names().any(|name| name == *first))?;
        let (mut awaited, mut is_behind_options) = (None, false);
        for given in before {
            match awaited.take() {
                // The shell made three words of `--signal=TERM`.
                Some(option) if given == "=" => awaited = Some(option),
                Some(_) => {}
                None if given == "--" && !is_behind_options => is_behind_options = true,
                None if given.starts_with('-') && !is_behind_options => {
                    awaited = option_of(verb, given).filter(|option| option.takes_value())
                }
                // The following words are the program's.
                None if matches!(verb.words().values, Values::Program(_)) => return None,
                None => {}
            }
        }
        Some(match (awaited, word.split_once('=')) {
            _ if is_behind_options => Place::Value(verb.words().values),
            (Some(option), _) => Place::Value(option.values),
            (None, Some((name, _))) if name.starts_with("--") => Place::Attached(name, option_of(verb, name)?.values),
            (None, _) if word.starts_with('-') => Place::Option(verb),
            (None, _) => Place::Value(verb.words().values),
        })
    }

    fn offers(self, verbs: &[&Verb]) -> Vec<Offer> {
        let verbs_with = |dashes: bool| verbs.iter().filter(move |verb| verb.name().starts_with('-') == dashes);
        match self {
            Self::Verb => verbs_with(false).map(|verb| offer(verb.name(), verb.summary)).collect(),
            Self::Flag => {
                let flags = verbs_with(true).flat_map(|verb| verb.names().map(|name| offer(name, verb.summary)));
                let own = [("--help", HELP.help), ("--version", "print the version")];
                flags.chain(own.map(|(name, meaning)| offer(name, meaning))).collect()
            }
            Self::Option(verb) => {
                let offered =
                    |option: OptionText| option.names().map(|name| offer(name, option.help)).collect::<Vec<_>>();
                verb.options().into_iter().chain([HELP]).flat_map(offered).collect()
            }
            Self::Attached(name, values) => {
                let attached = |(word, meaning)| (format!("{name}={word}"), meaning);
                of_values(verbs, values).into_iter().map(attached).collect()
            }
            Self::Value(values) => of_values(verbs, values),
        }
    }
}

fn offer(word: impl Into<String>, meaning: &str) -> Offer {
    (word.into(), meaning.to_owned())
}

fn option_of(verb: &Verb, given: &str) -> Option<OptionText> {
    verb.options().into_iter().find(|option| option.is_named(given))
}

/// The known words for a value.
fn of_values(verbs: &[&Verb], values: Values) -> Vec<Offer> {
    let bare = || verbs.iter().map(|verb| offer(verb.bare(), verb.summary));
    match values {
        Values::Nothing => Vec::new(),
        Values::Words(words) | Values::Program(words) => words.iter().map(|word| offer(*word, "")).collect(),
        Values::Verbs => bare().collect(),
        Values::Topics => bare().chain(PAGES.iter().map(|page| offer(page.name, page.about))).collect(),
        Values::Runs => runs().unwrap_or_default(),
        Values::Records => records(),
        Values::Journals => journals(),
    }
}

/// The numbers of the host's commands, and the names of its services.
fn runs() -> Result<Vec<Offer>, Notice> {
    let socket = super::socket_path()?;
    let mut known = HostCalls::connect(&socket)?;
    let shown = |command: &str| escape_line(command, COMMAND_COLUMNS);
    let mut offers: Vec<Offer> =
        chosen::runs(&socket)?.iter().map(|run| (run.card.seq.to_string(), shown(&run.card.command))).collect();
    let services = KnownRuns::ask(&mut known)?.runs.into_iter().filter(|run| run.facts.background);
    let named: BTreeMap<String, String> = services
        .map(|run| run.facts.card)
        .filter(|card| service::is_name(&card.name))
        .map(|card| (card.name, shown(&card.command)))
        .collect();
    offers.extend(named);
    Ok(offers)
}

/// The newest records of what is kept for undo.
fn records() -> Vec<Offer> {
    let Ok(shelf) = Shelf::open() else { return Vec::new() };
    let record = |(name, head): &(RecordName, Head)| {
        let agent = escape_line(&head.agent, COMMAND_COLUMNS);
        (shelf.shown(name), format!("{} {agent}", record_reference::time(head)))
    };
    shelf.records.iter().take(RECORDS_MAX).map(record).collect()
}

/// The names of the newest journals.
fn journals() -> Vec<Offer> {
    let found = super::home().ok().and_then(|home| recorder::journals(&home).ok()).unwrap_or_default();
    found.into_iter().take(JOURNALS_MAX).map(|(name, _)| offer(name, "")).collect()
}
