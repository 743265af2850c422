"""Every name of mlx.core is documented, and the examples in the docs run."""

import doctest
import inspect
import types

import mlx.core as mx
import pytest

# Names whose effect no example can show, or that only point elsewhere.
NO_EXAMPLE = {
    "clear_cache",
    "clear_streams",
    "get_array_buffer_size",
    "get_cache_memory",
    "get_memory_limit",
    "get_printoptions",
    "new_thread_local_stream",
    "new_thread_unsafe_stream",
    "reset_peak_memory",
    "set_wired_limit",
}


def public(owner: object) -> dict[str, object]:
    return {
        name: getattr(owner, name) for name in dir(owner) if not name.startswith("_")
    }


def is_function(obj: object) -> bool:
    return type(obj).__name__ in ("nb_func", "nb_method") or inspect.isroutine(obj)


def functions() -> dict[str, object]:
    return {name: obj for name, obj in public(mx).items() if is_function(obj)}


def documented() -> list[tuple[str, str]]:
    """(name, docstring) of all functions, classes and their methods."""
    found = []
    modules = [("mx", mx)]
    for name, obj in public(mx).items():
        if isinstance(obj, types.ModuleType):
            modules.append((f"mx.{name}", obj))
    for prefix, module in modules:
        for name, obj in public(module).items():
            if is_function(obj) or isinstance(obj, type):
                found.append((f"{prefix}.{name}", obj.__doc__ or ""))
            if isinstance(obj, type):
                members = public(obj).items()
                found += [(f"{prefix}.{name}.{m}", v.__doc__ or "") for m, v in members]
    return found


WITH_EXAMPLE = [(name, doc) for name, doc in documented() if ">>>" in doc]


def test_functions_have_a_summary():
    bare = []
    for name, function in functions().items():
        lines = (function.__doc__ or "").splitlines()
        # The first line is the signature, then comes an empty one.
        if len(lines) < 3:
            bare.append(name)
    assert bare == []


def test_functions_have_an_example():
    bare = {n for n, f in functions().items() if ">>>" not in (f.__doc__ or "")}
    assert bare <= NO_EXAMPLE


@pytest.mark.parametrize(
    ("name", "doc"), WITH_EXAMPLE, ids=[n for n, _ in WITH_EXAMPLE]
)
def test_example(name, doc):
    test = doctest.DocTestParser().get_doctest(doc, {"mx": mx}, name, None, 0)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)
