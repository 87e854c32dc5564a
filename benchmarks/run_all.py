"""Run every benchmark here and print one table: measured ratio, goal, held or missed. Exits 1 when one misses.

A benchmark is a script `bench_*.py` whose last line is `ratio=<number> goal=<number>` and which exits 1 on a miss. One
that cannot measure here, for want of the other side, ends with `skipped: <why>`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

LAST_LINE = re.compile(r"ratio=(?P<ratio>\S+)\s+goal=(?P<goal>\S+)")


def run(script: Path) -> tuple[str, str, str, str]:
    """One row of the table. The script's own lines are passed on while it runs."""
    print(f"--- {script.stem}", flush=True)
    last = ""
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    if last.startswith("skipped: ") and process.returncode == 0:
        return script.stem, "-", "-", last
    found = LAST_LINE.search(last)
    if found is None:
        return script.stem, "-", "-", f"BROKEN (exit {process.returncode}, no ratio in the last line)"
    verdict = "held" if process.returncode == 0 else "MISSED"
    return script.stem, found["ratio"], found["goal"], verdict


def main() -> int:
    """Run the benchmarks named on the command line, else all, one after the other."""
    scripts = sorted(Path(__file__).parent.glob("bench_*.py"))
    wanted = sys.argv[1:]
    if wanted:
        scripts = [script for script in scripts if any(word in script.stem for word in wanted)]
    if not scripts:
        print("no benchmark matches", *wanted, file=sys.stderr)
        return 2
    rows = [run(script) for script in scripts]
    width = max(len(row[0]) for row in rows)
    print()
    print(f"{'benchmark':{width}}  {'ratio':>8}  {'goal':>8}")
    for name, ratio, goal, verdict in rows:
        print(f"{name:{width}}  {ratio:>8}  {goal:>8}  {verdict}")
    return 0 if all(row[3].startswith(("held", "skipped: ")) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
