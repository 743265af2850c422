"""Kernels that the user writes: their checks anywhere, their runs on a gpu."""

import os
import subprocess
import sys
import textwrap

import mlx.core as mx
import numpy as np
import pytest

HAS_GPU = mx.cuda.is_available()

DTYPES = (
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"),
    *("int64", "float16", "bfloat16", "float32", "float64", "complex64"),
)
ELEMENT = "auto i = cooperative_groups::this_grid().thread_rank();"


def make(source, inputs=("x",), outputs=("y",), **given):
    return mx.fast.cuda_kernel(
        name="made", input_names=inputs, output_names=outputs, source=source, **given
    )


def call(kernel, x, **given):
    """One input, one output like it, a thread for each element."""
    given = {
        "inputs": [x],
        "grid": (x.size, 1, 1),
        "threadgroup": (min(x.size, 256), 1, 1),
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
        "stream": mx.gpu,
    } | given
    return kernel(**given)[0]


class TestChecks:
    def test_metal_says_the_way_out(self):
        with pytest.raises(RuntimeError, match=r"Metal.*cuda_kernel"):
            mx.fast.metal_kernel("k", ["x"], ["y"], "y[0] = x[0];")

    @pytest.mark.parametrize(
        ("inputs", "outputs"),
        [(["1x"], ["y"]), (["x y"], ["y"]), (["x"], ["x"]), (["x"], []), ([""], ["y"])],
    )
    def test_names(self, inputs, outputs):
        with pytest.raises(ValueError, match=r"\[cuda_kernel\]"):
            make("", inputs, outputs)

    def test_shared_memory(self):
        with pytest.raises(ValueError, match="shared memory"):
            make("", shared_memory=-1)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"inputs": []},
            {"output_shapes": []},
            {"output_dtypes": []},
            {"output_shapes": [(-1,)]},
            {"grid": (-1, 1, 1)},
            {"threadgroup": (0, 1, 1)},
            {"threadgroup": (64, 32, 1)},
            {"grid": (1, 1 << 20, 1), "threadgroup": (1, 1, 1)},
            {"template": [("T", 1.5)]},
            {"template": [("1", 1)]},
            {"template": [("n", 1 << 40)]},
        ],
    )
    def test_calls(self, wrong):
        kernel = make("y[0] = x[0];")
        with pytest.raises(ValueError, match=r"\[cuda_kernel\]"):
            call(kernel, mx.zeros((4,)), **wrong)

    def test_positional_arguments_are_refused(self):
        with pytest.raises(TypeError):
            make("")([mx.zeros((4,))])

    @pytest.mark.skipif(HAS_GPU, reason="about machines without a gpu")
    def test_without_a_gpu(self):
        kernel = make("y[0] = x[0];")
        with pytest.raises(RuntimeError, match="no usable NVIDIA GPU"):
            call(kernel, mx.zeros((4,)), stream=None)
        with pytest.raises(RuntimeError, match="no usable NVIDIA GPU"):
            precompiled(b"", mx.zeros((4,)), [], None)


def precompiled(program, x, scalars, stream=mx.gpu, **given):
    return mx.fast.precompiled_cuda_kernel(
        name="made",
        compiled_source=program,
        inputs=[x],
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
        scalars=scalars,
        grid=(x.size, 1, 1),
        threadgroup=(32, 1, 1),
        stream=stream,
        **given,
    )[0]


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU and libmlx_cuda")
class TestRuns:
    def test_copy_and_template(self):
        x = mx.random.normal((3, 5))
        kernel = make(f"{ELEMENT} T t = x[i]; y[i] = yes ? t * n : 0;")
        template = [("T", mx.float32), ("n", 3), ("yes", True)]
        assert mx.array_equal(call(kernel, x, template=template), x * 3)
        template = [("T", mx.int32), ("n", -2), ("yes", True)]
        expected = x.astype(mx.int32).astype(mx.float32) * -2
        assert mx.array_equal(call(kernel, x, template=template), expected)

    def test_several_inputs_and_outputs(self):
        a = mx.random.normal((3, 6))
        c = mx.random.normal((2, 2)).astype(mx.bfloat16)
        kernel = make(
            f"""{ELEMENT}
            T t = a[0];
            first[i] = e ? a[1] + b[2] + static_cast<float>(c[3]) + d[0] + f : 1;
            second[i] = a[1] + b[2] + static_cast<float>(c[1]) - d[0];""",
            ["a", "b", "c", "d"],
            ["first", "second"],
        )
        first, second = kernel(
            inputs=[a, mx.array([3, 4, 5]), c, 7.3],
            template=[("e", True), ("f", 3), ("T", mx.float16)],
            grid=(6, 1, 1),
            threadgroup=(2, 1, 1),
            output_shapes=[(3, 2), (3, 2)],
            output_dtypes=[mx.float32, mx.int32],
            stream=mx.gpu,
        )
        flat = a.flatten().tolist()
        halves = c.astype(mx.float32).flatten().tolist()
        want = np.float32(flat[1]) + 5 + np.float32(halves[3]) + np.float32(7.3) + 3
        np.testing.assert_allclose(np.array(first), want, rtol=1e-6)
        want = np.float32(flat[1]) + 5 + np.float32(halves[1]) - np.float32(7.3)
        assert np.array_equal(np.array(second), np.full((3, 2), int(want)))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_types_pass_through(self, dtype):
        x = mx.array([0, 1, 3, 100]).astype(getattr(mx, dtype))
        kernel = make(f"{ELEMENT} auto t = x[i]; y[i] = t;")
        assert mx.array_equal(call(kernel, x), x)

    @pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("toolkit", [False, True])
    def test_halves(self, dtype, toolkit):
        values = [0.0, -0.0, 1.0, 1 / 3, 65504.0, -7e-6, np.inf, -np.inf, np.nan]
        x = mx.array(values).astype(dtype)
        mark = "/* __half */" if toolkit else ""
        source = f"{ELEMENT} {mark} float t = float(x[i]); y[i] = t * 1.5f + 0.1f;"
        got = call(make(source), x)
        want = (x.astype(mx.float32) * 1.5 + np.float32(0.1)).astype(dtype)
        a, b = (np.array(v.astype(mx.float32)) for v in (got, want))
        np.testing.assert_array_equal(a, b)

    def test_toolkit_headers(self):
        source = f"""{ELEMENT}
        auto tile = cg::tiled_partition<32>(cg::this_thread_block());
        y[i] = tile.shfl(x[i], 31) + __half2float(__float2half(0.5f));"""
        x = mx.arange(32, dtype=mx.float32)
        assert call(make(source), x).tolist() == [31.5] * 32

    def test_complex(self):
        x = mx.array([1 + 2j, -3j, 2.5])
        kernel = make(f"{ELEMENT} y[i] = x[i] * x[i] / complex64_t(0, 2) - 1;")
        want = np.array(x) ** 2 / 2j - 1
        np.testing.assert_allclose(np.array(call(kernel, x)), want, rtol=1e-6)

    def test_strides(self):
        x = mx.random.normal((6, 8))[::2, ::-1].T
        source = f"""{ELEMENT}
        y[i] = x[elem_to_loc(i, x_shape.data(), x_strides.data(), x_ndim)]
            + 100 * x_shape[0] + x_ndim;"""
        kernel = make(source, ensure_row_contiguous=False)
        assert mx.allclose(call(kernel, x), x + 802)
        source = f"{ELEMENT} y[i] = x[i] + x_strides[0];"
        assert mx.allclose(call(make(source), x), x + 3)

    def test_too_many_axes(self):
        x = mx.zeros((1,) * 13)
        with pytest.raises(ValueError, match="13 axes"):
            mx.eval(call(make("y[0] = x_shape[0];"), x))

    def test_header(self):
        header = "template <typename T> T twice(T x) { return x + x; }"
        x = mx.arange(10, dtype=mx.int32)
        kernel = make(f"{ELEMENT} y[i] = twice(x[i]);", header=header)
        assert mx.array_equal(call(kernel, x), 2 * x)

    def test_initial_values(self):
        x = mx.ones((1000,))
        kernel = make(f"{ELEMENT} if (i % 2) y[i] = x[i];")
        for dtype in (mx.float32, mx.float16, mx.int8, mx.complex64):
            got = call(kernel, x, init_value=3.0, output_dtypes=[dtype])
            assert got.tolist() == [3, 1] * 500
        assert call(kernel, x, init_value=0.0).tolist() == [0, 1] * 500

    def test_atomics_on_initial_values(self):
        x = mx.ones((100000,), dtype=mx.int32)
        kernel = make(f"{ELEMENT} if (i < n) atomicAdd(y, x[i]);")
        got = call(
            kernel,
            x,
            init_value=5,
            output_shapes=[()],
            template=[("n", x.size)],
        )
        assert got.item() == 100005

    def test_blocks(self):
        kernel = make(
            """if (threadIdx.x == 0 && threadIdx.y == 0) {
                 int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x
                     + blockIdx.x;
                 y[block] = blockDim.x * 100 + blockDim.y * 10 + blockDim.z;
               }"""
        )
        got = call(
            kernel,
            mx.zeros((1,)),
            grid=(10, 5, 2),
            threadgroup=(4, 8, 1),
            output_shapes=[(6,)],
            output_dtypes=[mx.uint32],
        )
        assert got.tolist() == [451] * 6

    def test_empty_grid_launches_nothing(self):
        x = mx.zeros((0,))
        kernel = make("y[0] = 1;")
        assert call(kernel, x, threadgroup=(32, 1, 1)).shape == (0,)

    @pytest.mark.parametrize("count", [1000, 50000])
    def test_shared_memory(self, count):
        source = """
        extern __shared__ float kept[];
        for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = kept[n - 1 - i];
        """
        x = mx.random.normal((count,))
        kernel = make(source, shared_memory=4 * count)
        got = call(kernel, x, grid=(256, 1, 1), template=[("n", count)])
        assert mx.array_equal(got, x[::-1])

    def test_inside_a_graph(self):
        kernel = make(f"{ELEMENT} y[i] = x[i] * x[i];")
        x = mx.random.normal((1000,))
        y = mx.sum(call(kernel, x + 1) - x) * 2
        assert mx.allclose(y, 2 * mx.sum((x + 1) ** 2 - x), rtol=1e-4)

    def test_compiled(self):
        kernel = make(f"{ELEMENT} y[i] = x[i] * x[i];")
        f = mx.compile(lambda x: mx.exp(-call(kernel, x + 1)) * 2)
        for _ in range(3):
            x = mx.random.normal((1000,))
            assert mx.allclose(f(x), mx.exp(-((x + 1) ** 2)) * 2, rtol=1e-5)

    def test_with_a_derivative(self):
        kernel = make(f"{ELEMENT} y[i] = x[i] * x[i];")

        @mx.custom_function
        def square(x):
            return call(kernel, x)

        @square.vjp
        def square_vjp(x, cotangent, _):
            return 2 * x * cotangent

        x = mx.random.normal((10,))
        got = mx.grad(lambda x: square(x).sum())(x)
        assert mx.allclose(got, 2 * x)
        with pytest.raises(ValueError, match="Not implemented for CustomKernel"):
            mx.grad(lambda x: call(kernel, x).sum())(x)

    def test_equal_names_of_different_sources(self):
        x = mx.arange(32, dtype=mx.float32)
        a = call(make(f"{ELEMENT} y[i] = x[i] * 2.0f;"), x)
        b = call(make(f"{ELEMENT} y[i] = x[i] + 100.0f;"), x)
        mx.eval(a, b)
        assert mx.array_equal(a, x * 2)
        assert mx.array_equal(b, x + 100)

    def test_on_the_cpu(self):
        with pytest.raises(RuntimeError, match="cpu"):
            call(make("y[0] = x[0];"), mx.zeros((4,)), stream=mx.cpu)

    def test_errors_hold_the_compilers_log(self):
        x = mx.zeros((4,))
        with pytest.raises(RuntimeError, match=r"(?s)made.*not_a_name.*undefined"):
            mx.eval(call(make("y[0] = not_a_name;"), x))
        # Later work is not touched by it.
        assert mx.array_equal(call(make(f"{ELEMENT} y[i] = x[i];"), x), x)

    def test_verbose(self, capfd):
        kernel = make(f"{ELEMENT} y[i] = x[i]; // a mark")
        mx.eval(call(kernel, mx.zeros((4,)), verbose=True))
        out = capfd.readouterr().out
        assert "custom_kernel_made(" in out
        assert "// a mark" in out

    def test_threads_share_one_kernel(self):
        from concurrent.futures import ThreadPoolExecutor

        kernel = make(f"{ELEMENT} y[i] = x[i] + 17;")

        def run(k):
            with mx.stream(mx.new_stream(mx.gpu)):
                x = mx.full((1000,), k)
                return call(kernel, x, stream=None).sum().item()

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(run, range(16))) == [
                1000 * (k + 17) for k in range(16)
            ]


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry made(.param .u64 x, .param .u64 y, .param .f32 factor,
                     .param .u32 more, .param .u8 twice) {
  .reg .u32 %i; .reg .u64 %p<4>; .reg .f32 %f<4>; .reg .u32 %n<6>; .reg .pred %t;
  .reg .u16 %s;
  mov.u32 %n0, %ctaid.x; mov.u32 %n1, %ntid.x; mov.u32 %n2, %tid.x;
  mad.lo.u32 %i, %n0, %n1, %n2;
  ld.param.u64 %p0, [x]; ld.param.u64 %p1, [y];
  ld.param.f32 %f0, [factor]; ld.param.u32 %n3, [more]; ld.param.u8 %s, [twice];
  cvta.to.global.u64 %p0, %p0; cvta.to.global.u64 %p1, %p1;
  mad.wide.u32 %p0, %i, 4, %p0; mad.wide.u32 %p1, %i, 4, %p1;
  ld.global.f32 %f1, [%p0];
  cvt.rn.f32.s32 %f2, %n3;
  fma.rn.f32 %f1, %f1, %f0, %f2;
  setp.ne.u16 %t, %s, 0;
  @%t add.f32 %f1, %f1, %f1;
  st.global.f32 [%p1], %f1;
  ret;
}
"""


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU and libmlx_cuda")
class TestPrecompiled:
    def test_ptx(self):
        x = mx.arange(64, dtype=mx.float32)
        got = precompiled(PTX.encode(), x, [0.5, 3, True])
        assert mx.array_equal(got, 2 * (0.5 * x + 3))
        got = precompiled(
            PTX.encode(), x[::2], [2.0, -1, False], ensure_row_contiguous=True
        )
        assert mx.array_equal(got, 2 * x[::2] - 1)

    def test_not_a_program(self):
        with pytest.raises(RuntimeError, match="made"):
            mx.eval(precompiled(b"nonsense", mx.zeros((4,)), []))


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU and libmlx_cuda")
class TestCache:
    CODE = textwrap.dedent("""
        import time
        import mlx.core as mx

        mx.eval(mx.arange(4) + 1)  # the device is open
        kernel = mx.fast.cuda_kernel("kept", ["x"], ["y"], "y[0] = 2 * x[0];")
        start = time.perf_counter()
        y = kernel(
            inputs=[mx.ones((1,))], grid=(1, 1, 1), threadgroup=(1, 1, 1),
            output_shapes=[(1,)], output_dtypes=[mx.float32], stream=mx.gpu,
        )[0]
        assert y.item() == 2
        print(1000 * (time.perf_counter() - start))
    """)

    def milliseconds(self, folder):
        done = subprocess.run(
            [sys.executable, "-c", self.CODE],
            env=os.environ | {"MLX_PTX_CACHE_DIR": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    def test_another_process_finds_the_kernel(self, tmp_path):
        folder = tmp_path / "kernels"
        first = self.milliseconds(folder)
        (file,) = folder.iterdir()
        written = file.stat().st_ino
        second = self.milliseconds(folder)
        assert [file.stat().st_ino] == [written]
        print(f"compiled {first:.1f} ms, from disk {second:.1f} ms")
        assert second < first

    def test_a_broken_file_is_made_again(self, tmp_path):
        self.milliseconds(tmp_path)
        (file,) = tmp_path.iterdir()
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        self.milliseconds(tmp_path)
        assert file.read_bytes() == whole

    def test_no_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        self.milliseconds("")
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").write_text("")
        self.milliseconds(tmp_path / "file")
