// A stand-in for an agent's model on loopback: asks the agent to run given commands, records what it reports.
//
// usage: node model.mjs AGENT RECORD.json RUN COUNT
//
// To a conversation that offers the agent's shell tool, answer number N is the Nth case of the run (cases.mjs), then the
// last command, if there is one, then a closing text; to any other (a title, a summary) it is a short text. COUNT is the
// number of cases where the run has no cases of the agent's own. RECORD.json holds the last state:
// { requests, paths: [what was asked for], results: [{ text, isError }] }. The port is the kernel's choice, printed as
// one line on stdout; another line says `done` when every case has its result.

import { renameSync, writeFileSync } from "node:fs";
import { agents } from "./agents.mjs";
import { asked } from "./cases.mjs";
import { standIn } from "./stand_in.mjs";

const [agentName, recordPath, run, count] = process.argv.slice(2);
const { tool, input, instructions } = agents[agentName];
const { cases, last } = asked(agents[agentName], run, Number(count));
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

save();
standIn({
  answerTo(dialect, body) {
    // What a file of the project tells the model.
    if (instructions && JSON.stringify(body).includes(instructions)) record.instructed = true;
    const answer = answerTo(dialect, body);
    save();
    return answer;
  },
  seen(request, path) {
    record.requests += 1;
    record.paths.push(`${request.method} ${path}`);
    save();
  },
  answered() {
    if (record.results.length === cases.length) process.stdout.write("done\n");
  },
  listening: (port) => process.stdout.write(`${port}\n`),
});
