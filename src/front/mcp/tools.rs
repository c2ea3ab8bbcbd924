//! The tools, as a client lists them. [`super::arguments`] reads the arguments of their calls.

use serde_json::{Value, json};

/// The characters of a result that Claude Code shows to its model. Of a longer one it would show a file's name instead,
/// so no result is longer.
const RESULT_CHARACTERS: u64 = 20_000;

pub(super) fn all() -> Value {
    json!([exec(), output(), write(), kill(), undo(), list(), check_host()])
}

/// A tool. Claude Code hides tools behind a search unless they ask to be loaded, and calls tools that only read in
/// parallel.
fn tool(name: &str, description: &str, properties: &Value, required: &[&str], only_reads: bool) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": only_reads, "destructiveHint": !only_reads, "openWorldHint": !only_reads},
        "_meta": {"anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": RESULT_CHARACTERS},
    })
}

fn of_type(kind: &str, description: &str) -> Value {
    json!({"type": kind, "description": description})
}

fn run() -> Value {
    of_type("integer", "number of the run, as exec and list name it")
}

fn exec() -> Value {
    let strings = json!({"type": "string"});
    tool(
        "exec",
        "Run a command in the user's rexec host, where the user sees it and can stop it. Give command (a shell command) \
         or argv (a program and its arguments, without a shell). Returns the output and [exit N]. A command that takes \
         longer than 45 seconds runs on: the result names its run for output, write and kill. Of long output the \
         beginning and the end are returned.",
        &json!({
            "command": of_type("string", "a command for sh -c"),
            "argv": {"type": "array", "items": strings, "description": "program and arguments, in place of command"},
            "dir": of_type("string", "working directory (default: the project folder)"),
            "env": {"type": "object", "additionalProperties": strings,
                    "description": "variables added to the host's environment"},
            "envs": {"type": "array", "items": strings, "description": "the same as a list of VAR=VAL"},
            "clear_env": of_type("boolean", "true: the command gets only these variables"),
            "stdin": of_type("string", "standard input (default: empty)"),
            "keep_stdin": of_type("boolean", "true: standard input stays open for write"),
            "timeout": of_type("number", "seconds after which the command is ended, with exit code 124"),
            "background": of_type("boolean", "true: return at once; the command lives on, for servers"),
            "name": of_type("string", "a name for a command in the background, which only one can have"),
            "tty": of_type("boolean", "true: the command has a terminal, for programs that ask"),
            "why": of_type("string", "a few words on the purpose, which the user sees beside the command"),
        }),
        &[],
        false,
    )
}

fn output() -> Value {
    tool(
        "output",
        "Return what a run has written since the last exec, output or write that showed it. Waits up to wait seconds \
         for its end.",
        &json!({
            "run": run(),
            "after": of_type("integer", "a cursor: return what came after it; 0 is the beginning (default: what is new)"),
            "wait": of_type("number", "seconds to wait for the end of the run, up to 45 (default: 0)"),
        }),
        &["run"],
        true,
    )
}

fn write() -> Value {
    tool(
        "write",
        "Type for a run that has a terminal (tty) or an open standard input (keep_stdin); returns what it then writes.",
        &json!({
            "run": run(),
            "text": of_type("string", "what is typed; end it with a newline to answer a question"),
            "key": of_type("string", "a key that is pressed behind the text: ctrl-c, ctrl-d, enter, escape, up, …"),
            "eof": of_type("boolean", "true: end the input"),
            "wait": of_type("number", "seconds to wait for output, up to 45 (default: 0.5)"),
        }),
        &["run"],
        false,
    )
}

fn kill() -> Value {
    tool(
        "kill",
        "End a run and all of its processes, or send it a signal.",
        &json!({"run": run(), "signal": of_type("string", "a signal, as INT; then the run is only sent that")}),
        &["run"],
        false,
    )
}

fn undo() -> Value {
    tool(
        "undo",
        "Bring back the files that a run destroyed, if the host keeps such files. The user is asked first, and may take \
         a while. What stands there now is kept, and nothing is overwritten or removed.",
        &json!({
            "run": of_type("integer", "number of the run that destroyed them; list with all shows the numbers"),
            "paths": {"type": "array", "items": {"type": "string"},
                      "description": "only what was at these paths or below them (default: all)"},
        }),
        &["run"],
        false,
    )
}

fn list() -> Value {
    let all = of_type("boolean", "true: also those that have ended a short time ago");
    tool("list", "List the runs of the host, with their state, ports and last line.", &json!({"all": all}), &[], true)
}

fn check_host() -> Value {
    tool("check_host", "Say HOST RUNNING or HOST NOT FOUND.", &json!({}), &[], true)
}
