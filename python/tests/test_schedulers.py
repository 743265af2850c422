"""Schedules of mlx.optimizers against their formulas, alone and followed."""

from __future__ import annotations

import doctest
import math
from typing import Any, Callable

import mlx.core as mx
import mlx.optimizers as optim
import numpy as np
import pytest

CLASSES = [
    getattr(optim, name)
    for name in optim.__all__
    if name[0].isupper() and name not in ("Optimizer", "MultiOptimizer")
]

SCHEDULES: dict[str, tuple[Callable[..., Any], Callable[[int], float]]] = {
    "exponential": (optim.exponential_decay(0.1, 0.97), lambda t: 0.1 * 0.97**t),
    "stairs": (optim.step_decay(0.1, 0.5, 4), lambda t: 0.1 * 0.5 ** (t // 4)),
    "cosine": (
        optim.cosine_decay(0.1, 10, 0.02),
        lambda t: 0.02 + 0.08 * math.cos(math.pi * min(t, 10) / 20) ** 2,
    ),
    "linear": (
        optim.linear_schedule(0.1, 0.7, 8),
        lambda t: float(np.interp(t, [0, 8], [0.1, 0.7])),
    ),
    "joined": (
        optim.join_schedules(
            [
                optim.linear_schedule(0.0, 0.1, 4),
                optim.exponential_decay(0.1, 0.5),
                optim.step_decay(0.3, 0.1, 2),
            ],
            [4, 9],
        ),
        lambda t: (
            0.025 * t
            if t < 4
            else 0.1 * 0.5 ** (t - 4)
            if t < 9
            else 0.3 * 0.1 ** ((t - 9) // 2)
        ),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name: str) -> None:
    schedule, want = SCHEDULES[name]
    for step in range(20):
        for given in (step, mx.array(step), mx.array(step, mx.uint64)):
            got = float(schedule(given))
            assert got == pytest.approx(want(step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_is_followed(name: str, kind: Any) -> None:
    schedule, want = SCHEDULES[name]
    optimizer = kind(learning_rate=schedule)
    one = {"w": mx.ones((2, 2))}
    for step in range(12):
        optimizer.apply_gradients(one, one)
        assert optimizer.learning_rate.item() == pytest.approx(want(step), 1e-5, 1e-7)
        assert optimizer.state["learning_rate"].dtype == mx.float32


def test_schedule_in_python_numbers() -> None:
    optimizer = optim.SGD(lambda step: 0.5)
    one = {"w": mx.array([1.0])}
    assert optimizer.apply_gradients(one, one)["w"].item() == 0.5
    schedule = optim.join_schedules([lambda _: 3, lambda _: 4, lambda _: 5], [2, 4])
    assert [schedule(t).item() for t in range(6)] == [3, 3, 4, 4, 5, 5]


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "linear": (
        lambda: optim.linear_schedule(0.0, 1.0, 0),
        r"^\[linear_schedule\] steps out of range: 0\. It must be positive\.",
    ),
    "cosine": (
        lambda: optim.cosine_decay(1.0, -1),
        r"^\[cosine_decay\] decay_s",
    ),
    "stairs": (lambda: optim.step_decay(1.0, 0.1, 0), r"^\[step_decay\] step_size out"),
    "nothing to join": (
        lambda: optim.join_schedules([], []),
        r"^\[join_schedules\] no schedules\. Expected at least one\.",
    ),
    "boundaries": (
        lambda: optim.join_schedules([optim.exponential_decay(1.0, 0.5)], [2]),
        r"^\[join_schedules\] 1 boundaries for 1 schedules\. There must be one",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_examples_in_docstrings() -> None:
    results = doctest.testmod(optim.schedulers)
    assert results.failed == 0 and results.attempted > 0
