// Writes what an independent parser of bash (mvdan/sh, by `npm install mvdan-sh`) reads in the texts of tests/data:
//
//   node scripts/shell-calls.mjs tests/data/everyday/commands.txt tests/data/script/language.txt \
//     >tests/data/script/calls.jsonl
//
// One line for each text: the text, and the words of every simple command in it. U+0001 stands for what is expanded.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { syntax } = createRequire(process.cwd() + "/")("mvdan-sh");
const HOLE = "\u0001";

function unescaped(text, escapable) {
  return text.replace(/\\([\s\S])/g, (all, next) => (next === "\n" ? "" : !escapable || escapable.includes(next) ? next : all));
}

function part(node, quoted) {
  switch (syntax.NodeType(node)) {
    case "Lit": {
      if (quoted) return unescaped(node.Value, '$`"\\');
      // Patterns, braces and tildes are expanded.
      const bare = node.Value.replace(/\\[\s\S]/g, "");
      if (/[*?]|\[.*\]|\{.*(,|\.\.).*\}/s.test(bare) || bare.startsWith("~")) return HOLE;
      return unescaped(node.Value);
    }
    case "SglQuoted":
      return node.Dollar ? HOLE : node.Value;
    case "DblQuoted":
      return node.Parts.map((inner) => part(inner, true)).join("");
    default:
      return HOLE;
  }
}

function calls(text) {
  const parser = syntax.NewParser(syntax.Variant(syntax.LangBash));
  const found = [];
  try {
    syntax.Walk(parser.Parse(text, "text"), (node) => {
      if (node && syntax.NodeType(node) === "CallExpr" && node.Args.length > 0) {
        found.push(node.Args.map((word) => word.Parts.map((inner) => part(inner, false)).join("")));
      }
      return true;
    });
  } catch {
    return null;
  }
  return found;
}

for (const file of process.argv.slice(2)) {
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const text = line.replaceAll("⏎", "\n");
    console.log(JSON.stringify({ text, calls: calls(text) }));
  }
}
