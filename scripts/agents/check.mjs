// Judges what an agent's model was told: by each case, against the same agent with plain bash, and in the journal.
//
// usage: node check.mjs AGENT FOLDER ours|all|preload|init|killed|ruled|--bash-only
//
// FOLDER has reference.json and, of the agent with `rexec run`, with all of its variables, with the preload, or after
// `rexec init`, ours.json, all.json, preload.json or init.json, as model.mjs wrote them, and the host's journals. Of an agent that was killed it has
// what lived on, and of one with a person's rules what the person was told. Prints what failed, and how many checks there were. Exits 1 when any failed, 3 when the agent was wrong
// with plain bash already.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { agents } from "./agents.mjs";
import { asked } from "./cases.mjs";
import { recordsIn } from "./journal.mjs";

const [agentName, folder, run] = process.argv.slice(2);
const { input, read, wrapper, instructions, alsoRuns = [] } = agents[agentName];
const { cases, last } = asked(agents[agentName], run);
// An agent that was started by a program that rexec does not know has the name that agents.sh gives it.
const whoami = ["all", "preload"].includes(run) ? agentName : agents[agentName].whoami;
let count = 0;
let failed = 0;

function check(isRight, what, detail) {
  count += 1;
  if (isRight) return;
  failed += 1;
  process.stdout.write(`  FAILED  ${what}\n          ${JSON.stringify(detail)}\n`);
}

/// A result without the parts that differ from run to run: numbers of processes and sessions, times, names of files.
function comparable(text) {
  return text
    .replace(/(\x1b|\\u001b)\[[0-9;]*m/g, "")
    .replace(/\b(with ID: |Chunk ID: |session ID )\w+/g, "$1…")
    .replace(/\b(Wall time: |PGID: |token count: )[\d.]+/g, "$1…")
    .replace(/Background PIDs: [\d, ]+/g, "Background PIDs: …")
    .replace(/\/\S*\/tasks\/\w+\.output/g, "…")
    .replace(/\/(reference|ours|all|preload|init)\//g, "/…/")
    .replace(/\/(pi-bash-\w+\.log|tool-output\/\w+)/g, "/…");
}

function recordIn(run) {
  return JSON.parse(readFileSync(join(folder, `${run}.json`), "utf8"));
}

const isRightIn = (results, n) => results[n] !== undefined && cases[n].isRight(read(results[n]));

/// The processes of the last command that lived some seconds after it was cancelled, or its agent was killed.
function leftBy(run) {
  const file = join(folder, `${run}.left`);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter((name) => name !== "") : [];
}

function judge(who, results, run) {
  check(!existsSync(join(folder, `${run}.left-open`)), `with ${who}: what was left open ends with the agent`);
  if (instructions) check(recordIn(run).instructed, `with ${who}: the model is told what AGENTS.md says`);
  check(results.length === cases.length, `with ${who}, ${cases.length} results reached the model`, results.length);
  if (last) check(!leftBy(run).some((name) => name !== "withstands"), `with ${who}: ${last.name} ends`, leftBy(run));
  for (const [n, { name }] of cases.entries()) check(isRightIn(results, n), `with ${who}: ${name}`, results[n]);
}

/// The commands that the console has named, each from its beginning.
function shownIn(run) {
  const banner = /^\[[^\]]*\] #\d+ .*? \$ (.*)$/;
  return readFileSync(join(folder, `${run}.console`), "utf8").split("\n").flatMap((line) => banner.exec(line)?.[1] ?? []);
}

/// Of an agent that was killed while its command ran, nothing lives on, and the journal has the command's end.
function judgeKilled() {
  check(leftBy(run).length === 0, "nothing of a command lives on when its agent is killed", leftBy(run));
  const ends = recordsIn(join(folder, `${run}-journal`)).filter((record) => record.type === "end");
  const end = ends.find(({ output }) => output.includes(last.marker));
  check(end?.whoami === whoami && (end.signal !== undefined || end.exit > 0), "the journal has how it ended", end ?? ends);
}

/// What an agent's own sandbox says: Codex offers to run such a command without it.
const sandboxWords =
  /permission denied|operation not permitted|sandbox|seccomp|landlock|read-only file system|failed to write file/i;

/// Of what the person's rules refuse nothing runs, and the agent is told so in one line and goes on.
function judgeRuled() {
  const { results } = recordIn(run);
  const isThere = (name) => existsSync(join(folder, run, "project", name));
  const told = (answer) => readFileSync(join(folder, `${run}.${answer}`), "utf8");
  check(results.length === cases.length, `${cases.length} results reached the model`, results.length);
  for (const [n, { name }] of cases.entries()) {
    check(isRightIn(results, n), `with rules: ${name}`, results[n]);
    const lines = results[n]?.text.split("\n").filter((line) => line.includes("rexec: nothing was run"));
    check(lines !== undefined && lines.length < 2 && !sandboxWords.test(lines[0] ?? ""), `with rules, one line: ${name}`, lines);
  }
  check(isThere("asked-yes"), "what the person has allowed has run", false);
  for (const name of ["denied", "asked-no", "asked-late", "asked-orphaned"]) check(!isThere(name), `nothing of it has run: ${name}`, name);
  check(told("yes") + told("no") === "", "the person's answers count", [told("yes"), told("no")]);
  check(told("late").startsWith("rexec: "), "an answer after the agent's death is refused", told("late"));
  const ends = recordsIn(join(folder, `${run}-journal`)).filter(({ type, gate }) => type === "end" && gate !== undefined);
  const seen = ends.map(({ gate, exit, error }) => [gate.leaf.split(" ")[1], error === "refused" ? exit : 0]);
  const wanted = [["denied", 126], ["asked-yes", 0], ["asked-no", 126], ["asked-late", 126]];
  for (const one of wanted) check(seen.some((other) => String(other) === String(one)), `the journal has the verdict on ${one[0]}`, ends);
}

function judgeAgainstBash() {
  const reference = recordIn("reference").results;
  judge("bash", reference, "reference");
  if (failed > 0) {
    process.stdout.write(`${agentName}: ${failed} of ${count} checks of the reference failed\n`);
    process.exit(3);
  }
  if (run === "--bash-only") return;
  const ours = recordIn(run).results;
  judge(run === "init" ? "rexec init" : "rexec", ours, run);
  for (const [n, { name, mayDifferAfterInit }] of cases.entries()) {
    if (run === "init" && mayDifferAfterInit) continue;
    const [a, b] = [reference[n], ours[n]].map((result) => result && [comparable(result.text), result.isError]);
    check(JSON.stringify(a) === JSON.stringify(b), `as with bash: ${name}`, { bash: a, rexec: b });
  }
  const more = leftBy(run).filter((name) => !leftBy("reference").includes(name));
  check(more.length === 0, "as with bash: what a cancelled command leaves behind", more);
  const known = recordsIn(join(folder, `${run}-journal`));
  const names = [...new Set(known.map((record) => record.whoami))];
  const ends = known.filter((record) => record.type === "end" && record.whoami === whoami);
  const knows = (text, marker) => ends.some(({ command, output }) => command === text && output.includes(marker));
  const shown = shownIn(run);
  for (const one of cases.filter(({ marker }) => marker !== undefined)) {
    const text = Object.values(input(one)).flat().find((value) => String(value).includes(one.text));
    check(knows(text, one.marker), `the journal has: ${one.name}`, { names });
    // A banner has one line of bounded length.
    const start = String(text).split("\n", 1)[0].slice(0, 30);
    check(shown.some((command) => command.startsWith(start)), `the console shows the bare command: ${one.name}`, shown);
  }
  // Its settings name no shell for hooks.
  for (const text of run === "init" ? [] : alsoRuns) check(knows(text, ""), `the journal has: ${text}`, { names });
  if (wrapper) {
    const isWrapped = ({ exec, command }) => wrapper.test(exec.at(-1)) && !wrapper.test(command);
    check(ends.some(isWrapped), "commands come in the agent's wrapper and are known without it", ends[0]?.exec);
  }
}

if (run === "killed") judgeKilled();
else if (run === "ruled") judgeRuled();
else judgeAgainstBash();
const runs = { all: " with all variables", preload: " with the preload", init: " after rexec init", killed: ", killed", ruled: ", with rules" };
process.stdout.write(`${agentName}${runs[run] ?? ""}: ${count - failed} of ${count} checks passed\n`);
process.exit(failed === 0 ? 0 : 1);
