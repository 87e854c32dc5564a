"""A chat endpoint in a process of its own, as quick as Python makes one: it answers every request in 50 ms by a refusal.

Prints its port, and serves until its stdin ends.
"""

from __future__ import annotations

import asyncio
import json
import sys

WAIT_S = 0.05
BODY = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "stub",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "refuse", "arguments": '{"reason": "none fits"}'},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)


class Endpoint(asyncio.Protocol):
    """Just enough of HTTP/1.1: requests with a Content-Length, one after the other on a connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.held = transport, b""

    def data_received(self, data: bytes) -> None:
        self.held += data
        while True:
            head, blank, rest = self.held.partition(b"\r\n\r\n")
            if not blank:
                return
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(rest) < length:
                return
            self.held = rest[length:]
            asyncio.get_running_loop().call_later(WAIT_S, self.transport.write, ANSWER)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Endpoint, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
