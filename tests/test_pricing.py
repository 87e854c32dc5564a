"""The prices that a notebook names: a file, a name under data/prices, a package, or none."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench_lab import LabError
from agentbench_lab import prices as named_prices
from agentbench_lab.cases import project_root


def run(started_at: str = "2025-11-12T23:30:00-02:00") -> Any:
    """A run that started then."""
    return SimpleNamespace(card=SimpleNamespace(started_at=started_at, run="r1"))


def test_no_name_is_no_prices() -> None:
    """Costs that nobody gave stay unknown."""
    assert named_prices(run(), "") is None


def test_a_name_is_a_table_under_data_prices() -> None:
    """With or without its ending; it holds on the day that is named, else on the run's own, in UTC."""
    for name in ("gpt-oss", "gpt-oss.csv"):
        found = named_prices(run(), name, "2025-11-29")
        assert found is not None
        assert found.on == date(2025, 11, 29)
        rates = found.find("openai/gpt-oss-120b")
        assert not isinstance(rates, str)
        assert (str(rates.input), str(rates.output)) == ("0.039", "0.18")
    found = named_prices(run(), "gpt-oss")
    assert found is not None
    assert found.on == date(2025, 11, 13)


def test_a_file_of_ones_own_goes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is a path, also when a table of the project has its name."""
    text = "model,from,input,cache_read,cache_write,output\nm,2025-01-01,1,,,2\n"
    (tmp_path / "gpt-oss").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = named_prices(run(), "gpt-oss", "2025-02-01")
    assert found is not None
    assert not isinstance(found.find("m"), str)


@pytest.mark.parametrize(
    ("source", "on", "said"),
    [
        ("no-such", "2025-01-01", "no-such: No such file"),
        ("gpt-os", "2025-01-01", "prices are genai, a file, or one of data/prices ("),
        ("gpt-os", "2025-01-01", "did you mean 'gpt-oss'"),
        ("gpt-oss", "yesterday", "'yesterday' is no day (2025-01-31 is one)"),
    ],
)
def test_mistakes_are_one_line(source: str, on: str, said: str) -> None:
    """What is wrong, and how it would be right."""
    with pytest.raises(LabError) as error:
        named_prices(run(), source, on)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_without_a_day_asks_for_one() -> None:
    """Prices without a day would be those of any."""
    with pytest.raises(LabError, match=r"name the day whose prices hold \(--on 2025-01-31 on the"):
        named_prices(run(""), "gpt-oss")


def test_every_table_of_prices_can_be_read_and_is_listed() -> None:
    """Each file under data/prices is one, and stands in the card beside them."""
    folder = project_root() / "data" / "prices"
    card = (folder / "README.md").read_text(encoding="utf-8")
    files = sorted(folder.glob("*.csv"))
    assert files
    for file in files:
        assert named_prices(run(), file.stem, "2030-01-01") is not None
        assert f"| {file.name} |" in card
