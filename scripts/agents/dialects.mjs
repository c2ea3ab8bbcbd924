// The languages in which agents talk to a model, from the model's side.
//
// A dialect says which requests are its own (`isMine`), which tools one offers (`toolsOf`), which results of tool calls
// it carries, oldest first (`resultsOf`), and gives an answer as the lines of an event stream (`streamOf`), or in one
// piece (`wholeOf`) where agents ask for that. An answer is either { text } or { call: { name, input } }.

const usage = { input: 10, output: 10 };

/// The text of a content that may be a string or a list of blocks.
function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("");
}

const data = (event) => `data: ${JSON.stringify(event)}\n\n`;
const named = (event) => `event: ${event.type}\n${data(event)}`;

/// Anthropic's Messages API.
const messages = {
  isMine: (path) => path.startsWith("/v1/messages"),
  toolsOf: (body) => (body.tools ?? []).map((tool) => tool.name),
  resultsOf: (body) =>
    body.messages
      .filter((message) => message.role === "user" && Array.isArray(message.content))
      .flatMap((message) => message.content.filter((block) => block.type === "tool_result"))
      .map((block) => ({ text: textOf(block.content), isError: block.is_error === true })),
  *streamOf({ text, call }, body, id) {
    const tokens = { input_tokens: usage.input, output_tokens: usage.output };
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model: body.model, content: [] };
    yield named({ type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null, usage: tokens } });
    const block = call
      ? { type: "tool_use", id: `toolu_${String(id).padStart(24, "0")}`, name: call.name, input: {} }
      : { type: "text", text: "" };
    yield named({ type: "content_block_start", index: 0, content_block: block });
    const delta = call
      ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) }
      : { type: "text_delta", text };
    yield named({ type: "content_block_delta", index: 0, delta });
    yield named({ type: "content_block_stop", index: 0 });
    const end = { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null };
    yield named({ type: "message_delta", delta: end, usage: { output_tokens: usage.output } });
    yield named({ type: "message_stop" });
  },
};

function inNamespace(name) {
  const [first, second] = name.split("/");
  return second === undefined ? { name } : { namespace: first, name: second };
}

/// OpenAI's Responses API. A tool of an MCP server is in a namespace, and is called with it.
const responses = {
  isMine: (path) => path.endsWith("/responses"),
  toolsOf: (body) => (body.tools ?? []).flatMap((tool) => tool.tools?.map(({ name }) => `${tool.name}/${name}`) ?? tool.name),
  resultsOf: (body) =>
    body.input
      .filter((item) => item.type === "function_call_output")
      .map((item) => ({ text: textOf(item.output), isError: false })),
  *streamOf({ text, call }, body, id) {
    const tokens = { input_tokens: usage.input, output_tokens: usage.output, total_tokens: usage.input + usage.output };
    yield named({ type: "response.created", response: { id: `resp_${id}` } });
    const item = call
      ? { type: "function_call", call_id: `call_${id}`, ...inNamespace(call.name), arguments: JSON.stringify(call.input) }
      : { type: "message", role: "assistant", content: [{ type: "output_text", text }] };
    yield named({ type: "response.output_item.done", item });
    yield named({ type: "response.completed", response: { id: `resp_${id}`, usage: tokens } });
  },
};

/// OpenAI's Chat Completions, which most others have copied.
const chat = {
  isMine: (path) => path.endsWith("/chat/completions"),
  toolsOf: (body) => (body.tools ?? []).map((tool) => tool.function?.name),
  resultsOf: (body) =>
    body.messages
      .filter((message) => message.role === "tool")
      .map((message) => ({ text: textOf(message.content), isError: false })),
  wholeOf({ text, call }, body, id) {
    const asked = call && { name: call.name, arguments: JSON.stringify(call.input) };
    const tool_calls = asked && [{ id: `call_${id}`, type: "function", function: asked }];
    const message = { role: "assistant", content: text ?? null, tool_calls };
    const tokens = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output };
    const choices = [{ index: 0, message, finish_reason: call ? "tool_calls" : "stop" }];
    return { id: `chatcmpl-${id}`, object: "chat.completion", created: 1, model: body.model, choices, usage: tokens };
  },
  *streamOf({ text, call }, body, id) {
    const chunk = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created: 1, model: body.model };
    const asked = call && { name: call.name, arguments: JSON.stringify(call.input) };
    const delta = call
      ? { role: "assistant", tool_calls: [{ index: 0, id: `call_${id}`, type: "function", function: asked }] }
      : { role: "assistant", content: text };
    yield data({ ...chunk, choices: [{ index: 0, delta, finish_reason: null }] });
    const tokens = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output };
    const last = { index: 0, delta: {}, finish_reason: call ? "tool_calls" : "stop" };
    yield data({ ...chunk, choices: [last], usage: tokens });
    yield "data: [DONE]\n\n";
  },
};

/// Chat Completions without tools, as Aider speaks: a call is a block of shell in the text, its result a user's words.
const spoken = {
  ...chat,
  wholeOf: undefined,
  isMine: (path, body) => chat.isMine(path) && body.tools === undefined,
  toolsOf: () => ["spoken"],
  resultsOf: (body) =>
    body.messages
      .filter((message) => message.role === "user")
      .map((message) => ({ text: textOf(message.content), isError: false }))
      .filter(({ text }) => text.startsWith("Output from ")),
  *streamOf({ text, call }, body, id) {
    yield* chat.streamOf({ text: call ? `\`\`\`bash\n${call.input.command}\n\`\`\`\n` : text }, body, id);
  },
};

/// Google's generateContent.
const gemini = {
  isMine: (path) => /:(streamG|g)enerateContent$/.test(path),
  toolsOf: (body) => (body.tools ?? []).flatMap((tool) => (tool.functionDeclarations ?? []).map(({ name }) => name)),
  resultsOf: (body) =>
    body.contents
      .flatMap((content) => (content.parts ?? []).filter((part) => part.functionResponse))
      .map(({ functionResponse: { response } }) => ({
        text: response.output ?? response.error ?? JSON.stringify(response),
        isError: response.error !== undefined,
      })),
  *streamOf({ text, call }) {
    const part = call ? { functionCall: { name: call.name, args: call.input } } : { text };
    const tokens = { promptTokenCount: usage.input, candidatesTokenCount: usage.output };
    const candidate = { content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 };
    yield data({ candidates: [candidate], usageMetadata: tokens });
  },
};

export const dialects = [messages, responses, spoken, chat, gemini];
