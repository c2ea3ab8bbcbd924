// Reads a host's journals.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/// All records of the journals in a folder.
export function recordsIn(folder) {
  return (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
