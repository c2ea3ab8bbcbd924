// What a real agent is made to run, and what must have reached it afterwards.
//
// Each case is the input of one call of the agent's Bash tool and a judgement of the result that the model was given.

export const cases = [
  {
    name: "output and working directory",
    input: { command: "echo marker-plain; pwd" },
    isRight: ({ text, is_error }) => !is_error && /^marker-plain\n[^\n]*\/project$/.test(text),
  },
  {
    name: "colours",
    input: { command: "printf '\\033[1;31merror\\033[0m: marker-colour\\n'" },
    isRight: ({ text, is_error }) => !is_error && text === "error: marker-colour",
  },
  {
    name: "exit code and stderr",
    input: { command: "echo marker-fails >&2; exit 3" },
    isRight: ({ text, is_error }) => is_error && text === "Exit code 3\nmarker-fails",
  },
  {
    name: "cd lasts from one command to the next",
    input: { command: "cd inner && echo marker-cd" },
    isRight: ({ text }) => text.includes("marker-cd"),
  },
  {
    name: "the directory it led to",
    input: { command: "pwd; echo marker-pwd" },
    isRight: ({ text }) => /\/project\/inner\nmarker-pwd$/.test(text),
  },
  {
    name: "quotes, bytes beyond ASCII, a here-document",
    input: { command: "echo \"it's\" '\"marker-quotes\"' größe\ncat <<'END'\n$not `expanded`\nEND" },
    isRight: ({ text }) => text === "it's \"marker-quotes\" größe\n$not `expanded`",
  },
  {
    name: "much output",
    input: { command: "seq 1 4000; echo marker-much" },
    isRight: ({ text }) => text.includes("marker-much") && text.startsWith("1\n2\n3\n"),
  },
  {
    name: "a command in the background",
    input: { command: "echo marker-background; sleep 0.2", run_in_background: true },
    isRight: ({ text, is_error }) => !is_error && text.includes("running in background"),
  },
  {
    name: "the shell it finds itself in",
    input: { command: "echo marker-shell ${SHELL##*/} $- ${BASH_VERSION%%.*}" },
    isRight: ({ text }) => /^marker-shell bash \w+ \d$/.test(text),
  },
];
