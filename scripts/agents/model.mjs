// A stand-in for the Anthropic Messages API on loopback: asks an agent to run given commands, records what it reports.
//
// usage: node model.mjs RECORD.json
//
// To a conversation that offers a Bash tool, answer number N is the Nth case of cases.mjs as a tool call, then a closing
// text; to any other (a title, a summary) it is a short text. RECORD.json holds the last state:
// { requests, paths: [what was asked for], results: [{ command, text, is_error }] }. The port is the kernel's choice,
// printed as one line on stdout.

import { createServer } from "node:http";
import { renameSync, writeFileSync } from "node:fs";
import { cases } from "./cases.mjs";

const [recordPath] = process.argv.slice(2);
const record = { requests: 0, paths: [], results: [] };

/// The text of a content that may be a string or a list of blocks.
function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("");
}

/// The results of tool calls that a conversation carries, in order.
function resultsOf(messages) {
  return messages
    .filter((message) => message.role === "user" && Array.isArray(message.content))
    .flatMap((message) => message.content.filter((block) => block.type === "tool_result"));
}

/// Keeps what is known on disk; a reader never sees half of it.
function save() {
  writeFileSync(`${recordPath}.new`, JSON.stringify(record, null, 1));
  renameSync(`${recordPath}.new`, recordPath);
}

/// The next answer to a conversation, as a content block.
function answerTo(body) {
  if (!(body.tools ?? []).some((tool) => tool.name === "Bash")) return { type: "text", text: "Commands" };
  const results = resultsOf(body.messages);
  record.results = results.map((block, n) => ({
    command: cases[n]?.input.command,
    text: textOf(block.content),
    is_error: block.is_error === true,
  }));
  if (results.length >= cases.length) return { type: "text", text: "All commands ran." };
  const { name, input: asked } = cases[results.length];
  const input = { ...asked, description: name };
  return { type: "tool_use", id: `toolu_${String(results.length + 1).padStart(24, "0")}`, name: "Bash", input };
}

/// One answer as the stream of events that the API sends.
function* eventsOf(model, block) {
  const usage = { input_tokens: 10, output_tokens: 10 };
  const message = { id: `msg_${record.requests}`, type: "message", role: "assistant", model, content: [], usage };
  const isCall = block.type === "tool_use";
  yield { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } };
  const opening = isCall ? { ...block, input: {} } : { type: "text", text: "" };
  yield { type: "content_block_start", index: 0, content_block: opening };
  const delta = isCall
    ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
    : { type: "text_delta", text: block.text };
  yield { type: "content_block_delta", index: 0, delta };
  yield { type: "content_block_stop", index: 0 };
  const end = { stop_reason: isCall ? "tool_use" : "end_turn", stop_sequence: null };
  yield { type: "message_delta", delta: end, usage: { output_tokens: 10 } };
  yield { type: "message_stop" };
}

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function onMessages(response, body) {
  const block = answerTo(body);
  save();
  if (body.stream !== true) {
    const stop_reason = block.type === "tool_use" ? "tool_use" : "end_turn";
    const usage = { input_tokens: 10, output_tokens: 10 };
    const id = `msg_${record.requests}`;
    reply(response, 200, { id, type: "message", role: "assistant", model: body.model, content: [block], stop_reason, usage });
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const event of eventsOf(body.model, block)) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    record.requests += 1;
    const path = request.url.split("?")[0];
    record.paths.push(`${request.method} ${path}`);
    if (request.method !== "POST" || !path.startsWith("/v1/messages")) {
      save();
      reply(response, 404, { type: "error", error: { type: "not_found_error", message: path } });
      return;
    }
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (path.endsWith("/count_tokens")) reply(response, 200, { input_tokens: 10 });
    else onMessages(response, body);
  });
});
save();
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
