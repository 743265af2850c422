"""The oracle table is whole: each operation of the library has a row whose graph
holds it, and what a row lacks it gives the reason for."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from oracle import TABLE, Row
from oracle.values import arrays_of, as_list, draw_case

SOURCE = Path(__file__).parents[2] / "src"
ROWS = list(TABLE.values())

# Primitives that are no operations, with the reason.
WITHOUT_ROW = {
    "Elementwise": "goes by the names of its rows in elementwise.def",
    "CustomTransforms": "carries a user's rules: test_autograd.py, test_vmap.py",
    "CustomKernel": "runs a user's code: test_cuda_kernel.py",
    "PrecompiledKernel": "runs a user's code: test_cuda_kernel.py",
}
# Public functions that compute nothing from arrays, or what no reference says.
NO_OPERATIONS = {
    *("eval", "async_eval", "synchronize", "stream", "clear_streams"),
    *("default_device", "default_stream", "set_default_device", "set_default_stream"),
    *("new_stream", "new_thread_local_stream", "new_thread_unsafe_stream"),
    *("device_count", "device_info", "is_available"),
    *("grad", "value_and_grad", "vjp", "jvp", "vmap", "checkpoint", "export_to_dot"),
    *("compile", "disable_compile", "enable_compile"),
    *("fast.cuda_kernel", "fast.precompiled_cuda_kernel", "fast.metal_kernel"),
    *("load", "save", "savez", "savez_compressed", "save_safetensors", "save_gguf"),
    *("asarray", "from_dlpack", "empty", "empty_like", "broadcast_shapes"),
    *("can_cast", "isdtype", "issubdtype", "result_type"),
    *("get_active_memory", "get_peak_memory", "reset_peak_memory", "clear_cache"),
    *("get_cache_memory", "get_memory_limit", "set_memory_limit", "set_cache_limit"),
    *("set_wired_limit", "get_array_buffer_size"),
    *("get_printoptions", "set_printoptions", "printoptions"),
    *("random.key", "random.seed"),
}
# Kernels that users write in CUDA C++.
GPU_ONLY = {"CustomKernel", "PrecompiledKernel"}
# Rows of elementwise.def whose function has another name.
OTHER_NAMES = {"select": "where"}


def elementwise_rows() -> dict[str, str]:
    """Function and class of each row of elementwise.def."""
    text = (SOURCE / "ops" / "elementwise.def").read_text()
    rows = re.findall(
        r"^(?:UNARY|UNARY_PAIR|BINARY|TERNARY)\((\w+), *(\w+),", text, re.MULTILINE
    )
    return dict(rows)


def structured_names() -> set[str]:
    """The classes derived from Structured."""
    text = "".join(p.read_text() for p in SOURCE.rglob("*.h"))
    return set(re.findall(r'kName = "(\w+)"', text))


def kernel_names() -> set[str]:
    """The classes that have a kernel for the CPU."""
    return names_in("cpu/kernels.cpp") | names_in("common/views.h")


def names_in(table: str) -> set[str]:
    """The classes that a table of kernels lists."""
    text = (SOURCE / "backend" / table).read_text()
    return set(re.findall(r"add(?:_view)?<(?:\w+::)*(\w+), ", text))


def graph_of(row: Row) -> set[str]:
    """The primitives of the row's graphs, as the library names them."""
    names: set[str] = set()
    chosen = {row.types()[0], row.types()[-1], "float32"} & set(row.types())
    for dtype, case in itertools.product(sorted(chosen), row.cases):
        values = draw_case(row, case, dtype, np.random.default_rng(0))
        arrays = arrays_of(row, values, dtype)
        mx.eval(arrays)
        text = io.StringIO()
        mx.export_to_dot(text, *as_list(row.run(*arrays, **case.static)))
        names |= set(re.findall(r'label="(.*?)"', text.getvalue()))
    return names


def test_every_elementwise_operation_has_a_row():
    rows = elementwise_rows()
    assert len(rows) > 60
    for name, primitive in rows.items():
        row = TABLE.get(OTHER_NAMES.get(name, name))
        assert row is not None, f"{name} has no row in python/tests/oracle"
        assert primitive in graph_of(row), f"the row {name} makes no {primitive}"


def public_functions() -> dict[str, Any]:
    found = {}
    for module, prefix in ((mx, ""), (mx.fast, "fast."), (mx.random, "random.")):
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value):
                found[prefix + name] = value
    return {n: f for n, f in found.items() if not isinstance(f, type)}


def test_every_public_function_has_a_row():
    functions = public_functions()
    bases = {name.split(".")[0] for name in TABLE}
    named = {n for n in functions if n.removeprefix("fast.") in {*TABLE, *bases}}
    named |= {row.call for row in ROWS if isinstance(row.call, str)}
    # Other names of the same functions.
    held = {id(functions[n]) for n in named}
    missing = {n for n, f in functions.items() if id(f) not in held} - NO_OPERATIONS
    assert not missing, f"without a row in python/tests/oracle: {sorted(missing)}"
    assert not named & NO_OPERATIONS


def test_every_structured_operation_has_a_row():
    wanted = structured_names()
    assert len(wanted) > 40
    kernels = kernel_names() - {"Compiled"}  # parts of programs, not operations
    assert wanted - kernels <= {"CustomTransforms", *GPU_ONLY}
    assert kernels <= wanted
    held = {node: row.name for row in ROWS for node in row.nodes}
    missing = wanted - set(held) - set(WITHOUT_ROW)
    assert not missing, f"without a row in python/tests/oracle: {sorted(missing)}"
    assert not set(held) & set(WITHOUT_ROW)


def test_backends_have_the_same_kernels():
    both = names_in("cpu/kernels.cpp")
    assert names_in("cuda/kernels.cpp") == both | GPU_ONLY


@pytest.mark.parametrize("row", [r for r in ROWS if r.nodes], ids=str)
def test_a_row_makes_what_it_names(row):
    assert set(row.nodes) <= graph_of(row)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_is_whole(row):
    assert row.cases and all(len(c.shapes) == len(row.operands) for c in row.cases)
    assert row.types()
    assert row.ulp.why
    for claim in (row.derivative, row.batch, row.second, row.complex_rule):
        # A reason is a sentence.
        assert not isinstance(claim, str) or len(claim.split()) > 2, claim
        assert claim is not False, "a missing rule has a reason"
    assert row.without in ("zero", "passed", "raises", "stops")
    for i in row.differentiable():
        assert row.operands[i].kind == "data"
