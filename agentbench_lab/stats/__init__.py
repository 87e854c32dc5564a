"""Estimators on plain numbers and arrays; numpy only."""

from agentbench_lab.stats.means import Z_95 as Z_95
from agentbench_lab.stats.means import ClusteredMean as ClusteredMean
from agentbench_lab.stats.means import clustered_se as clustered_se
from agentbench_lab.stats.means import standard_error as standard_error
from agentbench_lab.stats.means import student_t as student_t
from agentbench_lab.stats.means import wilson as wilson
from agentbench_lab.stats.repeats import pass_at_k as pass_at_k
from agentbench_lab.stats.repeats import pass_at_weights as pass_at_weights
from agentbench_lab.stats.repeats import pass_hat_k as pass_hat_k
from agentbench_lab.stats.repeats import pass_hat_weights as pass_hat_weights
from agentbench_lab.stats.resampling import bootstrap_over_cases as bootstrap_over_cases
from agentbench_lab.stats.resampling import bootstrap_over_kinds as bootstrap_over_kinds
from agentbench_lab.stats.resampling import paired_over_cases as paired_over_cases
from agentbench_lab.stats.resampling import percentile_interval as percentile_interval
from agentbench_lab.stats.resampling import ratio_over_cases as ratio_over_cases
from agentbench_lab.stats.resampling import ratios_over_cases as ratios_over_cases
from agentbench_lab.stats.resampling import resample_kinds as resample_kinds
from agentbench_lab.stats.resampling import resample_sums as resample_sums
from agentbench_lab.stats.significance import holm as holm
from agentbench_lab.stats.significance import mcnemar_corrected as mcnemar_corrected
from agentbench_lab.stats.significance import mcnemar_exact as mcnemar_exact
from agentbench_lab.stats.significance import sign_flip as sign_flip
