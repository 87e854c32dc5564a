"""Trials in, tidy frame out: every number with its interval, its n of m, and how it was estimated."""

from agentbench_lab.analysis.metrics.ablating import ablation as ablation
from agentbench_lab.analysis.metrics.ablating import where_it_pays as where_it_pays
from agentbench_lab.analysis.metrics.arms import ARM as ARM
from agentbench_lab.analysis.metrics.arms import frame as frame
from agentbench_lab.analysis.metrics.endings import STOPS as STOPS
from agentbench_lab.analysis.metrics.endings import TROUBLED as TROUBLED
from agentbench_lab.analysis.metrics.endings import class_shares as class_shares
from agentbench_lab.analysis.metrics.endings import exits as exits
from agentbench_lab.analysis.metrics.endings import outcomes as outcomes
from agentbench_lab.analysis.metrics.endings import strip as strip
from agentbench_lab.analysis.metrics.endings import troubles as troubles
from agentbench_lab.analysis.metrics.failing_calls import tool_errors as tool_errors
from agentbench_lab.analysis.metrics.marks import ALL as ALL
from agentbench_lab.analysis.metrics.marks import MARKS as MARKS
from agentbench_lab.analysis.metrics.marks import gate as gate
from agentbench_lab.analysis.metrics.marks import ladder as ladder
from agentbench_lab.analysis.metrics.pairing import default_baseline as default_baseline
from agentbench_lab.analysis.metrics.pareto import frontier as frontier
from agentbench_lab.analysis.metrics.repeats import crossings as crossings
from agentbench_lab.analysis.metrics.repeats import histogram as histogram
from agentbench_lab.analysis.metrics.repeats import per_case as per_case
from agentbench_lab.analysis.metrics.repeats import reliability as reliability
from agentbench_lab.analysis.metrics.spending import cost as cost
from agentbench_lab.analysis.metrics.summaries import summary as summary
from agentbench_lab.analysis.metrics.verdicts import VERDICTS as VERDICTS
from agentbench_lab.analysis.metrics.verdicts import verdict as verdict
