"""What the oracle table does not say of functions that make, reshape, join and
split arrays: errors, forms of arguments, other names."""

import mlx.core as mx
import numpy as np
import pytest

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
A = mx.array(X)


def check(got, expected):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_array_equal(np.array(got), expected)


class TestReshape:
    def test_errors(self):
        for bad in ((5, 5), (-1, -1), (0, -1)):
            with pytest.raises(ValueError):
                mx.reshape(A, bad)
        with pytest.raises(ValueError):
            mx.squeeze(A, 0)
        with pytest.raises(mx.AxisError):
            mx.swapaxes(A, 0, 3)
        for shift, axis in (((1, -2), 1), (3, (0, 2)), ((5, 5), (1, 1)), (-1, (2, 2))):
            check(mx.roll(A, shift, axis), np.roll(X, shift, axis))
        with pytest.raises(TypeError):
            mx.roll(A, None)
        with pytest.raises(ValueError, match="shifts for"):
            mx.roll(A, (1, 2, 3), (0, 1))

    def test_other_names(self):
        check(mx.permute_dims(A, [0, 2, 1]), X.transpose(0, 2, 1))
        check(mx.matrix_transpose(A), X.transpose(0, 2, 1))
        check(mx.flip(A), np.flip(X))
        check(mx.as_strided(A), X)


class TestBroadcast:
    def test_to(self):
        check(mx.broadcast_to(3, (2, 2)), np.full((2, 2), 3))
        with pytest.raises(ValueError):
            mx.broadcast_to(A, (2, 3))

    def test_arrays_and_shapes(self):
        out = mx.broadcast_arrays(A, A[:, :1], mx.array(1))
        assert isinstance(out, tuple)
        assert [o.shape for o in out] == [(2, 3, 4)] * 3
        assert mx.broadcast_shapes((2, 1), [3], ()) == (2, 3)
        for bad in (((2,), (3,)), (3,), ()):
            with pytest.raises(ValueError):
                mx.broadcast_shapes(*bad)


class TestJoin:
    def test_concatenate(self):
        check(mx.concatenate([A, A[:1]]), np.concatenate([X, X[:1]]))
        check(mx.concat([A, A], axis=-1), np.concatenate([X, X], -1))
        for bad in ([], [A, A[0]]):
            with pytest.raises(ValueError):
                mx.concatenate(bad)
        with pytest.raises(TypeError):
            mx.concatenate([A, 1])

    def test_stack(self):
        check(mx.stack((A[0, 0], A[0, 1])), X[0, :2])
        with pytest.raises(ValueError):
            mx.stack([A, A[0]])

    def test_split(self):
        for got, expected in zip(mx.split(A, (1, 3), -1), np.split(X, (1, 3), -1)):
            check(got, expected)
        with pytest.raises(ValueError):
            mx.split(A, 3)
        parts = mx.unstack(A, axis=1)
        assert isinstance(parts, tuple)
        check(parts[2], X[:, 2])

    def test_meshgrid(self):
        x, y = np.arange(3), np.arange(2)
        for kwargs in ({}, {"indexing": "ij"}, {"sparse": True}):
            got = mx.meshgrid(mx.array(x), mx.array(y), **kwargs)
            for g, e in zip(got, np.meshgrid(x, y, **kwargs)):
                check(g, e)

    def test_atleast(self):
        for n, name in enumerate(("atleast_1d", "atleast_2d", "atleast_3d"), 1):
            f, g = getattr(mx, name), getattr(np, name)
            check(f(mx.array(1)), g(1))
            check(f(A[0]), g(X[0]))
            several = f(mx.array(1), A)
            assert isinstance(several, list)
            assert several[0].ndim == n

    def test_depends(self):
        b = mx.depends(A, A + 1)
        check(b, X)
        assert isinstance(mx.depends([A], [A]), list)


class TestPad:
    def test_forms_of_widths(self):
        check(mx.pad(A, (1,)), np.pad(X, 1))
        check(
            mx.pad(A, (1, 2), constant_values=5), np.pad(X, (1, 2), constant_values=5)
        )
        assert mx.pad(mx.array([1], mx.int8), 1, constant_values=2).dtype == mx.int8
        check(mx.pad(A, [(1, 2)]), np.pad(X, [(1, 2)]))
        check(mx.pad(A, ((1, 2),), mode="edge"), np.pad(X, ((1, 2),), mode="edge"))
        for bad in ([(1, 2)] * 2, "x", [(1, 2, 3)] * 3):
            with pytest.raises(ValueError):
                mx.pad(A, bad)
        with pytest.raises(ValueError):
            mx.pad(A, 1, mode="other")

    @pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge"])
    @pytest.mark.parametrize("shape", [(1,), (2,), (4,), (3, 5), (2, 1, 3)])
    def test_pad_from_within(self, mode, shape):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for widths in (0, 1, (3, 2), (0, 11), [(7, 0)] * len(shape)):
            check(mx.pad(mx.array(x), widths, mode=mode), np.pad(x, widths, mode=mode))
        # Each element is read as often as it stands in the result.
        grad = mx.grad(lambda a: mx.pad(a, (3, 4), mode=mode).sum())(mx.array(x))
        places = np.pad(np.arange(x.size).reshape(shape), (3, 4), mode=mode)
        check(grad, np.bincount(places.ravel(), minlength=x.size).reshape(shape))
        with pytest.raises(ValueError, match="empty"):
            mx.pad(mx.zeros((0, 3)), 1, mode=mode)
        assert mx.pad(mx.zeros((0, 3)), [(0, 0), (2, 1)], mode=mode).shape == (0, 6)


class TestCreation:
    def test_constants(self):
        check(mx.zeros((2, 3)), np.zeros((2, 3)))
        check(mx.ones(3, mx.int8), np.ones(3))
        check(mx.empty([2], None), np.zeros(2))
        assert mx.ones(2, mx.int8).dtype == mx.int8
        assert mx.zeros_like(A, mx.int8).dtype == mx.int8
        check(mx.ones_like(A), np.ones_like(X))
        check(mx.full((2, 2), 7), np.full((2, 2), 7))
        check(mx.full((2, 2), mx.array([1, 2])), np.full((2, 2), [1, 2]))
        assert mx.full(2, 1.5, mx.int32).tolist() == [1, 1]
        assert mx.full(2, 0.1, mx.float64).tolist() == [0.1, 0.1]
        doubles = mx.array([1.0, 2.0], mx.float64)
        assert mx.full_like(doubles, 1e300).tolist() == [1e300, 1e300]
        assert mx.full_like(mx.array([1, 2]), 3.5).tolist() == [3, 3]
        assert mx.full_like(A, 3, mx.float16).dtype == mx.float16
        with pytest.raises(ValueError):
            mx.zeros(-1)
        with pytest.raises(TypeError):
            mx.zeros((2.5,))

    @pytest.mark.parametrize(
        ("args", "dtype"),
        [
            ((5,), mx.int32),
            ((5.0,), mx.float32),
            ((1, 5), mx.int32),
            ((1, 5, 2), mx.int32),
            ((10, 0, -3), mx.int32),
            ((0, 1, 0.25), mx.float32),
            ((5, None), mx.int32),
            ((5, None, 2), mx.int32),
            ((2**40, 2**40 + 2), mx.int64),
            ((5, 1), mx.int32),
        ],
    )
    def test_arange(self, args, dtype):
        a = mx.arange(*args)
        numbers = [0, args[0]] if len(args) == 1 or args[1] is None else [*args[:2]]
        check(a, np.arange(*numbers, *args[2:]))
        assert a.dtype == dtype

    def test_arange_arguments(self):
        assert mx.arange(stop=3).tolist() == [0, 1, 2]
        assert mx.arange(start=1, stop=3, step=1).tolist() == [1, 2]
        assert mx.arange(3, dtype=mx.float16).dtype == mx.float16
        assert mx.arange(0, 10, mx.inf).tolist() == [0]
        assert mx.arange(2, -10, -mx.inf, dtype=mx.int32).tolist() == [2]
        assert mx.arange(10, 0, mx.inf).tolist() == []
        assert mx.arange(mx.array(3)).dtype == mx.int32
        for bad in ((True,), (1, 2, 0), (mx.inf,), (0, mx.nan)):
            with pytest.raises(ValueError):
                mx.arange(*bad)
        with pytest.raises(TypeError):
            mx.arange("3")

    def test_linspace(self):
        check(mx.linspace(0, 1, 5), np.linspace(0, 1, 5))
        check(
            mx.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False)
        )
        assert mx.linspace(0, 1).shape == (50,)
        assert mx.linspace(0, 1, 3, dtype=mx.float16).dtype == mx.float16

    def test_matrices(self):
        check(mx.eye(2, dtype=None), np.eye(2))
        check(mx.identity(3), np.identity(3))
        with pytest.raises(ValueError):
            mx.tril(mx.zeros(3))


class TestIndexing:
    def test_take(self):
        check(mx.take(A, 2, axis=1), np.take(X, 2, 1))
        for bad in ([0, 1], 0.5):
            with pytest.raises(TypeError):
                mx.take(A, bad)

    def test_along_all(self):
        flat = np.array([3, 1])
        check(mx.take_along_axis(A, mx.array(flat)), X.ravel()[flat])
        expected = X.copy()
        expected.ravel()[flat] = [7, 8]
        check(mx.put_along_axis(A, mx.array(flat), mx.array([7.0, 8.0])), expected)

    def test_no_indices(self):
        # Nothing has no type: that of an empty list is float32.
        empty = mx.array([])
        assert mx.put_along_axis(empty, empty, empty, axis=None).shape == (0,)
        assert mx.take_along_axis(A, mx.zeros((2, 0, 4)), 1).shape == (2, 0, 4)
        with pytest.raises(ValueError, match="type of indices"):
            mx.take_along_axis(A, mx.zeros((2, 1, 4)), 1)
