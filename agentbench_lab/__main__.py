"""`python -m agentbench_lab` is the command `agentbench-lab`."""

from agentbench_lab.cli import main

main()
