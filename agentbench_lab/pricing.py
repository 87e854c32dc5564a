"""The prices that a notebook or a command names: a file, one under data/prices, or a package."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentbench_lab.cases import project_root
from agentbench_lab.errors import LabError, did_you_mean

if TYPE_CHECKING:
    from agentbench_lab.analysis.prices import Prices
    from agentbench_lab.results.run import Run


def prices(run: Run, source: str, on: str = "") -> Prices | None:
    """The prices by which to work out what a run's source does not say: None for an empty `source`.

    `source` is `genai` for the package genai-prices, the path of a file of prices, or the name of one under
    data/prices. `on` is the day whose prices hold (2025-01-31); empty for the day on which the run started. Raises
    LabError for a file that is not there or cannot be read, and for what is no day.
    """
    from agentbench_lab.analysis.prices import GENAI, load

    if not source:
        return None
    path = Path(source)
    own = project_root() / "data" / "prices" / f"{path.name.removesuffix('.csv')}.csv"
    found = str(own) if len(path.parts) == 1 and not path.exists() and own.is_file() else source
    if found == source != GENAI and not path.exists():
        named = sorted(each.stem for each in own.parent.glob("*.csv"))
        raise LabError(
            f"{source}: No such file or directory; prices are genai, a file, or one of data/prices ({', '.join(named)})"
            f"{did_you_mean(source, [GENAI, *named], most=0)}"
        )
    return load(found, _day(on or run.card.started_at, run.card.run, on))


def _day(text: str, run: str, on: str) -> date:
    try:
        if on:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text).astimezone(UTC).date()
    except ValueError:
        if on:
            raise LabError(f"{on!r} is no day (2025-01-31 is one)") from None
        raise LabError(
            f"{run} does not say when it started: name the day whose prices hold (--on 2025-01-31 on the command line, "
            "prices_on in a notebook)"
        ) from None
