#!/usr/bin/env python3
"""Compare two results of run.py: how much faster or slower each case became.

A change counts when it is above 5 % and above the spread of both runs. Two
runs are never of the same minute: when the same peer or the machine's limit
took part in both, ours is first divided by it.

usage: compare.py BEFORE.json AFTER.json      exit status 1 when a case got slower
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

OURS = "lynx"
NOTABLE = 0.05
# What divides ours, first choice first: it must have been in both runs.
YARDSTICKS = ("machine", "numpy", "torch", "jax", "mlx", "llama")


def change(before: dict[str, Any], after: dict[str, Any]) -> tuple[float, float, str]:
    """(speed after over before, joint spread, yardstick) of one case."""
    yardstick = next((y for y in YARDSTICKS if y in before and y in after), "")
    ratio = before[OURS]["seconds"] / after[OURS]["seconds"]
    spread = max(before[OURS]["spread"], after[OURS]["spread"])
    if yardstick:
        ratio *= after[yardstick]["seconds"] / before[yardstick]["seconds"]
        spread = max(spread, before[yardstick]["spread"], after[yardstick]["spread"])
    return ratio, spread, yardstick


def compare(before: dict[str, Any], after: dict[str, Any]) -> tuple[list[str], bool]:
    """The lines to print, and whether any case got slower."""
    lines: list[str] = []
    slower = False
    for name, new in after["cases"].items():
        old = before["cases"].get(name)
        if old is None or OURS not in old["results"] or OURS not in new["results"]:
            continue
        ratio, spread, yardstick = change(old["results"], new["results"])
        mark = ""
        if abs(ratio - 1) > max(NOTABLE, spread):
            mark = "slower" if ratio < 1 else "faster"
            slower |= ratio < 1
        by = f"measured by {yardstick}" if yardstick else "not scaled"
        lines.append(f"{name:24} {ratio:6.2f}x  ±{50 * spread:3.0f}%  {by:20} {mark}")
    return lines, slower


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    before, after = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
    lines, slower = compare(before, after)
    print("\n".join(line.rstrip() for line in lines))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
