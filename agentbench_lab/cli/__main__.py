"""`python -m agentbench_lab.cli`."""

from agentbench_lab.cli import main

main()
