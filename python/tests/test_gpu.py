"""What only a machine with a GPU shows: two memories, their streams, sizes
beyond 32 bits, errors. The operations are tested by all other files, which use
the default device."""

import gc
import subprocess
import sys
import textwrap
import threading

import mlx.core as mx
import numpy as np
import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not mx.cuda.is_available(), reason="needs an NVIDIA GPU and libmlx_cuda"
    ),
]


DTYPES = (
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"),
    *("int64", "float16", "bfloat16", "float32", "float64", "complex64"),
)


def same(got, want, bound, what):
    wide = mx.complex64 if got.dtype == mx.complex64 else mx.float64
    assert got.dtype == want.dtype, what
    got, want = (np.array(x.astype(wide, mx.cpu)) for x in (got, want))
    np.testing.assert_allclose(got, want, bound, bound, err_msg=what)


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )


class TestCrossing:
    def test_one_graph_on_both(self):
        x = mx.array(np.arange(1000, dtype=np.float32))
        a = mx.add(x, 1.0, stream=mx.gpu)
        b = mx.multiply(a, 2.0, stream=mx.cpu)
        c = mx.subtract(b, 3.0, stream=mx.gpu)
        d = mx.add(c, b, stream=mx.cpu)
        expected = 2 * (np.arange(1000, dtype=np.float32) + 1)
        assert np.array_equal(np.array(d), expected - 3 + expected)

    def test_back_and_forth_many_times(self):
        x = mx.zeros((100,), dtype=mx.int32)
        for i in range(200):
            x = mx.add(x, 1, stream=mx.cpu if i % 3 else mx.gpu)
        assert x.tolist() == [200] * 100

    def test_async(self):
        x = mx.ones((64, 64))
        for i in range(20):
            x = mx.matmul(x, x, stream=mx.gpu if i % 2 else mx.cpu) / 64
            mx.async_eval(x)
        assert np.array_equal(np.array(x), np.ones((64, 64), np.float32))

    def test_streams_of_the_gpu(self):
        streams = [mx.new_stream(mx.gpu) for _ in range(4)]
        x = mx.array(np.ones(1 << 20, np.float32))
        parts = [mx.add(x, i, stream=s) for i, s in enumerate(streams)]
        for _ in range(10):
            parts = [
                mx.add(parts[i], parts[(i + 1) % 4], stream=s)
                for i, s in enumerate(streams)
            ]
        total = sum(np.array(p)[0] for p in parts)
        assert total == (1 + 2 + 3 + 4) * 2**10

    def test_threads(self):
        results = {}

        def work(i):
            x = mx.full((1000,), i)
            for _ in range(50):
                x = mx.add(x, 1)
                mx.eval(x)
            results[i] = x.tolist() == [i + 50] * 1000

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert results == dict.fromkeys(range(8), True)

    def test_values_made_by_the_host(self):
        big = np.random.default_rng(0).standard_normal(3_000_001).astype(np.float32)
        for n in (1, 7, 300, 900, 5000, len(big)):
            x = mx.array(big[:n])
            assert np.array_equal(np.array(mx.add(x, 0, stream=mx.gpu)), big[:n])


class TestSmallOperations:
    """They are collected and launched as one; nobody must notice."""

    @staticmethod
    def chain(device, dtype, steps=150):
        with mx.stream(device):
            x = mx.arange(24, dtype=mx.float32).reshape(4, 6).astype(dtype) / 24
            w = mx.ones((6,), dtype) * 2
            for i in range(steps):
                y = mx.fast.rms_norm(x, w, 1e-3)
                x = mx.where(y > 1, x * 0.5, mx.tanh(y) + x)
                if i % 7 == 0:
                    x = mx.concatenate([x[:, 3:], x[:, :3]], 1)
                if i % 11 == 0:
                    x[1:3, ::2] = y[1:3, 3:]
                if i % 31 == 0:
                    x = x @ mx.eye(6, dtype=dtype)
            return np.array(x.astype(mx.float32))

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    def test_long_chain(self, dtype):
        bound = {mx.float32: 1e-5, mx.float16: 1e-2, mx.bfloat16: 1e-1}[dtype]
        got = self.chain(mx.gpu, dtype)
        np.testing.assert_allclose(got, self.chain(mx.cpu, dtype), bound, bound)

    def test_among_large_ones(self):
        big = mx.ones((512, 512))
        small = mx.zeros((10,))
        for _ in range(100):
            small = small + 1
            big = big + small[0]
            small = small - big[0, 0] + big[3, 3]
        mx.eval(big, small)
        assert small.tolist() == [100] * 10
        assert big[7, 7].item() == 1 + 100 * 101 / 2

    def test_on_several_streams(self):
        streams = [mx.new_stream(mx.gpu) for _ in range(3)]
        x = [mx.zeros((5,)) for _ in streams]
        for i in range(200):
            s = i % 3
            x[s] = mx.add(x[s], x[(s + 1) % 3] * 0 + 1, stream=streams[s])
        assert [v.tolist() for v in x] == [[67] * 5, [67] * 5, [66] * 5]

    def test_rotary_encoding_of_one_token(self):
        x = mx.random.normal((1, 6, 1, 32))
        for traditional in (False, True):
            for dims in (32, 16):
                y, z = (
                    mx.fast.rope(
                        x,
                        dims,
                        traditional=traditional,
                        base=1e4,
                        scale=0.5,
                        offset=77,
                        stream=device,
                    )
                    for device in (mx.gpu, mx.cpu)
                )
                np.testing.assert_allclose(np.array(y), np.array(z), 1e-5, 1e-5)


class Decoder:
    """Layers like those of a language model, one token at a time."""

    width, heads, kv_heads, dims, inner, layers = 384, 6, 2, 64, 512, 3

    def __init__(self, dtype, numbers, bits, group, length, room=2048):
        rng = np.random.default_rng(bits * group + length)
        self.dtype, self.layout = dtype, {"group_size": group, "bits": bits}
        self.length = length

        def weight(rows, columns):
            w = rng.standard_normal((rows, columns)) / columns**0.5
            w = mx.array(w.astype(np.float32)).astype(numbers)
            return mx.quantize(w, **self.layout, stream=mx.cpu)

        def cache():
            x = rng.standard_normal((1, self.kv_heads, room, self.dims))
            return mx.array(x.astype(np.float32)).astype(dtype)

        together = (self.heads + 2 * self.kv_heads) * self.dims
        self.weights = [
            {
                "qkv": weight(together, self.width),
                "out": weight(self.width, self.heads * self.dims),
                "gate": weight(self.inner, self.width),
                "up": weight(self.inner, self.width),
                "down": weight(self.width, self.inner),
            }
            for _ in range(self.layers)
        ]
        self.caches = [(cache(), cache()) for _ in range(self.layers)]
        self.token = mx.array(rng.standard_normal((1, 1, self.width)).astype("f4"))
        mx.eval(self.weights, self.caches, self.token)

    def product(self, x, w):
        return mx.quantized_matmul(x, *w, transpose=True, **self.layout)

    def positions(self, tokens, finish):
        return range(self.length, self.length + tokens)

    def attention(self, x, w, cache, position, finish):
        keys, values = cache
        rows = finish(self.product(x, w["qkv"]).astype(self.dtype))
        rows = rows.reshape(1, 1, -1, self.dims).transpose(0, 2, 1, 3)
        q, k, v = mx.split(rows, [self.heads, self.heads + self.kv_heads], 1)
        q, k = (
            finish(
                mx.fast.rope(
                    y, self.dims, traditional=True, base=1e4, scale=1, offset=position
                )
            )
            for y in (q, k)
        )
        keys[..., position : position + 1, :] = k
        values[..., position : position + 1, :] = v
        finish([keys, values])
        y = mx.fast.scaled_dot_product_attention(
            q, keys[..., : position + 1, :], values[..., : position + 1, :], scale=0.125
        )
        return finish(self.product(finish(y).reshape(1, 1, -1), w["out"]))

    def run(self, device, finish=lambda x: x, tokens=4):
        with mx.stream(device):
            caches = [[k + 0, v + 0] for k, v in self.caches]
            x = self.token.astype(self.dtype)
            for position in self.positions(tokens, finish):
                for w, cache in zip(self.weights, caches):
                    y = finish(mx.fast.rms_norm(x, None, 1e-5))
                    y = self.attention(y, w, cache, position, finish)
                    x = finish(x + y.astype(self.dtype))
                    y = finish(mx.fast.rms_norm(x, None, 1e-5))
                    gate, up = (finish(self.product(y, w[k])) for k in ("gate", "up"))
                    y = finish(gate * mx.sigmoid(gate) * up).astype(self.dtype)
                    x = finish(x + self.product(y, w["down"]).astype(self.dtype))
            return np.array(x.astype(mx.float32, mx.cpu))


def evaluated(x):
    mx.eval(x)
    return x


class TestWideLists:
    """Products of one row and attention of one token join the lists of small
    operations; all multiprocessors share them, and meet where they must."""

    @pytest.mark.parametrize("length", [0, 70, 1700])
    @pytest.mark.parametrize("bits, group", [(4, 32), (8, 64), (3, 128)])
    @pytest.mark.parametrize(
        "dtype, numbers",
        [
            (mx.float32, mx.float32),
            (mx.float32, mx.float16),
            (mx.float16, mx.float16),
            (mx.bfloat16, mx.bfloat16),
        ],
    )
    def test_decoding(self, dtype, numbers, bits, group, length):
        decoder = Decoder(dtype, numbers, bits, group, length)
        got = decoder.run(mx.gpu)
        # The same kernel does an operation alone: not a bit may differ.
        np.testing.assert_array_equal(got, decoder.run(mx.gpu, evaluated))
        bound = {mx.float32: 1e-4, mx.float16: 2e-2, mx.bfloat16: 2e-1}[dtype]
        np.testing.assert_allclose(got, decoder.run(mx.cpu), bound, bound)

    def test_many_times(self):
        decoder = Decoder(mx.float32, mx.float16, 4, 32, 600)
        want = decoder.run(mx.gpu, evaluated)
        for _ in range(50):
            np.testing.assert_array_equal(decoder.run(mx.gpu), want)

    def test_on_several_streams_at_once(self):
        # Each its own: what another stream has made is not listed.
        decoders = [Decoder(mx.float32, mx.float32, 4, 64, 20) for _ in range(4)]
        want = decoders[0].run(mx.cpu)
        results = {}

        def work(i):
            stream = mx.new_stream(mx.gpu)
            results[i] = [decoders[i].run(stream) for _ in range(5)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(results) == 4
        for got in results.values():
            np.testing.assert_allclose(got, [want] * 5, 1e-4, 1e-4)

    @pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
    @pytest.mark.parametrize("shape", [(1, 32), (37, 96), (1000, 4096), (700, 8192)])
    def test_one_product(self, bits, shape):
        rng = np.random.default_rng(bits)
        w = mx.array(rng.standard_normal(shape).astype(np.float32))
        x = mx.array(rng.standard_normal((1, shape[1])).astype(np.float32))
        packed = mx.quantize(w, 32, bits, stream=mx.cpu)
        got, want = (
            mx.quantized_matmul(x, *packed, True, 32, bits, stream=device)
            for device in (mx.gpu, mx.cpu)
        )
        same(got, want, 1e-5 * shape[1] ** 0.5, f"{bits} bits {shape}")

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("heads", [(1, 1), (9, 3), (8, 8), (40, 2)])
    def test_one_attention(self, heads, dtype):
        rng = np.random.default_rng(sum(heads))
        bound = {mx.float32: 2e-6, mx.float16: 2e-3, mx.bfloat16: 1e-2}[dtype]
        for dims, keys in ((8, 1), (64, 511), (64, 3000), (80, 77), (128, 1025)):
            q, k, v = (
                mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)
                for shape in (
                    (1, heads[0], 1, dims),
                    (1, heads[1], keys, dims),
                    (1, heads[1], keys, dims),
                )
            )
            got, want = (
                mx.fast.scaled_dot_product_attention(
                    q, k, v, scale=dims**-0.5, stream=device
                )
                for device in (mx.gpu, mx.cpu)
            )
            same(got, want, bound, f"{dims} features, {keys} keys")

    def test_memory_that_is_used_again(self):
        w = mx.array(np.eye(64, dtype=np.float32))
        packed = mx.quantize(w, 32, 8)
        mx.eval(packed)
        x = mx.arange(64, dtype=mx.float32).reshape(1, 64) / 64
        want = np.array(x)
        # Each result's memory is given back while the list still holds it.
        for i in range(300):
            x = mx.quantized_matmul(x, *packed, True, 32, 8)
            x = (x + i) - i if i % 3 else x * 1
        np.testing.assert_allclose(np.array(x), want, 0.2, 0.2)


class TestLongerThanAList:
    """Small operations go out together; these have kernels of their own, for
    operands that lie in order, in rows, and anyhow."""

    shape = (37, 1537)

    def operands(self, dtype):
        rng = np.random.default_rng(3)
        values = rng.integers(0, 9, (2, self.shape[0], 2 * self.shape[1]))
        if mx.issubdtype(dtype, mx.inexact):
            values = values * 0.5 - 2
        a, b = (mx.array(v).astype(dtype) for v in values)
        n = self.shape[1]
        mx.eval(a, b)
        return {
            "in order": (mx.contiguous(a[:, :n]), mx.contiguous(b[:, :n])),
            "in rows": (a[:, :n], b[:, n:]),
            "rows of packs": (a[:, :1536], b[:, 1536:3072]),
            "every other": (a[:, ::2], b[:, 1::2]),
            "backwards": (a[::-1, n - 1 :: -1], b[:, :n]),
            "transposed": (a[:, :n].T, b[:, n:].T),
            "row": (a[:, :n], b[:1, :n]),
            "column": (a[:, :n], b[:, :1]),
            "number": (a[:, :n], b[0, 0]),
        }

    @pytest.mark.parametrize("name", DTYPES)
    def test_like_the_cpu(self, name):
        dtype = getattr(mx, name)
        bound = {mx.bfloat16: 1e-2, mx.float16: 2e-3}.get(dtype, 1e-6)
        operations = [mx.add, mx.multiply, mx.maximum, mx.equal, mx.divide]
        for layout, (a, b) in self.operands(dtype).items():
            for f in operations:
                got, want = (f(a, b, stream=device) for device in (mx.gpu, mx.cpu))
                same(got, want, bound, f"{f.__name__} {layout}")
            for f in (mx.sigmoid, mx.square, mx.exp):
                if dtype == mx.complex64 and f is mx.sigmoid:
                    continue
                got, want = (f(a, stream=device) for device in (mx.gpu, mx.cpu))
                same(got, want, bound, f"{f.__name__} {layout}")
            got, want = (
                mx.where(mx.equal(a, b, stream=d), a, b, stream=d)
                for d in (mx.gpu, mx.cpu)
            )
            same(got, want, 0, f"where {layout}")

    @pytest.mark.parametrize("name", DTYPES)
    def test_conversions(self, name):
        dtype = getattr(mx, name)
        for layout in ("in order", "in rows", "every other"):
            a, _ = self.operands(dtype)[layout]
            a = mx.abs(a, stream=mx.cpu) if dtype != mx.complex64 else a
            for to in DTYPES:
                got, want = (a.astype(getattr(mx, to), d) for d in (mx.gpu, mx.cpu))
                same(got, want, 0, f"{name} to {to} {layout}")


class TestHostCopies:
    def test_kept_view_does_not_change(self):
        x = mx.arange(1000, dtype=mx.float32)
        x = mx.add(x, 1, stream=mx.gpu)
        mx.eval(x)
        seen = memoryview(x)
        before = bytes(seen)
        y = mx.multiply(x, 2, stream=mx.gpu)
        del x
        mx.eval(y)
        assert bytes(seen) == before

    def test_host_data_is_not_written_by_a_later_operation(self):
        x = mx.array([1.0, 2.0, 3.0])
        y = mx.add(x, 1, stream=mx.gpu)
        mx.eval(y)
        z = mx.add(x, 10, stream=mx.cpu)
        w = mx.add(x, 100, stream=mx.gpu)
        assert y.tolist() == [2, 3, 4]
        assert z.tolist() == [11, 12, 13]
        assert w.tolist() == [101, 102, 103]

    def test_one_item_leaves_the_rest_on_the_device(self):
        x = mx.add(mx.zeros((1 << 22,)), 1, stream=mx.gpu)
        mx.eval(x)
        before = mx.get_active_memory()
        assert x[12345].item() == 1
        gc.collect()
        assert mx.get_active_memory() - before < 1 << 20


class TestMemory:
    def test_counters(self):
        mx.synchronize()
        before = mx.get_active_memory()
        x = mx.add(mx.zeros((1 << 20,)), 1, stream=mx.gpu)
        mx.eval(x)
        assert mx.get_active_memory() >= before + (4 << 20)
        mx.reset_peak_memory()
        y = mx.exp(x, stream=mx.gpu)
        mx.eval(y)
        assert mx.get_peak_memory() >= before + (8 << 20)
        del x, y
        assert mx.get_active_memory() <= before + (1 << 20)
        assert mx.get_cache_memory() >= 8 << 20
        mx.clear_cache()
        assert mx.get_cache_memory() < 8 << 20

    def test_freed_memory_serves_again(self):
        def step():
            x = mx.add(mx.zeros((5_000_000,)), 1, stream=mx.gpu)
            mx.eval(x)

        step()
        held = mx.get_active_memory() + mx.get_cache_memory()
        for _ in range(50):
            step()
        assert mx.get_active_memory() + mx.get_cache_memory() <= held + (64 << 20)

    def test_too_much(self):
        with pytest.raises(RuntimeError, match=r"bytes asked.*in use.*free"):
            mx.eval(mx.ones((1 << 20, 1 << 20), stream=mx.gpu) + 1)
        assert mx.add(mx.array(1), 2, stream=mx.gpu).item() == 3

    def test_limit_gives_cached_memory_back(self):
        before = mx.set_cache_limit(0)
        try:
            x = mx.add(mx.zeros((1 << 22,)), 1, stream=mx.gpu)
            mx.eval(x)
            del x
            assert mx.get_cache_memory() == 0
        finally:
            mx.set_cache_limit(before)


class TestErrors:
    def test_forked_child_is_told(self):
        result = run_python("""
            import os, sys
            import mlx.core as mx
            mx.eval(mx.add(mx.array(1), 1, stream=mx.gpu))
            if os.fork() == 0:
                try:
                    mx.eval(mx.add(mx.array(1), 1, stream=mx.gpu))
                except RuntimeError as e:
                    os._exit(7 if "forked" in str(e) else 1)
                os._exit(2)
            sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
        """)
        assert result.returncode == 7, result.stderr

    @pytest.mark.parametrize("size", [6, 20_000])
    def test_too_few_values(self, size):
        x = mx.zeros((size, 3))
        mask = mx.arange(size) % 2 == 0
        message = rf"\[masked_scatter\] too few values: 2 rows for {size // 2} true"
        with mx.stream(mx.gpu):
            mx.eval(x, mask)  # else they share the fate of what fails
            for rows in (2, 0):
                y = mx.array(x)
                y[mask] = mx.ones((rows, 3))
                with pytest.raises(
                    RuntimeError, match=message.replace("2 rows", f"{rows} rows")
                ):
                    mx.eval(y)
            y = mx.array(x)
            y[mask] = mx.ones((size // 2, 3))
            assert mx.sum(y).item() == size // 2 * 3

    def test_checked_indices(self, monkeypatch):
        a = mx.arange(4)
        grid = mx.zeros((3, 4))
        high = mx.array([1, 4])
        cases = {
            "gather": lambda: a[high],
            "take_along_axis": lambda: mx.take_along_axis(a, high, 0),
            "put_along_axis": lambda: mx.put_along_axis(a, high, a[:2], 0),
            "scatter": lambda: a.at[mx.array([0, -5])].add(1),
            "slice": lambda: mx.slice(grid, mx.array([1, 3]), (0, 1), (2, 2)),
            "slice_update": lambda: mx.slice_update(
                grid, mx.ones((1, 2)), mx.array([0, -5]), (0, 1)
            ),
        }
        with mx.stream(mx.gpu):
            for f in cases.values():
                mx.eval(f())  # stays inside
            monkeypatch.setenv("MLX_CHECK_INDICES", "1")
            for op, f in cases.items():
                with pytest.raises(
                    IndexError, match=rf"\[{op}\] index out of range: -?\d for an axis"
                ):
                    mx.eval(f())
                assert a[mx.array([-4, 3])].tolist() == [0, 3]

    def test_error_is_found_by_every_wait_for_the_result(self, monkeypatch):
        monkeypatch.setenv("MLX_CHECK_INDICES", "1")
        a = mx.arange(4)
        mx.eval(a)
        bad = mx.take(a, mx.array([9]), stream=mx.gpu)
        mx.async_eval(bad)
        for _ in range(2):
            with pytest.raises((IndexError, RuntimeError), match=r"\[gather\].* 9 "):
                mx.eval(bad)
        assert mx.add(a, 1, stream=mx.gpu).tolist() == [1, 2, 3, 4]

    def test_error_stays_with_its_stream(self, monkeypatch):
        monkeypatch.setenv("MLX_CHECK_INDICES", "1")
        s, t = mx.new_stream(mx.gpu), mx.new_stream(mx.gpu)
        a = mx.arange(4)
        bad = mx.take(a, mx.array([9]), stream=s)
        good = mx.add(a, 1, stream=t)
        mx.async_eval(bad, good)
        mx.synchronize(t)
        assert good.tolist() == [1, 2, 3, 4]
        assert mx.take(a, mx.array([3]), stream=t).tolist() == [3]
        with pytest.raises((IndexError, RuntimeError), match="index out of range"):
            mx.eval(bad)
        assert mx.add(good, 1, stream=s).tolist() == [2, 3, 4, 5]

    @pytest.mark.parametrize("device", [mx.cpu, mx.gpu])
    def test_error_follows_the_data_to_other_streams(self, monkeypatch, device):
        monkeypatch.setenv("MLX_CHECK_INDICES", "1")
        s = mx.new_stream(mx.gpu)
        for is_early in (False, True):
            bad = mx.take(mx.arange(4), mx.array([9]), stream=s)
            if is_early:
                mx.async_eval(bad)
            used = mx.add(bad, 1, stream=device)
            with pytest.raises((IndexError, RuntimeError), match="index out of range"):
                mx.eval(used)
            assert mx.add(mx.array(1), 1, stream=device).item() == 2
        assert mx.add(mx.array(1), 1, stream=s).item() == 2

    def test_without_the_library_the_cpu_works(self):
        result = run_python("""
            import os
            os.environ["MLX_DISABLE_CUDA"] = "1"
            import mlx.core as mx
            assert not mx.cuda.is_available()
            assert mx.default_device() == mx.Device(mx.cpu)
            assert (mx.array(1) + 1).item() == 2
        """)
        assert result.returncode == 0, result.stderr

    def test_exit_with_work_under_way(self):
        result = run_python("""
            import mlx.core as mx
            x = mx.ones((4096, 4096))
            for _ in range(20):
                x = mx.matmul(x, x, stream=mx.gpu) / 4096
            mx.async_eval(x)
        """)
        assert result.returncode == 0, result.stderr


@pytest.mark.slow
class TestLarge:
    """More elements than 31 bits, and than 32 bits, count."""

    shape = ((1 << 16) + 1, (1 << 16) + 3)

    def test_elementwise_and_reductions(self):
        x = mx.ones(self.shape, dtype=mx.uint8)
        y = x + x
        assert y[-1, -1].item() == 2
        assert mx.sum(y, axis=1)[-1].item() == 2 * self.shape[1]
        assert mx.max(y).item() == 2
        assert mx.argmax(y, axis=1)[-1].item() == 0
        assert mx.all(y == 2).item()

    def test_views_and_copies(self):
        rows = (1 << 16) + 1
        x = mx.zeros((rows, 1 << 16), dtype=mx.uint8)
        x[-1] = 3
        t = mx.contiguous(x.T)
        assert t[-1, -1].item() == 3
        assert t[0, 0].item() == 0
        assert mx.sum(t).item() == 3 << 16
        joined = mx.concatenate([x, x[-1:]])
        assert joined[-1, -1].item() == 3
        strided = x[:, ::2]
        assert mx.contiguous(strided)[-1, -1].item() == 3

    def test_broadcast(self):
        column = mx.arange(1 << 17, dtype=mx.uint8)[:, None]
        row = mx.ones((1, (1 << 15) + 1), dtype=mx.uint8)
        x = column + row
        assert x[300, -1].item() == (300 + 1) % 256
        assert x[-1, -1].item() == ((1 << 17) - 1 + 1) % 256

    def test_indexing(self):
        x = mx.zeros(self.shape, dtype=mx.uint8)
        at = mx.array([0, self.shape[0] // 2, self.shape[0] - 1])
        x[at, -1] = mx.array([1, 2, 3], dtype=mx.uint8)
        assert x[at, -1].tolist() == [1, 2, 3]
        assert mx.sum(x, axis=0)[-1].item() == 6
        assert mx.take(x, at, axis=0)[-1, -1].item() == 3

    def test_rows(self):
        x = mx.ones((1 << 17, (1 << 14) + 2), dtype=mx.float16)
        y = mx.softmax(x, axis=-1)
        assert abs(y[-1, -1].item() - 1 / ((1 << 14) + 2)) < 1e-6
        z = mx.fast.rms_norm(x, None, 1e-5)
        assert abs(z[-1, -1].item() - 1) < 1e-3
        s = mx.cumsum(x[-1:], axis=1)
        assert s[-1, 5].item() == 6

    def test_random(self):
        x = mx.random.uniform(shape=self.shape, dtype=mx.float16)
        assert abs(mx.mean(x[-16:].astype(mx.float32)).item() - 0.5) < 1e-2

    def test_sort(self):
        n = (1 << 31) - 7  # the longest axis is below 2^31
        x = mx.zeros((n,), dtype=mx.uint8)
        x[3] = 9
        x[n // 2] = 4
        y = mx.sort(x)
        assert y[-3:].tolist() == [0, 4, 9]
        assert mx.sum(y.astype(mx.uint32)).item() == 13
        rows = mx.zeros((5, 1 << 29), dtype=mx.uint8)
        rows[-1, 7] = 2
        assert mx.argsort(rows[-1:], axis=1)[0, -1].item() == 7
        y = mx.sort(rows, axis=1)
        assert y[:, -1].tolist() == [0, 0, 0, 0, 2]
        columns = mx.sort(rows, axis=0)
        assert columns[-1, 7].item() == 2
        assert mx.max(columns[:-1]).item() == 0

    def test_matmul(self):
        rows, depth = (1 << 17) + 1, 1 << 14
        x = mx.zeros((rows, depth), dtype=mx.float16)
        x[-1] = 0.5
        w = mx.ones((depth, 8), dtype=mx.float16)
        for columns in (8, 1):
            y = x @ w[:, :columns]
            assert y[-1, -1].item() == depth / 2
            assert y[-2, -1].item() == 0
        # The same as a batch, and as the right operand.
        y = mx.matmul(x[1:].reshape(4, -1, depth), w[:, :3])
        assert y[-1, -1].tolist() == [depth / 2] * 3
        y = w[:, :2].T @ x.T
        assert y[-1, -2:].tolist() == [0, depth / 2]
        # A result as large.
        a = mx.zeros((rows, 16), dtype=mx.float16)
        a[-1] = 2
        y = a @ w[:16, :1] @ mx.ones((1, depth), dtype=mx.float16)
        assert y[-1, -1].item() == 32
        assert y[-2, -1].item() == 0

    @pytest.mark.parametrize("bits", [4, 3])
    def test_quantized(self, bits):
        rows, columns = (1 << 17) + 3, 1 << 14
        w = mx.zeros((rows, columns), dtype=mx.float16)
        w[-1] = (mx.arange(columns) % 61).astype(mx.float16)
        packed = mx.quantize(w, 64, bits)
        last = [part[-2:] for part in packed]
        unpacked = mx.dequantize(*packed, 64, bits)
        want = mx.dequantize(*last, 64, bits)
        assert mx.array_equal(unpacked[-2:], want).item()
        del w, unpacked
        for dtype in (mx.float16, mx.float32):
            q = [packed[0], *(part.astype(dtype) for part in packed[1:])]
            for tokens in (1, 5, 200):
                x = mx.ones((tokens, columns), dtype=dtype) / 64
                y = mx.quantized_matmul(x, *q, group_size=64, bits=bits)
                total = mx.sum(want.astype(mx.float32), axis=1) / 64
                got = y[-1, -2:].astype(mx.float32)
                np.testing.assert_allclose(np.array(got), np.array(total), 1e-3)
                # The last row alone, the other way round.
                x = (mx.arange(rows) == rows - 1).astype(dtype)
                x = mx.broadcast_to(x, (tokens, rows))
                y = mx.quantized_matmul(x, *q, False, 64, bits)
                # float32 scales give what float16 rounds.
                got, whole = (np.array(a.astype(mx.float32)) for a in (y[-1], want[-1]))
                np.testing.assert_allclose(got, whole, 1e-3, 1e-3)

    @pytest.mark.parametrize("dtype", [mx.float16, mx.float32])
    def test_attention(self, dtype):
        heads, keys, width = 8, (1 << 21) + 5, 128
        k = mx.zeros((1, heads, keys, width), dtype=dtype)
        v = mx.zeros((1, heads, keys, width), dtype=dtype)
        k[0, -1, -1] = 1
        v[0, -1, -1] = 3
        # Few rows, some, and many: the last head's last key takes it all.
        for group, tokens in ((4, 1), (1, 40), (1, 64)):
            q = mx.ones((1, heads * group, tokens, width), dtype=dtype)
            y = mx.fast.scaled_dot_product_attention(q, k, v, scale=1.0)
            assert mx.all(y[:, -group:] == 3).item()
            assert mx.all(y[:, :-group] == 0).item()
