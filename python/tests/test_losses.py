"""mlx.nn.losses against formulas in float64, their gradients against differences."""

from __future__ import annotations

import doctest
import importlib
import math
from typing import Any, Callable

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

losses = nn.losses
RNG = np.random.default_rng(11)
ROWS, CLASSES = 6, 5
X = RNG.normal(size=(ROWS, CLASSES)) * 3
Y = RNG.normal(size=(ROWS, CLASSES)) * 3
Z = RNG.normal(size=(ROWS, CLASSES)) * 3
LABELS = np.array([0, 4, 2, 2, 1, 3])
SIGNS = np.where(RNG.random(X.shape) < 0.5, -1.0, 1.0)
SHARES = RNG.random(X.shape)
SHARES /= SHARES.sum(1, keepdims=True)
PROBABILITIES = RNG.random(X.shape) * 0.98 + 0.01
VARIANCES = RNG.random(X.shape) + 0.1
ROW_WEIGHTS = RNG.random(ROWS)
WEIGHTS = RNG.random(X.shape)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def entropy(x: Any, labels: Any, smoothing: float = 0.0, weights: Any = 1.0) -> Any:
    """Written with one-hot targets, unlike the library."""
    target = np.eye(CLASSES)[labels] if labels.ndim == 1 else labels
    target = (1 - smoothing) * target + smoothing / CLASSES
    return -(target * log_softmax(x)).sum(1) * weights


def binary(x: Any, t: Any, weights: Any = 1.0) -> Any:
    p = 1 / (1 + np.exp(-x))
    return -(t * np.log(p) + (1 - t) * np.log1p(-p)) * weights


def gaussian(x: Any, t: Any, v: Any, full: bool = False) -> Any:
    """From the density, unlike the library."""
    density = np.exp(-((x - t) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
    return -np.log(density) - (0 if full else 0.5 * np.log(2 * np.pi))


def distance(x: Any, y: Any, p: float, eps: float = 1e-6) -> Any:
    return ((np.abs(x - y) ** p).sum(1) + eps) ** (1 / p)


def triplet(a: Any, b: Any, c: Any, p: float = 2, margin: float = 1.0) -> Any:
    return np.maximum(distance(a, b, p) - distance(a, c, p) + margin, 0)


def huber(x: Any, t: Any, delta: float) -> Any:
    d = np.abs(x - t)
    return np.array(
        [[e * e / 2 if e <= delta else delta * (e - delta / 2) for e in r] for r in d]
    )


# Name, the call with arrays of one dtype, the formula, the default reduction.
CASES: dict[str, tuple[Callable[..., Any], list[Any], Any, str]] = {
    "cross_entropy": (losses.cross_entropy, [X, LABELS], entropy(X, LABELS), "none"),
    "cross_entropy probabilities": (
        losses.cross_entropy,
        [X, SHARES],
        entropy(X, SHARES),
        "none",
    ),
    "cross_entropy smoothed": (
        lambda x, t, **k: losses.cross_entropy(x, t, label_smoothing=0.3, **k),
        [X, LABELS],
        entropy(X, LABELS, 0.3),
        "none",
    ),
    "cross_entropy smoothed probabilities, weighted": (
        lambda x, t, w, **k: losses.cross_entropy(x, t, w, label_smoothing=0.2, **k),
        [X, SHARES, ROW_WEIGHTS],
        entropy(X, SHARES, 0.2, ROW_WEIGHTS),
        "none",
    ),
    "cross_entropy weighted": (
        losses.cross_entropy,
        [X, LABELS, ROW_WEIGHTS],
        entropy(X, LABELS, 0.0, ROW_WEIGHTS),
        "none",
    ),
    "cross_entropy first axis": (
        lambda x, t, **k: losses.cross_entropy(x.T, t, axis=0, **k),
        [X, LABELS],
        entropy(X, LABELS),
        "none",
    ),
    "binary_cross_entropy": (
        losses.binary_cross_entropy,
        [X, SHARES],
        binary(X, SHARES),
        "mean",
    ),
    "binary_cross_entropy weighted": (
        losses.binary_cross_entropy,
        [X, SHARES, WEIGHTS],
        binary(X, SHARES, WEIGHTS),
        "mean",
    ),
    "binary_cross_entropy probabilities": (
        lambda p, t, **k: losses.binary_cross_entropy(p, t, with_logits=False, **k),
        [PROBABILITIES, SHARES],
        binary(np.log(PROBABILITIES / (1 - PROBABILITIES)), SHARES),
        "mean",
    ),
    "l1_loss": (losses.l1_loss, [X, Y], np.abs(X - Y), "mean"),
    "mse_loss": (losses.mse_loss, [X, Y], (X - Y) ** 2, "mean"),
    "nll_loss": (
        losses.nll_loss,
        [log_softmax(X), LABELS],
        entropy(X, LABELS),
        "none",
    ),
    "gaussian_nll_loss": (
        losses.gaussian_nll_loss,
        [X, Y, VARIANCES],
        gaussian(X, Y, VARIANCES),
        "mean",
    ),
    "gaussian_nll_loss full": (
        lambda *a, **k: losses.gaussian_nll_loss(*a, full=True, **k),
        [X, Y, VARIANCES],
        gaussian(X, Y, VARIANCES, True),
        "mean",
    ),
    "kl_div_loss": (
        losses.kl_div_loss,
        [log_softmax(X), log_softmax(Y)],
        (np.exp(log_softmax(Y)) * (log_softmax(Y) - log_softmax(X))).sum(1),
        "none",
    ),
    "smooth_l1_loss": (
        lambda *a, **k: losses.smooth_l1_loss(*a, beta=2.0, **k),
        [X, Y],
        huber(X, Y, 2.0) / 2.0,
        "mean",
    ),
    "huber_loss": (
        lambda *a, **k: losses.huber_loss(*a, delta=1.5, **k),
        [X, Y],
        huber(X, Y, 1.5),
        "none",
    ),
    "log_cosh_loss": (losses.log_cosh_loss, [X, Y], np.log(np.cosh(X - Y)), "none"),
    "hinge_loss": (
        losses.hinge_loss,
        [X, SIGNS],
        np.maximum(1 - X * SIGNS, 0),
        "none",
    ),
    "triplet_loss": (losses.triplet_loss, [X, Y, Z], triplet(X, Y, Z), "none"),
    "triplet_loss p 1": (
        lambda *a, **k: losses.triplet_loss(*a, p=1, margin=3.0, **k),
        [X, Y, Z],
        triplet(X, Y, Z, 1, 3.0),
        "none",
    ),
    "triplet_loss p 3": (
        lambda *a, **k: losses.triplet_loss(*a, p=3, margin=2.0, **k),
        [X, Y, Z],
        triplet(X, Y, Z, 3, 2.0),
        "none",
    ),
    "cosine_similarity_loss": (
        losses.cosine_similarity_loss,
        [X, Y],
        (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1),
        "none",
    ),
    "margin_ranking_loss": (
        lambda *a, **k: losses.margin_ranking_loss(*a, margin=0.5, **k),
        [X, Y, SIGNS],
        np.maximum(-SIGNS * (X - Y) + 0.5, 0),
        "none",
    ),
}


def arrays(values: list[Any], dtype: mx.Dtype = mx.float32) -> list[mx.array]:
    return [
        mx.array(v) if v.dtype.kind == "i" else mx.array(v.astype(np.float32), dtype)
        for v in values
    ]


def test_every_loss_has_a_case() -> None:
    cased = {name.split()[0] for name in CASES}
    assert cased == {n for n in losses.__all__ if n != "Reduction"}


@pytest.mark.parametrize("name", CASES)
def test_against_the_formula(name: str) -> None:
    function, values, want, default = CASES[name]
    given = arrays(values)
    got = function(*given, reduction="none")
    np.testing.assert_allclose(np.array(got), want, rtol=2e-5, atol=2e-5)
    mean = function(*given, reduction="mean")
    assert mean.shape == () and mean.item() == pytest.approx(want.mean(), rel=2e-5)
    total = function(*given, reduction="sum")
    assert total.shape == () and total.item() == pytest.approx(want.sum(), rel=2e-5)
    expected = {"none": got, "mean": mean}[default]
    assert mx.array_equal(function(*given), expected).item()


@pytest.mark.parametrize("name", CASES)
def test_gradient_against_differences(name: str) -> None:
    """float64 on the CPU: central differences of the library's own values, which
    the test above ties to the formulas."""
    function, values, _, _ = CASES[name]
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    try:
        given = [
            mx.array(v) if v.dtype.kind == "i" else mx.array(v, mx.float64)
            for v in values
        ]

        def loss(x: mx.array) -> mx.array:
            return function(x, *given[1:], reduction="sum")

        gradient = np.array(mx.grad(loss)(given[0]))
        assert gradient.shape == values[0].shape
        step = 1e-5
        for place in np.ndindex(*values[0].shape):
            shift = np.zeros(values[0].shape)
            shift[place] = step
            high = loss(mx.array(values[0] + shift, mx.float64)).item()
            low = loss(mx.array(values[0] - shift, mx.float64)).item()
            assert gradient[place] == pytest.approx(
                (high - low) / (2 * step), rel=1e-6, abs=1e-6
            )
    finally:
        mx.set_default_device(before)


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_half_types_stay(name: str, dtype: mx.Dtype) -> None:
    function, values, want, _ = CASES[name]
    got = function(*arrays(values, dtype), reduction="none")
    assert got.dtype == dtype
    # Inputs up to 10 are rounded, then some operations each round again.
    scale = {mx.float16: 2**-11, mx.bfloat16: 2**-8}[dtype]
    error = np.abs(np.array(got.astype(mx.float32)) - want)
    assert error.max() < 3 * scale * (np.abs(want).max() + 10)


@pytest.mark.parametrize("name", CASES)
def test_unknown_reduction(name: str) -> None:
    function, values, _, _ = CASES[name]
    text = (
        rf"^\[{name.split()[0]}\] unknown reduction: 'other'\. Expected one of 'none'"
    )
    with pytest.raises(ValueError, match=text):
        function(*arrays(values), reduction="other")


def bad(function: Callable[..., Any], *shapes: tuple[int, ...], **kwargs: Any) -> Any:
    return lambda: function(*(mx.zeros(shape) for shape in shapes), **kwargs)


INTEGERS = mx.array([0, 1, 2, 3])
BAD_CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "classes": (
        lambda: losses.cross_entropy(mx.zeros((3, 8)), INTEGERS),
        r"\[cross_entropy\] targets have the wrong shape: \(4,\) for inputs of "
        r"\(3, 8\)\. Expected \(3,\), a class for each\.",
    ),
    "probabilities": (
        bad(losses.cross_entropy, (4, 8), (4, 7)),
        r"\[cross_entropy\] shapes differ: logits \(4, 8\), targets \(4, 7\)\. They",
    ),
    "weights": (
        bad(losses.cross_entropy, (4, 8), (4, 8), (8,)),
        r"\[cross_entropy\] weights have the wrong shape: \(8,\)\. There must be",
    ),
    "axis": (
        bad(losses.cross_entropy, (4, 8), (4, 8), axis=2),
        r"\[cross_entropy\] no such axis: 2\. The input has 2 axes\.",
    ),
    "smoothing 1": (
        bad(losses.cross_entropy, (4, 8), (4, 8), label_smoothing=1.0),
        r"\[cross_entropy\] label_smoothing out of range: 1\.0\. It must",
    ),
    "smoothing NaN": (
        bad(losses.cross_entropy, (4, 8), (4, 8), label_smoothing=math.nan),
        r"\[cross_entropy\] label_smoothing out of range: nan\. It must",
    ),
    "binary shapes": (
        bad(losses.binary_cross_entropy, (4, 2), (2,)),
        r"\[binary_cross_entropy\] shapes differ: inputs \(4, 2\), targets \(2,\)\.",
    ),
    "binary weights": (
        bad(losses.binary_cross_entropy, (4,), (4,), (1,)),
        r"\[binary_cross_entropy\] weights have the wrong shape: \(1,\)\.",
    ),
    "l1": (bad(losses.l1_loss, (4, 8), (8,)), r"\[l1_loss\] shapes differ"),
    "mse": (bad(losses.mse_loss, (4, 8), (8,)), r"\[mse_loss\] shapes differ"),
    "nll": (
        lambda: losses.nll_loss(mx.zeros((3, 8)), INTEGERS),
        r"\[nll_loss\] targets have the wrong shape: \(4,\)",
    ),
    "gaussian": (
        bad(losses.gaussian_nll_loss, (2, 2), (2, 2), (2, 1)),
        r"\[gaussian_nll_loss\] shapes differ: .*, vars \(2, 1\)\.",
    ),
    "smooth": (bad(losses.smooth_l1_loss, (2,), (1,)), r"\[smooth_l1_loss\] shapes"),
    "beta": (
        bad(losses.smooth_l1_loss, (2,), (2,), beta=-1.0),
        r"\[smooth_l1_loss\] beta is negative: -1\.0\. It must be at least 0\.",
    ),
    "delta": (
        bad(losses.huber_loss, (2,), (2,), delta=-1.0),
        r"\[huber_loss\] delta is negative: -1\.0\. It must be at least 0\.",
    ),
    "ranking": (
        bad(losses.margin_ranking_loss, (3,), (3,), (1,)),
        r"\[margin_ranking_loss\] shapes differ: .*, targets \(1,\)\.",
    ),
    "kl": (bad(losses.kl_div_loss, (2, 3), (2, 4)), "broadcast"),
    "cosine": (bad(losses.cosine_similarity_loss, (2, 3), (2, 4)), "broadcast"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments(case: str) -> None:
    call, text = BAD_CALLS[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_cross_entropy_has_no_scale() -> None:
    base, label = mx.array([[2.0, -1.0]]), mx.array([0])
    for offset in (0.0, 1e4, 1e6, -1e6):
        loss = losses.cross_entropy(base + offset, label).item()
        assert loss == pytest.approx(math.log1p(math.exp(-3)), rel=1e-5)
    for value in (1e8, 1e20, -1e30):
        loss = losses.cross_entropy(mx.array([[value, value]]), label).item()
        assert loss == pytest.approx(math.log(2), rel=1e-5)


def test_cross_entropy_of_impossible_classes() -> None:
    logits = mx.array([[0.0, -math.inf], [-math.inf, 0.0]])
    assert losses.cross_entropy(logits, mx.array([0, 1])).tolist() == [0.0, 0.0]
    assert losses.cross_entropy(logits, mx.array([1, 0])).tolist() == [math.inf] * 2
    gradient = mx.grad(lambda x: losses.cross_entropy(x, mx.array([0, 1])).sum())
    assert gradient(logits).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_cross_entropy_on_a_middle_axis() -> None:
    logits = RNG.normal(size=(2, 5, 3))
    labels = np.array([[1, 4, 0], [2, 3, 1]])
    got = np.array(losses.cross_entropy(*arrays([logits, labels]), axis=1))
    want = -np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    for i, j in np.ndindex(2, 3):
        assert got[i, j] == pytest.approx(want[i, labels[i, j], j], rel=1e-5)


def test_binary_cross_entropy_at_the_ends() -> None:
    p, t = mx.array([0.0, 1.0, 0.0, 1.0]), mx.array([0.0, 1.0, 1.0, 0.0])

    def loss(p: mx.array, reduction: Any) -> mx.array:
        return losses.binary_cross_entropy(p, t, None, False, reduction)

    assert loss(p, "none").tolist() == [0.0, 0.0, 100.0, 100.0]
    assert mx.grad(lambda p: loss(p, "sum"))(p).tolist() == [1.0, -1.0, 0.0, 0.0]
    logits = mx.array([1000.0, -1000.0])
    got = losses.binary_cross_entropy(logits, mx.array([0, 1]), reduction="none")
    assert got.tolist() == [1000.0, 1000.0]


def test_variance_is_at_least_eps() -> None:
    x, t = mx.array([1.0]), mx.array([1.5])
    for v in (0.0, -3.0, 1e-9):
        got = losses.gaussian_nll_loss(x, t, mx.array([v]), eps=0.01).item()
        assert got == pytest.approx(0.5 * (math.log(0.01) + 25), rel=1e-5)


def test_smooth_l1_without_a_parabola() -> None:
    x, t = mx.array([1.0, -2.0]), mx.array([1.0, 0.5])
    assert losses.smooth_l1_loss(x, t, 0.0, "none").tolist() == [0.0, 2.5]
    gradient = mx.grad(lambda x: losses.smooth_l1_loss(x, t, 0.0, "sum"))(x)
    assert gradient.tolist() == [0.0, -1.0]


def test_log_cosh_of_large_differences() -> None:
    x = mx.array([1e30, -300.0])
    got = losses.log_cosh_loss(x, mx.array(0.0)).tolist()
    assert got == pytest.approx([1e30, 300 - math.log(2)], rel=1e-6)


def test_cosine_of_a_zero_vector() -> None:
    zero, x = mx.zeros((1, 3)), mx.array([[1.0, 2.0, 2.0]])
    assert losses.cosine_similarity_loss(zero, x).tolist() == [0.0]
    gradient = mx.grad(lambda x: losses.cosine_similarity_loss(x, x).sum())(zero)
    assert gradient.tolist() == [[0.0, 0.0, 0.0]]
    got = losses.cosine_similarity_loss(x, x, eps=18.0).item()
    assert got == pytest.approx(0.5)


def test_nan_is_not_lost() -> None:
    x = mx.array([[math.nan, 1.0]])
    one = mx.ones((1, 2))
    for name in losses.__all__:
        if name in ("Reduction", "nll_loss"):
            continue
        function = getattr(losses, name)
        more = [one] * (name in ("gaussian_nll_loss", "margin_ranking_loss"))
        more += [one] * (name == "triplet_loss")
        assert mx.isnan(function(x, one, *more, reduction="sum")).item(), name


@pytest.mark.parametrize("room", ["likelihood", "margin", "regression"])
def test_examples_in_docstrings(room: str) -> None:
    results = doctest.testmod(importlib.import_module(f"mlx.nn.losses.{room}"))
    assert results.failed == 0 and results.attempted > 0
