// One task after the other: call the first declared tool without arguments, and answer what it said.
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, task, result } = JSON.parse(line);
  const tool = task?.tools[0]; // there is none for a synthesis or a plan
  if (tool) say({ id, call: { name: tool, input: {} } });
  else say({ id, final: { answer: result?.text ?? "nothing to call" } });
}
