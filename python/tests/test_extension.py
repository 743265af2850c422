"""The example of an extension, built as its guide says: from a setup.py, with
CMake and nanobind, against the package that runs these tests."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "extensions"
PACKAGE = Path(mx.__file__).parent

# Where CMake looks for it, and where toolkits are installed.
NVCC = shutil.which(os.environ.get("CUDACXX", "nvcc")) or shutil.which(
    "/usr/local/cuda/bin/nvcc"
)
MISSING = [
    *(tool for tool in ("cmake", "c++") if shutil.which(tool) is None),
    *(m for m in ("nanobind", "setuptools") if importlib.util.find_spec(m) is None),
]
if not Path(sysconfig.get_path("include"), "Python.h").exists():
    MISSING.append("Python.h")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"builds C++: needs {', '.join(MISSING)}"),
]


def environment(**more):
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | more


def run(*command, cwd, **more):
    done = subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ext(tmp_path_factory):
    """The module, from a folder that is not the one it was built in."""
    root = tmp_path_factory.mktemp("extension")
    source = root / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("*.so", "build"))
    options = ["-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
    if not (NVCC and mx.cuda.is_available()):
        options.append("-DMY_EXT_CUDA=OFF")
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run(
        *(sys.executable, "setup.py", "build_ext", "--inplace"),
        cwd=source,
        CMAKE_ARGS=" ".join(options),
        CUDACXX=NVCC or "",
        CCACHE_NOHASHDIR="1",
        CCACHE_BASEDIR=str(root),
    )
    moved = root / "elsewhere" / "mlx_sample_extensions"
    shutil.copytree(source / "mlx_sample_extensions", moved)
    shutil.rmtree(source)
    spec = importlib.util.spec_from_file_location(
        "mlx_sample_extensions",
        moved / "__init__.py",
        submodule_search_locations=[str(moved)],
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def reference(x, y, alpha, beta):
    kind = np.complex128 if mx.complex64 in (x.dtype, y.dtype) else np.float64
    wide = mx.complex64 if kind is np.complex128 else mx.float64
    x, y = (np.array(v.astype(wide, mx.cpu)).astype(kind) for v in (x, y))
    return alpha * x + beta * y


BOUNDS = {
    mx.float16: 2**-10,
    mx.bfloat16: 2**-7,
    mx.float32: 1e-6,
    mx.float64: 1e-14,
    mx.complex64: 1e-6,
}


def check(got, x, y, alpha, beta):
    wide = mx.complex64 if got.dtype == mx.complex64 else mx.float64
    want = reference(x, y, alpha, beta)
    assert got.shape == want.shape
    np.testing.assert_allclose(
        np.array(got.astype(wide, mx.cpu)), want, BOUNDS[got.dtype], BOUNDS[got.dtype]
    )


def layouts(dtype):
    def draw(*shape):
        return mx.random.normal(shape).astype(dtype)

    yield "contiguous", draw(3, 5), draw(3, 5)
    yield "scalars", draw(), draw()
    yield "empty", draw(0, 3), draw(0, 3)
    yield "odd length", draw(1000003), draw(1000003)
    yield "both transposed", draw(70, 33).T, draw(70, 33).T
    yield "one transposed", draw(33, 70).T, draw(70, 33)
    yield "strided", draw(40, 60)[::3, 1::2], draw(14, 90)[:, ::-3]
    yield "broadcast", draw(4, 1, 5), draw(3, 1)
    yield "many axes", draw(2, 3, 2, 3, 2, 3).transpose(5, 0, 4, 1, 3, 2), draw(1)


class TestValues:
    @pytest.mark.parametrize("dtype", BOUNDS, ids=str)
    def test_layouts(self, ext, dtype):
        for what, x, y in layouts(dtype):
            got = ext.axpby(x, y, 4.0, -2.5)
            assert got.dtype == dtype, what
            check(got, x, y, 4.0, -2.5)

    def test_results_larger_than_the_caches(self, ext):
        x = mx.random.normal((2100, 2300))
        y = mx.random.normal((2300, 2100)).T
        check(ext.axpby(x, x, 0.5, 3.0), x, x, 0.5, 3.0)
        check(ext.axpby(x, y, 0.5, 3.0), x, y, 0.5, 3.0)

    @pytest.mark.parametrize(
        ("a", "b", "result"),
        [
            (mx.int32, mx.int32, mx.float32),
            (mx.bool_, mx.uint8, mx.float32),
            (mx.float16, mx.int64, mx.float16),
            (mx.float16, mx.bfloat16, mx.float32),
            (mx.bfloat16, mx.float32, mx.float32),
            (mx.complex64, mx.float32, mx.complex64),
        ],
        ids=str,
    )
    def test_promotion(self, ext, a, b, result):
        x, y = mx.array([1, 0, 3]).astype(a), mx.array([2, 5, 1]).astype(b)
        got = ext.axpby(x, y, 2.0, 1.0)
        assert got.dtype == result
        check(got, x, y, 2.0, 1.0)

    def test_simple_form(self, ext):
        x, y = mx.random.normal((7, 9)), mx.random.normal((9,))
        got = ext.simple_axpby(x, y, 1.5, 2.0)
        check(got, x, y, 1.5, 2.0)
        assert mx.allclose(got, ext.axpby(x, y, 1.5, 2.0))

    def test_shapes_that_do_not_broadcast(self, ext):
        with pytest.raises(ValueError, match="broadcast"):
            ext.axpby(mx.zeros((3,)), mx.zeros((4,)), 1.0, 1.0)


class TestStreams:
    @pytest.mark.parametrize("form", ["device type", "device", "stream", "none"])
    def test_argument(self, ext, form):
        s = {
            "device type": mx.cpu,
            "device": mx.Device(mx.cpu),
            "stream": mx.new_stream(mx.cpu),
            "none": None,
        }[form]
        x = mx.ones((3, 4))
        c = ext.axpby(x, x, 4.0, 2.0, stream=s)
        assert c.shape == (3, 4)
        assert c.dtype == mx.float32
        assert mx.all(c == 6.0).item()
        with pytest.raises(TypeError):
            ext.axpby(x, x, 4.0, 2.0, s)  # by name only

    def test_several_at_once(self, ext):
        streams = [mx.new_stream(mx.cpu) for _ in range(3)]
        x = mx.arange(1000, dtype=mx.float32)
        parts = [x] * 3
        for step in range(20):
            parts = [
                ext.axpby(parts[i], parts[(i + 1) % 3], 0.5, 0.5, stream=s)
                for i, s in enumerate(streams)
            ]
            if step % 5 == 0:
                mx.async_eval(parts)
        assert all(mx.allclose(p, x).item() for p in parts)


def pair():
    return mx.random.normal((4, 3)), mx.random.normal((3,))


class TestTransforms:
    def test_grad(self, ext):
        x, y = pair()

        def loss(axpby, x, y):
            return mx.sum(axpby(x, y, 3.0, -2.0) ** 3)

        for argnums in (0, 1, (0, 1)):
            got = mx.grad(lambda a, b: loss(ext.axpby, a, b), argnums)(x, y)
            want = mx.grad(lambda a, b: loss(ext.simple_axpby, a, b), argnums)(x, y)
            both = zip(got, want) if argnums == (0, 1) else [(got, want)]
            assert all(mx.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in both)

    def test_second_derivative(self, ext):
        def f(x):
            return ext.axpby(x, x * x, 2.0, 3.0)

        x = mx.array(1.5)
        assert mx.allclose(mx.grad(f)(x), mx.array(2 + 6 * 1.5))
        assert mx.allclose(mx.grad(mx.grad(f))(x), mx.array(6.0))

    def test_jvp(self, ext):
        x, y = pair()
        u, v = mx.random.normal(x.shape), mx.random.normal(y.shape)
        ((z,), (t,)) = mx.jvp(lambda a, b: ext.axpby(a, b, 3.0, -2.0), [x, y], [u, v])
        check(z, x, y, 3.0, -2.0)
        check(t, u, v, 3.0, -2.0)
        (_, (t,)) = mx.jvp(lambda a: ext.axpby(a, y, 3.0, -2.0), [x], [u])
        assert mx.allclose(t, 3 * u)
        (_, (t,)) = mx.jvp(lambda b: ext.axpby(x, b, 3.0, -2.0), [y], [v])
        assert mx.allclose(t, mx.broadcast_to(-2 * v, (4, 3)))

    @pytest.mark.parametrize("out_axis", [0, 1, -1])
    @pytest.mark.parametrize(
        "axes", [(0, 0), (1, 1), (0, 1), (2, 0), (-1, -2), (None, 1), (1, None)]
    )
    def test_vmap(self, ext, axes, out_axis):
        def batched(axis):
            shape = [2, 3]
            if axis is not None:
                shape.insert(axis % 3, 5)
            return mx.random.normal(shape)

        x, y = (batched(axis) for axis in axes)

        def run(axpby):
            mapped = mx.vmap(lambda a, b: axpby(a, b, 3.0, -2.0), axes, out_axis)
            return mapped(x, y)

        assert mx.allclose(run(ext.axpby), run(ext.simple_axpby))

    def test_vmap_of_grad_and_grad_of_vmap(self, ext):
        xs = mx.random.normal((5, 3))
        y = mx.random.normal((3,))

        def f(x):
            return mx.sum(ext.axpby(x, y, 3.0, -2.0) ** 2)

        want = 2 * 3 * (3 * xs - 2 * y)
        assert mx.allclose(mx.vmap(mx.grad(f))(xs), want, rtol=1e-4)
        got = mx.grad(lambda xs: mx.vmap(f)(xs).sum())(xs)
        assert mx.allclose(got, want, rtol=1e-4)

    def test_nested_vmap(self, ext):
        x, y = mx.random.normal((4, 5)), mx.random.normal((6, 5))
        f = mx.vmap(
            mx.vmap(lambda a, b: ext.axpby(a, b, 3.0, -2.0), (None, 0)), (0, None)
        )
        assert mx.allclose(f(x, y), 3 * x[:, None] - 2 * y[None])

    def test_checkpoint(self, ext):
        x = mx.random.normal((4, 3))
        f = mx.checkpoint(lambda x: ext.axpby(x, mx.exp(x), 3.0, -2.0))
        got = mx.grad(lambda x: f(x).sum())(x)
        assert mx.allclose(got, 3 - 2 * mx.exp(x), rtol=1e-4)

    def test_name_in_the_graph(self, ext, tmp_path):
        x, y = pair()
        mx.export_to_dot(str(tmp_path / "graph.dot"), ext.axpby(x, y, 1.0, 1.0))
        assert "Axpby" in (tmp_path / "graph.dot").read_text()


class TestCompile:
    """The operation is a border of what is fused; its rules are traced."""

    @staticmethod
    def f(axpby, x, y):
        z = axpby(mx.exp(x), y * 2, 3.0, -2.0)
        return mx.sum(axpby(z, z, 1.0, 0.5) * mx.tanh(z), axis=-1)

    def test_equals_eager(self, ext):
        compiled = mx.compile(lambda x, y: self.f(ext.axpby, x, y))
        for shape in ((4, 3), (4, 3), (2, 5), (1,)):
            x, y = mx.random.normal(shape), mx.random.normal(shape[-1:])
            want = self.f(ext.axpby, x, y)
            assert mx.allclose(compiled(x, y), want, rtol=1e-5, atol=1e-6)

    def test_shapeless(self, ext):
        traces = []

        def f(x, y):
            traces.append(x.shape)
            return ext.axpby(mx.exp(x), y, 3.0, -2.0) + 1

        compiled = mx.compile(f, shapeless=True)
        for n in (3, 7, 1000):
            x, y = mx.random.normal((2, n)), mx.random.normal((2, n))
            got = compiled(x, y)
            assert mx.allclose(got, 3 * mx.exp(x) - 2 * y + 1, rtol=1e-5, atol=1e-6)
        assert len(traces) == 1

    def test_only_equal_parameters_are_merged(self, ext):
        def f(x, y):
            same = ext.axpby(x, y, 1.0, 2.0) + ext.axpby(x, y, 1.0, 2.0)
            return same * ext.axpby(x, y, 3.0, 2.0) + ext.axpby(y, x, 1.0, 2.0)

        x, y = mx.random.normal((100,)), mx.random.normal((100,))
        assert mx.allclose(mx.compile(f)(x, y), f(x, y), rtol=1e-5, atol=1e-5)

    def test_with_the_other_transforms(self, ext):
        x, y = pair()

        def loss(axpby, x):
            return self.f(axpby, x, y).sum()

        want = mx.grad(lambda x: loss(ext.simple_axpby, x))(x)
        for f in (
            mx.compile(mx.grad(lambda x: loss(ext.axpby, x))),
            mx.grad(mx.compile(lambda x: loss(ext.axpby, x))),
        ):
            assert mx.allclose(f(x), want, rtol=1e-4, atol=1e-4)
        want = self.f(ext.simple_axpby, x, y)
        for f in (
            mx.compile(mx.vmap(lambda x: self.f(ext.axpby, x, y))),
            mx.vmap(mx.compile(lambda x: self.f(ext.axpby, x, y))),
        ):
            assert mx.allclose(f(x), want, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not mx.cuda.is_available(), reason="needs an NVIDIA GPU")
class TestGpu:
    def test_without_a_kernel_it_says_so(self, ext):
        if NVCC:
            x = mx.random.normal((100,))
            check(ext.axpby(x, x, 2.0, 3.0, stream=mx.gpu), x, x, 2.0, 3.0)
        else:
            with pytest.raises(RuntimeError, match="without its GPU kernel"):
                mx.eval(ext.axpby(mx.ones(3), mx.ones(3), 1.0, 1.0, stream=mx.gpu))

    @pytest.mark.skipif(NVCC is None, reason="needs nvcc")
    @pytest.mark.parametrize("dtype", BOUNDS, ids=str)
    def test_layouts(self, ext, dtype):
        for _, x, y in layouts(dtype):
            check(ext.axpby(x, y, 4.0, -2.5, stream=mx.gpu), x, y, 4.0, -2.5)

    @pytest.mark.skipif(NVCC is None, reason="needs nvcc")
    def test_in_the_order_of_its_stream(self, ext):
        x = mx.ones((1 << 20,))
        for i in range(200):
            s = mx.cpu if i % 50 == 49 else mx.gpu
            x = mx.add(ext.axpby(x, x, 0.5, 0.5, stream=s), 1.0, stream=mx.gpu)
        assert mx.all(x == 201).item()


class TestCMake:
    """What a project's own CMake files find."""

    def configure(self, folder, text):
        lines = ["cmake_minimum_required(VERSION 3.24)", "project(t LANGUAGES CXX)"]
        (folder / "CMakeLists.txt").write_text("\n".join([*lines, text]))
        where = run(sys.executable, "-m", "mlx", "--cmake-dir", cwd=folder).strip()
        return run("cmake", "-B", "build", f"-DMLX_ROOT={where}", ".", cwd=folder)

    def test_package(self, tmp_path):
        text = """
        find_package(MLX 0.26 CONFIG REQUIRED)
        message("found ${MLX_FOUND}; ${MLX_LIBRARIES}; ${MLX_BUILD_METAL};")
        message("headers ${MLX_INCLUDE_DIRS};")
        get_target_property(file mlx IMPORTED_LOCATION_RELEASE)
        get_target_property(folders mlx INTERFACE_INCLUDE_DIRECTORIES)
        message("library ${file}; from ${folders};")
        """
        out = self.configure(tmp_path, text)
        assert "found 1; mlx; OFF;" in out
        headers = Path(out.split("headers ")[1].split(";")[0])
        assert (headers / "mlx" / "primitives.h").exists()
        assert (headers / "mlx" / "backend" / "cpu" / "encoder.h").exists()
        assert Path(out.split("library ")[1].split(";")[0]).exists()
        assert Path(out.split("from ")[1].split(";")[0]).resolve() == headers.resolve()

    def test_metal_library_is_a_warning(self, tmp_path):
        text = """
        find_package(MLX CONFIG REQUIRED)
        mlx_build_metallib(TARGET t_metallib TITLE t SOURCES t.metal
                           INCLUDE_DIRS . OUTPUT_DIRECTORY .)
        add_custom_target(mine)
        add_dependencies(mine t_metallib)
        """
        assert "no Metal library t is built" in self.configure(tmp_path, text)
