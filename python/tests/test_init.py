"""mlx.nn.init: shapes, dtypes, and what the values are distributed like."""

from __future__ import annotations

import doctest
import importlib
import math
from typing import Any, Callable

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

init = nn.init
CONV = (64, 3, 5, 16)  # fan-in 240, fan-out 960
DENSE = (300, 200)

# Name, the initializer's values for a shape, mean and deviation of these.
DISTRIBUTIONS: dict[str, tuple[Callable[[mx.array], mx.array], Any, Any, Any]] = {
    "normal": (init.normal(0.5, 2.0), DENSE, 0.5, 2.0),
    "uniform": (init.uniform(-1.0, 3.0), DENSE, 1.0, 4 / math.sqrt(12)),
    "glorot_normal": (init.glorot_normal(), DENSE, 0, math.sqrt(2 / 500)),
    "glorot_normal gain": (
        lambda a: init.glorot_normal()(a, gain=3.0),
        CONV,
        0,
        3 * math.sqrt(2 / 1200),
    ),
    "glorot_uniform": (init.glorot_uniform(), CONV, 0, math.sqrt(2 / 1200)),
    "he_normal": (init.he_normal(), DENSE, 0, 1 / math.sqrt(200)),
    "he_normal fan_in": (init.he_normal(), CONV, 0, 1 / math.sqrt(240)),
    "he_normal fan_out": (
        lambda a: init.he_normal()(a, "fan_out", 2.0),
        CONV,
        0,
        2 / math.sqrt(960),
    ),
    "he_uniform": (init.he_uniform(), DENSE, 0, 1 / math.sqrt(200)),
    "he_uniform fan_out": (
        lambda a: init.he_uniform()(a, mode="fan_out", gain=2.0),
        CONV,
        0,
        2 / math.sqrt(960),
    ),
}
# Of a uniform distribution: the bound is the deviation times sqrt(3).
UNIFORM = [name for name in DISTRIBUTIONS if "uniform" in name]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_and_deviation(name: str) -> None:
    function, shape, mean, std = DISTRIBUTIONS[name]
    mx.random.seed(3)
    values = np.array(function(mx.zeros(shape)), np.float64)
    assert values.shape == shape
    # Four standard errors.
    assert values.mean() == pytest.approx(mean, abs=4 * std / math.sqrt(values.size))
    assert values.std() == pytest.approx(std, rel=0.02)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_form_of_the_distribution(name: str) -> None:
    function, shape, mean, std = DISTRIBUTIONS[name]
    mx.random.seed(4)
    scaled = (np.array(function(mx.zeros(shape)), np.float64) - mean) / std
    fourth = (scaled**4).mean()
    if name in UNIFORM:
        assert math.sqrt(3) * 0.999 < np.abs(scaled).max() < math.sqrt(3) * 1.001
        assert fourth == pytest.approx(9 / 5, rel=0.03)
    else:
        assert fourth == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize("name", init.__all__)
def test_dtype_is_that_asked_for(name: str, dtype: mx.Dtype) -> None:
    first = {"constant": [2.5], "sparse": [0.5]}.get(name, [])
    values = getattr(init, name)(*first, dtype=dtype)(mx.zeros((4, 4), mx.int32))
    assert values.dtype == dtype and values.shape == (4, 4)


def test_constant_and_identity() -> None:
    assert init.constant(2.5)(mx.zeros((2, 1, 2))).tolist() == [[[2.5] * 2]] * 2
    assert mx.array_equal(init.identity()(mx.ones((3, 3))), mx.eye(3)).item()


@pytest.mark.parametrize(
    ("sparsity", "shape"),
    [(0.5, (4, 10)), (0.3, (200, 7)), (0.0, (3, 3)), (1.0, (2, 3))],
)
def test_sparse_rows(sparsity: float, shape: tuple[int, int]) -> None:
    mx.random.seed(5)
    values = np.array(init.sparse(sparsity, mean=1.0, std=3.0)(mx.zeros(shape)))
    zeros = math.ceil(sparsity * shape[1])
    assert ((values == 0).sum(1) == zeros).all()
    if shape[0] == 200:
        # Every place is as likely to be zero, and the rest is normal.
        share = (values == 0).mean(0)
        assert np.abs(share - zeros / 7).max() < 4 * math.sqrt(0.25 / 200)
        others = values[values != 0]
        assert others.mean() == pytest.approx(1, abs=4 * 3 / math.sqrt(others.size))
        assert others.std() == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("shape", [(4, 4), (70, 33), (33, 70), (200, 200), (1, 5)])
def test_orthogonal(shape: tuple[int, int]) -> None:
    mx.random.seed(6)
    values = np.array(init.orthogonal(gain=2.0)(mx.zeros(shape)), np.float64)
    assert values.shape == shape
    gram = values @ values.T if shape[0] <= shape[1] else values.T @ values
    np.testing.assert_allclose(gram, 4 * np.eye(min(shape)), atol=2e-5)


def test_orthogonal_is_the_factor_with_a_positive_diagonal() -> None:
    """It comes from the normal matrix that the same key gives."""
    mx.random.seed(7)
    got = np.array(init.orthogonal()(mx.zeros((40, 50))))
    mx.random.seed(7)
    q, r = np.linalg.qr(np.array(mx.random.normal((50, 40)), np.float64))
    np.testing.assert_allclose(got, (q * np.sign(np.diag(r))).T, atol=1e-4)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "identity": (
        lambda: init.identity()(mx.zeros((3, 2))),
        r"^\[identity\] not a square matrix: \(3, 2\)\. The two axes",
    ),
    "identity 3D": (lambda: init.identity()(mx.zeros((2, 2, 2))), r"^\[identity\] not"),
    "glorot_normal": (
        lambda: init.glorot_normal()(mx.zeros((3,)), 1.0),
        r"^\[glorot_normal\] too few axes: 1\. Fan-in and fan-out need at least 2\.",
    ),
    "glorot_uniform": (
        lambda: init.glorot_uniform()(mx.zeros((3,)), 1.0),
        r"^\[glorot_uniform\] too few axes",
    ),
    "he_normal": (
        lambda: init.he_normal()(mx.zeros(()), "fan_in", 1.0),
        r"^\[he_normal\] too few axes: 0\.",
    ),
    "he_uniform": (
        lambda: init.he_uniform()(mx.zeros((2, 2)), "fan", 1.0),  # type: ignore
        r"^\[he_uniform\] unknown mode: 'fan'\. Expected 'fan_in' or 'fan_out'\.",
    ),
    "sparsity": (
        lambda: init.sparse(1.5),
        r"^\[sparse\] sparsity out of range: 1\.5\. It must be from 0 to 1\.",
    ),
    "sparsity NaN": (lambda: init.sparse(math.nan), r"^\[sparse\] sparsity out of"),
    "sparse": (
        lambda: init.sparse(0.5)(mx.zeros((3,))),
        r"^\[sparse\] not a matrix: a 1D array\. Expected 2 axes\.",
    ),
    "orthogonal": (
        lambda: init.orthogonal()(mx.zeros((2, 3, 4))),
        r"^\[orthogonal\] not a matrix: a 3D array\.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_apply_to_a_module() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
    net.apply(init.constant(0.25))
    assert net.layers[0].bias.tolist() == [0.25] * 4
    assert net.layers[2].weight.tolist() == [[0.25] * 4] * 2


@pytest.mark.parametrize("room", ["fans", "matrices", "values"])
def test_examples_in_docstrings(room: str) -> None:
    results = doctest.testmod(importlib.import_module(f"mlx.nn.init.{room}"))
    assert results.failed == 0 and results.attempted > 0
