"""Two arms on the same cases: what differs, how sure that is, and which cases it comes from.

Unlike things are refused: other commits (unless allowed, and then it is said), other taxonomies, another strictness,
another version of a case. What is left is paired on the case: the mean over a case's judged trials on either side.
"""

from agentbench_lab.analysis.compare.comparing import compare as compare
from agentbench_lab.analysis.compare.comparing import compare_many as compare_many
from agentbench_lab.analysis.compare.comparison import Comparison as Comparison
from agentbench_lab.analysis.compare.differences import LEVEL as LEVEL
from agentbench_lab.analysis.compare.differences import Difference as Difference
from agentbench_lab.analysis.compare.pairing import Pair as Pair
from agentbench_lab.analysis.compare.pairing import Standing as Standing
from agentbench_lab.analysis.compare.pairing import Unmatched as Unmatched
from agentbench_lab.analysis.compare.planning import CORRELATION as CORRELATION
from agentbench_lab.analysis.compare.planning import Spread as Spread
from agentbench_lab.analysis.compare.planning import cases_to_detect as cases_to_detect
from agentbench_lab.analysis.compare.planning import detect as detect
from agentbench_lab.analysis.compare.planning import spread as spread
from agentbench_lab.analysis.compare.power import POWER as POWER
from agentbench_lab.analysis.compare.sides import UNKNOWN as UNKNOWN
from agentbench_lab.analysis.compare.sides import Side as Side
from agentbench_lab.analysis.compare.sides import arm_label as arm_label
from agentbench_lab.analysis.compare.sides import side as side
from agentbench_lab.analysis.compare.words import interval as interval
from agentbench_lab.analysis.compare.words import p_value as p_value
from agentbench_lab.analysis.compare.words import share as share
from agentbench_lab.points import points as points
