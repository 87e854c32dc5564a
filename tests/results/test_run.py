"""A run on disk: what is saved is what is read, and what is not whole is said to be in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench_lab.errors import LabError
from agentbench_lab.results.product import encode_rows
from agentbench_lab.results.run import Counts, Run, RunCard, check_run, load_run, save, write_file
from agentbench_lab.results.schema import SCHEMAS
from agentbench_lab.running.merge import regrade_run
from agentbench_lab.running.runner import evaluate

from ..doing import knows, write_suite


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return evaluate(write_suite(folder), [knows, "stub", "reckless"], out=folder / "run")


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """The same run in a folder of its own, to be damaged."""
    assert run.path is not None
    copy = tmp_path / "run"
    copy.mkdir()
    for file in run.path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


def test_what_is_saved_is_what_is_read(run: Run) -> None:
    """Every table with its types and descriptions, the card, the product rows."""
    assert run.path is not None
    again = load_run(run.path)
    assert again.card == run.card
    assert again.path == run.path
    assert encode_rows(again.product) == encode_rows(run.product)
    for grain, schema in SCHEMAS.items():
        assert getattr(again, grain).equals(getattr(run, grain)), grain
        assert getattr(again, grain).schema.equals(schema, check_metadata=True), grain


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o002, 0o664)])
def test_who_may_read_a_file_is_the_users_own_choice(tmp_path: Path, mask: int, mode: int) -> None:
    was = os.umask(mask)
    try:
        write_file(tmp_path / "a", b"1")
    finally:
        os.umask(was)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_saving_twice_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    assert run.path is not None
    save(load_run(run.path), tmp_path)
    for file in run.path.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


def doctor_card(folder: Path, change: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    change(card)
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def without_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def without_a_column(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop_columns(["outcome"]), path)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no card": (lambda f: (f / "card.json").unlink(), "no run (no card.json)"),
    "only a journal": (
        lambda f: ((f / "card.json").unlink(), (f / "journal.jsonl").touch()),
        "an unfinished run (no card.json)",
    ),
    "card not JSON": (lambda f: (f / "card.json").write_text("{", encoding="utf-8"), "not a card of agentbench-lab/run/v1"),
    "card of bytes": (lambda f: (f / "card.json").write_bytes(b"\xff\xfe"), "not a card of agentbench-lab/run/v1"),
    "card of another kind": (lambda f: (f / "card.json").write_text("[]", encoding="utf-8"), "not a card of"),
    "a foreign card": (lambda f: doctor_card(f, lambda c: c.update(format="other/v9")), "format 'other/v9' is not"),
    "a card without counts": (lambda f: doctor_card(f, lambda c: c.pop("counts")), "missing required field `counts`"),
    "counts that do not add up": (
        lambda f: doctor_card(f, lambda c: c["counts"].update(judged=1)),
        "judged 1 + excluded 0 + missing 0 is not asked 42",
    ),
    "other counts": (
        lambda f: doctor_card(f, lambda c: c["counts"].update(judged=41, missing=1)),
        "the card counts 41 judged and 0 excluded trials, the table has 42 and 0",
    ),
    "a missing table": (lambda f: (f / "calls.parquet").unlink(), "calls.parquet"),
    "a truncated table": (lambda f: truncate(f / "trials.parquet"), "trials.parquet"),
    "an empty table file": (lambda f: (f / "cases.parquet").write_bytes(b""), "cases.parquet"),
    "a table without a column": (
        lambda f: without_a_column(f / "trials.parquet"),
        "trials: other columns than the schema's: outcome",
    ),
    "a missing product": (lambda f: (f / "product.jsonl").unlink(), "product.jsonl: No such file"),
    "a product row too few": (
        lambda f: without_last_line(f / "product.jsonl"),
        "42 trials but 41 rows in product.jsonl",
    ),
    "a torn product row": (lambda f: truncate(f / "product.jsonl"), "product.jsonl:42: no product row: "),
    "a product of something else": (
        lambda f: (f / "product.jsonl").write_text('{"id": 1}\n' * 42, encoding="utf-8"),
        "product.jsonl:1: no product row: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_run_is_one_clear_line(folder: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    damage(folder)
    with pytest.raises(LabError) as caught:
        load_run(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_is_one_line(run: Run) -> None:
    """Also where it is the last value of a cell: no tables, no rows."""
    assert repr(run) == f"Run('run', 42 of 42 trials judged, path={str(run.path)!r})"
    assert repr(msgspec.structs.replace(run, path=None)).count("\n") == 0


def test_a_bare_name_is_found_in_the_project(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under data/results, from any folder of the project; a folder of that name here comes first; a path is a path."""
    project = tmp_path / "project"
    (project / "data" / "cases").mkdir(parents=True)
    (project / "data" / "results").mkdir()
    folder.rename(project / "data" / "results" / "named")
    (project / "below").mkdir()
    for here in (project, project / "below"):
        monkeypatch.chdir(here)
        assert load_run("named").path == project / "data" / "results" / "named"
    with pytest.raises(LabError, match=r"^below/named: no run \(no card\.json\)"):
        load_run("below/named")
    (project / "below" / "named").mkdir()
    with pytest.raises(LabError, match=r"^named: no run \(no card\.json\)"):
        load_run("named")


def test_what_is_wrong_below_the_working_folder_is_named_from_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a person there would write it, whether it was given so or in full."""
    (folder / "calls.parquet").unlink()
    monkeypatch.chdir(folder.parent)
    for path in ("run", folder):
        with pytest.raises(LabError, match=r"^run/calls\.parquet: "):
            load_run(path)
    monkeypatch.chdir("/")
    (folder / "calls.parquet").write_bytes(b"")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    with pytest.raises(LabError) as caught:
        load_run(folder)
    assert str(caught.value).startswith(f"{folder}/calls.parquet: ")


def test_the_envelope_knows_what_was_asked(run: Run) -> None:
    """Each arm, each group, in the card on disk; a card of a lab that did not write it down is still read."""
    assert run.path is not None
    for envelope in load_run(run.path).card.envelope:
        assert sum(envelope.asked.values()) == run.card.counts.asked // 3
    card = json.loads((run.path / "card.json").read_text(encoding="utf-8"))
    del card["envelope"][0]["asked"]
    assert msgspec.convert(card, RunCard).envelope[0].asked == {}


def test_a_folder_that_is_not_there_gets_the_near_match(folder: Path) -> None:
    with pytest.raises(LabError, match=r"no run \(no card\.json\) \(did you mean 'run'\?\)"):
        load_run(folder.parent / "rum")
    with pytest.raises(LabError, match="no run"):
        load_run(folder / "card.json")


def test_pandas_keeps_integers_beside_nulls(run: Run) -> None:
    """Counts stay whole numbers where some are unknown, and null stays null."""
    frame = run.to_pandas()
    assert list(frame.columns) == SCHEMAS["trials"].names
    assert frame["cost_micros"].dtype == pd.ArrowDtype(pa.int64())
    assert frame["trial"].dtype == pd.ArrowDtype(pa.int32())
    assert frame["tokens_output"].dropna().tolist() == [0] * 28
    assert frame["tokens_output"].isna().sum() == 14
    assert frame["steps"].isna().all()
    assert frame["solved"].dtype == pd.ArrowDtype(pa.bool_())
    for grain in SCHEMAS:
        assert len(run.to_pandas(grain)) == getattr(run, grain).num_rows
    with pytest.raises(LabError, match="no table 'trails' \\(did you mean 'trials'\\?\\)"):
        run.to_pandas("trails")


def test_tables_that_disagree_are_not_saved(run: Run, tmp_path: Path) -> None:
    """Nothing is written when the tables, the rows and the card do not say the same."""
    for wrong in (
        msgspec.structs.replace(run, product=run.product[1:]),
        msgspec.structs.replace(run, trials=run.trials.slice(1)),
        msgspec.structs.replace(run, calls=run.trials),
    ):
        with pytest.raises(LabError):
            check_run(wrong)
        with pytest.raises(LabError):
            save(wrong, tmp_path)
    assert list(tmp_path.iterdir()) == []


def rewritten(folder: Path, name: str, wrong: Callable[[list[object]], list[object]]) -> None:
    """Give one column of trials.parquet other values, and leave all else as it is."""
    file = folder / "trials.parquet"
    table = pq.read_table(file)
    at = table.schema.get_field_index(name)
    column = pa.array(wrong(table.column(name).to_pylist()), table.schema.field(name).type)
    pq.write_table(table.set_column(at, table.schema.field(name), column), file)


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("solved", lambda old: [False] * len(old), "outcome_class 'success' and solved False do not fit together, in 13 of 42"),
        ("solved", lambda old: [True] * len(old), "and solved True do not fit together"),
        ("outcome_class", lambda old: ["success"] * len(old), "outcome_class 'success' and solved False do not fit"),
        ("outcome", lambda old: ["correct_calls"] * len(old), "do not fit together"),
    ],
)  # fmt: skip
def test_a_verdict_that_was_changed_by_hand_is_refused(
    folder: Path, name: str, wrong: Callable[[list[object]], list[object]], says: str
) -> None:
    """Outcome, class and whether it is solved are one verdict."""
    load_run(folder)
    rewritten(folder, name, wrong)
    with pytest.raises(LabError) as error:
        load_run(folder)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """What stood there before stays when writing fails, and no temporary file is left."""
    write_file(tmp_path / "a", b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TypeError):
        write_file(tmp_path / "a", "text")  # type: ignore[arg-type]
    with pytest.raises(OSError):
        write_file(tmp_path / "folder", b"x")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("counts", [(3, 1, 1, 0), (2, 3, 0, -1), (0, 1, -1, 0)])
def test_counts_that_do_not_add_up_cannot_be_made(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="is not asked"):
        Counts(*counts)


def fuzzed(folder: Path, run: Run, data: st.DataObject) -> None:
    """One file of a run with a piece of it replaced, cut out or cut off: it is read whole, or refused in one line."""
    name = data.draw(
        st.sampled_from(["card.json", "product.jsonl", *(f"{grain}.parquet" for grain in SCHEMAS)])
    )
    file = folder / name
    whole = file.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 64)))
    piece = data.draw(st.binary(max_size=16))
    tail = b"" if data.draw(st.booleans()) else whole[end:]
    file.write_bytes(whole[:start] + piece + tail)
    try:
        found = load_run(folder)
    except LabError as error:
        assert "Traceback" not in str(error)
    else:
        assert (
            found.trials.num_rows
            == len(found.product)
            == found.card.counts.judged + found.card.counts.excluded
        )
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("grain", SCHEMAS)
def test_a_column_whose_name_is_no_text_is_damage_like_any_other(folder: Path, grain: str) -> None:
    """What reads Parquet raises many things over damaged bytes, here an error of the encoding."""
    file = folder / f"{grain}.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"case_id", b"case\x80id"))
    try:
        with pytest.raises(LabError, match=rf"{grain}\.parquet: .+") as caught:
            load_run(folder)
        assert len(str(caught.value).splitlines()) == 1
    finally:
        file.write_bytes(whole)


def test_options_nested_beyond_all_depth_are_no_card(folder: Path) -> None:
    file = folder / "card.json"
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b'"options": {', b'"options": {"deep": ' + b"[" * 100_000 + b","))
    try:
        with pytest.raises(LabError, match=r"card\.json: not a card of"):
            load_run(folder)
    finally:
        file.write_bytes(whole)


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_damage_makes_a_run_unreadable_without_a_word(folder: Path, run: Run, data: st.DataObject) -> None:
    fuzzed(folder, run, data)


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_damage_makes_a_run_unreadable_at_length(folder: Path, run: Run, data: st.DataObject) -> None:
    fuzzed(folder, run, data)


@pytest.mark.parametrize("name", [b"s3:x?y#z%20", b"model=m", b"caf\xe9", b"a\nb"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    """No name is an address, a partition, or has to be text; what a card cannot hold of it is replaced there."""
    from agentbench_lab import metrics
    from agentbench_lab.running.merge import merge, regrade_run

    out = tmp_path / os.fsdecode(name) / os.fsdecode(name)
    run = evaluate(write_suite(tmp_path), knows, out=out, shard="1/1")
    again = load_run(out)
    assert again.card.run == name.decode(errors="replace").replace("\ufffd", "?")
    assert again.trials.num_rows == run.trials.num_rows
    assert load_run(merge([out], out.with_name("merged")).path or "").trials.num_rows == run.trials.num_rows
    regraded, _ = regrade_run(out, out.with_name(out.name + "2"))
    assert load_run(regraded.path or "").card.run == f"{again.card.run}2"
    assert metrics.summary(out / "trials.parquet").height == 1


def test_a_run_from_before_the_mark_of_kills_loads_and_says_that_it_is_unknown(
    folder: Path, tmp_path: Path
) -> None:
    """Its files lack a column; written again, by today's grader, the answer is unknown still and no claim."""
    for grain in ("trials", "attempts"):
        file = folder / f"{grain}.parquet"
        pq.write_table(pq.read_table(file).drop_columns(["usage_lost"]), file)
    again, _ = regrade_run(folder, tmp_path / "again")
    for run in (load_run(folder), again):
        for made in (run.trials, run.attempts):
            assert set(made["usage_lost"].to_pylist()) == {None}
