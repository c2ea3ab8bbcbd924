// Judges agents that worked at the same time at one host: the journal has each command of each under its name, with its
// output, its exit code and its directory, and each model got all results.
//
// usage: node check_together.mjs FOLDER COUNT AGENT …
//
// FOLDER has AGENT/together.json of each, as model.mjs wrote it, and together/together-journal. Exits 1 when a check failed.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agents } from "./agents.mjs";
import { numbered } from "./cases.mjs";
import { recordsIn } from "./journal.mjs";

const [folder, count, ...names] = process.argv.slice(2);
const cases = Array.from({ length: Number(count) }, (_, n) => numbered(n));
const ends = recordsIn(join(folder, "together", "together-journal")).filter((record) => record.type === "end");
let failed = 0;
for (const name of names) {
  const { whoami, input, read } = agents[name];
  const { results } = JSON.parse(readFileSync(join(folder, name, "together.json"), "utf8"));
  const told = cases.filter((one, n) => results[n] !== undefined && one.isRight(read(results[n]))).length;
  const own = ends.filter((end) => end.whoami === whoami && end.dir === join(folder, name, "together", "project"));
  const known = cases.filter((one, n) => {
    const text = Object.values(input(one)).flat().find((value) => String(value).includes(one.text));
    const found = own.filter(({ command }) => command === text);
    return found.length === 1 && found[0].output.trim() === `marker-together ${n}` && found[0].exit === n % 4;
  }).length;
  process.stdout.write(`${name}, together: the model got ${told} of ${count} results, the journal has ${known} of ${count} commands\n`);
  if (told !== cases.length || known !== cases.length) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
