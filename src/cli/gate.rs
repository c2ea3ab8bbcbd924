//! `rexec gate`: tries rules on commands, also on those of the past, and prints the packs. Nothing is run.

mod learn;
mod learned;
mod past;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

pub(super) use past::preview;

use super::accepted;
use super::columns::{self, Column};
use super::config_file::{ConfigFile, own_path};
use super::explain::{VIA_COLUMNS, WORD_COLUMNS, lossy, state};
use super::look::Look;
use super::project_file::{project_of, rules_in};
use super::told;
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use crate::gate::{
    Action, Cause, Facts, Gate, Judged, LearnedList, PROJECT_FILE, Reach, Verdict, load, packs, shown_leaf,
};
use crate::host::read_learned;
use crate::journal::record::{DAY_BYTES, timestamp};
use crate::script::{Leaf, Via};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The exit codes of `test` and `explain`, beside 0 for a command that is allowed.
const ASKS: u8 = 3;
const DENIES: u8 = 4;

pub(super) const VERB: Verb = Verb {
    term: "gate",
    group: Group::Own,
    summary: "try the rules for agents' commands, also on past ones",
    text: "\
Your rules say which commands of agents run, are refused, or wait for your yes.
With mode = \"watch\" rexec-host only shows what they say of each command that
it runs, and the journal keeps it; with mode = \"enforce\" they hold. Until you
accept a change of the file, what it said before holds, too: rexec help config.
Without a file, nothing is judged.

  rexec gate test TEXT  says what the rules say of a text for the shell
  rexec gate explain N  says the same of a past command, as it was called
  rexec gate replay     says it of all past commands that they would stop
  rexec gate learn      prints rules that past commands suggest, as a file
  rexec gate pack NAME  prints a pack: git, files, database, publish, cloud,
                        kill
  rexec gate learned    lists what you always allow; rexec gate forget N takes
                        one off, forget --all takes all

The rules stand in ~/.config/rexec/config.toml ($XDG_CONFIG_HOME), in a subset
of TOML: tables, texts, numbers, true and false, arrays of texts, comments.
rexec init writes the first one, with packs that watch.

  [gate]
  mode = \"watch\"               # or enforce
  ask_wait = \"60s\"             # how long an ask waits for you
  away = \"deny\"                # an ask while nobody is there; or wait
  packs = [\"git\", \"files\"]      # rules that come with rexec, behind your own
  opaque = \"allow\"              # what is not known to run; foreign: other code
  perhaps = \"ask\"               # where a stricter rule may match or not
  wrappers = [\"corp-run\"]       # programs of yours that run their arguments

  [[rule]]
  name = \"push-force\"
  do = \"deny\"                   # allow, ask or deny
  run = \"git push\"              # the program, then its operands in order
  with = [\"-f|--force|+*\"]      # one part of each must be there
  why = \"Push a new branch and open a pull request.\"
  yes = [\"git push -uf origin\"] # checked when the file is read
  no = [\"git push origin main\"]

  [program.deploy]              # its options with a value in the next word
  values = [\"-t\", \"--target\"]

A command that is denied does not run at all. Its agent gets 126 and a line
with the rule's why. One that is asked about is held: the console's status line
has its keys, and rexec answer says yes or no from elsewhere. After ask_wait
(in a rule: wait) it is refused, with the word that this is not a no; so it is
at once while nobody is there (away; see --prompts). You can still say yes for
ten minutes: rexec ps --asks, rexec answer. --notify tells you of both. The
agent learns after 2 s that it waits for its user. Some agents kill a command
that stays silent: mini-swe-agent after 30 s, opencode and Qwen Code after
120 s, Gemini CLI after 300 s. The wait is over 10 s before that.

The key a on the console, and rexec answer N always, save what would allow the
program that asks, for this agent in this project, for 30 days, and show it
first. Of git, npm, docker and their like that is the subcommand, as git push,
but not with the words about which a pack asks, nor with options that lead to
another place, as git -C. Everything else is allowed word by word, in the same
directory. Not offered is what is not known in full, reads from a pipe, is
redirected, or may have a secret in it. Only the rule that asked is lifted, and
nothing that denies. The file is learned.toml in the journal's directory; a
host reads it when it starts, when you press a, and when you call rexec answer
or rexec gate forget. rexec gate test counts it for commands of --agent.

Each program of the text is judged by itself, also behind sudo, in $(...) and
in the code of bash -c, as in rexec explain. The strictest rule that matches
counts, up to the first that allows; so write exceptions above what they
except. A rule with writes alone also counts behind one that allows, unless
that one has writes, too. The command gets the strictest verdict of its
programs. Without a rule, all is allowed.

Further conditions of a rule:

  without  the other way round than with
  outside  an operand or a written file lies in none of these directories;
  inside   ... in one of them: [\"$PROJECT\", \"~/x\", \"/tmp\"], or its path ends
           so: [\".git\"]. Your home and what is above it always lie outside
  writes   files that it writes: [\"/etc\", \"*.lock\"]
  kills    \"others\": it signals processes of others: see below
  via      what leads to it, as \"sudo|ssh\"
  agent    the agent, session its session, cwd the directory it runs in
  lenient  true, as in packs: what is not known holds nothing but a path that
           may be /, the home or empty; --help passes, and outside and inside
           do not look at redirections

A git project can have rules of its own, in .rexec.toml at its top. They only
make yours stricter, and count once you trust the file, in all that lies below
it, also in a git project of its own there: rexec help trust. Of a command that
begins elsewhere and goes there, as in cd PROJECT && make, they count for what
it does there, as far as its text tells the directory; symbolic links are not
followed. $PROJECT is then the project whose rules they are. test and explain
ask all rules that a host would ask, replay and learn those of config.toml.

Of SQL in psql, mysql, sqlite3 and their like, each statement is an operand, in
capitals, with one blank between words and without comments and quoted text.

A * is any text, and | stands between words of which one must match. Where a
value is not known, as in git push $x, the answer is perhaps; but $?, $$, $#,
${#x} and $((...)) are digits, and no other word. A rule that allows needs to
be sure. A lenient one then allows, and is named. Paths are compared as they
are written, without the disk; dir/* is dir. For $PROJECT it looks for the git
project that --cwd is in. Without one, --cwd stands for it.

What runs by ssh, docker exec, kubectl exec and their like has the paths of
another machine. Whether those are the directories that outside, inside, writes
and cwd name is not known; the end of a path, as .git, counts there, too. A
lenient rule takes them for paths of this machine: rm -rf /data in a container
asks, because it may be a volume.

kills = \"others\" has the processes looked up that a command would signal,
before it runs, by the system's pgrep, pidof, fuser and lsof. Others' are:
rexec-host and its guards; the agent that runs the command, and all that this
runs below; other agents; the commands of other agents and sessions. The row
names one of them. Known are:

  kill 12, kill -9 -- -12, kill -1       numbers, groups, all of them
  pkill node, pkill -f vite, pkill -u ann, pkill -P 12    as pgrep finds them
  killall node, killall -r 'no.e', killall -u ann         by name, user
  fuser -k 3000/tcp, fuser -k -n tcp 3000, fuser -k FILE
  kill $(pgrep node), pgrep node | xargs kill, kill $(pidof node)
  kill $(lsof -t -i:3000), lsof -ti :3000 | xargs kill, kill $(fuser 80/tcp)
  ps aux | grep node | awk '{print $2}' | xargs kill

Of skill, killall5, kill $(cat FILE) and patterns with unknown values it is not
known whom they hit: perhaps. What the shell itself has started is never
others': $!, $$, %1, 0. So is what kill -0 looks at. Not seen: systemctl,
docker stop, and programs of your own that end others. test, explain and replay
look at no process: perhaps.

replay lists the commands of the journals on which the rules of --rules and
your own ones differ; without --rules, those on which your own rules and none
differ. Commands that ran in an agent's sandbox are left out: no rule reaches
those. Of variables it knows what the journal keeps, as in rexec rerun.

learn counts which subcommands of git, docker, npm, gh and their like your
agents use. It allows what at least three commands did, and asks about the
rest of the tool; where that would have asked about more than 1 of 300
commands, the rule stands in a comment. It asks about what you stopped twice
and every second time. Above each rule stand its commands, and the last lines
say what all of it would have done. None allows what a pack may ask about, nor
a shell, code, or what runs or fetches other programs. Put the rules behind
your own:

  rexec gate learn >>~/.config/rexec/config.toml

Not seen: scripts, make and npm run, git's hooks and stored aliases, copied
programs, code of other languages, and what an agent does without a shell. The
host judges no command that runs in its agent's sandbox, nor what is typed for
one that runs; rexec doctor names agents of which it sees none. Of a text of
more than 1 MiB, 4,096 programs or 40 levels, and of one that takes longer than
10 s to read, the rest counts as opaque, and the console says so even where
that is allowed. The rules guard against accidents of an agent that cooperates;
they are no sandbox.
",
    codes: &[
        (1, "the rules cannot be read, no such command; replay: none differs; learn: no rule"),
        (ASKS, "test, explain: a rule asks"),
        (DENIES, "test, explain: a rule denies"),
    ],
    examples: &[
        "rexec gate test 'cd web && git push -f'",
        "rexec gate pack git >git.toml",
        "rexec gate test --rules git.toml 'git clean -fd'",
        "rexec gate replay --rules git.toml --since 2d",
    ],
    call: &Call::<GateCall> {
        options: &[
            Opt::value(
                "--agent NAME",
                |q, v| q.agent = v.agent(),
                "test: as a command of this agent; replay, learn: of it alone",
            ),
            Opt::value("--cwd DIR", |q, v| q.directory = Some(v.raw().into()), "test: as a command in this directory"),
            Opt::value("--rules FILE", |q, v| q.file = Some(v.raw().into()), "with the rules of this file"),
            Opt::value(
                "--since TIME",
                |q, v| q.since = v.moment(),
                "replay, learn: commands that began then or later (default: 14d)",
            ),
            Opt::flag("--all", |q| q.is_all = true, "forget: all that you always allow"),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("ACTION [WORD]", Values::Words(&ACTIONS), |q, w| {
            q.words.push(w.raw());
        }),
        run: |call| {
            let words: Vec<&OsStr> = call.words.iter().map(OsString::as_os_str).collect();
            match words[..] {
                [action, ref rest @ ..] if action == "test" => test(&call, one("a command", rest)?),
                [action, ref rest @ ..] if action == "explain" => {
                    past::explain(&call, one("the number of a command, as in rexec gate explain 44", rest)?)
                }
                [action, more, ..] if ["replay", "learn", "learned"].iter().any(|own| action == *own) => {
                    Err(VERB.too_much(&more.to_string_lossy()))
                }
                [action] if action == "replay" => past::replay(&call),
                [action] if action == "learn" => learn::learn(&call),
                [action] if action == "learned" => learned::list(call.is_json),
                [action, ref rest @ ..] if action == "forget" => learned::forget(call.is_all, rest),
                [action, ref rest @ ..] if action == "pack" => pack(one("the name of a pack", rest)?),
                [action, ..] => Err(VERB.none_of("ACTION", &action.to_string_lossy(), &ACTIONS)),
                [] => Err(VERB.missing("test, explain, replay, learn, pack, learned or forget")),
            }
        },
    },
};

const ACTIONS: [&str; 7] = ["test", "explain", "replay", "learn", "pack", "learned", "forget"];

#[derive(Default)]
struct GateCall {
    words: Vec<OsString>,
    agent: Option<String>,
    directory: Option<PathBuf>,
    file: Option<PathBuf>,
    /// Milliseconds since 1970.
    since: Option<i64>,
    is_all: bool,
    is_json: bool,
}

/// The one word that an action takes.
fn one<'w>(what: &str, words: &[&'w OsStr]) -> Result<&'w OsStr, Notice> {
    match words {
        [] => Err(VERB.missing(what)),
        [word] => Ok(word),
        [_, more, ..] => Err(VERB.too_much(&more.to_string_lossy())),
    }
}

fn pack(name: &OsStr) -> Result<u8, Notice> {
    let name = name.to_string_lossy();
    super::say(packs::text(&name).ok_or_else(|| VERB.none_of("NAME", &name, &packs::NAMES))?)
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct GateForm {
    r#do: &'static str,
    why: String,
    leaves: Vec<JudgedForm>,
}

/// A program and its verdict, in `--json`.
#[derive(Debug, Serialize)]
struct JudgedForm {
    program: String,
    arguments: Vec<String>,
    state: &'static str,
    via: Vec<String>,
    r#do: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    why: String,
}

fn test(call: &GateCall, text: &OsStr) -> Result<u8, Notice> {
    let directory = match &call.directory {
        Some(directory) => std::path::absolute(directory),
        None => env::current_dir(),
    };
    let directory = directory.map_err(|error| {
        Notice::failed(format_args!("the directory is not known: {}", reason(&error)), "name it with --cwd")
    })?;
    let project = project_of(&directory);
    let gates = gates(call.file.as_deref(), &directory)?;
    let home = variable(b"HOME").filter(|home| !home.is_empty());
    let today = timestamp(SystemTime::now());
    let facts = Facts {
        agent: call.agent.as_deref(),
        session: None,
        directory: Some(directory.as_os_str().as_bytes()),
        project: project.map(|project| project.as_os_str().as_bytes()),
        home: home.as_deref(),
        processes: None,
        today: today.get(..DAY_BYTES),
    };
    let leaves = |gate: &Gate| gate.leaves(text.as_bytes(), &variable);
    print(&Judged::of_all(&gates, leaves, &facts), call.is_json)
}

/// A variable of the own environment.
fn variable(name: &[u8]) -> Option<Vec<u8>> {
    env::var_os(OsStr::from_bytes(name)).map(OsStringExt::into_vec)
}

/// Prints the verdicts on a command, and returns the exit code for its own.
fn print(judged: &Judged<'_>, is_json: bool) -> Result<u8, Notice> {
    let (action, why) = (judged.action(), judged.why());
    super::with_output(|out| match is_json {
        true => super::put_json(std::iter::once(&form(action, &why, &judged.leaves, &judged.verdicts)), out),
        false => {
            let table = table(&judged.leaves, &judged.verdicts, &Look::of_output());
            let why = escape_line(&why, WORD_COLUMNS * 10);
            super::written(out.write_all(format!("{table}{}: {why}\n", action.word()).as_bytes()))
        }
    })?;
    Ok(match action {
        Action::Allow => exit_code::SUCCESS,
        Action::Ask => ASKS,
        Action::Deny => DENIES,
    })
}

/// What the person always allows.
fn learned_list() -> LearnedList {
    match super::home().ok().map(|home| read_learned(&home)) {
        Some(Ok(list)) => list,
        Some(Err(problem)) => {
            told::put(Notice::failed(problem, "mend it, or rexec gate forget --all"));
            LearnedList::default()
        }
        None => LearnedList::default(),
    }
}

/// The rules of a file, or those of the person where they have some.
fn rules(file: Option<&Path>) -> Result<Gate, Notice> {
    Ok(config_file(file)?.map_or_else(Gate::default, |file| file.loaded.gate))
}

/// The rules of a file, or all that a host asks about a command in this directory: the person's, those that they have
/// accepted before, and what they have trusted of the projects' that it lies in, or that a command goes into from there.
fn gates(file: Option<&Path>, directory: &Path) -> Result<Vec<Gate>, Notice> {
    let own = config_file(file)?;
    let mut gates: Vec<Gate> = own.iter().map(|file| file.loaded.gate.clone()).collect();
    if file.is_none() {
        gates.extend(accepted_before(own.as_ref())?);
        let settings = Gate::strictest(&gates).cloned().unwrap_or_default();
        for (path, text) in accepted::all()?.into_iter().filter(|(path, _)| path.ends_with(PROJECT_FILE)) {
            let top = path.parent().unwrap_or(&path);
            let reach = if directory.starts_with(top) { Reach::All } else { Reach::Entering };
            let rules = match rules_in(&path, &text) {
                Err(_) if reach == Reach::Entering => continue,
                rules => rules?,
            };
            gates.push(settings.for_project(top.as_os_str().as_bytes(), rules, reach));
        }
    }
    if gates.is_empty() {
        gates.push(Gate::default());
    }
    if file.is_none() {
        let learned = learned_list();
        gates.iter_mut().for_each(|gate| gate.learned = learned.clone());
    }
    Ok(gates)
}

/// What the person has accepted of their file, if that has changed since.
fn accepted_before(own: Option<&ConfigFile>) -> Result<Option<Gate>, Notice> {
    let Some(path) = own_path() else { return Ok(None) };
    let accepted = accepted::text_of(&path)?.filter(|text| own.is_none_or(|own| own.text != *text));
    let name = format!("accepted {}", path.file_name().unwrap_or_default().to_string_lossy());
    // A host goes on without one that it cannot read.
    Ok(accepted.and_then(|text| load(&text, &name).ok()).map(|loaded| loaded.gate))
}

fn config_file(named: Option<&Path>) -> Result<Option<ConfigFile>, Notice> {
    match named {
        Some(path) => ConfigFile::named(path).map(Some),
        None => ConfigFile::own(),
    }
}

fn form(action: Action, why: &str, leaves: &[Leaf], verdicts: &[Verdict<'_>]) -> GateForm {
    let judged = |(leaf, verdict): (&Leaf, &Verdict<'_>)| JudgedForm {
        program: lossy(&leaf.program),
        arguments: leaf.arguments.iter().map(|argument| lossy(&argument.shown())).collect(),
        state: state(leaf),
        via: leaf.via.iter().map(Via::to_string).collect(),
        r#do: verdict.action.word(),
        rule: verdict.cause.rule().map(ToString::to_string),
        why: verdict.sentence(&shown_leaf(leaf)),
    };
    GateForm { r#do: action.word(), why: why.to_owned(), leaves: leaves.iter().zip(verdicts).map(judged).collect() }
}

/// A row for each program: its verdict, the rule, what leads to it, and its words.
fn table(leaves: &[Leaf], verdicts: &[Verdict<'_>], look: &Look) -> String {
    let some = |text: String| if text.is_empty() { look.dash().to_owned() } else { escape_line(&text, WORD_COLUMNS) };
    let vias = |leaf: &Leaf| leaf.via.iter().map(Via::to_string).collect::<Vec<_>>().join(", ");
    let rule = |verdict: &Verdict<'_>| match verdict.cause {
        Cause::Learned(_) => "always".to_owned(),
        cause => cause.rule().map(ToString::to_string).unwrap_or_default(),
    };
    let column = |name, rank, cells| Column { name, is_number: false, rank, cells };
    let mut columns = vec![
        column("VERDICT", 0, verdicts.iter().map(|verdict| verdict.action.word().to_owned()).collect()),
        column("RULE", 1, verdicts.iter().map(|verdict| some(rule(verdict))).collect()),
        column("VIA", 2, leaves.iter().map(|leaf| look.cut(&some(vias(leaf)), VIA_COLUMNS)).collect()),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "COMMAND", look);
    for (at, leaf) in leaves.iter().enumerate() {
        for column in &columns {
            text += &column.cells[at];
            text += "  ";
        }
        text += look.cut(&some(shown_leaf(leaf)), room).trim_end();
        text.push('\n');
    }
    text
}
