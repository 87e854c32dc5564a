"""Secrets by their shapes and their names; what is none stays to the letter."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.results.redaction import redact

LONG = "a1B2c3D4" * 5
SECRETS = {
    "openai": (f"key sk-proj-{LONG}.", "key «redacted»."),
    "anthropic": (f"(sk-ant-api03-{LONG}_x)", "(«redacted»)"),
    "github": (f"git clone https://ghp_{LONG}@host", "git clone https://«redacted»@host"),
    "github, fine": (f"github_pat_{LONG}", "«redacted»"),
    "aws": ("id AKIAIOSFODNN7EXAMPLE, then", "id «redacted», then"),
    "google": ("AIza" + "b2" * 17 + "c", "«redacted»"),
    "hugging face": (f"hf_{LONG}", "«redacted»"),
    "slack": ("xoxb-123456789012-abc", "«redacted»"),
    "bearer": (f"Authorization: Bearer {LONG}==", "Authorization: Bearer «redacted»"),
    "name": ("export OPENAI_API_KEY=abcdef123 && run", "export OPENAI_API_KEY=«redacted» && run"),
    "name, quoted": ('HF_TOKEN="abcdef123"', 'HF_TOKEN="«redacted»"'),
    "password": ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=«redacted»"),
    "field": ('{"api_key": "abcdef123", "n": 1}', '{"api_key": "«redacted»", "n": 1}'),
    "field, other spelling": ("{'x-api-key':'abcdef123'}", "{'x-api-key':'«redacted»'}"),
    "field in JSON in JSON": ('"{\\"apiKey\\": \\"abcdef123\\"}"', '"{\\"apiKey\\": \\"«redacted»\\"}"'),
    "at a line end of JSON": (f'"a\\nsk-{LONG}"', '"a\\n«redacted»"'),
}
NONE = [
    "risk-averse-agents-of-2024-and-later",
    "a task-0123456789-abcdefghijkl",
    "sk-learn-compatible-estimators",
    "OPENAI_API_KEY=os.environ['OPENAI_API_KEY']",
    "OPENAI_API_KEY=$OPENAI_API_KEY",
    "MAX_TOKEN=12",
    "a bearer of bad news, who walked for many days",
    "AKIA",
    '{"api_key": null}',
    "n_tokens=123456789",
]


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_go(name: str) -> None:
    text, clean = SECRETS[name]
    assert redact(text) == clean
    assert redact(clean) == clean


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


PIECES = st.sampled_from(
    [*(text for text, _ in SECRETS.values()), '"', "\\", "\n", "'", "=", "é", "sk-", "_API_KEY="]
)


@given(st.lists(st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join), max_size=4))
def test_json_stays_json(texts: list[str]) -> None:
    """Also where the texts are JSON themselves: a secret never takes a quote or a backslash with it."""
    once = json.dumps(texts)
    assert len(json.loads(redact(once))) == len(texts)
    assert json.loads(json.loads(redact(json.dumps(once)))) is not None


@pytest.mark.parametrize("piece", ["A", "A_", "sk-", "Bearer ", "_KEY=", "x-api-key", '\\\\"', "AKIA"])
def test_long_texts_take_no_longer_than_they_are(piece: str) -> None:
    text = "_API_KEY sk- Bearer " + piece * (400_000 // len(piece))
    start = time.perf_counter()
    redact(text)
    assert time.perf_counter() - start < 3
