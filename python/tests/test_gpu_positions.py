"""Positions that only a GPU knows: what a step of a language model depends on
lies in arrays. Such operations join the lists of small ones (test_gpu.py)."""

import mlx.core as mx
import numpy as np
import pytest
from test_gpu import DTYPES, Decoder, evaluated, same

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not mx.cuda.is_available(), reason="needs an NVIDIA GPU and libmlx_cuda"
    ),
]


class DecoderOfRoom(Decoder):
    """The same with positions that the device counts: caches keep their size,
    and a mask says how far they are filled."""

    def positions(self, tokens, finish):
        position = mx.array([self.length])
        for _ in range(tokens):
            room = mx.arange(self.caches[0][0].shape[2])
            yield position, finish(room <= position)
            position = finish(position + 1)

    def attention(self, x, w, cache, at, finish):
        position, mask = at
        rows = finish(self.product(x, w["qkv"]).astype(self.dtype))
        rows = rows.reshape(1, 1, -1, self.dims).transpose(0, 2, 1, 3)
        turned = self.heads + self.kv_heads
        qk, v = mx.split(rows, [turned], 1)
        qk = finish(
            mx.fast.rope(
                qk, self.dims, traditional=True, base=1e4, scale=1, offset=position
            )
        )
        q, k = mx.split(qk, [self.heads], 1)
        cache[0] = finish(mx.slice_update(cache[0], k, position, [2]))
        cache[1] = finish(mx.slice_update(cache[1], v, position, [2]))
        y = mx.fast.scaled_dot_product_attention(q, *cache, scale=0.125, mask=mask)
        return finish(self.product(finish(y).reshape(1, 1, -1), w["out"]))


def on_device(values, dtype):
    """An array that an operation of the gpu has just made."""
    return mx.array(values, dtype) - mx.array(1, dtype) + mx.array(1, dtype)


class TestPositionsOfTheDevice:
    """What a step depends on lies in arrays: entries of lists read it there,
    just after another entry has written it."""

    @pytest.mark.parametrize("length, room", [(0, 16), (70, 256), (1996, 2000)])
    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    def test_decoding(self, dtype, length, room):
        given = (dtype, dtype, 4, 32, length, room)
        decoder = DecoderOfRoom(*given)
        got = decoder.run(mx.gpu)
        # The same kernel does an operation alone: not a bit may differ.
        np.testing.assert_array_equal(got, decoder.run(mx.gpu, evaluated))
        bound = {mx.float32: 1e-4, mx.float16: 2e-2, mx.bfloat16: 2e-1}[dtype]
        np.testing.assert_allclose(got, decoder.run(mx.cpu), bound, bound)
        np.testing.assert_allclose(got, Decoder(*given).run(mx.gpu), bound, bound)

    def test_decoding_many_times(self):
        decoder = DecoderOfRoom(mx.float32, mx.float16, 4, 32, 600)
        want = decoder.run(mx.gpu, evaluated)
        for _ in range(50):
            np.testing.assert_array_equal(decoder.run(mx.gpu), want)

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("of_position", [mx.int32, mx.int64, mx.uint32])
    def test_rotary_encoding(self, dtype, of_position):
        rng = np.random.default_rng(0)
        x = mx.array(rng.standard_normal((1, 6, 3, 40)).astype("f4")).astype(dtype)
        x = x[:, 1:, 1:2]
        freqs = mx.array(rng.uniform(1, 50, 16).astype("f4"))
        with mx.stream(mx.gpu):
            for position in (0, 1, 77, 4095):
                for kind in (
                    {"base": 1e4},
                    {"base": None, "freqs": freqs},
                    {"base": 5e3, "traditional": True},
                ):
                    kind = {"traditional": False, "scale": 0.5, **kind}
                    at = on_device([position], of_position)
                    got = mx.fast.rope(x, 32, offset=at, **kind)
                    want = mx.fast.rope(x, 32, offset=position, **kind)
                    same(got, want, 0, f"{kind} at {position}")
                    got = mx.fast.rope(x, 32, offset=at[0], **kind)
                    same(got, want, 0, f"{kind} at the number {position}")

    @pytest.mark.parametrize("name", DTYPES)
    @pytest.mark.parametrize("axis", [0, 1, 2, 3])
    def test_written_slice(self, name, axis):
        shape = [3, 4, 9, 16]
        rng = np.random.default_rng(axis)

        def some(shape):
            x = rng.integers(0, 100, shape).astype("f4")
            return mx.array(x).astype(getattr(mx, name))

        cache = some(shape)
        shape[axis] = 1
        update, wide = some(shape), some([2 * n for n in shape])
        last = cache.shape[axis] - 1
        for given in (update, update[..., ::-1], wide[::2, ::-2, 1::2, 1::2]):
            for position in (0, 1, last, last + 1, 1000, -1, -last - 1, -50):
                results = []
                for device in (mx.gpu, mx.cpu):
                    with mx.stream(device):
                        at = on_device([position], mx.int32)
                        made = mx.slice_update(cache + cache, given, at, [axis])
                        results.append(mx.stack([made, made]))
                same(*results, 0, f"axis {axis} at {position}")

    @pytest.mark.parametrize("of_position", [mx.int32, mx.int64, mx.uint32, mx.int8])
    def test_slices_of_positions_of_any_type(self, of_position):
        table = mx.arange(7 * 24).reshape(7, 24)
        for position in (0, 3, 6, 9):
            for start, axes in ([0], [0]), ([0, 5], [0, 1]), ([0, 5], [1, 0]):
                results = []
                for device in (mx.gpu, mx.cpu):
                    with mx.stream(device):
                        at = on_device([position, *start[1:]], of_position)
                        row = mx.slice(table, at, axes, (1, 24))
                        made = mx.slice_update(table * 2, row - 1, at, axes)
                        back = mx.slice(made[::-1], at, axes, (1, 24))
                        results.append(mx.concatenate([row, made, back]))
                same(*results, 0, f"{axes} at {position}")

    def test_several_steps_of_one_cache(self):
        results = []
        for device in (mx.gpu, mx.cpu):
            with mx.stream(device):
                cache = mx.zeros((2, 40, 8))
                position = mx.array([0])
                for i in range(60):
                    new = mx.full((2, 1, 8), i + 1.0) + cache[:, :1]
                    cache = mx.slice_update(cache, new, position, [1])
                    position = position + 1
                results.append(mx.concatenate([cache, cache[:, ::-1]]))
        same(*results, 0, "written in turn, and over the end")

    def test_memory_of_a_cache_is_taken_over(self):
        with mx.stream(mx.gpu):
            cache = mx.zeros((1, 4, 1 << 14, 64))
            new = mx.ones((1, 4, 1, 64))
            position = mx.array([5])
            mx.eval(cache, new, position)
            mx.reset_peak_memory()
            for _ in range(4):
                cache = mx.slice_update(cache, new, position, [2])
                position = position + 7
                mx.eval(cache)
            assert mx.get_peak_memory() < mx.get_active_memory() + cache.nbytes // 2
            assert cache.sum().item() == 4 * 4 * 64
            kept = cache
            cache = mx.slice_update(cache, new * 2, position, [2])
            assert cache.sum().item() == 6 * 4 * 64
            assert kept.sum().item() == 4 * 4 * 64

    def test_row_of_a_table(self):
        rng = np.random.default_rng(0)
        for shape, dtype in (
            ((50, 72), mx.uint32),
            ((300, 18), mx.float16),
            ((9, 5), mx.uint8),
        ):
            table = mx.array(rng.integers(0, 100, shape)).astype(dtype)
            for row in (0, 7, shape[0] - 1, -1, -shape[0]):
                for kind in (mx.int32, mx.int64, mx.uint32):
                    if row < 0 and kind == mx.uint32:
                        continue
                    got = table[on_device([[row]], kind)]
                    same(got[0], table[row : row + 1 or None], 0, f"row {row}")

    @pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
    def test_row_of_a_quantized_table(self, bits):
        rng = np.random.default_rng(bits)
        table = mx.array(rng.standard_normal((40, 576)).astype("f4"))
        for group, kind in (
            (32, mx.float32),
            (64, mx.float16),
            (32, mx.bfloat16),
        ):
            packed = mx.quantize(table.astype(kind), group, bits, stream=mx.cpu)
            for wide in (kind, mx.float32):
                results = []
                for device in (mx.gpu, mx.cpu):
                    with mx.stream(device):
                        logits = mx.array([0.0, 3.0, 1.0]) + 1
                        ids = mx.argmax(logits, keepdims=True)[None] + 30
                        codes, *numbers = (x[ids] for x in packed)
                        numbers = [x.astype(wide) for x in numbers]
                        made = mx.dequantize(codes, *numbers, group, bits)
                        results.append(made * 2)
                bound = {mx.float32: 1e-6, mx.float16: 2e-3, mx.bfloat16: 1e-2}[wide]
                same(*results, bound, f"{bits} bits, {group} a group, {kind}")

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    def test_place_of_an_extreme(self, dtype):
        rng = np.random.default_rng(0)
        for size in (1, 2, 31, 1000, 4097, 49152):
            x = rng.standard_normal(size).astype("f4")
            equal, nan = np.round(x), x.copy()
            nan[size // 3 :: 7] = np.nan
            infinite = np.where(x > 0.5, np.inf, -np.inf)
            all_nan = np.full(size, np.nan)
            for values in (x, equal, nan, infinite, -infinite, all_nan):
                for find in (mx.argmax, mx.argmin):
                    results = []
                    for device in (mx.gpu, mx.cpu):
                        with mx.stream(device):
                            y = mx.array(values.astype("f4")).astype(dtype) + 0
                            at = find(y[None], -1)
                            results.append(
                                mx.concatenate(
                                    [at + 1, find(y[1:] if size > 8 else y)[None]]
                                )
                            )
                    same(*results, 0, f"{find} of {size}")

    @pytest.mark.parametrize("name", ["int32", "uint32", "int64"])
    def test_whole_numbers(self, name):
        dtype = getattr(mx, name)
        top = {"int32": 2**31 - 1, "uint32": 2**32 - 1, "int64": 2**63 - 1}[name]
        values = [0, 1, 2, 77, 77, top - 1, top]
        low = [0, 5] if name == "uint32" else [-1, -top - 1]
        operations = (
            *("add", "subtract", "multiply", "maximum", "minimum", "equal"),
            *("not_equal", "less", "less_equal", "greater", "greater_equal"),
            *("logical_and", "logical_or", "bitwise_and", "bitwise_or", "divide"),
        )
        for operation in operations:
            results = []
            for device in (mx.gpu, mx.cpu):
                with mx.stream(device):
                    a = mx.array(values + low, dtype)
                    b = mx.array(low + values, dtype)
                    apply = getattr(mx, operation)
                    made = [apply(a, b), apply(a, b[1]), apply(3, b), apply(a[2], a)]
                    made = mx.concatenate(made) if operation != "divide" else made[1]
                    results.append(made)
            same(*results, 0, f"{operation} of {name}")
        for kind in (mx.int32, mx.uint32, mx.int64, mx.bool_, mx.float32, mx.int16):
            results = []
            for device in (mx.gpu, mx.cpu):
                with mx.stream(device):
                    a = mx.array(values + low, dtype)
                    made = [a.astype(kind), a[3].astype(kind)[None]]
                    results.append(mx.concatenate([*made, (-a).astype(kind)]))
            same(*results, 0, f"{name} to {kind}")

    def test_masks_of_masks(self):
        results = []
        for device in (mx.gpu, mx.cpu):
            with mx.stream(device):
                position = on_device([40], mx.int32)
                room = mx.arange(3, 103, 1, mx.int32)
                a = (room <= position) & (room > position - 7)
                b = mx.logical_or(a, mx.logical_not(room < 90)) | (room == 50)
                c = mx.where(b, room.astype(mx.float32), -mx.inf) + b.astype(mx.float32)
                results.append(mx.concatenate([c, a != b, (a == b)[:1]]))
        same(*results, 0, "bools")

    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("heads", [(1, 1), (9, 3), (8, 8), (40, 2)])
    def test_attention_with_a_mask(self, heads, dtype):
        rng = np.random.default_rng(sum(heads))
        bound = {mx.float32: 8e-6, mx.float16: 4e-3, mx.bfloat16: 2e-2}[dtype]
        for dims, keys in ((8, 1), (64, 16), (64, 3000), (80, 77), (128, 1025)):
            q, k, v = (
                mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)
                for shape in (
                    (1, heads[0], 1, dims),
                    (1, heads[1], keys, dims),
                    (1, heads[1], keys, dims),
                )
            )
            places = np.arange(keys)
            masks = {
                "all": places >= 0,
                "none": places < 0,
                "first": places == 0,
                "last": places == keys - 1,
                "half": places <= keys // 2,
                "some": rng.random(keys) < 0.3,
            }
            for what, mask in masks.items():
                added = rng.standard_normal(keys) * 2 - np.where(mask, 0, 16)
                for given in (
                    mx.array(mask),
                    mx.array(mask[None, None, None]),
                    mx.array(np.r_[True, mask])[1:],
                    mx.array(added.astype(np.float32)).astype(dtype),
                ):
                    results = []
                    for device, count in (mx.gpu, 1), (mx.gpu, 2), (mx.cpu, 1):
                        with mx.stream(device):
                            # Two have the kernel of their own.
                            all_of = [mx.concatenate([x] * count) for x in (q, k, v)]
                            made = mx.fast.scaled_dot_product_attention(
                                *all_of, scale=dims**-0.5, mask=given
                            )
                            results.append(made[:1])
                    what = f"{what} of {keys} keys, {dims} features, {given.dtype}"
                    same(results[0], results[1], bound, what)
                    same(results[0], results[2], bound, what)

    def test_attention_to_nothing(self):
        x = mx.ones((1, 2, 40, 64))
        with mx.stream(mx.gpu):
            for mask in (mx.full((40,), -mx.inf), mx.array([-mx.inf] * 39 + [0.0])):
                got, want = (
                    mx.fast.scaled_dot_product_attention(
                        *(mx.concatenate([y] * count) for y in (x[:, :, :1], x, x)),
                        scale=1,
                        mask=mask,
                    )[:1]
                    for count in (1, 2)
                )
                same(got, want, 1e-6, "minus infinity")
