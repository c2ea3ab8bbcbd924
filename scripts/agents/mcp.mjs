// Has a real agent use the tools of `rexec mcp`, against a stand-in for its model, and judges what the model is told.
//
// usage: node mcp.mjs AGENT PROGRAM REXEC FOLDER
//
// The agent is configured as `rexec help mcp` says. FOLDER is for its home, its project and what was recorded. A host runs
// already, at REXEC_SOCKET. Prints what failed, and how many checks there were. Exits 1 when any failed.

import { spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { standIn } from "./stand_in.mjs";

const [agentName, program, rexec, folder] = process.argv.slice(2);
const [home, project] = ["home", "project"].map((name) => join(folder, name));
/// In milliseconds: how long an agent may take.
const PATIENCE = 110_000;

const json = (path, value) => file(path, JSON.stringify(value));
function file(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const say = "Run the commands.";
const server = { command: rexec, args: ["mcp"] };

/// How each agent is started and told of the server, and how its model calls a tool.
const agents = {
  claude: {
    tool: (name) => `mcp__rexec__${name}`,
    line: (url) => {
      json(join(project, ".mcp.json"), { mcpServers: { rexec: server } });
      return {
        words: ["--print", say, "--mcp-config", join(project, ".mcp.json"), "--allowedTools", "mcp__rexec"],
        env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
      };
    },
  },
  codex: {
    tool: (name) => `mcp__rexec/${name}`,
    line: (url) => {
      const settings = ["[mcp_servers.rexec]", `command = ${JSON.stringify(rexec)}`, 'args = ["mcp"]', "supports_parallel_tool_calls = true", 'env_vars = ["REXEC_SOCKET"]'];
      file(join(home, ".codex/config.toml"), `${settings.join("\n")}\n`);
      const options = ["model_provider=mock", "model_providers.mock.name=mock", "model_providers.mock.wire_api=responses", `model_providers.mock.base_url=${url}/v1`, "model_providers.mock.env_key=OPENAI_API_KEY"];
      return {
        words: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "mock", ...options.flatMap((option) => ["-c", option]), say],
        env: { OPENAI_API_KEY: "none" },
      };
    },
    /// It puts a time before the text.
    read: (text) => text.replace(/^Wall time: [\d.]+ seconds\nOutput:\n?/, ""),
  },
  gemini: {
    tool: (name) => `mcp_rexec_${name}`,
    line: (url) => {
      json(join(home, ".gemini/settings.json"), {
        security: { auth: { selectedType: "gemini-api-key" } }, privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false }, mcpServers: { rexec: { ...server, env: { REXEC_SOCKET: process.env.REXEC_SOCKET } } },
      });
      return {
        words: ["--approval-mode", "yolo", "--model", "gemini-2.5-pro", "--prompt", say],
        env: { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: "true" },
      };
    },
    /// It puts marks around a text, and shows an error as JSON.
    read(text) {
      const error = /^MCP tool .* with response: (\[.*\])$/s.exec(text);
      if (error) return JSON.parse(error[1])[0].functionResponse.response.content[0].text;
      return text.replace(/^<untrusted_context>\n/, "").replace(/\n<\/untrusted_context>$/, "");
    },
  },
  opencode: {
    tool: (name) => `rexec_${name}`,
    line: (url) => {
      const limit = { context: 200_000, output: 8_000 };
      const mock = { npm: "@ai-sdk/openai-compatible", name: "mock", options: { baseURL: `${url}/v1`, apiKey: "none" }, models: { mock: { name: "mock", tool_call: true, limit } } };
      json(join(home, ".config/opencode/opencode.json"), {
        autoupdate: false, share: "disabled", permission: "allow", model: "mock/mock", small_model: "mock/mock", provider: { mock },
        mcp: { rexec: { type: "local", command: [rexec, "mcp"] } },
      });
      return { words: ["run", say], env: { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" } };
    },
  },
};

/// The number of the run in the background, which one of the first results names.
const runIn = (results) => Number(/runs in the background, run (\d+)/.exec(results.map(({ text }) => text).join("\n"))?.[1]);
const ofRun = (more) => (results) => ({ run: runIn(results), ...more });

/// The calls, and what the model must be told.
const cases = [
  ["check_host", {}, /^HOST RUNNING\n?$/],
  ["exec", { command: "echo marker-mcp; pwd" }, /^marker-mcp\n\S*\/project\n\[exit 0\]\n?$/],
  ["exec", { argv: ["sh", "-c", "echo marker-fails >&2; exit 7"], why: "to see it fail" }, /marker-fails\n\[exit 7\]/],
  ["exec", { command: "seq 100001 120000" }, /^100001\n100002\n[^]* left out; rexec out \d+ --lines [^]*\n120000\n\[exit 0\]\n?$/],
  ["exec", { cmd: "true" }, /rexec: exec needs command/],
  ["exec", { command: "echo ready; cat; sleep 60", background: true, keep_stdin: true, name: "server" }, /^ready\n\[runs in the background, run \d+/],
  ["write", ofRun({ text: "typed\n" }), /^typed\n\[run \d+ is running/],
  ["output", ofRun({ after: 0 }), /^ready\ntyped\n\[run \d+ is running/],
  ["list", {}, /run \d+ · running .*name server/],
  ["kill", ofRun({}), /\[exit 143/],
  ["exec", { command: "stty size; echo marker-terminal", tty: true }, /^\d+ \d+\nmarker-terminal\n\[exit 0\]\n?$/],
];

const { tool, line, read = (text) => text } = agents[agentName];
let results = [];

function answerTo(dialect, body) {
  if (!dialect.toolsOf(body).includes(tool("exec"))) return { text: "Commands" };
  const told = dialect.resultsOf(body);
  if (told.length >= results.length) results = told;
  const next = cases[told.length];
  if (next === undefined) return { text: "All commands ran." };
  const [name, input] = next;
  return { call: { name: tool(name), input: typeof input === "function" ? input(told) : input } };
}

function drive(port) {
  mkdirSync(home, { recursive: true });
  mkdirSync(project, { recursive: true });
  const { words, env } = line(`http://127.0.0.1:${port}`);
  const { PATH, REXEC_SOCKET } = process.env;
  const output = openSync(join(folder, "output"), "w");
  const agent = spawn(program, words, {
    cwd: project, stdio: ["ignore", output, output],
    env: { PATH, REXEC_SOCKET, HOME: home, USER: "user", SHELL: "/bin/bash", LANG: "C.UTF-8", TERM: "xterm-256color", ...env },
  });
  const late = setTimeout(() => agent.kill("SIGKILL"), PATIENCE);
  agent.on("exit", () => {
    clearTimeout(late);
    judge();
  });
}

/// Both ends of a text.
const shown = (text) => (text?.length > 600 ? `${text.slice(0, 200)} … ${text.slice(-400)}` : text);

function judge() {
  writeFileSync(join(folder, "results.json"), JSON.stringify(results, null, 1));
  let failed = 0;
  for (const [n, [name, , expected]] of cases.entries()) {
    const text = results[n] && read(results[n].text);
    if (text !== undefined && expected.test(text)) continue;
    failed += 1;
    process.stdout.write(`  FAILED  ${agentName}, call ${n + 1}, ${name}: ${JSON.stringify(shown(text))}\n`);
  }
  if (results.length === 0) process.stdout.write(`${readFileSync(join(folder, "output"), "utf8").slice(-2_000)}\n`);
  process.stdout.write(`${agentName}: ${cases.length - failed} of ${cases.length} calls are right\n`);
  process.exit(failed === 0 ? 0 : 1);
}

standIn({ answerTo, seen() {}, answered() {}, listening: drive });
