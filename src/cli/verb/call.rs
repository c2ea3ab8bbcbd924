//! The command line of a verb, or of rexec-host: a row for each option, the words, and the loop that reads them.
//!
//! To add an option, add its row to its verb's table. The row has the name, the help and the code, in which `q` is the call
//! that is being read, `v` the option's value, `w` a word. Help, man pages and completions are made of the rows, so they say
//! what is read. A row without code does not compile, and an option without a row is refused. A row that is
//! [`Opt::in_file`] is a key of the person's file, too.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use lexopt::{Arg, Parser};
use rexec_sh::protocol::notice::Notice;

use super::{Values, Verb};
use crate::cli::run_reference::RunReference;
use crate::cli::{sheet, when};
use crate::gate::Value;
use crate::limits;
use crate::text::nearest::nearest;

/// An option as help, man pages and completions show it.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct OptionText {
    /// Its names and the placeholder of its value, as in `-s, --signal SIGNAL`.
    term: &'static str,
    /// The words that a shell offers as its value.
    pub(in crate::cli) values: Values,
    /// A phrase without a full stop. Empty for an option that no help lists.
    pub(in crate::cli) help: &'static str,
}

impl OptionText {
    /// The option that every verb has.
    pub(in crate::cli) const fn help(help: &'static str) -> Self {
        Self { term: "-h, --help", values: Values::Nothing, help }
    }

    /// The term in the help, with the long names in one column.
    pub(in crate::cli) fn term(&self) -> String {
        let indent = if self.term.starts_with("--") { "    " } else { "" };
        format!("{indent}{}", self.term)
    }

    /// Its names, with their dashes.
    pub(in crate::cli) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.term.split([',', ' ']).filter(|word| word.starts_with('-'))
    }

    pub(in crate::cli) fn is_named(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// Its long name without dashes.
    fn key(&self) -> &'static str {
        self.names().find_map(|name| name.strip_prefix("--")).unwrap_or_default()
    }

    pub(in crate::cli) fn takes_value(&self) -> bool {
        self.term.split(' ').next_back().is_some_and(|word| !word.starts_with('-'))
    }
}

/// A row: an option, and what it does to the call of type `C` that is being read. `term` is what the help shows, as in
/// `-s, --signal SIGNAL`.
pub(in crate::cli) struct Opt<C> {
    text: OptionText,
    take: Take<C>,
    /// The default as a file writes it, if the option may stand in a file.
    in_file: Option<&'static str>,
}

enum Take<C> {
    Flag(fn(&mut C)),
    Value(fn(&mut C, &mut Given<'_>)),
    Name(fn(&mut C, &mut Given<'_>)),
}

impl<C> Opt<C> {
    pub(in crate::cli) const fn flag(term: &'static str, set: fn(&mut C), help: &'static str) -> Self {
        Self { text: OptionText { term, values: Values::Nothing, help }, take: Take::Flag(set), in_file: None }
    }

    pub(in crate::cli) const fn value(
        term: &'static str,
        take: fn(&mut C, &mut Given<'_>),
        help: &'static str,
    ) -> Self {
        Self { text: OptionText { term, values: Values::Nothing, help }, take: Take::Value(take), in_file: None }
    }

    /// An option that takes a name. If an option stands in the place of the name, the name is missing.
    pub(in crate::cli) const fn name(term: &'static str, take: fn(&mut C, &mut Given<'_>), help: &'static str) -> Self {
        Self { text: OptionText { term, values: Values::Nothing, help }, take: Take::Name(take), in_file: None }
    }

    /// An option that takes one of these words, see [`Given::word`].
    pub(in crate::cli) const fn word(
        term: &'static str,
        words: &'static [&'static str],
        take: fn(&mut C, &mut Given<'_>),
        help: &'static str,
    ) -> Self {
        Self { text: OptionText { term, values: Values::Words(words), help }, take: Take::Value(take), in_file: None }
    }
}

impl<C> Opt<C> {
    /// The option may stand in a file, under its long name. `default` is the value that it has otherwise; empty for
    /// none.
    pub(in crate::cli) const fn in_file(self, default: &'static str) -> Self {
        Self { in_file: Some(default), ..self }
    }

    /// What it was given, under the name that was written.
    fn given<'a>(&self, verb: &'a Verb, name: &'a str, value: OsString) -> Given<'a> {
        let words = if let Values::Words(words) = self.text.values { words } else { &[] };
        Given { verb, name, words, value, refused: None }
    }
}

/// The option of every verb that prints JSON.
pub(in crate::cli) const fn json<C>(set: fn(&mut C)) -> Opt<C> {
    Opt::flag("--json", set, "print JSON, one object in each line")
}

/// The value that an option was given, or a word behind the verb.
///
/// A method that reads it returns `None` if it is not valid, and keeps the notice. The loop then refuses the call, so the
/// code of a row need not look.
pub(in crate::cli) struct Given<'a> {
    verb: &'a Verb,
    /// The option's name as it was written.
    name: &'a str,
    /// The words that the option takes, if it takes no others.
    words: &'static [&'static str],
    value: OsString,
    refused: Option<Notice>,
}

impl Given<'_> {
    pub(in crate::cli) fn verb(&self) -> &Verb {
        self.verb
    }

    pub(in crate::cli) fn raw(&self) -> OsString {
        self.value.clone()
    }

    /// What is not UTF-8 in it is replaced.
    pub(in crate::cli) fn text(&self) -> String {
        self.value.to_string_lossy().into_owned()
    }

    /// The option's name as it was written.
    pub(in crate::cli) fn name(&self) -> &str {
        self.name
    }

    pub(in crate::cli) fn refuse(&mut self, notice: Notice) {
        self.refused = Some(notice);
    }

    pub(in crate::cli) fn check<T>(&mut self, read: Result<T, Notice>) -> Option<T> {
        read.map_err(|notice| self.refuse(notice)).ok()
    }

    /// Refuses the value if nothing was read. `wanted` says what is right.
    pub(in crate::cli) fn or_refuse<T>(&mut self, read: Option<T>, wanted: &str) -> Option<T> {
        let notice = || self.verb.not_valid(self.name, &self.text(), wanted);
        let read = read.ok_or_else(notice);
        self.check(read)
    }

    pub(in crate::cli) fn parsed<T>(&mut self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.or_refuse(parse(&self.text()), wanted)
    }

    /// The value as `parse` reads it, which knows the option's words.
    pub(in crate::cli) fn word<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let word = self.text();
        let read = parse(&word).ok_or_else(|| self.verb.none_of(self.name, &word, self.words));
        self.check(read)
    }

    /// The one of the option's words that it is.
    pub(in crate::cli) fn known_word(&mut self) -> Option<&'static str> {
        let words = self.words;
        self.word(|given| words.iter().copied().find(|word| *word == given))
    }

    /// A text that is not empty.
    pub(in crate::cli) fn filled(&mut self, wanted: &str) -> Option<String> {
        self.parsed(wanted, |text| Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    pub(in crate::cli) fn agent(&mut self) -> Option<String> {
        let agent = |text: &str| Some(text.to_owned()).filter(|agent| !agent.trim().is_empty());
        self.parsed("the name of an agent, as in --agent codex", agent)
    }

    /// A number of seconds, or numbers with units.
    pub(in crate::cli) fn time(&mut self) -> Option<Duration> {
        let most = limits::TIMEOUT_MAX.as_secs() / 3_600;
        self.parsed(&format!("seconds as 90, or 10m or 1.5h, up to {most}h"), |text| {
            when::seconds(text).filter(|time| *time <= limits::TIMEOUT_MAX)
        })
    }

    /// A length of time, as in `30s`.
    pub(in crate::cli) fn span(&mut self) -> Option<Duration> {
        self.parsed(when::SPANS, when::seconds)
    }

    /// A time of the human's clock, milliseconds since 1970.
    pub(in crate::cli) fn moment(&mut self) -> Option<i64> {
        self.parsed(when::FORMS, |text| when::moment(text, sheet::clock()))
    }

    /// A number of lines.
    pub(in crate::cli) fn lines(&mut self) -> Option<usize> {
        self.parsed("a number of lines", |text| text.parse().ok())
    }

    pub(in crate::cli) fn port(&mut self) -> Option<u16> {
        let port = |text: &str| text.parse().ok().filter(|&port| port > 0);
        self.parsed("a port is a number from 1 to 65535", port)
    }

    /// A run of the present or the past.
    pub(in crate::cli) fn reference(&mut self) -> Option<RunReference> {
        self.check(RunReference::of(&self.value))
    }
}

/// The words behind the options, as help, man pages and completions show them.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct WordsText {
    /// As in the usage line.
    pub(in crate::cli) usage: &'static str,
    /// The words that a shell offers.
    pub(in crate::cli) values: Values,
}

/// The words behind the options, and what they do to the call that is being read.
pub(in crate::cli) struct Words<C> {
    text: WordsText,
    most: usize,
    dashes: Dashes,
    take: fn(&mut C, &mut Given<'_>),
}

/// The words that begin with a dash and are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dashes {
    None,
    /// Those that name a run, as `-1`.
    Runs,
    /// All behind the first word.
    BehindFirst,
    All,
}

impl<C> Words<C> {
    pub(in crate::cli) const NONE: Self = Self::new(0, "", Values::Nothing, |_, _| {});

    const fn new(most: usize, usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self { text: WordsText { usage, values }, most, dashes: Dashes::None, take }
    }

    pub(in crate::cli) const fn one(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self::new(1, usage, values, take)
    }

    pub(in crate::cli) const fn many(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self::new(usize::MAX, usage, values, take)
    }

    /// A word that names a run, so `-1` is one.
    pub(in crate::cli) const fn run(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self { dashes: Dashes::Runs, ..Self::one(usage, values, take) }
    }

    pub(in crate::cli) const fn runs(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self { dashes: Dashes::Runs, ..Self::many(usage, values, take) }
    }

    /// A program and its arguments. Options stand before them.
    pub(in crate::cli) const fn line(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self { dashes: Dashes::BehindFirst, ..Self::many(usage, values, take) }
    }

    /// All words, also those that look like options.
    pub(in crate::cli) const fn all(usage: &'static str, values: Values, take: fn(&mut C, &mut Given<'_>)) -> Self {
        Self { dashes: Dashes::All, ..Self::many(usage, values, take) }
    }

    /// The next word if it could be taken for an option and is none. `count` words came before it.
    fn dashed(&self, count: usize, parser: &mut Parser) -> Option<OsString> {
        let names_run = |word: &OsStr| word.to_str().and_then(RunReference::parse).is_some();
        parser.try_raw_args()?.next_if(|word| match self.dashes {
            Dashes::None => false,
            // `--lines=2:8` is an option, although a session could have a name like its beginning.
            Dashes::Runs => {
                let bytes = word.as_encoded_bytes();
                bytes.starts_with(b"-") && !bytes.starts_with(b"--") && names_run(word)
            }
            Dashes::BehindFirst => count > 0,
            Dashes::All => true,
        })
    }
}

/// The options and words of a verb, and its function.
pub(in crate::cli) struct Call<C: 'static> {
    pub(in crate::cli) options: &'static [Opt<C>],
    pub(in crate::cli) words: Words<C>,
    /// Does it; returns the exit code.
    pub(in crate::cli) run: fn(C) -> Result<u8, Notice>,
}

/// The call of a verb that has no options and takes one word, which may begin with a dash, as in `rexec help --list`.
pub(in crate::cli) const fn one_word(
    usage: &'static str,
    values: Values,
    run: fn(Option<String>) -> Result<u8, Notice>,
) -> Call<Option<String>> {
    let word = Words::one(usage, values, |q: &mut Option<String>, w| *q = Some(w.text()));
    Call { options: &[], words: Words { dashes: Dashes::All, ..word }, run }
}

/// A [`Call`] of any type.
pub(in crate::cli) trait AnyCall {
    /// All options, also those that no help lists.
    fn options(&self) -> Vec<OptionText>;
    fn words(&self) -> WordsText;
    /// Reads the rest of the command line and does what it says; returns the exit code, or `None` if help is asked for.
    fn run(&self, verb: &Verb, parser: &mut Parser) -> Result<Option<u8>, Notice>;
}

impl<C: Default> Call<C> {
    /// Reads the rest of the command line; `None` if it asks for help.
    pub(in crate::cli) fn read(&self, verb: &Verb, parser: &mut Parser) -> Result<Option<C>, Notice> {
        self.read_into(verb, C::default(), parser)
    }
}

impl<C: Default> AnyCall for Call<C> {
    fn options(&self) -> Vec<OptionText> {
        self.options.iter().map(|row| row.text).collect()
    }

    fn words(&self) -> WordsText {
        self.words.text
    }

    fn run(&self, verb: &Verb, parser: &mut Parser) -> Result<Option<u8>, Notice> {
        self.read(verb, parser)?.map(self.run).transpose()
    }
}

impl<C> Call<C> {
    /// The options that may stand in a file: the key of each, and its default as it is written there.
    pub(in crate::cli) fn keys(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.options.iter().filter_map(|row| Some((row.text.key(), row.in_file?)))
    }

    /// Does to a call what a line of a file says.
    pub(in crate::cli) fn set(&self, verb: &Verb, call: &mut C, key: &str, value: &Value) -> Result<(), Notice> {
        let refused = |problem: String, hint: String| Err(Notice::failed(problem, hint));
        let Some(row) = self.options.iter().find(|row| row.text.key() == key) else {
            let keys: Vec<&str> = self.keys().map(|(key, _)| key).collect();
            let hint = nearest(key, &keys).map_or_else(|| keys.join(", "), |meant| format!("did you mean {meant}?"));
            return refused(format!("there is no option `{key}`"), hint);
        };
        if row.in_file.is_none() {
            let hint = format!("{} --{key}", verb.program());
            return refused(format!("`{key}` is for the command line alone"), hint);
        }
        let text = match (&row.take, value) {
            (Take::Flag(set), Value::Flag(is_set)) => {
                if *is_set {
                    set(call);
                }
                return Ok(());
            }
            (Take::Flag(_), _) => return refused(format!("`{key}` is true or false"), format!("{key} = true")),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Integer(number)) => number.to_string(),
            _ => return refused(format!("`{key}` is a text or a number"), format!("{} --help", verb.program())),
        };
        let (Take::Value(take) | Take::Name(take)) = row.take else { return Ok(()) };
        let mut given = row.given(verb, key, text.into());
        take(call, &mut given);
        given.refused.map_or(Ok(()), Err)
    }

    /// Reads the rest of the command line, which changes a call; `None` if it asks for help.
    pub(in crate::cli) fn read_into(&self, verb: &Verb, mut call: C, parser: &mut Parser) -> Result<Option<C>, Notice> {
        let mut count = 0;
        let mut attached = self.attached(parser);
        loop {
            let known = attached.take().or_else(|| self.words.dashed(count, parser).map(Arg::Value));
            let argument = match known {
                Some(argument) => argument,
                None => match parser.next().map_err(|error| verb.wrong(&error))? {
                    Some(argument) => argument,
                    None => return Ok(Some(call)),
                },
            };
            let name = match argument {
                Arg::Value(value) if count < self.words.most => {
                    let mut word = Given { verb, name: "", words: &[], value, refused: None };
                    (self.words.take)(&mut call, &mut word);
                    word.refused.map_or(Ok(()), Err)?;
                    count += 1;
                    continue;
                }
                Arg::Value(word) => return Err(verb.too_much(&word.to_string_lossy())),
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Short(letter) => format!("-{letter}"),
                Arg::Long(long) => format!("--{long}"),
            };
            let Some(row) = self.options.iter().find(|row| row.text.is_named(&name)) else {
                return Err(verb.wrong(&lexopt::Error::UnexpectedOption(name)));
            };
            let next = parser.try_raw_args().and_then(|words| words.peek().map(OsStr::to_owned));
            let next_is = |is: fn(&OsStr) -> bool| next.as_deref().is_some_and(is);
            match row.take {
                Take::Flag(set) => set(&mut call),
                Take::Name(_) if next_is(|word| word.as_encoded_bytes().starts_with(b"-")) => {}
                Take::Value(_) if next_is(|word| word == "-h" || word == "--help") => return Ok(None),
                Take::Name(take) | Take::Value(take) => {
                    let value = parser.value().map_err(|error| verb.wrong(&error))?;
                    let mut given = row.given(verb, &name, value);
                    take(&mut call, &mut given);
                    given.refused.map_or(Ok(()), Err)?;
                }
            }
        }
    }

    /// The word attached to a flag that acts as a verb, as in `--list=3`. It may be the letter of an option, as in `-pf`.
    fn attached(&self, parser: &mut Parser) -> Option<Arg<'static>> {
        let word = if self.words.most == 1 { parser.optional_value()? } else { return None };
        let letter = word.to_str().and_then(|word| word.chars().next()).filter(|letter| {
            self.options.iter().any(|row| row.text.is_named(&format!("-{letter}"))) && word.len() == 1
        });
        Some(letter.map_or(Arg::Value(word), Arg::Short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::verb::Group;
    use crate::cli::{host, verbs};

    #[derive(Debug, Default, PartialEq)]
    struct TestCall {
        is_loud: bool,
        ports: Vec<u16>,
        words: Vec<String>,
    }

    const CALL: Call<TestCall> = Call {
        options: &[
            Opt::flag("-l, --loud", |q| q.is_loud = true, "speak up"),
            Opt::value("-p, --port PORT", |q, v| q.ports.extend(v.port()), "a port; may be repeated"),
            Opt::word("--how WORD", &["fast", "slow"], |q, v| q.words.extend(v.known_word().map(str::to_owned)), ""),
        ],
        words: Words::runs("N...", Values::Runs, |q, w| q.words.push(w.text())),
        run: |_| Ok(0),
    };
    const VERB: Verb =
        Verb { term: "test", group: Group::Own, summary: "", text: "", codes: &[], examples: &[], call: &CALL };

    fn read(words: &[&str]) -> Result<Option<TestCall>, String> {
        CALL.read(&VERB, &mut Parser::from_args(words))
            .map_err(|notice| format!("{} ({})", notice.problem, notice.hint))
    }

    #[test]
    fn options_and_words_stand_in_any_order() {
        let call = |is_loud, ports: &[u16], words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Ok(Some(TestCall { is_loud, ports: ports.to_vec(), words }))
        };
        assert_eq!(read(&[]), call(false, &[], &[]));
        assert_eq!(
            read(&["1", "-l", "--port", "80", "-p81", "--port=82", "2"]),
            call(true, &[80, 81, 82], &["1", "2"])
        );
        assert_eq!(read(&["-lp", "80", "-1", "--how", "slow"]), call(true, &[80], &["-1", "slow"]));
        assert_eq!(read(&["--", "-l", "--help"]), call(false, &[], &["-l", "--help"]));
        for help in [&["--help"][..], &["1", "-lh"], &["--port", "--help"], &["-p", "-h"]] {
            assert_eq!(read(help), Ok(None), "{help:?}");
        }
    }

    #[test]
    fn a_call_that_is_refused_names_what_was_written() {
        for (words, problem) in [
            (&["--lou"][..], "there is no option `--lou` (did you mean --loud? rexec test --help shows all)"),
            (&["-x"], "there is no option `-x` (rexec test --help shows the commands and options)"),
            (
                &["--loud=3"],
                "--loud takes no value, but was given `3` (rexec test --help shows the commands and options)",
            ),
            (&["1", "-p"], "-p needs a value (rexec test --help shows the commands and options)"),
            (&["-p", "0"], "test -p: `0` is not valid (a port is a number from 1 to 65535)"),
            (&["--port=x", "-x"], "test --port: `x` is not valid (a port is a number from 1 to 65535)"),
            (&["--port=80:1"], "test --port: `80:1` is not valid (a port is a number from 1 to 65535)"),
            (&["--how", "fst"], "test --how: `fst` is not valid (did you mean fast?)"),
            (&["--how="], "test --how: `` is not valid (one of fast, slow)"),
        ] {
            assert_eq!(read(words), Err(problem.to_owned()));
        }
    }

    #[test]
    fn each_row_has_one_long_name_and_no_name_is_there_twice() {
        for verb in verbs::VERBS.iter().copied().chain([&host::PROGRAM]) {
            let mut known = vec!["-h", "--help"];
            for option in verb.call.options() {
                let names: Vec<_> = option.names().collect();
                assert_eq!(
                    names.iter().filter(|name| name.starts_with("--")).count(),
                    1,
                    "{}: {option:?}",
                    verb.name()
                );
                for name in names {
                    assert!(!known.contains(&name), "{} has {name} twice", verb.name());
                    known.push(name);
                }
            }
        }
    }
}
