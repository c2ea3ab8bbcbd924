//! `rexec run AGENT…`: starts an unmodified agent whose shell is rexec's.
//!
//! The agent takes the place of this process: its number, terminal, signals and exit code are as without rexec. The
//! variables and options of this one call name its shell ([`recipes`], [`launch`]); no file of the user's is touched.
//! The links lie beside the host's socket ([`links`]).

mod background;
mod launch;
pub(super) mod links;
pub(super) mod permanent;
mod preload;
pub(super) mod probe;
mod recipes;

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::choice;
use rexec_sh::protocol::exit_code::{NOT_EXECUTABLE, NOT_FOUND};
use rexec_sh::protocol::mark::is_mark;
use rexec_sh::protocol::notice::Notice;

use super::told::tell;
use super::verb::{Call, Group, Opt, Values, Verb, Words};
use super::{HOME_VARIABLE, SOCKET_VARIABLE, ask, check, installed};
use crate::front::AgentRequest;
use crate::sys::{self, file, process};
use crate::text::reason::reason;
use launch::{AgentStart, Situation};
use preload::Preload;
use recipes::Recipe;

/// The values of `--host`: when to start a host if none runs.
const HOST_WORDS: [&str; 2] = ["auto", "never"];

pub(super) const VERB: Verb = Verb {
    term: "run",
    group: Group::Agents,
    summary: "start an agent so that you see its commands",
    text: "\
AGENT is the program that you would type without rexec, with its arguments:
rexec run claude --continue. The agent itself is not changed, and none of your
files are: rexec gives it variables, or an option, for this one start. It gets
your terminal, and rexec ends with its exit code.

Where no host runs, one is started in the background. It has no console, but
the whole journal; rexec tail shows its commands. It ends after half an hour
without an agent of rexec run, a command or a rexec tail. It ends at once with
rexec --stop-host.

rexec run --list shows what rexec sees of which agent. For a program that it
does not know, it tries what works for most, and says so.
",
    codes: &[(1, "the agent was not started"), (126, "the agent cannot be executed"), (127, "the agent was not found")],
    examples: &["rexec run claude", "rexec run --as reviewer codex exec 'review the last commit'", "rexec run --list"],
    call: &Call::<AgentCall> {
        options: &[
            Opt::value(
                "--budget SIZE",
                |q, v| {
                    let size = |text: &str| choice::budget(text.as_bytes()).map(|_| text.to_owned());
                    q.budget = v.parsed(choice::BUDGET_WORDS, size);
                },
                "how much the agent gets of each output, as in 256K",
            ),
            Opt::value(
                "--as NAME",
                |q, v| q.name = Some(v.raw()),
                "the agent's name on the console and in the journal",
            ),
            Opt::word(
                "--host WHEN",
                &HOST_WORDS,
                |q, v| q.without_host = v.known_word() == Some("never"),
                "auto starts a host where none runs (default); never does not",
            ),
            Opt::flag("--list", |q| q.lists = true, "list the agents, and which of their commands are seen"),
        ],
        words: Words::line("[--] AGENT [ARGUMENTS...]", Values::Program(&recipes::PROGRAMS), |q, w| {
            q.line.push(w.raw())
        }),
        run,
    },
};

#[derive(Debug, Default)]
struct AgentCall {
    name: Option<OsString>,
    budget: Option<String>,
    without_host: bool,
    lists: bool,
    line: Vec<OsString>,
}

fn run(call: AgentCall) -> Result<u8, Notice> {
    if call.lists {
        return super::say(&recipes::table());
    }
    let Some(program) = call.line.first() else { return Err(VERB.missing("an agent; rexec run --list shows them")) };
    let program = find(program)?;
    let (recipe, preload) = recipe(&call.line[0], &program)?;
    let shim = installed::shim().ok_or(NO_SHIM)?;
    let socket = super::socket_path()?;
    let links = links::provide(&socket, &shim)?;
    let mut launch = plan(recipe, preload.as_ref(), &call, &links)?;
    // The agent's shell searches for the socket by itself.
    for name in [SOCKET_VARIABLE, HOME_VARIABLE] {
        launch.set.extend(super::enclosing::path(name).map(|path| (name.to_owned(), path)));
    }
    launch.set.extend(call.budget.iter().map(|size| ("REXEC_BUDGET".to_owned(), size.into())));
    launch.remarks.iter().for_each(tell);
    see_to_host(&call, &launch.name, &socket)?;
    Err(become_agent(&program, recipe, &call, launch))
}

pub(super) const NO_SHIM: Notice = Notice::fixed(
    rexec_sh::protocol::exit_code::FAILURE,
    "rexec-sh, the shell for agents, is not installed with this rexec",
    "install rexec again, or move its programs together",
);

/// The recipe for the agent of this name at this path, and the preload for it, if the recipe has one and it can be
/// loaded.
fn recipe(name: &OsStr, path: &Path) -> Result<(&'static Recipe, Option<Preload>), Notice> {
    let file = Path::new(name).file_name().unwrap_or(name);
    let known = recipes::named(file.as_bytes());
    let recipe = known.unwrap_or(&recipes::ANY);
    if !recipe.works() {
        let problem = format_args!("{} cannot be started this way. Not seen would be {}", recipe.agent, recipe.unseen);
        return Err(Notice::failed(problem, "start it without rexec run"));
    }
    if !recipe.has_preload() {
        return Ok((recipe, None));
    }
    let name = super::quoted(file);
    let why = match (Preload::of(path, installed::preload(), on_path), known) {
        (Ok(preload), Some(_)) => return Ok((recipe, Some(preload))),
        (Ok(preload), None) => {
            tell(format!("the agent {name} is not known; rexec sees the shells that it starts (rexec run --list)"));
            return Ok((recipe, Some(preload)));
        }
        (Err(why), _) => why,
    };
    let is_known = if known.is_some() { "takes no preload: " } else { "is not known, and " };
    let why_not = why.why();
    let so = match recipe.is_whole_without_preload() {
        true => "so it gets SHELL, which other programs that it starts see too",
        false => "so some of its commands may go unseen",
    };
    tell(format!("the agent {name} {is_known}{why_not}, {so} (rexec run --list)"));
    let may_be_another = known.is_none() && why.starts_another();
    Ok((if may_be_another { &recipes::UNKNOWN } else { recipe }, None))
}

fn plan(recipe: &Recipe, preload: Option<&Preload>, call: &AgentCall, links: &Path) -> Result<AgentStart, Notice> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let login_shell = process::login_shell();
    let has_zsh = on_path(OsStr::new("zsh")).is_some();
    let (name, pid) = (&call.line[0], process::pid());
    let program = Path::new(name).file_name().unwrap_or(name);
    let user =
        Situation { variable: &variable, login_shell: login_shell.as_deref(), has_zsh, links, program, preload, pid };
    launch::launch(recipe, call.name.as_deref(), &user).map_err(|_| {
        Notice::failed(
            "OPENCODE_CONFIG_CONTENT is set to something that is not a JSON object",
            "correct it or unset it; rexec adds opencode's shell to what it holds",
        )
    })
}

/// Starts a host if that is wanted and none runs.
fn see_to_host(call: &AgentCall, name: &OsStr, socket: &Path) -> Result<(), Notice> {
    if check::is_running(socket) {
        // An idle host stays for the agent that this process becomes.
        announce(name, socket);
    } else if call.without_host {
        tell("no host runs, so the agent's commands fail until you start one (REXEC_FALLBACK=shell: run unseen)");
    } else {
        if background::start(socket)?.is_some() {
            tell(
                "no host was running, so one was started in the background; rexec tail shows it, rexec --stop-host ends it",
            );
        }
        announce(name, socket);
    }
    Ok(())
}

/// Announces to the host that this process becomes an agent of this name. A host of an earlier release takes no name,
/// or does not understand the request.
fn announce(name: &OsStr, socket: &Path) {
    for name in [name.to_string_lossy().into_owned(), String::new()] {
        if ask::ask(socket, &AgentRequest { name }.line()).and_then(|asked| asked.answer(Some(ask::PATIENCE))).is_ok() {
            return;
        }
    }
}

/// Becomes the agent. Returns only the reason for a failure.
fn become_agent(program: &Path, recipe: &Recipe, call: &AgentCall, launch: AgentStart) -> Notice {
    let changed = |name: &OsStr| launch.set.iter().any(|(variable, _)| name == variable.as_str());
    // A run's mark would make the shim run everything itself.
    let kept = std::env::vars_os().filter(|(name, _)| !changed(name) && !is_mark(name));
    let set = launch.set.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    let env: Vec<CString> = kept.chain(set).filter_map(|(name, value)| background::entry(&name, &value)).collect();
    let (name, arguments) = call.line.split_first().expect("a program was given");
    let options = recipe.options.iter().map(OsString::from);
    let line = [name.clone()].into_iter().chain(options).chain(arguments.iter().cloned());
    let line: Result<Vec<CString>, _> = line.map(|word| CString::new(word.into_vec())).collect();
    let path = CString::new(program.as_os_str().as_bytes());
    let (Ok(line), Ok(path)) = (line, path) else { unreachable!("arguments come from C strings") };
    let error = sys::background::execute(&path, &line, &env);
    Notice::without_hint(NOT_EXECUTABLE, format_args!("{} cannot be executed: {}", program.display(), reason(&error)))
}

/// Finds a program as a shell would.
fn find(name: &OsStr) -> Result<PathBuf, Notice> {
    let found = if name.as_bytes().contains(&b'/') { Some(PathBuf::from(name)) } else { on_path(name) };
    match found {
        Some(path) if file::is_executable(&path) => Ok(path),
        Some(path) if path.exists() => {
            let problem = format!("{} is not an executable file", super::quoted(name));
            Err(Notice::without_hint(NOT_EXECUTABLE, problem))
        }
        _ => {
            let problem = format!("there is no program {}", super::quoted(name));
            Err(Notice::new(NOT_FOUND, problem, "rexec run takes the program as you would type it; check PATH"))
        }
    }
}

fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| file::is_executable(path))
}
