"""The class array: making, converting, printing, pickling, operators."""

import copy
import gc
import io
import math
import pickle
import weakref

import mlx.core as mx
import numpy as np
import pytest

NUMPY_NAMES = [
    "bool_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "complex64",
]


class TestConstruction:
    @pytest.mark.parametrize(
        ("value", "dtype", "shape"),
        [
            (True, mx.bool_, ()),
            (3, mx.int32, ()),
            (2**31 - 1, mx.int32, ()),
            (2**31, mx.int64, ()),
            (-(2**40), mx.int64, ()),
            (2**63, mx.uint64, ()),
            (2.5, mx.float32, ()),
            (1 + 2j, mx.complex64, ()),
            ([], mx.float32, (0,)),
            ([[]], mx.float32, (1, 0)),
            ([True, False], mx.bool_, (2,)),
            ([True, 2], mx.int32, (2,)),
            ([1, 2.5], mx.float32, (2,)),
            ([1, 2j], mx.complex64, (2,)),
            ([1, 2**40], mx.int64, (2,)),
            (((1, 2), (3, 4)), mx.int32, (2, 2)),
        ],
    )
    def test_default_types(self, value, dtype, shape):
        a = mx.array(value)
        assert a.dtype == dtype
        assert a.shape == shape
        expected = [list(row) for row in value] if shape == (2, 2) else value
        assert a.tolist() == expected

    def test_dtype_argument(self):
        assert mx.array(1.7, mx.int32).item() == 1
        assert mx.array([1, 0], dtype=mx.bool_).tolist() == [True, False]
        assert mx.array(300, mx.uint8).item() == 44
        assert mx.array(1 / 3, mx.float64).item() == 1 / 3
        assert mx.array([1 / 3], mx.float64).tolist() == [1 / 3]
        assert mx.array(2**63, mx.uint64).item() == 2**63

    def test_of_arrays(self):
        a = mx.array([1, 2])
        assert mx.array(a).tolist() == [1, 2]
        assert mx.array(a, mx.float16).dtype == mx.float16
        stacked = mx.array([a, mx.array([3.0, 4.0])])
        assert stacked.dtype == mx.float32
        assert stacked.tolist() == [[1, 2], [3, 4]]
        assert mx.array([mx.array(1), 2.5]).tolist() == [1, 2.5]
        assert mx.array([[a, a]]).shape == (1, 2, 2)

    def test_of_objects_with_mlx_array(self):
        class Wrapped:
            def __mlx_array__(self):
                return mx.array([1, 2])

        assert mx.array(Wrapped()).tolist() == [1, 2]
        assert (mx.array([1, 1]) + Wrapped()).tolist() == [2, 3]
        assert mx.reshape(Wrapped(), (2, 1)).shape == (2, 1)
        assert mx.ArrayLike(Wrapped()).__mlx_array__().tolist() == [1, 2]
        with pytest.raises(TypeError):
            mx.ArrayLike(3)

    @pytest.mark.parametrize(
        "value", [[[1], [1, 2]], [1, [2]], [[1], 2], "a", ["a"], [None], range(3)]
    )
    def test_refused(self, value):
        with pytest.raises(ValueError, match=r"\[array\]|non-uniform length"):
            mx.array(value)

    def test_arrays_beside_lists(self):
        a = mx.array([1.0], mx.float16)
        mixed = mx.array([[a, [2]], [(3,), mx.array([True])]])
        assert mixed.tolist() == [[[1], [2]], [[3], [1]]]
        # Numbers count as arrays of their own type.
        assert mixed.dtype == mx.float16
        assert mx.array([a, [2.5]]).dtype == mx.float32
        assert mx.array([mx.array(1), 2.5, True], mx.int8).tolist() == [1, 2, 1]
        assert mx.grad(lambda x: mx.array([x, [2.0]]).sum())(a.astype(mx.float32)) == 1
        endless: list = [a]
        endless.append(endless)
        for bad in ([a, 1.0], [1.0, a], [a, [1.0, 2.0]], [[[1.0], [1.0]], [a]]):
            with pytest.raises(ValueError, match="non-uniform length"):
                mx.array(bad)
        with pytest.raises(ValueError, match=r"non-uniform|nested too deep"):
            mx.array(endless)

    def test_too_large(self):
        with pytest.raises(OverflowError):
            mx.array(2**64)
        endless: list = []
        endless.append(endless)
        with pytest.raises(ValueError, match="nested too deep"):
            mx.array(endless)

    def test_wrong_arguments(self):
        with pytest.raises(TypeError):
            mx.array()
        with pytest.raises(TypeError):
            mx.array(1, np.float32)


class TestNumpy:
    @pytest.mark.parametrize("name", NUMPY_NAMES)
    def test_round_trip(self, name):
        x = np.array([[0, 1, 2], [3, 4, 5]]).astype(name)
        a = mx.array(x)
        assert a.dtype == getattr(mx, name)
        back = np.array(a)
        assert back.dtype == x.dtype
        np.testing.assert_array_equal(back, x)

    def test_narrowed_by_default(self):
        assert mx.array(np.array([0.5])).dtype == mx.float32
        assert mx.array(np.array([0.5j])).dtype == mx.complex64
        assert mx.array(np.array([0.5j])).tolist() == [0.5j]
        wide = mx.array(np.array([1 / 3]), mx.float64)
        assert wide.item() == 1 / 3

    @pytest.mark.parametrize(
        "view",
        [
            lambda x: x.T,
            lambda x: x[::2, 1:],
            lambda x: np.asfortranarray(x),
            lambda x: np.broadcast_to(x[0], (3, 4)),
            lambda x: x[:0],
            lambda x: x[1, 2],
        ],
    )
    def test_layouts(self, view):
        x = view(np.arange(12, dtype=np.float32).reshape(3, 4))
        a = mx.array(x)
        assert a.shape == x.shape
        np.testing.assert_array_equal(np.array(a), x)

    def test_views_out(self):
        x = np.arange(6, dtype=np.int32).reshape(2, 3)
        np.testing.assert_array_equal(np.array(mx.array(x).T), x.T)

    def test_copies_in(self):
        x = np.zeros(3, np.float32)
        a = mx.array(x)
        x[0] = 1
        assert a.tolist() == [0, 0, 0]

    def test_shares_out(self):
        a = mx.zeros(3)
        np.asarray(a)[1] = 5
        assert a.tolist() == [0, 5, 0]

    def test_refused(self):
        with pytest.raises(ValueError, match="negative stride"):
            mx.array(np.arange(3)[::-1])
        with pytest.raises(ValueError, match="not accepted"):
            mx.array(np.array(["a"]))
        with pytest.raises(ValueError, match="not accepted"):
            mx.array(np.array([1], dtype=np.dtype(np.int32).newbyteorder(">")))

    def test_bfloat16(self):
        a = mx.array([1.5], mx.bfloat16)
        assert memoryview(a).format == "bfloat16"
        with pytest.raises(TypeError, match="bfloat16"):
            a.__array__()
        with pytest.raises((TypeError, ValueError)):
            np.array(a)

    def test_scalars(self):
        assert mx.array(np.float32(1.5)).dtype == mx.float32
        assert mx.array(np.int64(3)).dtype == mx.int64
        assert mx.array(np.bool_(True)).dtype == mx.bool_

    def test_other_buffers(self):
        assert mx.array(b"ab").tolist() == [97, 98]
        assert mx.array(memoryview(b"ab")).dtype == mx.uint8

    def test_numpy_functions(self):
        np.testing.assert_allclose(np.sin(mx.array([0.5])), np.sin([0.5]), rtol=1e-6)
        assert mx.array([1, 2]).__array_namespace__() is mx
        with pytest.raises(ValueError, match="version"):
            mx.array(1).__array_namespace__("2023")


class TestBuffer:
    def test_description(self):
        view = memoryview(mx.zeros((2, 3), mx.float16))
        assert (view.format, view.shape, view.strides) == ("e", (2, 3), (6, 2))
        assert not view.readonly
        assert memoryview(mx.array(1j)).format == "Zf"

    def test_keeps_memory(self):
        a = mx.arange(1000)
        view = memoryview(a)
        del a
        gc.collect()
        other = mx.arange(1000) + 1
        mx.eval(other)
        assert view[999] == 999

    def test_row_major_only(self):
        a = mx.array([[1, 2], [3, 4]], mx.uint8)
        assert io.BytesIO(a).read() == b"\1\2\3\4"
        with pytest.raises((BufferError, TypeError)):
            io.BytesIO(a.T)


class TestDLPack:
    def test_export(self):
        a = mx.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(np.from_dlpack(a.T), np.arange(6).reshape(2, 3).T)
        assert a.__dlpack_device__() == (1, 0)
        copied = np.from_dlpack(a, copy=True)
        np.testing.assert_array_equal(copied, np.array(a))

    def test_unavailable_device(self):
        with pytest.raises(BufferError):
            mx.array(1).__dlpack__(dl_device=(2, 0))

    def test_import(self):
        class Exporter:
            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **kwargs):
                return self.x.__dlpack__(**kwargs)

            def __dlpack_device__(self):
                return self.x.__dlpack_device__()

        x = np.arange(6, dtype=np.int16).reshape(2, 3)
        assert mx.array(Exporter(x)).tolist() == x.tolist()
        assert mx.from_dlpack(Exporter(x.T)).tolist() == x.T.tolist()
        half = mx.array([1.5, 2.5], mx.bfloat16)
        assert mx.array(Exporter(half)).dtype == mx.bfloat16
        with pytest.raises(TypeError):
            mx.from_dlpack([1])

    def test_copy_argument(self):
        with pytest.raises(ValueError, match="copy"):
            mx.asarray(np.zeros(2), copy=False)
        a = mx.array([1, 2])
        assert mx.asarray(a, copy=True).tolist() == [1, 2]
        assert mx.asarray(a, mx.float32, copy=True).dtype == mx.float32
        for refused in (a, [1, 2], 1):
            with pytest.raises(ValueError, match="copy"):
                mx.asarray(refused, copy=False)
        with pytest.raises(ValueError, match="copy"):
            mx.from_dlpack(np.zeros(2), copy=False)

    @pytest.mark.parametrize(
        "source",
        [
            np.arange(12, dtype=np.float32).reshape(3, 4).T,
            np.arange(20, dtype=np.int32)[2:10:2],
            np.broadcast_to(np.array([7], np.int16), (3,)),
            np.arange(12.0).reshape(3, 4)[:, 1:],
        ],
        ids=["transposed", "stepped", "broadcast", "cut"],
    )
    def test_from_dlpack_keeps_strides(self, source):
        a = mx.from_dlpack(source)
        np.testing.assert_array_equal(np.array(a), source)
        itemsizes = [s // source.itemsize for s in source.strides]
        assert [s // a.itemsize for s in memoryview(a).strides] == itemsizes
        # With wide gaps a row-major copy is smaller.
        sparse = np.arange(1000, dtype=np.int32)[::100]
        assert memoryview(mx.from_dlpack(sparse)).strides == (4,)
        with pytest.raises(ValueError, match="negative stride"):
            mx.from_dlpack(source[::-1] if source.strides[0] else np.arange(3)[::-1])

    def test_dimensions_past_32_bits(self):
        with pytest.raises(OverflowError, match="Shape dimension 2147483648 is"):
            mx.array(np.broadcast_to(np.zeros(1, bool), (2**31,)))


class TestProperties:
    def test_sizes(self):
        a = mx.zeros((2, 3, 4), mx.float16)
        assert (a.ndim, a.size, a.itemsize, a.nbytes) == (3, 24, 2, 48)
        assert a.T.shape == (4, 3, 2)
        assert len(a) == 2
        assert isinstance(a.shape, tuple)

    def test_parts(self):
        a = mx.array([1 + 2j, 3 - 4j])
        assert a.real.tolist() == [1, 3]
        assert a.imag.tolist() == [2, -4]
        assert a.conj().tolist() == [1 - 2j, 3 + 4j]

    def test_iteration(self):
        rows = list(mx.array([[1, 2], [3, 4]]))
        assert [r.tolist() for r in rows] == [[1, 2], [3, 4]]
        for f in (len, iter):
            with pytest.raises(TypeError):
                f(mx.array(1))

    def test_hash_is_identity(self):
        a, b = mx.array(1), mx.array(1)
        assert hash(a) == hash(a)
        assert {a: "a", b: "b"}[a] == "a"

    def test_weak_reference_and_no_attributes(self):
        a = mx.array(1)
        assert weakref.ref(a)() is a
        with pytest.raises(AttributeError):
            a.other = 1


class TestScalars:
    def test_item(self):
        for value in (True, 3, 2.5, 1 + 2j):
            item = mx.array([[value]]).item()
            assert item == value
            assert type(item) is type(value)
        with pytest.raises(ValueError, match="exactly one"):
            mx.array([1, 2]).item()

    def test_conversions(self):
        assert int(mx.array(1.7)) == 1
        assert float(mx.array([3])) == 3.0
        assert complex(mx.array(2.0)) == 2 + 0j
        assert bool(mx.array([0.0])) is False
        assert [1, 2, 3][mx.array(1)] == 2
        with pytest.raises(TypeError):
            [1][mx.array(0.0)]
        with pytest.raises(ValueError):
            bool(mx.array([1, 2]))

    def test_tolist(self):
        assert mx.zeros((2, 0)).tolist() == [[], []]
        assert mx.array(3).tolist() == 3
        assert mx.array([1.5], mx.bfloat16).tolist() == [1.5]
        assert mx.array([[1, 2], [3, 4]]).T.tolist() == [[1, 3], [2, 4]]


class TestPrinting:
    @pytest.mark.parametrize(
        ("a", "text"),
        [
            (mx.array(3.5), "array(3.5, dtype=float32)"),
            (mx.array([True, False]), "array([True, False], dtype=bool)"),
            (mx.array([1 + 2j]), "array([1+2j], dtype=complex64)"),
            (mx.array([]), "array([], dtype=float32)"),
            (
                mx.array([[1, 2], [3, 4]]),
                "array([[1, 2],\n       [3, 4]], dtype=int32)",
            ),
        ],
    )
    def test_text(self, a, text):
        assert repr(a) == text
        assert str(a) == text

    def test_format(self):
        assert f"{mx.array(1.5):.3f}" == "1.500"
        assert f"{mx.array([1, 2])}" == "array([1, 2], dtype=int32)"
        with pytest.raises(TypeError):
            format(mx.array([1.5]), ".3f")

    def test_options(self):
        assert mx.get_printoptions().precision == -1
        with mx.printoptions(precision=2):
            assert mx.get_printoptions().precision == 2
            assert repr(mx.array(1.2345)) == "array(1.23, dtype=float32)"
        assert mx.get_printoptions().precision == -1
        assert mx.PrintOptions(4).precision == 4


class TestCopies:
    @pytest.mark.parametrize("name", [*NUMPY_NAMES, "bfloat16", "float64"])
    def test_pickle(self, name):
        a = mx.array([[0, 1], [1, 0]]).astype(getattr(mx, name))
        b = pickle.loads(pickle.dumps(a))
        assert b.dtype == a.dtype
        assert b.tolist() == a.tolist()

    def test_state(self):
        data, number = mx.array([1.5], mx.bfloat16).__getstate__()
        assert number == 12
        assert data.dtype == np.uint16
        assert data.tolist() == [16320]

    def test_copy(self):
        a = mx.array([1, 2])
        for b in (copy.copy(a), copy.deepcopy(a)):
            assert b is not a
            b += 1
            assert b.tolist() == [2, 3]
            assert a.tolist() == [1, 2]


class TestWeakTypes:
    @pytest.mark.parametrize(
        ("dtype", "scalar", "result"),
        [
            (mx.int8, True, mx.int8),
            (mx.bool_, True, mx.bool_),
            (mx.bool_, 1, mx.int32),
            (mx.int8, 1, mx.int8),
            (mx.uint16, 1, mx.uint16),
            (mx.float16, 1, mx.float16),
            (mx.bfloat16, 0.5, mx.bfloat16),
            (mx.float64, 0.1, mx.float64),
            (mx.complex64, 0.5, mx.complex64),
            (mx.int64, 0.5, mx.float32),
            (mx.bool_, 0.5, mx.float32),
            (mx.float16, 1j, mx.complex64),
        ],
    )
    def test_result(self, dtype, scalar, result):
        a = mx.array([1, 0], dtype=dtype)
        assert (a + scalar).dtype == result
        assert (scalar + a).dtype == result
        assert mx.multiply(scalar, a).dtype == result
        assert mx.where(True, a, scalar).dtype == result

    def test_float64_keeps_precision(self):
        assert (mx.array(1.0, mx.float64) * (1 / 3)).item() == 1 / 3

    @pytest.mark.parametrize(
        ("dtype", "value"),
        [
            (mx.int8, 300),
            (mx.int8, -129),
            (mx.uint8, -1),
            (mx.uint32, 2**32),
            (mx.int32, 2**31),
            (mx.bool_, 2**40),
            (mx.int64, 2**63),
            (mx.int64, 2**70),
        ],
    )
    def test_int_out_of_range(self, dtype, value):
        with pytest.raises(ValueError, match="out of range"):
            mx.array([1], dtype) + value

    def test_limits_fit(self):
        assert (mx.array([0], mx.uint8) + 255).item() == 255
        assert (mx.array([0], mx.int8) + -128).item() == -128
        assert (mx.array([0], mx.uint64) + (2**64 - 1)).item() == 2**64 - 1

    def test_numpy_takes_the_type_beside(self):
        assert (mx.array([1], mx.int8) + np.array([1])).dtype == mx.int8
        assert (mx.array([1], mx.int8) + np.float32(2)).dtype == mx.int8

    def test_two_scalars(self):
        assert mx.add(1, 2).dtype == mx.int32
        assert mx.add(1, 2.5).dtype == mx.float32


class TestOperators:
    PAIRS = (
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("truediv", lambda a, b: a / b),
        ("floordiv", lambda a, b: a // b),
        ("mod", lambda a, b: a % b),
        ("pow", lambda a, b: a**b),
        ("lt", lambda a, b: a < b),
        ("le", lambda a, b: a <= b),
        ("gt", lambda a, b: a > b),
        ("ge", lambda a, b: a >= b),
        ("eq", lambda a, b: a == b),
        ("ne", lambda a, b: a != b),
    )

    @pytest.mark.parametrize("f", [f for _, f in PAIRS], ids=[n for n, _ in PAIRS])
    def test_numbers(self, f):
        x = np.array([1.5, 2.0, 4.0], np.float32)
        y = np.array([2.0, 2.0, 0.5], np.float32)
        a, b = mx.array(x), mx.array(y)
        np.testing.assert_allclose(np.array(f(a, b)), f(x, y), rtol=1e-6)
        np.testing.assert_allclose(np.array(f(a, 2.0)), f(x, np.float32(2)), rtol=1e-6)
        np.testing.assert_allclose(np.array(f(2.0, b)), f(np.float32(2), y), rtol=1e-6)

    def test_bits(self):
        a = mx.array([1, 2, 3])
        assert (a & 1).tolist() == [1, 0, 1]
        assert (a | 4).tolist() == [5, 6, 7]
        assert (a ^ a).tolist() == [0, 0, 0]
        assert (a << 1).tolist() == [2, 4, 6]
        assert (a >> 1).tolist() == [0, 1, 1]
        assert (~a).tolist() == [-2, -3, -4]
        assert (~mx.array([True, False])).tolist() == [False, True]

    def test_unary(self):
        a = mx.array([-1.5, 2.0])
        assert (-a).tolist() == [1.5, -2.0]
        assert (+a).tolist() == [-1.5, 2.0]
        assert abs(a).tolist() == [1.5, 2.0]

    def test_in_place_keeps_the_object(self):
        a = mx.array([1.0, 2.0])
        b = a
        old = a + 0
        a += 1
        a *= 2
        a -= 1
        a /= 2
        assert a is b
        assert b.tolist() == [1.5, 2.5]
        assert old.tolist() == [1.0, 2.0]
        i = mx.array([7, 8])
        i //= 2
        i %= 3
        i **= 2
        i &= 3
        i |= 8
        i ^= 1
        i <<= 2
        i >>= 1
        assert i.tolist() == [18, 16]
        n = mx.array([1])
        n += 0.5
        assert n.dtype == mx.float32

    def test_foreign_operands(self):
        a = mx.array([1, 2])
        for other in ("x", [1, 2], None, object()):
            with pytest.raises(ValueError, match="cannot perform"):
                a + other
            with pytest.raises(ValueError, match="cannot perform"):
                _ = a < other
            assert (a == other) is False
            assert (a != other) is True

    @pytest.mark.parametrize(
        "f",
        [
            lambda a: a & 1,
            lambda a: a | a,
            lambda a: a ^ 1.5,
            lambda a: a << 1,
            lambda a: a >> 1,
            lambda a: ~a,
        ],
    )
    def test_bits_of_floats(self, f):
        with pytest.raises(ValueError):
            f(mx.array(1.5))

    def test_other_errors(self):
        with pytest.raises(ValueError):
            -mx.array([True])
        with pytest.raises(ValueError, match="in-place division"):
            a = mx.array([1])
            a /= 2
        with pytest.raises(TypeError):
            pow(mx.array(2), 2, 3)
        with pytest.raises(ValueError, match="broadcast"):
            mx.zeros(2) + mx.zeros(3)


class TestMethods:
    @pytest.mark.parametrize(
        "name",
        [
            "abs",
            "square",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
        ],
    )
    def test_elementwise(self, name):
        a = mx.array([0.5, 2.0])
        assert getattr(a, name)().tolist() == getattr(mx, name)(a).tolist()

    def test_shapes(self):
        a = mx.arange(6)
        for b in (a.reshape(2, 3), a.reshape((2, -1)), a.reshape([2, 3])):
            assert b.shape == (2, 3)
        assert mx.array([1]).reshape().shape == ()
        assert mx.array([1]).reshape(()).shape == ()
        with pytest.raises(ValueError):
            a.reshape(4, 2)
        with pytest.raises(TypeError):
            a.reshape(2.0, 3)
        b = mx.zeros((2, 3, 4))
        assert b.transpose().shape == (4, 3, 2)
        assert b.transpose(1, 0, 2).shape == (3, 2, 4)
        assert b.transpose((1, 0, 2)).shape == (3, 2, 4)
        assert b.transpose(None).shape == (4, 3, 2)
        assert b.moveaxis(0, 2).shape == (3, 4, 2)
        assert b.swapaxes(0, 1).shape == (3, 2, 4)
        assert b.flatten().shape == (24,)
        assert b.flatten(1).shape == (2, 12)
        assert b[None].squeeze().shape == (2, 3, 4)
        assert [p.shape for p in b.split(3, axis=1)] == [(2, 1, 4)] * 3

    def test_types(self):
        a = mx.array([1.0])
        assert a.astype(mx.int32).dtype == mx.int32
        assert a.astype(mx.int32, mx.cpu).dtype == mx.int32
        assert a.view(mx.int32).item() == 0x3F800000
        assert mx.array(2.345).round(1).item() == pytest.approx(2.3)


class TestDtype:
    def test_identity(self):
        assert repr(mx.float32) == "mlx.core.float32"
        assert mx.float32 != mx.int32
        assert mx.float32 != 3
        assert hash(mx.complex64) == 13
        assert mx.array([1], mx.int8).dtype == mx.int8
        assert mx.bfloat16.size == 2

    @pytest.mark.parametrize("name", [*NUMPY_NAMES, "bfloat16", "float64"])
    def test_pickle(self, name):
        dtype = getattr(mx, name)
        assert pickle.loads(pickle.dumps(dtype)) == dtype
        assert copy.deepcopy(dtype) is dtype

    def test_categories(self):
        assert mx.issubdtype(mx.float16, mx.floating)
        assert mx.issubdtype(mx.floating, mx.inexact)
        assert not mx.issubdtype(mx.bool_, mx.number)
        assert not mx.issubdtype(mx.floating, mx.float32)
        with pytest.raises(ValueError):
            mx.issubdtype(float, mx.floating)
        assert mx.DtypeCategory.floating == mx.floating

    def test_limits(self):
        assert mx.finfo(mx.float16).max == 65504.0
        assert mx.finfo(mx.bfloat16).eps == 2.0**-7
        assert mx.finfo(mx.complex64).dtype == mx.float32
        assert mx.iinfo(mx.uint64).max == 2**64 - 1
        assert repr(mx.iinfo(mx.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
        for limits, dtype in ((mx.finfo, mx.int8), (mx.iinfo, mx.float32)):
            with pytest.raises(ValueError):
                limits(dtype)

    def test_functions(self):
        assert mx.result_type(mx.array([1]), mx.float16) == mx.float16
        assert mx.can_cast(mx.int8, mx.int32)
        assert not mx.can_cast(mx.float32, mx.int32)
        assert mx.isdtype(mx.float32, "real floating")
        assert mx.isdtype(mx.int8, (mx.int16, "signed integer"))
        for bad in ("floats", 3):
            with pytest.raises(ValueError):
                mx.isdtype(mx.int8, bad)
        with pytest.raises(ValueError):
            mx.result_type()


class TestErrors:
    def test_axis_error_is_both(self):
        with pytest.raises(mx.AxisError) as raised:
            mx.expand_dims(mx.zeros(3), 5)
        assert isinstance(raised.value, ValueError)
        assert isinstance(raised.value, IndexError)

    def test_types(self):
        with pytest.raises(TypeError):
            mx.reshape([1, 2], (2, 1))
        with pytest.raises(TypeError):
            mx.reshape(mx.zeros(2), "ab")
        with pytest.raises(TypeError):
            mx.squeeze(mx.zeros((1, 2)), 0.0)
        with pytest.raises(TypeError):
            mx.add(1, 2, stream="cpu")
        with pytest.raises(OverflowError):
            mx.zeros(2**31)

    def test_unavailable_device(self):
        count = mx.device_count(mx.gpu)
        assert not mx.is_available(mx.Device(mx.gpu, count))
        with pytest.raises(ValueError):
            mx.set_default_device(mx.Device(mx.gpu, count))


def test_constants():
    assert (mx.pi, mx.e, mx.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(mx.nan)
    assert mx.newaxis is None
    assert mx.euler_gamma == pytest.approx(0.5772156649015329)


def test_version():
    assert mx.__version__ == "0.32.4"
