// The server of a stand-in for an agent's model, on loopback, in every language of dialects.mjs.

import { createServer } from "node:http";
import { dialects } from "./dialects.mjs";

function reply(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/// Serves answers: `answerTo(dialect, body)` makes one, `seen(request, path)` is told of every request, and `answered()` of
/// every answer that was sent. `listening(port)` is told the port, which is the kernel's choice.
export function standIn({ answerTo, seen, answered, listening }) {
  let requests = 0;
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      requests += 1;
      const path = request.url.split("?")[0];
      seen(request, path);
      if (path.endsWith("/count_tokens")) return reply(response, 200, { input_tokens: 10 });
      const text = Buffer.concat(chunks).toString("utf8");
      const body = request.method === "POST" ? JSON.parse(text || "{}") : {};
      const dialect = dialects.find(({ isMine }) => request.method === "POST" && isMine(path, body));
      if (dialect === undefined) {
        return reply(response, 404, { type: "error", error: { type: "not_found_error", message: path } });
      }
      const answer = answerTo(dialect, body);
      if (body.stream !== true && dialect.wholeOf) return reply(response, 200, dialect.wholeOf(answer, body, requests));
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
      for (const event of dialect.streamOf(answer, body, requests)) response.write(event);
      response.end(answered);
    });
  });
  server.listen(0, "127.0.0.1", () => listening(server.address().port));
  return server;
}
