"""An Inspect AI log, read: its header, and its samples one after the other. Only the needed fields are decoded.

The events of a sample are the bulk of it and are skipped. The fields are those of `inspect_ai.log.EvalLog` (format
version 2) and what older versions called them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from agentbench_lab.benchmarks.inspect.archive import Archive, Content
from agentbench_lab.benchmarks.reading import decode_json, read_bytes
from agentbench_lab.errors import LabError

Count = Annotated[int, Meta(ge=0, le=2**53)]
Epoch = Annotated[int, Meta(ge=1, le=2**20)]
Seconds = Annotated[float, Meta(ge=0)]


class Said(Struct, frozen=True, gc=False):
    """An error: what it says."""

    message: str = ""


class Limit(Struct, frozen=True, gc=False):
    """The limit that ended a sample."""

    type: str


class ModelUsage(Struct, frozen=True, gc=False):
    """Tokens and money of one model; `input_tokens` leaves the cached ones out, in logs of old versions not always."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    total_tokens: Count = 0
    input_tokens_cache_write: Count | None = None
    input_tokens_cache_read: Count | None = None
    reasoning_tokens: Count | None = None
    total_cost: Annotated[float, Meta(ge=0)] | None = None


class Score(Struct, frozen=True):
    """One scorer's verdict: text, number, truth value, or a list or dict of such; null is a value that is no number,
    Inspect's mark of what could not be scored."""

    value: Any
    reason: str | None = None


class Choice(Struct, frozen=True):
    """One answer of the model."""

    message: dict[str, Any]


class Output(Struct, frozen=True):
    """The model's last output."""

    choices: list[Choice] = []
    completion: str | None = None


class OldTranscript(Struct, frozen=True):
    """Where versions of 2024 kept the attachments."""

    content: dict[str, str] = {}


class Sample(Struct):
    """A case, asked once."""

    id: int | str
    epoch: Epoch
    input: str | list[dict[str, Any]]
    target: str | list[str] = ""
    choices: list[str] | None = None
    messages: list[dict[str, Any]] = []
    output: Output | None = None
    scores: dict[str, Score] | None = None
    score: Score | None = None
    model_usage: dict[str, ModelUsage] = {}
    role_usage: dict[str, ModelUsage] = {}
    started_at: str | None = None
    completed_at: str | None = None
    total_time: Seconds | None = None
    working_time: Seconds | None = None
    uuid: str | None = None
    invalidation: dict[str, Any] | None = None
    error: Said | None = None
    error_retries: list[Said] | None = None
    attachments: dict[str, str] = {}
    transcript: OldTranscript | None = None
    limit: Limit | None = None
    turn_count: Count | None = None


class Metric(Struct, frozen=True):
    """One published figure; null is no number."""

    name: str
    value: float | None
    params: dict[str, Any] | None = None
    options: dict[str, Any] | None = None


class EvalScore(Struct, frozen=True):
    """The published figures of one scorer (and, for dicts of values, one key), reduced over epochs in one way."""

    name: str
    scorer: str = ""
    reducer: str | None = None
    metrics: dict[str, Metric] = {}


class Headline(Struct, frozen=True):
    """Which of the scorers the task means by its result."""

    scorer: str | None = None
    score: str | None = None


class Results(Struct, frozen=True):
    """What Inspect computed over the samples."""

    total_samples: Count = 0
    completed_samples: Count = 0
    scores: list[EvalScore] = []
    scorer: EvalScore | None = None
    metrics: dict[str, Metric] = {}
    headline: Headline | None = None

    def figures(self) -> list[EvalScore]:
        """The scores, in the form that old versions had too."""
        if self.scorer is None or self.scores:
            return self.scores
        return [msgspec.structs.replace(self.scorer, scorer=self.scorer.name, metrics=self.metrics)]


class Dataset(Struct, frozen=True):
    """What the samples were taken from; `sample_ids` are those that were selected."""

    samples: Count | None = None
    sample_ids: list[int | str] | None = None


class Config(Struct, frozen=True):
    """How the evaluation was asked for: how often each sample, and how many of them (or from which to which)."""

    epochs: Epoch | None = None
    limit: int | list[int] | None = None


class Revision(Struct, frozen=True):
    """The source that was evaluated."""

    commit: str = ""
    dirty: bool | None = None


class Spec(Struct, frozen=True):
    """What was evaluated."""

    task: str
    model: str
    eval_id: str = ""
    task_id: str = ""
    created: str = ""
    task_version: int | str = 0
    task_args: dict[str, Any] = {}
    solver: str | None = None
    solver_args: dict[str, Any] | None = None
    model_args: dict[str, Any] = {}
    model_base_url: str | None = None
    model_generate_config: dict[str, Any] = {}
    model_roles: dict[str, Any] | None = None
    dataset: Dataset = field(default_factory=Dataset)
    config: Config = field(default_factory=Config)
    revision: Revision | None = None


class Step(Struct, frozen=True):
    """One solver of the plan."""

    solver: str
    params: dict[str, Any] = {}


class Plan(Struct, frozen=True):
    """The solvers, in order."""

    steps: list[Step] = []


class Stats(Struct, frozen=True):
    """Times and usage of the whole evaluation."""

    started_at: str | None = ""
    completed_at: str | None = ""
    model_usage: dict[str, ModelUsage] = {}


class Header(Struct):
    """A log without its samples."""

    eval: Spec
    version: int = 2
    status: str = "started"
    plan: Plan | None = None
    results: Results | None = None
    stats: Stats | None = None
    error: Said | None = None


class _Json(Header):
    samples: list[Sample] | None = None


class Log(Struct):
    """One log: its file and the SHA-256 of that, its header, and its samples with attachments in their places."""

    path: Path
    digest: str
    header: Header
    samples: list[Sample]


_HEADER, _START = "header.json", "_journal/start.json"
_SAMPLE = msgspec.json.Decoder(Sample)


def read_log(path: Path) -> Log:
    """The log in a file, `.eval` or JSON by its first bytes.

    Raises LabError for a file that is no log, a damaged one, a format version above 2, and samples in chunks.
    """
    where = str(path)
    data = read_bytes(path)
    if data.startswith(b"PK"):
        header, samples = _from_archive(Archive(data, where), where)
    else:
        header = found = _decode(data, msgspec.json.Decoder(_Json), where)
        samples = found.samples or []
        for sample in samples:
            _settle(sample, where)
    if header.version > 2:
        raise LabError(f"{where}: format version {header.version} is not known; 2 is the latest that is")
    return Log(path, hashlib.sha256(data).hexdigest(), header, samples)


def is_log(path: Path) -> bool:
    """Whether a JSON file has the beginnings of a log; a folder of logs may hold other JSON files.

    Raises LabError for a file that is no JSON.
    """
    try:
        found: dict[str, msgspec.Raw] = _decode(
            read_bytes(path), msgspec.json.Decoder(dict[str, msgspec.Raw]), str(path)
        )
    except LabError as error:
        if "Expected `object`" in str(error):
            return False
        raise
    return "eval" in found and "status" in found


def _from_archive(archive: Archive, where: str) -> tuple[Header, list[Sample]]:
    """A finished log has a header; an unfinished one only what was written at its start."""
    names = archive.names
    first = next((name for name in (_HEADER, _START) if name in names), None)
    if first is None:
        raise LabError(f"{where}: a zip file without {_HEADER} or {_START}, so no Inspect log")
    header = _decode(archive.read(first), msgspec.json.Decoder(Header), f"{where}: {first}")
    members = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
    chunked = next((name for name in members if name.count("/") > 1), None)
    if chunked is not None:
        raise LabError(
            f"{where}: {chunked}: a sample in chunks, which is not read; write the log again without them"
        )
    samples = []
    for name, content in archive.read_all(members):
        sample = _decode(content, _SAMPLE, f"{where}: {name}")
        _settle(sample, where)
        samples.append(sample)
    return header, samples


def _decode(data: Content, decoder: Any, where: str) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # again, for the place of the error, and with null for the constants that JSON does not have
        return decode_json(_CONSTANT.sub(_null, bytes(data)), decoder.type, where)


_CONSTANT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|-?Infinity|NaN', re.DOTALL)


def _null(found: re.Match[bytes]) -> bytes:
    return found[0] if found[0].startswith(b'"') else b"null"


ATTACHED = 64_000_000
"""Characters that may come into one sample's texts in place of references; each reference counts, for each becomes text
in the tables."""


def _settle(sample: Sample, where: str) -> None:
    """Put texts where only their references stand. Raises LabError where they would be more than `ATTACHED`."""
    if sample.transcript is not None:
        sample.attachments = {**sample.transcript.content, **sample.attachments}
        sample.transcript = None
    if sample.attachments:
        texts = _Texts(sample.attachments, f"{where}: sample {sample.id!r}, epoch {sample.epoch}")
        sample.messages = texts.put(sample.messages)
        sample.input = texts.put(sample.input)
        if sample.output is not None and sample.output.choices:
            first = sample.output.choices[0]
            sample.output = Output([Choice(texts.put(first.message))])
    sample.attachments = {}


class _Texts:
    """The attachments of a sample, put in the place of their references."""

    def __init__(self, attachments: Mapping[str, str], where: str) -> None:
        self._attachments, self._where, self._room = attachments, where, ATTACHED

    def put(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value) if value.startswith(("attachment://", "tc://")) else value
        if isinstance(value, dict):
            return {key: self.put(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.put(item) for item in value]
        return value

    def _text(self, reference: str) -> str:
        name = reference.partition("://")[2]
        text = self._attachments.get(name, reference)
        if text.startswith("data:"):
            return reference  # pictures stay outside of the tables
        self._room -= len(text)
        if self._room < 0:
            raise LabError(
                f"{self._where}: attachments named in its messages come to more than {ATTACHED:,} characters, the last "
                f"of them {name[:60]!r} with {len(text):,}"
            )
        return text


def logs_in(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of the folders in it, that may be logs; hidden ones are passed over."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in (".eval", ".json") and path.is_file() and not hidden:
            yield path
