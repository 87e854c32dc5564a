"""One request to an endpoint and what comes of it: bytes, or an error that says whose it is.

The key goes into the header of a request and nowhere else: it is read when it is needed, kept in no object, and taken
out of whatever the endpoint sends back before anybody reads that.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from agentbench_lab.drivers import keys
from agentbench_lab.drivers.base import InfrastructureError, Misconfigured
from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Usage

if TYPE_CHECKING:
    import httpx2

NOTHING = Usage(0, 0, 0, 0, model_calls=0)
"""What a request has used that was turned away: the endpoint says that it gave no answer."""
LOST = Usage(model_calls=1)
"""What a request has used whose answer never came: nobody knows."""
_AGAIN = frozenset({408, 409, 425, 429})
_MISSING = "chat drivers need the extra: pip install 'agentbench-lab[live]'"


class ContextFull(Exception):
    """The dialogue is longer than what the model can read: the agent's own end, and no fault of the endpoint's."""


class _Open:
    """The client of one event loop, and what keeps it open."""

    def __init__(self, client: httpx2.AsyncClient, lifetime: AsyncIterator[None]) -> None:
        self.client, self.lifetime = client, lifetime


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()


async def post(url: str, body: bytes, timeout: float) -> bytes:
    """The answer of the endpoint, without the key in it.

    Raises InfrastructureError where the other side failed, Misconfigured where nothing will ever come of asking (a
    wrong key, a model that is not there), ContextFull where the dialogue is too long.
    """
    import httpx2

    loop = asyncio.get_running_loop()
    held = _clients.get(loop) or await _opened(loop)
    key = keys.api_key()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        async with asyncio.timeout(timeout):
            answer = await held.client.post(url, content=body, headers=headers)
    except TimeoutError:
        raise InfrastructureError(f"no answer within {timeout:g} s", usage=LOST) from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError) as error:
        raise InfrastructureError(f"cannot connect: {_said(error)}", usage=NOTHING) from None
    except httpx2.TransportError as error:
        raise InfrastructureError(f"the answer broke off: {_said(error)}", usage=LOST) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise InfrastructureError(f"no answer that can be read: {_said(error)}", usage=LOST) from None
    content = _clean(answer.content)
    if answer.status_code == 200:
        return content
    raise failure(answer.status_code, answer.headers.get("retry-after", ""), content)


def failure(status: int, retry_after: str, content: bytes) -> Exception:
    """The error that an answer with this status stands for."""
    code, said = _error(content)
    what = f"the endpoint answers {status}{f': {said}' if said else ''}"
    if status in (400, 413, 422) and _too_long(status, code, said):
        return ContextFull(what)
    if status in (401, 403, 404, 405, 407) or status // 100 == 3 or code == "insufficient_quota":
        return Misconfigured(f"{what}{_hint(status)}")
    if status in _AGAIN or status >= 500:
        return InfrastructureError(what, retry_after=seconds(retry_after), usage=NOTHING)
    return InfrastructureError(what, usage=NOTHING, final=True)


def seconds(retry_after: str, now: datetime | None = None) -> float | None:
    """The seconds of a Retry-After header, which holds a number or a date; None where it says neither."""
    with suppress(ValueError):
        value = float(retry_after)
        return value if 0 <= value < float("inf") else None
    try:
        at = parsedate_to_datetime(retry_after)
    except (TypeError, ValueError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())


def _hint(status: int) -> str:
    if status in (401, 403, 407):
        return f" (the key is read from {' or '.join(keys.NAMES)})" if not keys.api_key() else ""
    if status == 404 or status // 100 == 3:
        return " (is the base URL right? most end with /v1; and is the model's name?)"
    return ""


def _too_long(status: int, code: str, said: str) -> bool:
    words = said.casefold()
    return (
        status == 413
        or code == "context_length_exceeded"
        or any(sign in words for sign in ("context length", "context window", "context size"))
        or "prompt is too long" in words
    )


def _error(content: bytes) -> tuple[str, str]:
    """The code and the message of an error, as short lines; an error page that is no JSON is its own message."""
    try:
        value = msgspec.json.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "", " ".join(content[:300].decode(errors="replace").split())
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return "", " ".join(str(error)[:300].split())
    code = error.get("code") or error.get("type") or ""
    said = error.get("message") or error.get("detail") or ""
    return str(code)[:100], " ".join(str(said)[:300].split())


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}{f': {error}' if str(error) else ''}"


def _clean(content: bytes) -> bytes:
    """The answer without the key, however JSON writes it."""
    for form in keys.known():
        if form.encode() in content:
            content = content.replace(form.encode(), keys.REDACTED.encode())
    if keys.known() and b"\\" in content:
        # an escape may hide a letter of it
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            value = msgspec.json.decode(content)
            clean = keys.without_in(value)
            if clean is not value:
                return msgspec.json.encode(clean)
    return content


# ---- one client for each event loop


async def _opened(loop: asyncio.AbstractEventLoop) -> _Open:
    try:
        import httpx2
    except ImportError:
        raise LabError(_MISSING) from None
    client = httpx2.AsyncClient(
        # trials side by side are the runner's to bound
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60),
        timeout=httpx2.Timeout(None, connect=10.0),
        verify=_trusted(),
    )
    lifetime = _lifetime(client)
    held = _clients[loop] = _Open(client, lifetime)
    await anext(lifetime)
    return held


async def _lifetime(client: httpx2.AsyncClient) -> AsyncIterator[None]:
    """Open until its event loop ends: `asyncio.run` closes the generators that are left, on the loop itself."""
    try:
        yield
    finally:
        await client.aclose()


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Certificates to trust, read once: that takes longer than many a request."""
    import httpx2

    return httpx2.create_ssl_context()


# ---- answers that are kept


def cached(folder: str, key: bytes) -> bytes | None:
    """The answer that is kept under this key; None where there is none."""
    try:
        return _place(folder, key).read_bytes()
    except OSError:
        return None


def keep(folder: str, key: bytes, answer: bytes) -> None:
    """Keep an answer, whole or not at all. Raises Misconfigured where the folder does not take it."""
    place = _place(folder, key)
    temporary = place.with_name(f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(answer)
        temporary.replace(place)
    except OSError as error:
        raise Misconfigured(f"cache={folder}: cannot write there: {error.strerror}") from None


def _place(folder: str, key: bytes) -> Path:
    digest = hashlib.sha256(key).hexdigest()
    return Path(folder) / digest[:2] / f"{digest[2:]}.json"
