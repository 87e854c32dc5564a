"""One request to an endpoint and what comes of it: bytes, or an error that says whose it is.

The key goes into the header of a request and nowhere else: it is read when it is needed, kept in no object, and taken
out of whatever the endpoint sends back before anybody reads that.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import re
import secrets
import ssl
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import msgspec

from agentbench_lab.drivers import keys
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.drivers.lasting import LASTING
from agentbench_lab.transcripts import Usage

if TYPE_CHECKING:
    import httpcore2

NOTHING = Usage(0, 0, 0, 0, model_calls=0)
"""What a request has used that was turned away: the endpoint says that it gave no answer."""
LOST = Usage(model_calls=1)
"""What a request has used whose answer never came: nobody knows."""
_HEADERS = [
    (b"Content-Type", b"application/json"),
    (b"Accept", b"application/json"),
    (b"User-Agent", b"agentbench-lab"),
]
_EXTENSIONS = {"timeout": {"connect": 10.0}}
_CLOSE_S = 2.0
_AGAIN = frozenset({408, 409, 425, 429})
_USERS = frozenset({401, 402, 403, 404, 405, 407, 410})
_USERS_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "invalid_api_key",
        "model_not_found",
    }
)
"""What endpoints call a refusal that every trial would meet, whatever its status."""
_NO_MODEL = re.compile(
    r"(?:unknown|invalid|no such) model\b|not a valid model\b"
    r"|\bmodel:? \S*[^\sa-z]\S* (?:(?:was|is) )?(?:not (?:found|available|supported)|does not exist)",
    re.IGNORECASE,
)
_MODERATED = re.compile(r"moderation|flagged", re.IGNORECASE)
_MISSING = "chat drivers need the extra: pip install 'agentbench-lab[live]'"


def check_installed() -> None:
    """Raises Misconfigured where the extra is missing; nothing is imported for it."""
    if not all(importlib.util.find_spec(name) for name in ("httpx2", "httpcore2")):
        raise Misconfigured(_MISSING)


class ContextFull(Exception):
    """The dialogue is longer than what the model can read: the agent's own end, and no fault of the endpoint's."""


class _Open:
    """The connections of one event loop to one endpoint, and what keeps them open.

    They are httpx2's own, taken from its core one by one: its pool looks at every connection that waits before each
    request, which with 64 side by side takes longer than the request itself. Through a proxy it is the pool all the same.
    """

    def __init__(self, url: str) -> None:
        import httpcore2
        import httpx2

        parsed = httpx2.URL(url)
        self.url = httpcore2.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
        )
        self.headers = [(b"Host", parsed.netloc), *_HEADERS]
        proxies = {} if proxy_bypass(parsed.host) else getproxies()
        proxy = proxies.get(parsed.scheme) or proxies.get("all")
        # without TLS nothing is trusted, and nothing has to be read
        tls = parsed.scheme == "https" or proxy
        files = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        self._trusted = _trusted(*files) if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._free: list[httpcore2.AsyncHTTPConnection] = []
        self.links: set[httpcore2.AsyncHTTPConnection | httpcore2.AsyncHTTPProxy] = set()
        self.lifetime: AsyncGenerator[None] | None = None
        self._proxy = httpcore2.AsyncHTTPProxy(proxy, ssl_context=self._trusted) if proxy else None
        if self._proxy is not None:
            self.links.add(self._proxy)

    async def send(self, body: bytes, key: str) -> httpcore2.Response:
        """The answer to one request, read to its end."""
        headers = [*self.headers, (b"Content-Length", b"%d" % len(body))]
        if key:
            headers.append((b"Authorization", b"Bearer " + key.encode()))
        if self._proxy is not None:
            return await self._proxy.request(
                "POST", self.url, headers=headers, content=body, extensions=_EXTENSIONS
            )
        link = await self._take()
        try:
            answer = await link.request(
                "POST", self.url, headers=headers, content=body, extensions=_EXTENSIONS
            )
        except BaseException:
            # it has closed itself
            self.links.discard(link)
            raise
        self._free.append(link)
        return answer

    async def _take(self) -> httpcore2.AsyncHTTPConnection:
        """A connection that is open and free, else a new one."""
        import httpcore2

        while self._free:
            link = self._free.pop()
            if link.is_available() and not link.has_expired():
                return link
            self.links.discard(link)
            await link.aclose()
        link = httpcore2.AsyncHTTPConnection(
            origin=self.url.origin, ssl_context=self._trusted, keepalive_expiry=60.0
        )
        self.links.add(link)
        return link

    async def rest(self) -> None:
        """Close what waits for a next request."""
        while self._free:
            link = self._free.pop()
            self.links.discard(link)
            await link.aclose()


@lru_cache(maxsize=4)
def _trusted(*files: str | None) -> ssl.SSLContext:
    """Whom TLS trusts, read once: that takes longer than many a request. `files` are those that the environment names."""
    import httpx2

    return httpx2.create_ssl_context()


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Open]] = WeakKeyDictionary()


async def _opened(url: str) -> _Open:
    by_url = _open.setdefault(asyncio.get_running_loop(), {})
    held = by_url.get(url)
    if held is None:
        held = by_url[url] = _Open(url)
        held.lifetime = _lifetime(by_url, url)
        await anext(held.lifetime)
    return held


async def _lifetime(by_url: dict[str, _Open], url: str) -> AsyncGenerator[None]:
    """Open until the event loop ends: `asyncio.run` closes the generators that are left, on the loop itself."""
    try:
        yield
    finally:
        # connections know their loop: held on to, they would keep it, and with it all of its run
        for link in by_url.pop(url).links:
            await link.aclose()


_starting = threading.Lock()
_shared: tuple[int, asyncio.AbstractEventLoop] | None = None
"""The process and the loop of it on which the requests of short-lived loops are made."""


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _shared
    with _starting:
        if _shared is None or _shared[0] != os.getpid():
            loop = asyncio.new_event_loop()
            LASTING.add(loop)
            threading.Thread(target=loop.run_forever, daemon=True, name="agentbench-lab chat").start()
            _shared = os.getpid(), loop
        return _shared[1]


def close() -> None:
    """Give back the connections that wait for a next request; a run that still goes on opens new ones."""

    async def rest() -> None:
        for held in list(_open.get(asyncio.get_running_loop(), {}).values()):
            await held.rest()

    if _shared is not None and _shared[0] == os.getpid():
        asyncio.run_coroutine_threadsafe(rest(), _shared[1]).result(_CLOSE_S)


async def post(url: str, body: bytes, timeout: float) -> bytes:
    """The answer of the endpoint, without the key in it.

    A worker of a scaffold and a trial in a thread have a loop of their own that ends with them. What they ask goes over
    the connections of one loop of the process, or each of them would open its own.

    Raises InfrastructureError where the other side failed, Misconfigured where nothing will ever come of asking (a
    wrong key, a model that is not there), ContextFull where the dialogue is too long.
    """
    try:
        import httpcore2
    except ImportError:
        # here, though not where the run was begun
        raise Misconfigured(_MISSING) from None
    if asyncio.get_running_loop() not in LASTING:
        asked = asyncio.run_coroutine_threadsafe(post(url, body, timeout), _shared_loop())
        return await asyncio.wrap_future(asked)
    held = await _opened(url)
    try:
        async with asyncio.timeout(timeout):
            answer = await held.send(body, keys.api_key())
    except TimeoutError:
        raise InfrastructureError(f"no answer within {timeout:g} s", usage=LOST) from None
    except (
        httpcore2.ConnectError,
        httpcore2.ConnectTimeout,
        httpcore2.ProxyError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise InfrastructureError(f"cannot connect: {_said(error)}", usage=NOTHING) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise InfrastructureError(f"the answer broke off: {_said(error)}", usage=LOST) from None
    if answer.status == 200:
        return _clean(answer.content, keys.of_endpoints())
    later = [value for name, value in answer.headers if name.lower() == b"retry-after"]
    raise failure(answer.status, later[-1].decode("latin-1") if later else "", _clean(answer.content))


def failure(status: int, retry_after: str, content: bytes) -> Exception:
    """The error that an answer with this status stands for."""
    code, said = _error(content)
    what = f"the endpoint answers {status}{f': {said}' if said else ''}"
    if status in (400, 413, 422) and _too_long(status, code, said):
        return ContextFull(what)
    if _users(status, code, said):
        return Misconfigured(f"{what}{_hint(status)}")
    if status in _AGAIN or status >= 500:
        return InfrastructureError(what, retry_after=seconds(retry_after), usage=NOTHING)
    return InfrastructureError(what, usage=NOTHING, final=True)


def _users(status: int, code: str, said: str) -> bool:
    """Whether the run is set up wrongly, so that every trial would be turned down."""
    if status == 403 and _MODERATED.search(said):
        # what this one request says is not taken
        return False
    no_model = status in (400, 422) and _NO_MODEL.search(said)
    return status in _USERS or status // 100 == 3 or code in _USERS_CODES or bool(no_model)


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
    if status == 402:
        return " (no credit is left there)"
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


def _clean(content: bytes, secrets: keys.Secrets | None = None) -> bytes:
    """The answer without these secrets (all that are known), however JSON writes them."""
    text = content.decode(errors="surrogateescape")
    return keys.without(text, secrets).encode(errors="surrogateescape")


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
