#!/usr/bin/env python3
"""Time a clean build and name its slowest compile units.

Configures a folder of its own, without ccache, as `scripts/test.sh` builds:
all instruction sets, the Python module and the C++ tests.

usage: build_time.py [--jobs N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def slowest(log: str, count: int) -> list[tuple[float, str]]:
    """(seconds, output) of the longest steps in the text of a .ninja_log."""
    steps: dict[str, float] = {}
    for line in log.splitlines():
        if not line.startswith("#"):
            start, end, _, output, *_ = line.split("\t")
            steps[output] = (int(end) - int(start)) / 1000
    ranked = sorted(((seconds, name) for name, seconds in steps.items()), reverse=True)
    return ranked[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        configure = ["cmake", "--preset", "release", "-B", folder]
        configure.append(f"-DPython_EXECUTABLE={sys.executable}")
        subprocess.run(configure, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        start = time.monotonic()
        build = ["cmake", "--build", folder, "-j", str(options.jobs)]
        environment = os.environ | {"CCACHE_DISABLE": "1"}
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL, env=environment)
        taken = time.monotonic() - start
        log = (Path(folder) / ".ninja_log").read_text()
    print(f"clean build with {options.jobs} jobs: {taken:.0f} s")
    for seconds, output in slowest(log, 10):
        print(f"{seconds:6.1f} s  {output}")


if __name__ == "__main__":
    main()
