// The commands that every agent runs, and the results that its model must get.
//
// A case is a command with what it must print and its exit code, or whatever else an agent's own file makes of it: a
// call of a tool, given the results so far, and a judgement of what the agent reports. `marker` is what the journal
// must have of it, if anything.

/// A case that runs a command. What the agent adds to the command as further arguments is `more`.
export function command(name, text, output, { code = 0, more = {} } = {}) {
  const isMeant = (told) => (typeof output === "string" ? told === output : output.test(told));
  const isRight = (told) => isMeant(told.output.trimEnd()) && (told.code === undefined || told.code === code);
  return { name, text, more, isRight, marker: /marker-[a-z]+/.exec(text)?.[0] };
}

/// Whether the process whose number a case has written to a file lives: what has ended has no command line. Plain bash
/// and nothing else, because agents put functions of their own in the place of programs, and one refuses `$( )`.
const isThere = "{ read -rd '' name </proc/$pid/cmdline; } 2>/dev/null";
const sayAndEnd = `if ${isThere}; then kill $pid; echo lives; else echo gone; fi`;

/// A process of an earlier case has been left alone. It is ended here.
export const lives = (name, file) => command(name, `read -r pid <${file}; ${sayAndEnd}`, "lives");

/// A process of an earlier case has been ended.
export const isGone = (name, file) =>
  command(name, `read -r pid <${file}; for n in {1..50}; do ${isThere} || break; sleep 0.1; done; ${sayAndEnd}`, "gone");

/// The command that is cancelled by a key: a shell, a child, and a child that only SIGKILL ends. Each writes its number to
/// a file, the shell as the last one.
export const cancelled = command(
  "a command that is cancelled by a key",
  "echo marker-cancelled; bash -c 'trap : INT TERM HUP; echo $$ >withstands; while :; do sleep 0.1; done' & " +
    "sleep 300 & echo $! >child; until [[ -s withstands ]]; do :; done; echo $$ >cancelled; wait",
  "",
);

/// The commands for every agent.
export const usual = [
  command("output and working directory", "echo marker-plain; pwd", /^marker-plain\n[^\n]*\/project$/),
  command("colours", "printf '\\033[1;31merror\\033[0m: marker-colour\\n'", /^(\x1b\[1;31m)?error(\x1b\[0m)?: marker-colour$/),
  command("exit code and stderr", "echo marker-fails >&2; exit 3", "marker-fails", { code: 3 }),
  command("both streams", "echo marker-streams; sleep 0.2; echo two >&2; exit 1", "marker-streams\ntwo", { code: 1 }),
  command("death by a signal", "{ bash -c 'kill -KILL $$'; } 2>/dev/null; echo marker-killed $?", "marker-killed 137"),
  command("quotes and bytes beyond ASCII", "echo \"it's\" '\"marker-quotes\"' größe", "it's \"marker-quotes\" größe"),
  command("a here-document", "cat <<'END'\n$not 'expanded' marker-document\nEND", "$not 'expanded' marker-document"),
  command("much output", "seq 1 4000; echo marker-much", /3999\n4000\nmarker-much/),
  command("the environment", "echo marker-environment $HOME $TERM $LANG; umask", /^marker-environment .*\n0022$/),
  command("a pipeline", "set -o pipefail; (exit 4) | cat; echo marker-pipeline $?", "marker-pipeline 4"),
];

/// What a shell leaves behind in its own process group, and in a session apart: that one tells its number once it is
/// there. Claude Code refuses a plain sleep, and Gemini CLI takes a `bash -c` off the front.
const nap = (file) => `bash -c 'echo $$ >${file}; exec sleep 60' >/dev/null 2>&1 &`;
export const leaving = command(
  "what is left in the background",
  `echo marker-left; ${nap("left")} setsid ${nap("left-apart")} until [[ -s left && -s left-apart ]]; do :; done`,
  "marker-left",
);

/// The command whose agent is killed: the shell, a child, one that only SIGKILL ends, and one in a session of its own. It
/// writes all the time, because some agents end what is silent. Plain sh, because one agent has no other shell.
const killed = command(
  "a command whose agent is killed",
  "echo marker-orphaned; bash -c 'trap : INT TERM HUP; echo $$ >withstands; while :; do sleep 0.1; done' & " +
    "sleep 300 & echo $! >child; setsid bash -c 'echo $$ >apart; exec sleep 300' & " +
    "until [ -s withstands ] && [ -s apart ]; do sleep 0.1; done; echo $$ >cancelled; while :; do echo on; sleep 0.5; done",
  "",
);

/// A command that the rules of rules.sh refuse. The line of its agent is the last one: a question that takes long is told
/// before.
const refused = (name, file, line) =>
  command(name, `touch ${file}; echo marker-ran`, new RegExp(`(^|\n)rexec: nothing was run: ${line}$`), { code: 126 });

/// What the rules of rules.sh refuse and ask about, and the person's answers there.
const ruled = [
  refused("a command that a rule refuses", "denied", '"touch denied" is refused by rule no-denied: Write to another file\\.'),
  command("one that the person allows", "touch asked-yes; echo marker-ran", /(^|\n)marker-ran$/),
  refused("one that the person refuses", "asked-no", 'your user refused "touch asked-no": Take another name\\.'),
  refused("one that nobody answers", "asked-late", 'nobody answered within 6 s whether "touch asked-late" may run\\. This is not a no: .*'),
  command("the next command", "echo marker-next", "marker-next"),
];
/// Its agent is killed while it waits for the answer.
const orphaned = command("a command whose agent is killed while it asks", "touch asked-orphaned", "");

/// The commands of an agent that works beside others: each prints its number and exits with one of four codes.
export function numbered(n) {
  return command(`command ${n}`, `echo marker-together ${n}; exit ${n % 4}`, `marker-together ${n}`, { code: n % 4 });
}

/// What the model asks for in a run of this name: cases of which each must have its result, and a last one.
export function asked({ cases, last }, run, count) {
  switch (run) {
    case "killed":
      return { cases: [], last: killed };
    case "ruled":
      return { cases: ruled, last: orphaned };
    case "together":
      return { cases: Array.from({ length: count }, (_, n) => numbered(n)), last };
    default:
      return { cases, last };
  }
}
