#!/usr/bin/env python3
"""Lynx and its peers, side by side.

In each case all participants take turns (ours, peer, peer, machine, ours ...),
so that whatever else the machine does hits all of them. The machine's own
limits (read, copy, multiply-add) are measured in the same turns. Results are
checked against float64. Prints a table and writes JSON.

usage: run.py [--peer NAME=PYTHON ...] [--cases PATTERN ...] [--repetitions N]
              [--seconds S] [--threads N] [--python PYTHON] [--patience S]
              [--json FILE] [--list]
  --peer   numpy, torch, torch-eager, jax, mlx, llama or NAME-suffix, run by
           the interpreter of its own environment; numpy is there by default
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

from case import Case
from cases import CASES

HERE = Path(__file__).resolve().parent
OURS, FAST = "lynx", "lynx-fast"
BUDGET = 8.0  # seconds of a case after which a slow one is not asked again
REST = 0.3  # seconds before a turn: threads of the one before may spin 0.2 s
IMPORTED = (OURS, "mlx")  # whose import is timed


class Participant(Protocol):
    def prepare(self, case: Case) -> str | None:
        """Why it does not take part, or None."""
        ...

    def sample(self, case: Case, seconds: float) -> float: ...


class SlowError(RuntimeError):
    """No answer in the time that a participant is given."""


class Process:
    """A framework in a process of its own, spoken to by worker.py's lines.

    One that does not answer in `patience` seconds is ended, sits out the case
    and starts anew with the next.
    """

    def __init__(self, name: str, python: str, threads: int, patience: float) -> None:
        self.name, self.python, self.patience = name, python, patience
        counts = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM", "MLX_CPU")
        self._environment = os.environ | {f"{c}_THREADS": str(threads) for c in counts}
        self._process = self._start()
        self.version: str = self.ask(60, do="version").get("version", "")

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=self._environment,
            cwd=HERE,
        )

    def ask(self, patience: float, **request: Any) -> dict[str, Any]:
        if self._process.poll() is not None:
            self._process = self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request).encode() + b"\n")
        end, line = time.monotonic() + patience, b""
        while not line.endswith(b"\n"):
            left = max(0.0, end - time.monotonic())
            if not select.select([stdout], [], [], left)[0]:
                self._process.kill()
                self.close()
                raise SlowError(f"no answer in {patience:g} s")
            part = stdout.read(65536)
            if not part:
                self.close()
                return {"failed": "its process has ended"}
            line += part
        return json.loads(line)

    def prepare(self, case: Case) -> str | None:
        if case.function == "import":
            return None if self.name.split("-")[0] in IMPORTED else "not offered"
        try:
            answer = self.ask(self.patience, do="prepare", case=case.name)
        except SlowError as problem:
            return str(problem)
        if "failed" in answer:
            return answer["failed"]
        error = answer["error"]
        if error is not None and not error <= case.tolerance:
            return f"wrong result: error {error:.1e}, allowed {case.tolerance:.1e}"
        return None

    def sample(self, case: Case, seconds: float) -> float:
        if case.function == "import":
            return self.import_seconds()
        answer = self.ask(self.patience, do="time", seconds=seconds)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["seconds"]

    def import_seconds(self) -> float:
        """How much longer Python takes with the module than without."""
        taken: list[float] = []
        for program in ("pass", "import mlx.core"):
            start = time.perf_counter()
            subprocess.run([self.python, "-c", program], check=True, cwd=HERE)
            taken.append(time.perf_counter() - start)
        return taken[1] - taken[0]

    def close(self) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.close()
        self._process.wait()
        stdout.close()


class Machine:
    """What the machine can do: ceilings.cpp, built for it on the spot."""

    def __init__(self, threads: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "ceilings"
            flags = ["-O3", "-march=native", "-std=c++20", "-pthread"]
            source = str(HERE / "ceilings.cpp")
            compiler = os.environ.get("CXX", "g++")
            subprocess.run([compiler, *flags, source, "-o", str(program)], check=True)
            self._process = subprocess.Popen(
                [str(program), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.rate("read", 0)  # it runs: the file may go

    def rate(self, limit: str, seconds: float) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{limit} {seconds}\n")
        stdin.flush()
        return float(stdout.readline())

    def prepare(self, case: Case) -> str | None:
        return None if case.limit else "no limit"

    def sample(self, case: Case, seconds: float) -> float:
        """The time that the work of one call takes at the limit."""
        assert case.limit is not None
        return case.work / self.rate(case.limit, seconds)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """Median, and the range of the middle half as a share of it."""
    if len(samples) == 1:
        return {"seconds": samples[0], "spread": 0.0, "samples": samples}
    low, median, high = statistics.quantiles(samples, n=4)
    return {"seconds": median, "spread": (high - low) / median, "samples": samples}


def run_case(
    case: Case,
    participants: dict[str, Participant],
    repetitions: int,
    seconds: float,
) -> dict[str, Any]:
    absent: dict[str, str] = {}
    samples: dict[str, list[float]] = {}
    for name, participant in participants.items():
        if why := participant.prepare(case):
            absent[name] = why
        else:
            samples[name] = []
    for _ in range(repetitions):
        for name in list(samples):
            if len(samples[name]) > 1 and spent(case, samples[name]) > BUDGET:
                continue
            time.sleep(REST)
            try:
                samples[name].append(participants[name].sample(case, seconds))
            except RuntimeError as problem:  # SlowError is one
                absent[name] = str(problem)
                del samples[name]
    result: dict[str, Any] = {"absent": absent}
    result["results"] = {name: summary(taken) for name, taken in samples.items()}
    return result | derived(case, result["results"])


def spent(case: Case, samples: Sequence[float]) -> float:
    return sum(samples) * case.calls


def derived(case: Case, results: dict[str, Any]) -> dict[str, Any]:
    """Share of the limit, ratio to the best peer, and whether it is enough."""
    if OURS not in results:
        return {}
    seconds = {name: result["seconds"] for name, result in results.items()}
    ours, limit = seconds.pop(OURS), seconds.pop("machine", None)
    values: dict[str, Any] = {}
    if limit is not None:
        values["share"] = limit / ours
    if seconds:
        values["best_peer"] = min(seconds, key=lambda name: seconds[name])
        values["ratio"] = seconds[values["best_peer"]] / ours
    if case.target is not None:
        values["reached"] = reached(case.target, ours, values, seconds)
    return values


def reached(
    target: tuple[str, float],
    ours: float,
    values: dict[str, Any],
    peers: dict[str, float],
) -> bool | None:
    """None when the peer that the target names took no part."""
    against, wanted = target
    if against == "seconds":
        return ours <= wanted
    if against == "limit":
        return values["share"] >= wanted
    if against == "best":
        return values["ratio"] >= wanted if "ratio" in values else None
    return peers[against] / ours >= wanted if against in peers else None


def show(case: Case, seconds: float) -> str:
    if case.unit == "tok/s":
        return f"{1 / seconds:.1f} tok/s"
    scale = {"ms": 1e3, "us": 1e6}[case.unit]
    return f"{seconds * scale:.3g} {case.unit}"


def row(case: Case, result: dict[str, Any]) -> str:
    """A line of the table, as Markdown."""
    results: dict[str, Any] = result["results"]

    def cell(name: str) -> str:
        one = results[name]
        return f"{show(case, one['seconds'])} ±{50 * one['spread']:.0f}%"

    ours = cell(OURS) if OURS in results else result["absent"].get(OURS, "")
    peers = ", ".join(
        f"{name} {cell(name)}" for name in results if name not in (OURS, "machine")
    )
    ratio = f"{result['ratio']:.2f}" if "ratio" in result else ""
    share = f"{result['share']:.2f}" if "share" in result else ""
    limit = f"{case.limit} {cell('machine')}" if "machine" in results else ""
    wanted = ""
    if case.target is not None:
        against, value = case.target
        wanted = f"{against} {show(case, value) if against == 'seconds' else value}"
        verdict = {True: "yes", False: "NO", None: "?"}[result.get("reached")]
        wanted += f": {verdict}"
    cells = [case.name, ours, peers, ratio, limit, share, wanted]
    return "| " + " | ".join(cells) + " |"


HEADINGS = ["case", "lynx", "peers", "to best peer", "limit", "share of it", "wanted"]


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def commit() -> str:
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def parse() -> argparse.Namespace:
    threads = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--cases", nargs="+", default=["*"], metavar="PATTERN")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a sample")
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--patience", type=float, default=15, help="with a peer")
    parser.add_argument("--python", default=sys.executable, help="that has Lynx")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = parse()
    chosen = [c for c in CASES if any(fnmatch(c.name, p) for p in options.cases)]
    if options.list or not chosen:
        print("\n".join(case.name for case in CASES))
        return 0 if chosen else 1
    pythons = {OURS: options.python, "numpy": options.python}
    if any(case.target and case.target[0] == FAST for case in chosen):
        pythons[FAST] = options.python
    pythons |= dict(peer.split("=", 1) for peer in options.peer)
    processes = {
        name: Process(name, python, options.threads, options.patience)
        for name, python in pythons.items()
    }
    machine = Machine(options.threads)
    participants: dict[str, Participant] = {**processes, "machine": machine}
    versions = {name: one.version for name, one in processes.items()}
    report: dict[str, Any] = {
        "device": processor(),
        "threads": options.threads,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions,
        "cases": {},
    }
    print(f"{report['device']}, {options.threads} threads, commit {report['commit']}")
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|")
    for case in chosen:
        result = run_case(case, participants, options.repetitions, options.seconds)
        report["cases"][case.name] = result
        print(row(case, result), flush=True)
    for one in (*processes.values(), machine):
        one.close()
    for name, result in report["cases"].items():
        for who, why in result["absent"].items():
            if why not in ("not offered", "no limit"):
                print(f"{name}: {who} took no part: {why}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
