"""What compiled functions cost the process: memory stays flat over any number of
shapes, no process is started, no file is written."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mlx.core as mx
import pytest

STATUS = Path("/proc/self/statm")


@pytest.fixture(autouse=True)
def on_the_cpu():
    """A GPU's driver keeps memory and files of its own."""
    with mx.stream(mx.cpu):
        yield


pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="reads Linux's /proc")


def resident() -> int:
    """Bytes of memory that the process holds."""
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def shape_of(number: int, rank: int) -> tuple[int, ...]:
    """Another one for each number below 10 ** rank."""
    return tuple(number // 10**k % 10 + 1 for k in range(rank))


@pytest.mark.parametrize(
    ("rank", "count"),
    [(4, 5000), pytest.param(5, 100_000, marks=pytest.mark.slow)],
)
def test_many_shapes(rank: int, count: int) -> None:
    traces = [0]

    def function(x: mx.array) -> list[mx.array]:
        traces[0] += 1
        e = mx.exp(x - mx.max(x, axis=-1, keepdims=True))
        return [e / mx.sum(e, axis=-1, keepdims=True), (e @ e.swapaxes(-1, -2)) * 2]

    compiled = mx.compile(function)

    def call(numbers: range) -> None:
        for number in numbers:
            mx.eval(compiled(mx.zeros(shape_of(number, rank))))

    # The first of them fill the cache, and the allocators' stores.
    first = count // 5
    call(range(count - first, count))
    mx.clear_cache()
    gc.collect()
    before, active = resident(), mx.get_active_memory()
    call(range(count - first))
    mx.clear_cache()
    gc.collect()
    assert traces[0] == count
    assert compiled.cache_info()["size"] == 256
    assert compiled.cache_info()["evictions"] == count - 256
    # Traces are held, no results of calls.
    assert mx.get_active_memory() <= active + 64 * 1024
    grown = resident() - before
    # A trace takes some kilobytes: each hundredth that stayed would show.
    assert grown < 4 * 2**20, f"{grown} bytes more for {count - first} shapes"


def run(code: str, folder: Path) -> None:
    """In a process of its own with an empty folder to live in."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MLX_")}
    environment["MLX_DISABLE_CUDA"] = "1"
    places = ("HOME", "TMPDIR", "XDG_CACHE_HOME")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={
            **environment,
            **dict.fromkeys(places, str(folder)),
            "PYTHONPATH": str(Path(mx.__file__).resolve().parents[1]),
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "watched\n", done.stdout


DYING = """
    import gc, os
    import mlx.core as mx

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def call(count):
        for i in range(count):
            compiled = mx.compile(lambda x, i=i: mx.exp(x) * i + mx.sin(x))
            mx.eval(compiled(mx.zeros((8,))))
        gc.collect()

    call(300)
    before, active = resident(), mx.get_active_memory()
    call(3000)
    assert mx.get_active_memory() <= active
    grown = resident() - before
    assert grown < 2**20, f"{grown} bytes more"
    print("watched")
"""


# In a process of its own: one that has run other tests holds freed memory that
# it may take up again meanwhile.
def test_functions_that_die_leave_nothing(tmp_path: Path) -> None:
    run(DYING, tmp_path)


WATCH = """
    import os, resource, sys
    import mlx.core as mx

    events = []
    WATCHED = ("open", "subprocess", "os.", "shutil.", "tempfile.", "ctypes.dlopen")

    def hook(event, args):
        if watching and event.startswith(WATCHED):
            events.append((event, args))

    def counters():
        # Bytes and calls of all writes, and what children have used.
        with open("/proc/self/io") as file:
            io = dict(line.split(": ") for line in file.read().splitlines())
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        children = []
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as file:
                children.append(file.read())
        return io["wchar"], io["syscw"], io["write_bytes"], used, set(children)

    def gelu(x):
        return x * (1 + mx.erf(x / 2**0.5)) / 2

    def softmax(x):
        e = mx.exp(x - mx.max(x, axis=-1, keepdims=True))
        return e / mx.sum(e, axis=-1, keepdims=True)

    watching = False
    sys.addaudithook(hook)
    with mx.stream(mx.cpu):
        x = mx.random.normal((300, 2000))
        mx.eval(x)
        before = counters()
        watching = True
        gradient = mx.grad(lambda x: gelu(softmax(x)).sum())
        for compiled in (
            *map(mx.compile, (gelu, softmax, gradient, mx.vmap(gradient))),
            mx.compile(gelu, shapeless=True),
        ):
            for dtype in (mx.float32, mx.bfloat16):
                for rows in (300, 7):
                    mx.eval(compiled(x[:rows].astype(dtype)))
        ADD
        watching = False
        after = counters()
    if not events and before == after:
        print("watched")
    else:
        sys.exit(f"{events} {before} {after}")
"""


def test_no_process_and_no_file(tmp_path: Path) -> None:
    run(WATCH.replace("ADD", ""), tmp_path)
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    "deed",
    [
        "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
        "open('made', 'w').close()",
        "os.write(os.memfd_create('anywhere'), b'1')",
    ],
)
def test_the_watch_sees(deed: str, tmp_path: Path) -> None:
    """What the test above shall notice."""
    with pytest.raises(AssertionError, match=r"^\[[^\n]*rusage"):
        run(WATCH.replace("ADD", deed), tmp_path)
