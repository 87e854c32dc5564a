"""Tidy frames in, Altair charts out. Every chart says its claim, its evidence and its numbers in words.

Colour never carries a meaning alone (shape, dash or glyph says it too), the theme is part of the specification,
and no chart holds more than `MOST_MARKS` marks: one that leaves rows out says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench_lab.charts.compare import compare as compare
from agentbench_lab.charts.cost import cost as cost
from agentbench_lab.charts.frontier import frontier as frontier
from agentbench_lab.charts.histogram import histogram as histogram
from agentbench_lab.charts.ladder import ladder as ladder
from agentbench_lab.charts.ladder import ladder_claims as ladder_claims
from agentbench_lab.charts.outcomes import outcomes as outcomes
from agentbench_lab.charts.reliability import reliability as reliability
from agentbench_lab.charts.theme import MOST_MARKS as MOST_MARKS
from agentbench_lab.charts.widths import ablation as ablation
from agentbench_lab.charts.widths import where_it_pays as where_it_pays
from agentbench_lab.charts.words import arm_labels as arm_labels
from agentbench_lab.charts.words import percent as percent

if TYPE_CHECKING:
    from agentbench_lab.charts.theme import Drawing as Drawing
