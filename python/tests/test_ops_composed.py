"""Functions made of other operations: what the oracle table does not say."""

import mlx.core as mx
import numpy as np
import pytest

A = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)


def test_diagonals():
    assert A[0].diag(1).tolist() == [1, 6, 11]
    assert A.diagonal(axis1=1, axis2=2).tolist() == [[0, 5, 10], [12, 17, 22]]
    assert mx.diagonal(A, -1, 2, 0).shape == (3, 2)
    assert mx.trace(A[0], dtype=mx.float16).dtype == mx.float16
    assert mx.trace(mx.array([[200, 0], [0, 200]], mx.uint8)).item() == 400
    for k in (-2, 0, 2):
        found = mx.diag(mx.zeros(0, mx.int32), k)
        assert found.shape == (abs(k), abs(k))
        assert found.dtype == mx.int32
    for bad in (A, mx.array(1)):
        with pytest.raises(ValueError, match=r"\[diag\]"):
            mx.diag(bad)
    with pytest.raises(ValueError, match="Expected 2"):
        mx.trace(A[0, 0])
    with pytest.raises(ValueError, match="named twice"):
        mx.diagonal(A, 0, 1, -2)
    with pytest.raises(IndexError, match=r"\[diagonal\] axis out of range"):
        mx.diagonal(A, 0, 0, 3)


def test_products():
    assert mx.vecdot(mx.array([1 + 2j]), mx.array([3j])).item() == 6 + 3j
    # Neither products nor sums of half precision round in between.
    half = mx.array([300.0, 1.0, -300.0], mx.float16)
    assert mx.vecdot(half, mx.array([300.0, 1.0, 300.0], mx.float16)).item() == 1
    for a, b in ((A, A[..., 1:]), (mx.array(1), mx.array([1])), (A, mx.array(1))):
        with pytest.raises(ValueError, match=r"\[vecdot\]"):
            mx.vecdot(a, b)
    with pytest.raises(ValueError, match=r"\[kron\] an empty array"):
        mx.kron(mx.array([]), A)
    with pytest.raises(ValueError, match="negative number"):
        mx.diff(A, n=-1)
    with pytest.raises(mx.AxisError):
        mx.diff(A, axis=3)


@pytest.mark.parametrize("n", [1, 2, 64, 128, 8192, 12, 24, 20, 160, 28, 28 * 128])
def test_hadamard_transform_keeps_lengths_and_angles(n):
    rows = min(n, 50)
    picked = np.random.default_rng(n).permutation(n)[:rows]
    unit = np.zeros((rows, n), np.float32)
    unit[np.arange(rows), picked] = 1
    signs = np.array(mx.hadamard_transform(mx.array(unit), scale=1.0))
    assert set(np.unique(signs)) <= {-1.0, 1.0}
    np.testing.assert_array_equal(signs @ signs.T, n * np.eye(rows))
    x = mx.random.normal((3, n), key=mx.random.key(n))
    y = mx.hadamard_transform(x)
    np.testing.assert_allclose((x * x).sum(-1), (y * y).sum(-1), rtol=1e-4)


def test_hadamard_transform_of_other_types_and_lengths():
    assert mx.hadamard_transform(mx.array([1, 2], mx.int8), 1.0).tolist() == [3, -1]
    assert mx.hadamard_transform(mx.ones(4, mx.bfloat16)).dtype == mx.bfloat16
    assert mx.hadamard_transform(mx.array(5), scale=0.5).item() == 2.5
    for n in (3, 6, 36, 44):
        with pytest.raises(ValueError, match="length not accepted"):
            mx.hadamard_transform(mx.ones(n))
    with pytest.raises(ValueError, match="empty"):
        mx.hadamard_transform(mx.ones((2, 0)))
    with pytest.raises(ValueError, match="complex64"):
        mx.hadamard_transform(mx.array([1j, 1]))


def test_fp8():
    codes = mx.arange(256).astype(mx.uint8)
    for dtype in (mx.bfloat16, mx.float16, mx.float32, mx.float64):
        values = mx.from_fp8(codes, dtype)
        assert values.dtype == dtype
        assert [i for i in range(256) if mx.isnan(values[i])] == [127, 255]
        back = mx.to_fp8(values)
        same = [i for i in range(256) if back[i].item() == i]
        assert same == [i for i in range(256) if i not in (127, 255)]
    odd = mx.array([mx.nan, mx.inf, -mx.inf, 1e9, 2.0**-10, 1.5 * 2.0**-9, -0.0])
    assert mx.to_fp8(odd).tolist() == [126, 126, 254, 126, 0, 2, 128]
    assert mx.vmap(mx.to_fp8)(mx.ones((2, 3))).tolist() == [[56] * 3] * 2
    assert mx.grad(lambda x: mx.from_fp8(mx.to_fp8(x)).sum())(mx.array(1.0)).item() == 0
    for bad in (mx.array([1]), mx.array([1j])):
        with pytest.raises(ValueError, match="floating"):
            mx.to_fp8(bad)
    with pytest.raises(ValueError, match="uint8"):
        mx.from_fp8(mx.array([1]))
    with pytest.raises(ValueError, match="floating"):
        mx.from_fp8(codes, mx.int32)


def test_windows():
    assert mx.hanning(-3).shape == (0,)
    assert mx.blackman(1).tolist() == [1]
    assert mx.bartlett(4).dtype == mx.float32
    with pytest.raises(TypeError):
        mx.hamming(3.0)
