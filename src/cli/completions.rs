//! Scripts that complete the command line of `rexec` in bash, zsh and fish, made of the table of verbs.
//!
//! Numbers of commands come from `rexec ps --json`, names of services from `rexec services --json` and names of journals
//! from `rexec --list`, asked at the moment of completion. Where no host runs there are no numbers.
//!
//! Invariant: no word that is asked for is expanded by the shell, now or when the line is run. An older host may have given
//! any name to a service.

use std::fmt::Write;

use super::help::PAGES;
use super::verb::{Values, Verb, VerbOption};

/// The shells that there is a script for.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Prints the numbers of the host's commands, and the names of services.
const RUNS: &str = concat!(
    r#"rexec ps --json 2>/dev/null | sed -n 's/^{\("v":[0-9]*,\)*"seq":\([0-9]*\).*/\2/p'; "#,
    r#"rexec services --json 2>/dev/null | sed -n 's/^{\("v":[0-9]*,\)*"seq":[0-9]*,"name":"\([^"]*\)".*/\2/p'"#
);
/// Prints the names of the journals.
const JOURNALS: &str = "rexec --list 50 2>/dev/null | cut -d' ' -f1";

/// Takes words, one a line, of which bash offers those that begin with what was typed. None of them is expanded, and each
/// is quoted, because bash puts it into the command line as it is.
const BASH_REPLY: &str = r#"_rexec_reply() {
    local line
    while IFS= read -r line; do
        if [[ $line == "$1"* ]]; then
            printf -v line %q "$line"
            COMPREPLY+=("$line")
        fi
    done
}
"#;

/// The script for this shell.
pub(super) fn script(verbs: &[&Verb], shell: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash(verbs)),
        "zsh" => Some(zsh(verbs)),
        "fish" => Some(fish(verbs)),
        _ => None,
    }
}

/// The words that a value may have, where the table knows them.
fn words(verbs: &[&Verb], values: Values) -> Vec<&'static str> {
    let bare = verbs.iter().map(|verb| verb.bare());
    match values {
        Values::Words(words) | Values::Program(words) => words.to_vec(),
        Values::Verbs => bare.collect(),
        Values::Topics => bare.chain(PAGES.iter().map(|page| page.name)).collect(),
        Values::Nothing | Values::Runs | Values::Journals => Vec::new(),
    }
}

/// A shell's command that prints the words that a value may have, if any are known.
fn printer(verbs: &[&Verb], values: Values) -> Option<String> {
    match values {
        Values::Nothing => None,
        Values::Runs => Some(RUNS.to_owned()),
        Values::Journals => Some(JOURNALS.to_owned()),
        // None of these words needs quotes.
        other => Some(format!("printf '%s\\n' {}", words(verbs, other).join(" "))),
    }
}

/// The help option, which every verb has.
const HELP: VerbOption = VerbOption::flag("help", "print the help for this command").short('h');

fn options(verb: &Verb) -> impl Iterator<Item = &VerbOption> {
    verb.options.iter().chain([&HELP])
}

/// Both spellings of an option.
fn spellings(option: &VerbOption) -> impl Iterator<Item = String> {
    option.short.map(|letter| format!("-{letter}")).into_iter().chain([format!("--{}", option.long)])
}

/// Both spellings of a verb.
fn names(verb: &Verb) -> Vec<String> {
    verb.short.map(|letter| format!("-{letter}")).into_iter().chain([verb.name.to_owned()]).collect()
}

fn bash(verbs: &[&Verb]) -> String {
    let all: Vec<&str> = verbs.iter().map(|verb| verb.name).chain(["--help", "--version"]).collect();
    let mut text = format!(
        "# bash completion for rexec\n{BASH_REPLY}\
         _rexec() {{\n    \
         local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n    \
         COMPREPLY=()\n    \
         if ((COMP_CWORD == 1)); then\n        \
         COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n        \
         return\n    \
         fi\n    \
         case ${{COMP_WORDS[1]}} in\n",
        all.join(" ")
    );
    for verb in verbs {
        let _ = writeln!(text, "    {})", names(verb).join("|"));
        let with_values: Vec<_> = verb.options.iter().filter(|option| !option.value.is_empty()).collect();
        if !with_values.is_empty() {
            text.push_str("        case $before in\n");
            for option in with_values {
                let pattern = spellings(option).collect::<Vec<_>>().join("|");
                let _ = writeln!(text, "        {pattern}) {}; return ;;", bash_reply(verbs, option.values));
            }
            text.push_str("        esac\n");
        }
        let long: Vec<String> = options(verb).map(|option| format!("--{}", option.long)).collect();
        let _ = writeln!(
            text,
            "        if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '{}' -- \"$word\")); else {}; fi ;;",
            long.join(" "),
            bash_reply(verbs, verb.values)
        );
    }
    text.push_str("    esac\n}\ncomplete -F _rexec rexec\n");
    text
}

fn bash_reply(verbs: &[&Verb], values: Values) -> String {
    match printer(verbs, values) {
        Some(printer) => format!("_rexec_reply \"$word\" < <({printer})"),
        None => ":".to_owned(),
    }
}

fn zsh(verbs: &[&Verb]) -> String {
    let mut text = format!(
        "#compdef rexec\n# zsh completion for rexec\n\
         _rexec_runs() {{ compadd -- ${{(f)\"$({RUNS})\"}} }}\n\
         _rexec_journals() {{ compadd -- ${{(f)\"$({JOURNALS})\"}} }}\n\
         _rexec() {{\n    local -a names\n    if ((CURRENT == 2)); then\n        names=(\n"
    );
    let version = ("--version", "print the version");
    let all = verbs.iter().map(|verb| (verb.name, verb.summary)).chain([("--help", HELP.help), version]);
    for (name, summary) in all {
        let _ = writeln!(text, "            {}", quoted(&format!("{name}:{}", summary.replace(':', "\\:"))));
    }
    text.push_str("        )\n        _describe 'command' names\n        return\n    fi\n");
    text.push_str("    local verb=$words[2]\n    words=(\"rexec $verb\" \"${(@)words[3,-1]}\")\n    ((CURRENT--))\n");
    text.push_str("    case $verb in\n");
    for verb in verbs {
        let _ = write!(text, "    {})\n        _arguments -S", names(verb).join("|"));
        for option in options(verb) {
            for spelling in spellings(option) {
                let help = option.help.replace(':', "\\:").replace('[', "\\[").replace(']', "\\]");
                let action = match option.value {
                    "" => String::new(),
                    value => format!(":{value}:{}", zsh_action(option.values, verbs)),
                };
                let _ = write!(text, " \\\n            {}", quoted(&format!("*{spelling}[{help}]{action}")));
            }
        }
        if verb.values != Values::Nothing {
            let _ =
                write!(text, " \\\n            {}", quoted(&format!("*:argument:{}", zsh_action(verb.values, verbs))));
        }
        text.push_str(" ;;\n");
    }
    text.push_str("    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then _rexec \"$@\"; else compdef _rexec rexec; fi\n");
    text
}

fn zsh_action(values: Values, verbs: &[&Verb]) -> String {
    match values {
        Values::Runs => "_rexec_runs".to_owned(),
        Values::Journals => "_rexec_journals".to_owned(),
        other => format!("({})", words(verbs, other).join(" ")),
    }
}

fn fish(verbs: &[&Verb]) -> String {
    let mut text = "# fish completion for rexec\ncomplete -c rexec -f\n".to_owned();
    let first = "complete -c rexec -n __fish_use_subcommand";
    for verb in verbs {
        let name = match (verb.name.strip_prefix("--"), verb.short) {
            (Some(long), short) => {
                format!("-l {long}{}", short.map(|letter| format!(" -s {letter}")).unwrap_or_default())
            }
            (None, _) => format!("-a {}", verb.name),
        };
        let _ = writeln!(text, "{first} {name} -d {}", quoted(verb.summary));
    }
    let _ = writeln!(text, "{first} -l version -s V -d 'print the version'");
    let _ = writeln!(text, "complete -c rexec -l help -s h -d {}", quoted(HELP.help));
    for verb in verbs {
        // fish knows subcommands by their words; a flag is one too where it stands first.
        let seen = format!("complete -c rexec -n '__fish_seen_subcommand_from {}'", names(verb).join(" "));
        for option in verb.options {
            let short = option.short.map(|letter| format!(" -s {letter}")).unwrap_or_default();
            let _ = writeln!(
                text,
                "{seen} -l {}{short}{} -d {}",
                option.long,
                fish_values(verbs, option),
                quoted(option.help)
            );
        }
        if let Some(printer) = printer(verbs, verb.values) {
            let _ = writeln!(text, "{seen} -a {}", quoted(&format!("({printer})")));
        }
    }
    text
}

fn fish_values(verbs: &[&Verb], option: &VerbOption) -> String {
    match printer(verbs, option.values) {
        _ if option.value.is_empty() => String::new(),
        Some(printer) => format!(" -x -a {}", quoted(&format!("({printer})"))),
        None => " -x".to_owned(),
    }
}

/// Text in single quotes, as all three shells read it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
