"""The repository's own tools: layers and sizes."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


layers = load("check_layers")
report = load("house_report")


def plant(root: Path, files: "dict[str, str]") -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_this_repository_has_no_upward_include() -> None:
    assert layers.check(ROOT) == []


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("src/types/dtype.cpp", "include/mlx/array.h"),
        ("src/graph/eval.cpp", "src/ops/softmax.h"),
        ("src/graph/eval.cpp", "src/backend/cpu/encoder.h"),
        ("src/ops/softmax.cpp", "include/mlx/transforms.h"),
        ("src/transforms/vjp.cpp", "include/mlx/fast.h"),
        ("src/fast/rope.cpp", "src/backend/common/plan.h"),
        ("src/backend/cpu/softmax.cpp", "include/mlx/ops.h"),
        ("src/backend/cpu/softmax.cpp", "include/mlx/transforms.h"),
        ("src/backend/cpu/softmax.cpp", "src/backend/cuda/encoder.h"),
        ("src/backend/common/plan.cpp", "src/backend/cpu/threads.h"),
        ("src/io/gguf.cpp", "include/mlx/mlx.h"),
    ],
)
def test_upward_include_is_reported(tmp_path: Path, source: str, target: str) -> None:
    name = target.split("/", 1)[1]
    plant(tmp_path, {source: f'#include "{name}"\n', target: ""})
    (message,) = layers.check(tmp_path)
    assert message.startswith(f"{source}: includes {target}: ")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("include/mlx/array.h", "include/mlx/dtype.h"),
        ("src/graph/eval.cpp", "src/backend/backend.h"),
        ("src/graph/eval.cpp", "include/mlx/transforms.h"),
        ("src/fast/rope.cpp", "include/mlx/random.h"),
        ("src/backend/cpu/softmax.cpp", "src/ops/softmax.h"),
        ("src/backend/cpu/softmax.cpp", "src/backend/common/plan.h"),
        ("src/backend/registry.cpp", "src/backend/cpu/backend.h"),
        ("python/src/ops.cpp", "include/mlx/mlx.h"),
    ],
)
def test_downward_include_is_accepted(tmp_path: Path, source: str, target: str) -> None:
    name = target.split("/", 1)[1]
    plant(tmp_path, {source: f'#include "{name}"\n', target: ""})
    assert layers.check(tmp_path) == []


def test_include_circle_is_reported(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "src/ops/a.h": '#include "b.h"\n',
            "src/ops/b.h": '#include "ops/a.h"\n',
        },
    )
    (message,) = layers.check(tmp_path)
    assert message.startswith("include circle: ")


def test_cpp_functions_are_measured() -> None:
    text = """
#define BEGIN \\
  namespace b(x) {
namespace a {
struct S {
  int f() { return 1; }  // }
};
int g(int x) {
  if (x) {
    return '{';
  }
  return 2;
}
}
"""
    found = [(name, lines) for lines, name, _ in report.cpp_functions(text)]
    assert found == [("f", 1), ("g", 6)]


def test_python_functions_are_measured() -> None:
    text = "def f():\n    x = 1\n    return x\n"
    assert list(report.python_functions(text)) == [(3, "f", 1)]
