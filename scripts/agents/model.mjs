// A stand-in for an agent's model on loopback: asks the agent to run given commands, records what it reports.
//
// usage: node model.mjs AGENT RECORD.json
//
// To a conversation that offers the agent's shell tool, answer number N is the Nth case of the agent (agents.mjs),
// then its last command, if it has one, then a closing text; to any other (a title, a summary) it is a short text. RECORD.json holds the last state:
// { requests, paths: [what was asked for], results: [{ text, isError }] }. The port is the kernel's choice, printed as
// one line on stdout; another line says `done` when every case has its result.

import { createServer } from "node:http";
import { renameSync, writeFileSync } from "node:fs";
import { agents } from "./agents.mjs";
import { dialects } from "./dialects.mjs";

const [agentName, recordPath] = process.argv.slice(2);
const { tool, input, cases, last } = agents[agentName];
const record = { requests: 0, paths: [], results: [] };

/// Keeps what is known on disk; a reader never sees half of it.
function save() {
  writeFileSync(`${recordPath}.new`, JSON.stringify(record, null, 1));
  renameSync(`${recordPath}.new`, recordPath);
}

/// The next answer to a conversation.
function answerTo(dialect, body) {
  if (!dialect.toolsOf(body).includes(tool)) return { text: "Commands" };
  const results = dialect.resultsOf(body);
  // Some agents talk in several conversations; the longest one is theirs with us.
  if (results.length >= record.results.length) record.results = results;
  const next = results.length === cases.length ? last : cases[results.length];
  if (next === undefined) return { text: "All commands ran." };
  return { call: next.call?.(results) ?? { name: tool, input: input(next) } };
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    record.requests += 1;
    const path = request.url.split("?")[0];
    record.paths.push(`${request.method} ${path}`);
    if (path.endsWith("/count_tokens")) return reply(response, 200, { input_tokens: 10 });
    const text = Buffer.concat(chunks).toString("utf8");
    const body = request.method === "POST" ? JSON.parse(text || "{}") : {};
    const dialect = dialects.find(({ isMine }) => request.method === "POST" && isMine(path, body));
    if (dialect === undefined) {
      save();
      return reply(response, 404, { type: "error", error: { type: "not_found_error", message: path } });
    }
    const answer = answerTo(dialect, body);
    save();
    if (body.stream !== true && dialect.wholeOf) return reply(response, 200, dialect.wholeOf(answer, body, record.requests));
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const event of dialect.streamOf(answer, body, record.requests)) response.write(event);
    response.end(() => {
      if (record.results.length === cases.length) process.stdout.write("done\n");
    });
  });
});
save();
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
