// A code assistant of few words: it reads the request, picks a declared tool by its words, and the name it is about.
import { createInterface } from "node:readline";

const RULES = [
  [/untested|no test/, "tmct_untested"],
  [/tests cover|test that covers/, "tmct_tests_for"],
  [/subclasses|built on top/, "tmct_subclasses"],
  [/members/, "tmct_members"],
  [/export|pass on/, "tmct_exports"],
  [/same commit/, "tmct_cochanges"],
  [/history|has changed/, "tmct_history"],
  [/other word/, "tmct_related"],
  [/signature/i, "tmct_signature"],
  [/call edge/, "tmct_calls"],
  [/callees|What does .* call/, "tmct_callees"],
  [/callers| calls? /, "tmct_callers"],
  [/impact|affected|feel it/, "tmct_impact"],
  [/overview|lay of the land/, "tmct_architecture"],
  [/Search|mentions/, "tmct_search"],
  [/^Describe/, "tmct_describe"],
];

// The first word that looks like a name of code; else the last word.
function named(request) {
  const words = request.split(/\s+/).map((word) => word.replace(/[.,:?!]+$/, ""));
  const like = (word, at) => /\/|_|[a-z.][A-Z]|\.[a-z]/.test(word) || (at > 0 && /^[A-Z][a-z]/.test(word));
  return words.find(like) ?? words.at(-1);
}

function argumentsFor(tool, request, schema) {
  const properties = Object.keys(schema.properties ?? {});
  if (!properties.length) return {};
  if (tool === "tmct_architecture") {
    const path = request.match(/\S+\/\S*\w/);
    return path ? { package: path[0] } : {};
  }
  if (tool === "tmct_search") {
    const query = request.match(/"([^"]*)"/)?.[1] ?? named(request);
    return /classes/.test(request) ? { query, kind: "Class" } : { query };
  }
  return { [schema.required?.[0] ?? properties[0]]: named(request) };
}

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

for await (const line of createInterface({ input: process.stdin })) {
  const { id, task } = JSON.parse(line);
  if (!task) {
    say({ id, final: {} }); // what went well is claimed by itself
    continue;
  }
  if (task.role === "synthesis") {
    say({ id, final: { refused: task.request.includes("it was refused") } });
    continue;
  }
  const found = RULES.find(([words, name]) => words.test(task.request) && task.tools.includes(name));
  if (!found) {
    say({ id, final: { refused: true, notes: ["no declared tool fits"] } });
    continue;
  }
  const schema = task.schemas.find((tool) => tool.name === found[1]).input_schema;
  say({ id, call: { name: found[1], input: argumentsFor(found[1], task.request, schema) } });
}
