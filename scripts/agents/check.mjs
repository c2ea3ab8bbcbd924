// Judges what an agent's model was told: by each case, against the same agent with plain bash, and in the journal.
//
// usage: node check.mjs REFERENCE.json OURS.json JOURNAL-FOLDER WHOAMI
//
// Prints one line per check and exits 1 when any failed. With an empty OURS.json name only the reference is judged.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { cases } from "./cases.mjs";

const [referencePath, oursPath, journalFolder, whoami] = process.argv.slice(2);
let failed = 0;

function check(isRight, what, detail) {
  if (!isRight) failed += 1;
  process.stdout.write(`  ${isRight ? "ok    " : "FAILED"}  ${what}\n`);
  if (!isRight) process.stdout.write(`          ${JSON.stringify(detail)}\n`);
}

/// A result without what differs from run to run: names of background commands, times, temporary folders.
function comparable(text) {
  return text
    .replace(/\x1b\[[0-9;]*m/g, "")
    .replace(/with ID: \w+/g, "with ID: …")
    .replace(/\/[^\s]*\/tasks\/\w+\.output/g, "…")
    .replace(/\/[^\s]*\/(reference|ours)\//g, "…/");
}

function resultsIn(path) {
  return JSON.parse(readFileSync(path, "utf8")).results;
}

const reference = resultsIn(referencePath);
check(reference.length === cases.length, `with bash, ${cases.length} results reached the model`, reference.length);
const ours = oursPath ? resultsIn(oursPath) : [];
const judged = oursPath ? ours : reference.map((result) => ({ ...result, text: comparable(result.text) }));
for (const [n, { name, isRight }] of cases.entries()) {
  const result = judged[n];
  check(result !== undefined && isRight({ ...result, text: result.text.trimEnd() }), name, result);
}
if (oursPath) {
  check(ours.length === cases.length, `through the host, ${cases.length} results reached the model`, ours.length);
  for (const [n, { name }] of cases.entries()) {
    const [a, b] = [reference[n], ours[n]].map((result) => result && [comparable(result.text), result.is_error]);
    check(JSON.stringify(a) === JSON.stringify(b), `as with bash: ${name}`, { bash: a, rexec: b });
  }
  const lines = readdirSync(journalFolder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(journalFolder, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  const mine = lines.filter((record) => record.whoami === whoami);
  for (const { input } of cases) {
    const marker = /marker-[a-z]+/.exec(input.command)[0];
    check(mine.some((record) => JSON.stringify(record).includes(marker)), `the journal has ${marker} of ${whoami}`, {
      records: lines.length,
      names: [...new Set(lines.map((record) => record.whoami))],
    });
  }
}
process.exit(failed === 0 ? 0 : 1);
