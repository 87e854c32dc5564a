"""What simulated users spend is left aside, and every picture of a cost says so."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from agentbench_lab import charts, metrics, tables
from agentbench_lab.charts.words import users_said
from agentbench_lab.transcripts import Usage
from agentbench_lab.users import STOP_TOKEN

from ..test_conversation import Says, talk
from .arranged import arms

USER = {"fresh_input": 30, "cache_read": 0, "cache_write": 0, "output": 5, "cost_micros": 7_000}


def talked(**by_scaffold: dict[str, Any] | None) -> pl.DataFrame:
    """Two trials an arm, and what is kept of each beside its row."""
    trials = arms({name: ["10"] for name in by_scaffold})
    kept = {
        name: None if each is None else json.dumps(each, separators=(",", ":"))
        for name, each in by_scaffold.items()
    }
    return trials.with_columns(pl.col("scaffold").replace_strict(kept, return_dtype=pl.String).alias("extra"))


def user(**usage: int) -> dict[str, Any]:
    return {"turns": 2, "user": {"driver": "u", "usage": usage}}


def test_what_a_user_spent_stands_beside_every_cost() -> None:
    """Two trials of 7 thousandths of a dollar, or 35 tokens, each; a scripted user has used nothing, which is not said."""
    trials = talked(once=user(**USER), linear=user(**dict.fromkeys(USER, 0)))
    said = "Costs are the agent's; left aside is what simulated users spent: {} $0.0140 in 2 trials."
    spent, places = metrics.cost(trials), metrics.frontier(trials)
    told = spent.filter(metric="spent").select("scaffold", "user_trials", "user_cost", "user_tokens").rows()
    assert told == [("once", 2, pytest.approx(0.014), 70), ("linear", None, None, None)]
    for table in (tables.cost(spent), tables.usage(spent), tables.frontier(places)):
        assert said.format("d + once") in table.notes
    for chart in (charts.cost(spent), charts.frontier(places)):
        assert said.format("d + once") in " ".join(chart.to_dict()["title"]["subtitle"])
    found, where = metrics.ablation(trials), metrics.where_it_pays(trials)
    assert said.format("once") in tables.ablation(found).notes
    assert said.format("once") in tables.ablation_says(found, where).texts[-1]
    assert said.format("once") in " ".join(charts.ablation(found, where).to_dict()["title"]["subtitle"])


def test_what_is_not_known_of_a_user_is_not_nothing() -> None:
    tokens = {name: each for name, each in USER.items() if name != "cost_micros"}
    trials = talked(once=user(**tokens), linear=user(), durable=None, imported={"user_cost_usd": 0.25})
    (said,) = users_said(metrics.ablation(trials).rename({"scaffold": "arm"}))
    assert said.endswith(
        "spent: once 70 tokens in 2 trials, linear nobody knows how much in 2 trials, imported $0.500 in 2 trials."
    )


def test_a_real_conversation_says_it() -> None:
    run = talk(
        Says("a", "b", "c", usage=Usage(30, 0, 0, 4, 2, 100)),
        Says("1", "2", STOP_TOKEN, usage=Usage(11, 0, 0, 5, 1, 7)),
    )
    assert metrics.cost(run.trials)["user_tokens"].unique().to_list() == [48]
    assert "left aside is what simulated users spent" in str(tables.cost(metrics.cost(run.trials)))
    scripted = talk(Says("a", "b", "c", usage=Usage(30, 0, 0, 4, 2, 100)))
    assert "simulated users" not in str(tables.cost(metrics.cost(scripted.trials)))
