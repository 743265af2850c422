"""Index expressions: reading, writing and accumulating as NumPy does, and what
differs from it."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

FIXED = settings(derandomize=True, max_examples=150, deadline=None)


def counting(*shape: int, dtype: type = np.int32) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def to_mlx(index: object) -> object:
    """The same index expression with arrays of ours for those of NumPy."""
    if isinstance(index, tuple):
        return tuple(to_mlx(part) for part in index)
    return mx.array(index) if isinstance(index, np.ndarray) else index


def check(found: mx.array, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.array(found), expected)


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
bounds = st.none() | st.integers(-7, 7)
slices = st.builds(slice, bounds, bounds, bounds.filter(lambda step: step != 0))


@st.composite
def basic_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple:
    parts: list[object] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        parts.append(draw(slices | st.integers(-n, n - 1)))
    return with_extras(draw, parts)


def with_extras(draw: st.DrawFn, parts: list[object]) -> tuple:
    """New axes anywhere; an ellipsis at the end, where it changes nothing."""
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.append(...)
    return tuple(parts)


@st.composite
def index_arrays(draw: st.DrawFn, n: int, common: tuple[int, ...]) -> object:
    """Positions along an axis of length n, in a shape that broadcasts to the
    common one."""
    shape = common[draw(st.integers(0, len(common))) :]
    shape = tuple(draw(st.sampled_from([k, 1])) for k in shape)
    count = int(np.prod(shape, dtype=int))
    numbers = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64]))
    values = np.array(numbers, dtype=dtype).reshape(shape)
    return values.tolist() if draw(st.booleans()) and shape else values


@st.composite
def advanced_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple:
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    parts: list[object] = []
    named = draw(st.integers(1, len(shape)))
    sure = draw(st.integers(0, named - 1))
    for axis, n in enumerate(shape[:named]):
        part = index_arrays(n, common)
        if axis != sure:
            part = part | slices | st.integers(-n, n - 1)
        parts.append(draw(part))
    return with_extras(draw, parts)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, tuple]:
    shape = draw(shapes)
    index = draw(basic_indices(shape) | advanced_indices(shape))
    return counting(*shape), index


@FIXED
@given(cases())
def test_reads_as_numpy(case: tuple[np.ndarray, tuple]) -> None:
    a, index = case
    check(mx.array(a)[to_mlx(index)], a[index])


@FIXED
@given(cases(), st.integers(0, 3), st.booleans())
def test_writes_as_numpy(
    case: tuple[np.ndarray, tuple], dropped: int, narrow: bool
) -> None:
    a, index = case
    # Repeated positions get equal values, so that their order is free.
    values = np.asarray(-10 * a[index])
    if narrow:
        values = np.full_like(values[(slice(0, 1),) * values.ndim], -3)
        values = values.reshape(values.shape[min(dropped, values.ndim) :])
        values = values if values.size else np.array(-3, dtype=a.dtype)
    expected = a.copy()
    expected[index] = values
    found = mx.array(a)
    old = mx.array(found)
    found[to_mlx(index)] = mx.array(values)
    check(found, expected)
    check(old, a)


UPDATES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@FIXED
@given(cases(), st.sampled_from(sorted(UPDATES)))
def test_accumulates_as_numpy(case: tuple[np.ndarray, tuple], name: str) -> None:
    a, index = case
    values = np.asarray(a[index])
    values = (counting(*values.shape) * 7 % 5 - 2).astype(a.dtype)
    expected = a.copy()
    UPDATES[name].at(expected, index, values)
    source = mx.array(a)
    check(getattr(source.at[to_mlx(index)], name)(mx.array(values)), expected)
    check(source, a)


@st.composite
def masks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    a = counting(*draw(shapes))
    covered = a.shape[: draw(st.integers(1, a.ndim))]
    count = int(np.prod(covered, dtype=int))
    bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return a, np.array(bits, dtype=bool).reshape(covered)


@FIXED
@given(masks())
def test_masks_as_numpy(case: tuple[np.ndarray, np.ndarray]) -> None:
    a, mask = case
    check(mx.array(a)[mx.array(mask)], a[mask])
    found = mx.array(a)
    found[mx.array(mask)] = mx.array(-a[mask])
    expected = a.copy()
    expected[mask] = -a[mask]
    check(found, expected)
    found[mask.tolist()] = 5
    expected[mask] = 5
    check(found, expected)
    expected[mask] *= 3
    check(found.at[mx.array(mask)].multiply(3), expected)


def test_gradients_flow_through_indexing() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    check(mx.grad(lambda v: (v[1:] ** 2).sum())(x), np.array([0, 4, 6.0]))
    check(mx.grad(lambda v: v[mx.array([0, 0, 2])].sum())(x), np.array([2, 0, 1.0]))

    def updated(v: mx.array) -> mx.array:
        v[mx.array([0, 1])] = v[2] * 2
        return (v * v).sum()

    check(mx.grad(updated)(mx.array(x)), np.array([0, 0, 54.0]))
    check(
        mx.grad(lambda v: v.at[mx.array([1, 1])].add(v[0]).sum())(x),
        np.array([3, 1, 1.0]),
    )


def test_kinds_of_indices() -> None:
    a = mx.array(counting(3, 4))
    assert a[1, 2].item() == 6
    assert a[np.int64(-1), np.uint8(0)].item() == 8
    assert a[mx.array(2)].tolist() == [8, 9, 10, 11]
    assert a[np.array([0, 2]), 1].tolist() == [1, 9]
    assert a[[mx.array(1), 2]].shape == (2, 4)
    assert a[[]].shape == (0, 4)
    assert a[()].tolist() == a[...].tolist() == a[:].tolist() == a.tolist()
    assert a[True].shape == (1, 3, 4) and a[False].shape == (0, 3, 4)
    assert a[:, mx.array([True, False, True, False])].tolist() == [
        [0, 2],
        [4, 6],
        [8, 10],
    ]
    assert mx.array(5)[None].shape == (1,)
    assert mx.array(5)[...].item() == 5


def test_handles_and_values() -> None:
    a = mx.array([1, 2, 3])
    same = a
    copy = a[:]
    doubled = a * 2
    a[0] = 10
    assert same.tolist() == [10, 2, 3]
    assert copy.tolist() == [1, 2, 3]
    assert doubled.tolist() == [2, 4, 6]
    zero = mx.array(1.0)
    zero[...] = 3
    zero[None] = zero + 1
    assert zero.item() == 4


def test_types_of_values() -> None:
    a = mx.array([1, 2, 3], dtype=mx.int8)
    a[0] = 2.9
    a[1] = mx.array(300)
    a[2] = True
    assert a.tolist() == [2, 44, 1] and a.dtype == mx.int8
    a[:] = [4, 5, 6]
    a[1:] = np.array([7, 8])
    assert a.tolist() == [4, 7, 8]
    assert a.at[0].add(1.5).tolist() == [5, 7, 8]
    with pytest.raises(ValueError):
        a[0] = 200
    half = mx.array([1.0, 3.0], dtype=mx.float16)
    assert half.at[[0, 0]].divide(2).tolist() == [0.25, 3.0]
    assert half.at[1].divide(4).tolist() == [1.0, 0.75]


@pytest.mark.parametrize(
    "index",
    [
        1.0,
        "x",
        mx.array(1.0),
        (0, 0, 0),
        (..., ...),
        slice(0, 2.5),
        slice(None, None, 0),
        slice(0, 2**40),
        mx.array([True, False]),
        (True, 0),
        [0.5],
        pytest.param(object(), id="object"),
    ],
    ids=str,
)
def test_refused_indices(index: object) -> None:
    a = mx.array(counting(3, 4))
    with pytest.raises(ValueError):
        a[index]
    with pytest.raises(ValueError):
        a[index] = 0
    with pytest.raises(ValueError):
        a.at[index].add(1)


@pytest.mark.parametrize("index", [3, -4, (0, 4), 2**31 - 1], ids=str)
def test_integers_out_of_range(index: object) -> None:
    a = mx.array(counting(3, 4))
    with pytest.raises(IndexError, match="index out of range"):
        a[index]
    with pytest.raises(IndexError):
        a[index] = 0


@pytest.mark.parametrize("index", [2**31, -(2**40), 2**70, (0, 2**32)], ids=str)
def test_integers_past_32_bits(index: object) -> None:
    a = mx.array(counting(3, 4))
    with pytest.raises(ValueError, match="32 bits"):
        a[index]
    with pytest.raises(ValueError, match="32 bits"):
        a[index] = 0


def test_values_that_do_not_fit() -> None:
    a = mx.array(counting(3, 4))
    for index, shape in [
        (slice(0, 2), (3,)),
        (0, (2, 4)),
        ([0, 1], (3, 4)),
        (slice(0, 0), (3,)),
        (mx.array([True, False, True]), (3,)),
        (mx.array(counting(3, 4) > 5), (1, 1)),
    ]:
        with pytest.raises(ValueError):
            a[index] = mx.zeros(shape)
    with pytest.raises(RuntimeError, match="too few values"):
        b = mx.array(a)
        b[b > 5] = mx.array([1, 2])
        mx.eval(b)
    with pytest.raises(ValueError):
        a.at.add(1)
    with pytest.raises(ValueError):
        mx.array(1)[0]


def test_out_of_range_arrays_stay_inside() -> None:
    a = mx.array([1, 2, 3])
    assert a[mx.array([7, -9])].tolist() == [3, 1]
    a[mx.array([7, -9, 1])] = 5
    assert a.tolist() == [1, 5, 3]


def test_no_positions_in_empty_arrays() -> None:
    a, none = mx.zeros((0, 4)), mx.array([], dtype=mx.int32)
    assert a[none].shape == (0, 4) and a[none, none].shape == (0,)
    a[none] = 1
    a[none, none] = 1
    assert a.at[none].add(1).shape == (0, 4)
    assert mx.grad(lambda a: mx.sum(a[none]))(a).shape == (0, 4)
    start = mx.zeros((0, 1), dtype=mx.int32)
    rows = mx.zeros((0, 3, 2))
    cut = mx.vmap(lambda a, i: mx.slice(a, i, (0,), (2, 2)))(rows, start)
    assert cut.shape == (0, 2, 2)


def test_update_in_place_needs_no_copy() -> None:
    cache = mx.zeros((1, 8, 4096, 64))
    row = mx.ones((1, 8, 1, 64))
    mx.eval(cache, row)
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    for step in range(4):
        cache[..., step : step + 1, :] = row
        mx.eval(cache)
    assert mx.get_peak_memory() - before < cache.nbytes // 8
    assert cache[0, 0, :5, 0].tolist() == [1, 1, 1, 1, 0]
