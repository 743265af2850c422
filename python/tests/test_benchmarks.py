"""The benchmark runner: its verdicts, its comparison, and one real exchange."""

import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare  # noqa: E402
import frameworks  # noqa: E402
import run  # noqa: E402
from cases import CASES  # noqa: E402


def results(**seconds: float) -> "dict[str, Any]":
    return {name: run.summary([s] * 3) for name, s in seconds.items()}


def test_every_case_is_offered_by_lynx() -> None:
    offered = {*dir(frameworks.Mlx), "import"}
    assert {case.function for case in CASES} <= offered


def test_ratio_share_and_verdict() -> None:
    (case,) = (case for case in CASES if case.name == "add")
    values = run.derived(case, results(lynx=2.0, numpy=3.0, torch=5.0, machine=1.8))
    assert values["best_peer"] == "numpy"
    assert values["ratio"] == pytest.approx(1.5)
    assert values["share"] == pytest.approx(0.9)
    assert values["reached"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (("seconds", 2.5), True),
        (("seconds", 1.5), False),
        (("torch", 1.5), True),
        (("torch", 1.6), False),
        (("jax", 1.0), None),
    ],
)
def test_targets(target: "tuple[str, float]", expected: "bool | None") -> None:
    assert run.reached(target, 2.0, {}, {"torch": 3.0}) is expected


def test_comparison_is_scaled_by_the_machine() -> None:
    before = {"cases": {"add": {"results": results(lynx=1.0, machine=1.0)}}}
    after = {"cases": {"add": {"results": results(lynx=2.0, machine=2.0)}}}
    lines, slower = compare.compare(before, after)
    assert not slower
    assert "1.00x" in lines[0]
    after["cases"]["add"]["results"] |= results(lynx=2.2)
    lines, slower = compare.compare(before, after)
    assert slower
    assert lines[0].endswith("slower")


@pytest.fixture
def numpy_process() -> Any:
    process = run.Process("numpy", sys.executable, 1, patience=60)
    yield process
    process.close()


def test_a_worker_checks_and_times(numpy_process: Any) -> None:
    (sort,) = (case for case in CASES if case.name == "sort")
    assert numpy_process.prepare(sort) is None
    assert 0 < numpy_process.sample(sort, 0.0) < 10
    (norm,) = (case for case in CASES if case.name == "rms_norm")
    assert numpy_process.prepare(norm) == "not offered"


def test_a_slow_worker_is_ended_and_started_anew(numpy_process: Any) -> None:
    (sort,) = (case for case in CASES if case.name == "sort")
    numpy_process.patience = 1e-4
    assert numpy_process.prepare(sort) == "no answer in 0.0001 s"
    numpy_process.patience = 60
    assert numpy_process.prepare(sort) is None
