"""Secrets taken out of texts that a run keeps: keys of providers, by their shapes and by the names they stand under.

A shape is not proof: a secret of a form that is not listed stays, and what only looks like a key goes. The keys that
drivers use are known and not guessed (`drivers.keys`).
"""

from __future__ import annotations

import re

from agentbench_lab.drivers import keys

REDACTED = keys.REDACTED

_HINTS = (
    *(
        "sk-",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "hf_",
        "xox",
        "AKIA",
        "ASIA",
        "AIza",
    ),
    *(
        "earer ",
        "_KEY",
        "_TOKEN",
        "_SECRET",
        "_PASSWORD",
        "api_key",
        "api-key",
        "apikey",
        "apiKey",
        "Api-Key",
    ),
    *("API-Key", "ApiKey", "APIKEY", "access_token", "secret_key", "client_secret"),
)
"""One of these is in every text that the pattern finds something in; looking for them is far quicker."""

# A text may be JSON, whose line ends are written with a letter and whose quotes with a backslash: `\nsk-`, `\"api_key\"`.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf]))"
_SECRET = re.compile(
    rf"""
      {_START} (?: (?P<key>sk-[A-Za-z0-9_-]{{16,}}+)
                 | gh[pousr]_[A-Za-z0-9]{{20,}}+ | github_pat_[A-Za-z0-9_]{{20,}}+ | glpat-[A-Za-z0-9_-]{{20,}}+
                 | hf_[A-Za-z0-9]{{20,}}+ | xox[abeoprs]-[A-Za-z0-9-]{{10,}}+
                 | (?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9]) | AIza[A-Za-z0-9_-]{{35}} )
    | (?P<bearer>[Bb]earer\ )(?P<token>[A-Za-z0-9._~+/=-]{{16,}}+)
    | (?P<named>{_START}[A-Z][A-Z0-9_]*_(?:API_KEY|ACCESS_KEY|SECRET_KEY|KEY|TOKEN|SECRET|PASSWORD)=(?:\\*["'])?)
      (?![\w.]*+[(\[])[^\s"'\\`;,&|<>(){{}}$\[\]]{{8,}}+
    | (?P<field>\\*["'](?:[Xx]-)?(?:[Aa][Pp][Ii][_-]?[Kk][Ee][Yy]|access_token|secret_key|client_secret)\\*["']\s*:\s*\\*["'])
      [^\s"'\\]{{8,}}+
    """,
    re.VERBOSE,
)


def redact(text: str) -> str:
    """The text without the secrets that this process has read from its environment, whatever their shape (`drivers.keys`),
    and without what looks like one."""
    return shapes(keys.without(text))


def shapes(text: str) -> str:
    """The text without what looks like a secret, each replaced by `«redacted»`; JSON stays JSON.

    Shapes: `sk-...`, tokens of GitHub, GitLab, Hugging Face and Slack, keys of AWS and Google; what follows `Bearer`;
    the value of `NAME_API_KEY=value` (also _TOKEN, _SECRET, _PASSWORD, _KEY) and of `"api_key": "value"`.
    """
    if not any(hint in text for hint in _HINTS):
        return text
    return _SECRET.sub(_without, text)


def _without(found: re.Match[str]) -> str:
    words = found["key"] or found["token"]
    if words and not any(letter in "0123456789" for letter in words):
        return found[0]  # words joined by hyphens; asked here, where it takes the text once
    kept: str = found["bearer"] or found["named"] or found["field"] or ""
    return kept + REDACTED
