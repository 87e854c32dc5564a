"""An agent that describes what it is asked to, except for Cart, where it is in the mood that its argument names.

Given as a command in our line protocol; `python -I -S`, so that it starts at once.
"""

import json
import os
import signal
import subprocess
import sys
import time

MOOD = sys.argv[1] if len(sys.argv) > 1 else "good"
IDS = "--without-ids" not in sys.argv
out = sys.stdout.buffer


def write(data: bytes) -> None:
    out.write(data)
    out.flush()


def say(message: dict, id: str) -> None:
    write(json.dumps({**({"id": id} if IDS else {}), **message}).encode() + b"\n")


def read() -> dict:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def act(id: str, task: dict) -> None:
    what = task["request"].split()[-1]
    say({"call": {"name": task["tools"][0], "input": {"symbol": what}}}, id)
    assert "result" in read()
    say({"final": {}}, id)


def call(id: str, **fields: object) -> None:
    say({"call": {"name": "tmct_describe", "input": {"symbol": "Cart"}, **fields}}, id)


def final(id: str, **fields: object) -> None:
    say({"final": fields}, id)


def moody(id: str, task: dict) -> None:
    match MOOD:
        case "chatter":
            write(b'Loading model...\n[1, 2]\n\n"text"\n{"level": "info"}\n')
            act(id, task)
        case "one final too many":
            act(id, task)
            final(id, refused=True)
        case "a late final":
            act(id, task)
            os.set_inheritable(1, True)
            late = json.dumps({"id": id, "final": {"refused": True}})
            subprocess.Popen(["sh", "-c", f"sleep 0.1; printf '%s\\n' '{late}'"], stdin=subprocess.DEVNULL)
        case "a late final without an id":
            act(id, task)
            write(b'{"final": {"refused": true}}\n')
        case "half a line too many":
            act(id, task)
            write(b'{"final": {"refu')
        case "a long call":
            call(id, input={"symbol": "x" * 2_000_000})
            assert read()["result"]["status"] == "malformed"
            act(id, task)
        case "a long final":
            final(id, answer="x" * 2_000_000)
        case "an endless line":
            while True:
                write(b'{"call": "' + b"x" * 1_000_000)
        case "no UTF-8":
            write(b'{"id": "' + id.encode() + b'", "final": {"answer": "\xff\xfe"}}\n')
        case "a key twice":
            write(b'{"id": "' + id.encode() + b'", "final": {"answer": 1, "answer": 2}}\n')
        case "no JSON":
            write(b"{'final': {}}\n")
        case "NaN":
            write(b'{"id": "' + id.encode() + b'", "final": {"answer": NaN}}\n')
        case "deep":
            write(b'{"id": "' + id.encode() + b'", "final": {"answer": ' + b"[" * 100_000 + b"\n")
        case "a misspelt kind":
            say({"finale": {}}, id)
        case "two kinds":
            say({"final": {}, "call": {"name": "tmct_describe"}}, id)
        case "arguments":
            say({"call": {"name": "tmct_describe", "arguments": {"symbol": "Cart"}}}, id)
            read()
        case "no name":
            say({"call": {"input": {}}}, id)
        case "a final that is none":
            say({"final": 5}, id)
        case "an unknown key":
            final(id, anser=5)
        case "a lie":
            final(id, calls=[{"name": "tmct_describe", "input": {"symbol": "Cart"}}])
        case "crash":
            call(id)
            read()
            sys.stderr.write("Traceback\nValueError: no \x00 good\n")
            sys.exit(3)
        case "signal":
            call(id)
            read()
            os.kill(os.getpid(), signal.SIGSEGV)
        case "goes":
            sys.exit(0)
        case "closes stdout":
            os.close(1)
            time.sleep(60)
        case "ignores stdin":
            for _ in range(2_000):
                call(id)
            time.sleep(60)
        case "floods stderr":
            for _ in range(200):
                sys.stderr.write("noise " * 10_000 + "\n")
            act(id, task)
        case "never":
            call(id)
            read()
            time.sleep(60)
        case "spends":
            say({"spend": {"fresh_input": 60, "output": 60, "model_calls": 1}}, id)
            time.sleep(60)
        case "fails":
            say({"failed": {"message": "429", "retry_after": 0}}, id)
        case "too many calls":
            while True:
                call(id)
                read()
        case _:
            act(id, task)


while True:
    message = read()
    if "task" not in message:
        continue
    if message["task"]["request"] == "Describe Cart":
        moody(message["id"], message["task"])
    else:
        act(message["id"], message["task"])
