"""Tidy frames in, tables out: the same one for a notebook, a report and a terminal.

A number is never printed alone: a share stands with its interval and its n/of.
"""

from __future__ import annotations

from agentbench_lab.tables.ablation import ablation as ablation
from agentbench_lab.tables.ablation import ablation_says as ablation_says
from agentbench_lab.tables.card import RUN_MIME as RUN_MIME
from agentbench_lab.tables.card import banner as banner
from agentbench_lab.tables.card import run_card as run_card
from agentbench_lab.tables.compare import changes as changes
from agentbench_lab.tables.compare import compare as compare
from agentbench_lab.tables.compare import compare_many as compare_many
from agentbench_lab.tables.compare import detect as detect
from agentbench_lab.tables.compare import unmatched as unmatched
from agentbench_lab.tables.cost import cost as cost
from agentbench_lab.tables.cost import frontier as frontier
from agentbench_lab.tables.cost import tool_errors as tool_errors
from agentbench_lab.tables.cost import usage as usage
from agentbench_lab.tables.durability import durability as durability
from agentbench_lab.tables.durability import durability_says as durability_says
from agentbench_lab.tables.ladder import bands as bands
from agentbench_lab.tables.ladder import disqualified as disqualified
from agentbench_lab.tables.ladder import gate as gate
from agentbench_lab.tables.ladder import groups as groups
from agentbench_lab.tables.ladder import ladder as ladder
from agentbench_lab.tables.looking import first_trial as first_trial
from agentbench_lab.tables.looking import in_full as in_full
from agentbench_lab.tables.looking import looked as looked
from agentbench_lab.tables.looking import trial as trial
from agentbench_lab.tables.looking import trials as trials
from agentbench_lab.tables.outcomes import exits as exits
from agentbench_lab.tables.outcomes import failures as failures
from agentbench_lab.tables.outcomes import outcomes as outcomes
from agentbench_lab.tables.published import contradicted as contradicted
from agentbench_lab.tables.published import doubted as doubted
from agentbench_lab.tables.published import published as published
from agentbench_lab.tables.reliability import crossings as crossings
from agentbench_lab.tables.reliability import histogram as histogram
from agentbench_lab.tables.reliability import reliability as reliability
from agentbench_lab.tables.suite import suite as suite
from agentbench_lab.tables.table import Banner as Banner
from agentbench_lab.tables.table import Paragraphs as Paragraphs
from agentbench_lab.tables.table import Table as Table
