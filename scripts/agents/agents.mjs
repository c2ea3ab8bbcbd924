// The agents: their names, the input and the reports of their shell tools, and what is special about them.
//
// `whoami` is the name that the journal must give; `tool` the name of the shell tool; `input` its input for a case;
// `read` gives what a report says about a command: its output and, where it is told, its exit code. `wrapper` is what
// the agent puts before a command, `alsoRuns` lists what it runs beside the cases. What a case has started under the number in the file `open` must have ended soon after the agent. `last` is
// asked for when every case has its result; agents.sh cancels it by the agent's key. Of a case with `mayDifferAfterInit`
// another result is right, too, where `rexec init` has changed the agent's settings.

import { cancelled, command, isGone, leaving, lives, usual } from "./cases.mjs";

const byCommand = ({ text, more }) => ({ command: text, ...more });
const described = ({ name, text, more }) => ({ command: text, description: name, ...more });
/// A command that does not end by itself, with a child whose number is in the file `stopped`.
const endless = "sleep 60 & echo $! >stopped; echo marker-stopped; wait";

const claude = {
  whoami: "Claude Code",
  tool: "Bash",
  wrapper: /^source \S+snapshot/,
  input: described,
  read({ text, isError }) {
    const failure = /^Exit code (\d+)\n?/.exec(text);
    if (failure) return { output: text.slice(failure[0].length), code: Number(failure[1]) };
    return { output: text, code: isError ? undefined : 0 };
  },
  cases: [
    ...usual,
    command("cd lasts from one command to the next", "cd inner && echo marker-cd", /marker-cd/),
    command("the directory it led to", "pwd; echo marker-pwd", /\/project\/inner\nmarker-pwd$/),
    command("back again", "cd .. && echo marker-back", /marker-back/),
    leaving,
    lives("a background job is left alone", "left"),
    lives("and so is one in a session of its own", "left-apart"),
    command("a command in the background", "echo marker-background; sleep 0.2", /running in background/, {
      more: { run_in_background: true },
    }),
    command("the shell it finds itself in", "echo marker-shell ${SHELL##*/} $- ${BASH_VERSION%%.*}", /^marker-shell bash \w+ \d$/),
  ],
};

/// At a terminal, where a person can cancel a command.
const claudeAtTerminal = { ...claude, cases: usual.slice(0, 3), last: cancelled };

/// How long Codex waits for a command before it asks the model again, milliseconds: longer than a shell needs to start on a
/// busy machine.
const aWhile = 2_000;
const session = (results) => Number(/session ID (\d+)/.exec(results.at(-1).text)?.[1]);
/// A call of Codex's second tool, for the session that the result before this one names.
const typing = (name, chars, isRight, more = {}) => ({
  name,
  // The call returns at the end of the command; what was typed ends it.
  call: (results) => ({ name: "write_stdin", input: { session_id: session(results), chars, yield_time_ms: 10_000, ...more } }),
  isRight,
});
const isRunning = ({ code }) => code === undefined;
/// A command in a terminal that waits for keys.
const inTerminal = (name, text) => ({
  ...command(name, text, "", { more: { tty: true, yield_time_ms: aWhile } }),
  isRight: ({ output, code }) => isRunning({ code }) && output.includes("marker-"),
});

/// Runs once, by our shell, with JSON on its standard input. See the settings in agents.sh.
const hook = "cat >hooked";

/// After `rexec init` its shell is a login shell with another TERM.
const usualOfCodex = usual.map((one) => (one.name === "the environment" ? { ...one, mayDifferAfterInit: true } : one));

const codex = {
  whoami: "Codex",
  tool: "exec_command",
  alsoRuns: [hook],
  input: ({ text, more }) => ({ cmd: text, ...more }),
  read({ text }) {
    const code = /^Process exited with code (\d+)$/m.exec(text);
    return { output: text.slice(text.indexOf("\nOutput:\n") + 9), code: code ? Number(code[1]) : undefined };
  },
  cases: [
    ...usualOfCodex,
    // After `rexec init` the profile of a login shell sets PATH anew.
    { ...command("its own entry in PATH", "echo marker-path ${PATH%%:*}", /^marker-path \//), mayDifferAfterInit: true },
    command("a hook's input", "grep -o '.hook_event_name.:.[A-Za-z]*' hooked; echo marker-hook", '"hook_event_name":"SessionStart\nmarker-hook'),
    command("the shell's own death by a signal", "echo marker-dies; kill -KILL $$", "marker-dies", { code: 137 }),
    command("a working directory", "pwd; echo marker-inner", /\/project\/inner\nmarker-inner$/, { more: { workdir: "inner" } }),
    command("no login shell", "shopt -q login_shell; echo marker-login $?", "marker-login 1", { more: { login: false } }),
    command("output of a job that holds the streams", "sleep 60 & echo $! >holding; echo marker-holding", "marker-holding"),
    isGone("that job is ended", "holding"),
    leaving,
    isGone("a background job is ended", "left"),
    lives("one in a session of its own is left alone", "left-apart"),
    {
      ...command("a command that takes its time", "echo marker-time; sleep 4; echo end", "marker-time", { more: { yield_time_ms: aWhile } }),
      isRight: ({ output, code }) => isRunning({ code }) && output === "marker-time\n",
    },
    typing("the rest of it", "", ({ output, code }) => code === 0 && output === "end\n"),
    {
      ...command("a command that is interrupted", `trap 'echo caught; exit 9' INT; ${endless}`, "", { more: { yield_time_ms: aWhile } }),
      isRight: isRunning,
    },
    typing("the interrupt", "\x03", ({ output, code }) => code === 9 && output.includes("caught")),
    isGone("what it waited for is ended", "stopped"),
    inTerminal("a terminal", "stty size; read -r -p 'marker-asks? ' line; echo got $line"),
    typing("what is typed there", "typed\n", ({ output, code }) => code === 0 && output.includes("got typed")),
    inTerminal("a command that reads to the end", "echo marker-reads; tr a-z A-Z"),
    typing("a line and the end", "typed\n\x04", ({ output, code }) => code === 0 && output.includes("TYPED\r\n")),
    inTerminal("an interrupt in a terminal", `rm stopped; trap 'echo caught; exit 9' INT; ${endless}`),
    typing("the key", "\x03", ({ output, code }) => code === 9 && output.includes("caught")),
    isGone("what it waited for is ended with the terminal", "stopped"),
    {
      ...command("a command that is left open", "echo $$ >open; echo marker-open; exec sleep 300", "", { more: { yield_time_ms: aWhile } }),
      isRight: ({ output, code }) => isRunning({ code }) && output === "marker-open\n",
    },
  ],
};

const gemini = {
  whoami: "Gemini CLI",
  tool: "run_shell_command",
  wrapper: /^shopt -u promptvars/,
  input: described,
  read({ text }) {
    const told = /^(?:<untrusted_context>\n)?Output: ([^]*?)\n(?:Exit Code: (\d+)\n)?(?:Background PIDs: [\d, ]+\n)?Process Group PGID/.exec(text);
    return told ? { output: told[1], code: Number(told[2] ?? 0) } : { output: text, code: undefined };
  },
  cases: [
    ...usual,
    leaving,
    lives("a background job is left alone", "left"),
    lives("and so is one in a session of its own", "left-apart"),
    command("a command that is silent for too long", endless, /marker-stopped/),
    isGone("what it waited for is ended", "stopped"),
  ],
};

const opencode = {
  whoami: "opencode",
  tool: "bash",
  input: described,
  read: ({ text }) => ({ output: text, code: undefined }),
  cases: [
    ...usual,
    leaving,
    lives("a background job is left alone", "left"),
    lives("and so is one in a session of its own", "left-apart"),
    command("a command that takes too long", endless, /marker-stopped/, { more: { timeout: 1000 } }),
    isGone("what it waited for is ended", "stopped"),
  ],
};

const qwen = {
  whoami: "Qwen Code",
  tool: "run_shell_command",
  // It does not always take what a shell wrote just before its exit.
  input: ({ text, more }) => ({ command: `trap 'sleep 0.1' EXIT; ${text}`, is_background: false, ...more }),
  read({ text }) {
    const told = /^Output: ([^]*?)\nError: .*\nExit Code: (\d+|\(none\))$/m.exec(text);
    return told ? { output: told[1], code: Number(told[2]) } : { output: text, code: undefined };
  },
  cases: opencode.cases,
};

const pi = {
  whoami: "pi",
  tool: "bash",
  input: byCommand,
  read({ text }) {
    const failure = /\n\n\nCommand exited with code (\d+)$/.exec(text);
    return failure ? { output: text.slice(0, failure.index), code: Number(failure[1]) } : { output: text, code: 0 };
  },
  cases: [
    ...usual,
    leaving,
    lives("a background job is left alone", "left"),
    lives("and so is one in a session of its own", "left-apart"),
    command("a command that takes too long", endless, /marker-stopped/, { more: { timeout: 1 } }),
    isGone("what it waited for is ended", "stopped"),
  ],
};

/// What those do that let live what a command leaves in the background.
const usualAndLeft = [...usual, leaving, lives("a background job is left alone", "left"), lives("and so is one in a session of its own", "left-apart")];

const copilot = {
  whoami: "Copilot CLI",
  tool: "bash",
  input: described,
  read({ text }) {
    const told = /^([^]*?)\n?<shellId: \d+ completed with exit code (\d+)>/.exec(text);
    return told ? { output: told[1], code: Number(told[2]) } : { output: text, code: undefined };
  },
  // It refuses a kill without a number.
  cases: usual,
};

const cline = {
  whoami: "Cline",
  tool: "run_commands",
  input: ({ text }) => ({ commands: [text] }),
  read({ text }) {
    const [{ result, success }] = JSON.parse(text);
    const failure = /^\[Command exited with code (\d+)\]\n/.exec(result);
    const output = result.slice(failure?.[0].length ?? 0).replace("\n[stderr]\n", "");
    return { output, code: failure ? Number(failure[1]) : success ? 0 : undefined };
  },
  cases: usualAndLeft,
};

/// Of a command that fails it reports the standard error alone.
const continueCli = {
  whoami: "Continue",
  tool: "Bash",
  input: byCommand,
  read({ text }) {
    const failure = /^Error executing tool Bash: Error \(exit code (\d+)\): /.exec(text);
    return failure ? { output: text.slice(failure[0].length), code: Number(failure[1]) } : { output: text, code: undefined };
  },
  cases: [
    ...usualAndLeft.filter(({ name }) => name !== "both streams"),
    command("a command that fails after some output", "echo marker-streams; sleep 0.2; echo two >&2; exit 1", "two", { code: 1 }),
  ],
};

const mini = {
  whoami: "mini-swe-agent",
  tool: "bash",
  input: byCommand,
  read({ text }) {
    const told = JSON.parse(text);
    return { output: told.output ?? `${told.output_head}${told.output_tail}`, code: told.returncode };
  },
  cases: [
    // Its shell is sh.
    ...usual.filter(({ name }) => name !== "a pipeline"),
    // Its time is set in agents.sh.
    command("a command that takes too long", endless, /marker-stopped/, { code: -1 }),
    command("what it waited for is ended", "read pid <stopped; while kill -0 $pid 2>/dev/null; do sleep 0.1; done; echo gone", "gone"),
  ],
  // It goes on until a command prints this.
  last: command("the end of the task", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", ""),
};

const goose = {
  whoami: "Goose",
  tool: "shell",
  input: byCommand,
  read({ text }) {
    const failure = /\n\nCommand exited with code (\d+)$/.exec(text);
    return failure ? { output: text.slice(0, failure.index), code: Number(failure[1]) } : { output: text, code: 0 };
  },
  // For much output it names a new file each time.
  cases: usual.filter(({ name }) => name !== "much output"),
};

/// It is made from opencode.
const kilo = { ...opencode, whoami: "Kilo Code" };

const kimi = {
  whoami: "Kimi Code",
  tool: "Bash",
  wrapper: /^cd '/,
  input: described,
  read({ text }) {
    const told =
      /^Wall time: [\d.]+ seconds\n(?:<system>ERROR: Tool execution failed\.<\/system>\n)?([^]*?)(?:\n?Command failed with exit code: (\d+)\.)?$/.exec(text);
    return told ? { output: told[1], code: Number(told[2] ?? 0) } : { output: text, code: undefined };
  },
  cases: usualAndLeft,
};

const letta = {
  whoami: "Letta Code",
  tool: "Bash",
  input: described,
  read({ text }) {
    const failure = /^Exit code: (\d+)\n/.exec(text);
    const output = text.slice(failure?.[0].length ?? 0).replace("\n\n", "\n");
    return { output, code: Number(failure?.[1] ?? 0) };
  },
  cases: usualAndLeft,
};

/// Its shell is zsh where there is one.
const vibe = {
  whoami: "Mistral Vibe",
  tool: "bash",
  wrapper: /^\{ \[ -r /,
  input: byCommand,
  read({ text }) {
    const { stdout, stderr, returncode } = JSON.parse(text);
    return { output: stdout + stderr, code: returncode };
  },
  // Much output is in a file, and the umask of zsh has no leading zero.
  cases: usualAndLeft.filter(({ name }) => !["much output", "the environment"].includes(name)),
};

/// Runs each line of a block by itself in `bash -i -c`, on a terminal, and tells its model no exit code.
const aider = {
  whoami: "Aider",
  tool: "spoken",
  // It loses what a shell writes just before its exit.
  input: ({ text }) => ({ command: `trap 'sleep 0.5' EXIT; ${text}` }),
  read: ({ text }) => ({ output: text.slice(text.indexOf("\n") + 1).replaceAll("\r\n", "\n").replace(/(^|\n)exit\n*$/, "$1"), code: undefined }),
  cases: usual.filter(({ text }) => !text.includes("\n")).slice(0, 5),
  last: command(
    "a command that is cancelled by a key",
    "echo marker-cancelled; echo $$ >withstands; echo $$ >child; echo $$ >cancelled; sleep 300",
    "",
  ),
};

/// Its sandbox confines us as it confines bash: nothing is run by the host, and everything is reported to it.
const sandboxed = {
  ...codex,
  alsoRuns: [],
  cases: [...usualOfCodex, command("what the sandbox forbids", "{ echo >/var/tmp/rexec-forbidden; } 2>/dev/null; echo marker-forbidden $?", "marker-forbidden 1")],
};

/// In an account whose login shell is zsh.
const codexWithZsh = {
  ...codex,
  alsoRuns: [],
  cases: [
    // The umask of zsh has no leading zero.
    ...usual.filter(({ name }) => name !== "the environment"),
    {
      ...command("the shell it finds itself in", "echo marker-zsh $MARKER $ZDOTDIR ${ZSH_VERSION%%.*} $options[login]", /^marker-zsh mine 5 o/),
      mayDifferAfterInit: true,
    },
    command("no login shell", "echo marker-login $options[login] $0", /^marker-login off \S*zsh$/, { more: { login: false } }),
    leaving,
    isGone("a background job is ended", "left"),
    lives("one in a session of its own is left alone", "left-apart"),
  ],
};

/// With its sandbox: no network but its own proxy, and its working directory alone can be written.
const claudeSandboxed = {
  ...claude,
  wrapper: /exec 3<&- \|\| exit 126; source \S+snapshot/,
  cases: [
    ...usual,
    command("what the sandbox forbids", "{ echo >/var/tmp/rexec-forbidden; } 2>/dev/null; echo marker-forbidden $?", "marker-forbidden 1"),
    command("no connection", "{ : >/dev/tcp/127.0.0.1/${ANTHROPIC_BASE_URL##*:}; } 2>/dev/null; echo marker-connection $?", "marker-connection 1"),
    command("what it allows", "echo marker-file >file && cat file", "marker-file"),
    ...[1, 2, 7, 42, 126, 127, 255].map((code, n) => {
      const marker = `marker-exit${"abcdefg"[n]}`;
      return command(`exit code ${code}`, `echo ${marker}; exit ${code}`, marker, { code });
    }),
  ],
};

/// A command that does not end by itself, without a child that outlives it.
const patient = "echo $$ >stopped; echo marker-stopped; while :; do sleep 0.1; done";

/// Commands and files go through a server that environments.toml names: Codex's own, and `rexec exec-server`. Both leave
/// alone what a command leaves in the background.
const served = {
  ...codex,
  alsoRuns: [],
  instructions: "marker-instructions",
  cases: [
    ...codex.cases
      .filter(({ name }) => !["a hook's input", "output of a job that holds the streams", "that job is ended", "what it waited for is ended"].includes(name))
      .map((one) => (one.name === "a background job is ended" ? lives("a background job is left alone", "left") : one))
      // Codex's own server waits for a child that holds the streams.
      .map((one) => (one.name === "a command that is interrupted" ? { ...one, text: one.text.replace(endless, () => patient) } : one)),
    {
      name: "an edit, which is no command",
      call: () => ({ name: "exec_command", input: { cmd: "apply_patch <<'END'\n*** Begin Patch\n*** Add File: inner/added.txt\n+marker-added\n*** End Patch\nEND" } }),
      isRight: ({ code }) => code === 0 || code === undefined,
    },
    command("what the edit has written", "cat inner/added.txt", "marker-added"),
  ],
};

/// Their interactive shells: the shell has a terminal of its own, and hangs up when it ends.
const interactive = (agent, more = {}) => ({
  ...agent,
  // It does not always take what a shell wrote just before its exit.
  input: (one) => agent.input({ ...one, text: `trap 'sleep 0.5' EXIT; ${one.text}` }),
  cases: [
    command("the terminal", "stty size | grep -q '^[1-9]' && [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo marker-terminal", "marker-terminal"),
    // They read a terminal slowly: of much output they lose the end with plain bash, too.
    ...usual.filter(({ name }) => name !== "much output"),
    leaving,
    isGone("a background job ends with its terminal", "left"),
    lives("one in a session of its own is left alone", "left-apart"),
    command("a command that takes too long", endless, /marker-stopped/, { more }),
    isGone("what it waited for is ended", "stopped"),
  ],
  last: cancelled,
});

export const agents = {
  claude,
  "claude-terminal": claudeAtTerminal,
  "claude-sandboxed": claudeSandboxed,
  codex,
  "codex-sandboxed": sandboxed,
  "codex-served": served,
  "codex-zsh": codexWithZsh,
  gemini,
  "gemini-terminal": interactive(gemini),
  opencode,
  qwen,
  "qwen-terminal": interactive(qwen, { timeout: 1000 }),
  pi,
  copilot,
  cline,
  cn: continueCli,
  mini,
  goose,
  kilo,
  kimi,
  letta,
  vibe,
  "aider-terminal": aider,
};
