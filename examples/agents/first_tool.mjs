// One task after the other: call the first declared tool without arguments, and answer what it said.
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, task, result } = JSON.parse(line);
  if (task) say({ id, call: { name: task.tools[0], input: {} } });
  if (result) say({ id, final: { answer: result.text } });
}
