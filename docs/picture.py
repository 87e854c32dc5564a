"""Draw docs/ladder.svg, the picture of the README: the stub over the ladder suite."""

from __future__ import annotations

from pathlib import Path

import agentbench_lab as lab

run = lab.evaluate("ladder", "stub", save_run=False)
lab.charts.ladder(lab.metrics.ladder(run.trials, run.card)).save(Path(__file__).parent / "ladder.svg")
