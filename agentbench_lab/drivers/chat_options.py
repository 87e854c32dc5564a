"""What stands behind `chat:`: a model, an endpoint, and how to ask it."""

from __future__ import annotations

import hashlib
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct

from agentbench_lab.drivers import keys
from agentbench_lab.errors import LabError, did_you_mean

DIALECT = "1"
"""Counted up when any words change that a model is sent: rows of another prompt are rows of another agent. A test holds
the digest of those words beside it."""
SHAPE = "chat:MODEL@BASE_URL[?option=value&...], such as chat:my-model@http://127.0.0.1:8000/v1?temperature=0"


class Options(Struct, frozen=True):
    """How a model is asked. None leaves a parameter to the endpoint.

    `calls`: `native` are the tool calls of the API; `schema` is one JSON object a turn, for models without a template
    for tools. `format` is how such an object is asked for: `json_schema`, or `json_object` with the schema beside it (as
    llama-cpp-python has it). `seed` is the seed that each trial derives its own from: one for all would make the trials
    of a case one trial. `timeout` is seconds of one request, `retries` how often a request is sent again within a trial
    that has begun, `turns` the most answers of the model in a trial, `cache` a folder in which answers are kept.
    """

    model: str
    url: str
    calls: Literal["native", "schema"] = "native"
    format: Literal["json_schema", "json_object"] = "json_schema"
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    timeout: float = 45.0
    retries: int = 3
    turns: int = 50
    cache: str = ""

    @property
    def version(self) -> str:
        """The start of the digest of what can change an answer."""
        said = msgspec.structs.replace(self, timeout=45.0, retries=3, cache="")
        return hashlib.sha256(msgspec.json.encode([DIALECT, said])).hexdigest()[:16]

    @property
    def endpoint(self) -> str:
        return f"{self.url}/chat/completions"


_NAMES = [name for name in Options.__struct_fields__ if name not in ("model", "url")]
_LEAST = {"temperature": 0, "top_p": 0, "max_tokens": 1, "timeout": 0.001, "retries": 0, "turns": 1}


def parse(text: str) -> Options:
    """The options of `MODEL@BASE_URL[?option=value&...]`. Raises LabError with the near match; no message shows a key."""
    model, at, rest = _split(text)
    if not model or not at:
        raise LabError(f"a chat driver is {SHAPE}")
    address, _, query = rest.partition("?")
    try:
        parts = urlsplit(address)
        sound = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise LabError(f"chat:{model}: the base URL is none; a chat driver is {SHAPE}")
    if parts.username is not None or parts.password is not None:
        raise LabError(
            f"chat:{model}: the URL holds a user or a key, and a name goes into every file; "
            f"put the key into {keys.NAMES[0]}"
        )
    if parts.fragment:
        raise LabError(f"chat:{model}: the URL has a fragment (#...), which no endpoint is sent")
    given: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _NAMES:
            if any(word in name.casefold() for word in ("key", "secret", "auth")):
                raise LabError(
                    f"chat:{model}: {name} cannot stand in a name, which goes into every file; "
                    f"put the key into {keys.NAMES[0]}"
                )
            raise LabError(f"chat:{model}: no option {name!r}{did_you_mean(name, _NAMES)}")
        if name in given:
            raise LabError(f"chat:{model}: {name} is given twice")
        given[name] = value
    url = address.rstrip("/").removesuffix("/chat/completions")
    try:
        options = msgspec.convert({"model": model, "url": url, **given}, Options, strict=False)
    except msgspec.ValidationError as error:
        where = str(error).rpartition("$.")[2].rstrip("`")
        if where in ("calls", "format"):
            words = ("native", "schema") if where == "calls" else ("json_schema", "json_object")
            raise LabError(
                f"chat:{model}: {where} {given[where]!r}{did_you_mean(given[where], words)}"
            ) from None
        raise LabError(f"chat:{model}: {where}={given.get(where, '')} is no number of that kind") from None
    for name, least in _LEAST.items():
        value = getattr(options, name)
        if value is not None and not least <= value < float("inf"):
            raise LabError(f"chat:{model}: {name}={given[name]}; it is a number from {least}")
    return options


def _split(text: str) -> tuple[str, str, str]:
    """The model and the URL; a model's own name may hold an @."""
    places = [place for place in (text.find("@http://"), text.find("@https://")) if place >= 0]
    if not places:
        return text, "", ""
    return text[: min(places)], "@", text[min(places) + 1 :]
