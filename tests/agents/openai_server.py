"""A scripted endpoint of the chat completions API, over real HTTP on loopback.

The script is a list of answers, given out in the order in which requests come, or a function from the number of the
request and its body to an answer. What was asked stands in `server.requests`, headers in `server.headers`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass
class Answer:
    """What is sent back. `hang` never answers; `promised` is a Content-Length that is larger than the body."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    hang: bool = False
    promised: int = 0


Script = Sequence[Answer] | Callable[[int, dict[str, Any]], Answer]


def completion(message: dict[str, Any], finish: str = "stop", usage: Any = USAGE, model: str = "m") -> Answer:
    body = {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }
    return Answer(body if usage is None else {**body, "usage": usage})


def says(text: str, finish: str = "stop", usage: Any = USAGE, model: str = "m") -> Answer:
    return completion({"content": text}, finish, usage, model)


def calls(*asked: tuple[str, Any], finish: str = "tool_calls", usage: Any = USAGE) -> Answer:
    """Calls of the API; arguments that are text are sent as they stand."""
    listed = [
        {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(asked)
    ]
    return completion({"content": None, "tool_calls": listed}, finish, usage)


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer({"error": {"message": message, "type": "error", "code": code}}, status, named)


class Server:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()
        self.connections = 0
        mine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                mine.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = mine.answer(body, dict(self.headers.items()), self.path)
                if answer.hang:
                    mine.over.wait(60)
                    self.close_connection = True
                    return
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(answer.promised or len(data)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = bool(answer.promised)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Many(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._http = Many(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def answer(self, body: dict[str, Any], headers: dict[str, str], path: str) -> Answer:
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append({**headers, "path": path})
            if callable(self._script):
                return self._script(number, body)
            if number >= len(self._script):
                return fails(500, f"the script has {len(self._script)} answers, and this is one more")
            return self._script[number]


@contextmanager
def serving(script: Script) -> Iterator[Server]:
    server = Server(script)
    thread = threading.Thread(target=server._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server._http.shutdown()
        server._http.server_close()
        thread.join(5)
