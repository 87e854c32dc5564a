"""One task after the other: call the first declared tool without arguments, and answer what it said."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message.get("task", {}).get("tools"):  # there are none for a synthesis or a plan
        said = {"call": {"name": message["task"]["tools"][0], "input": {}}}
    else:
        said = {"final": {"answer": message.get("result", {"text": "nothing to call"})["text"]}}
    print(json.dumps({"id": message["id"], **said}), flush=True)
