"""The generated stub of mlx.core is the one that was reviewed.

After a change of the interface: python python/tests/test_stub.py --update
"""

import ast
import sys
from pathlib import Path

import mlx.core as mx

GOLDEN = Path(__file__).parent / "golden" / "core.pyi"


def without_docstrings(text: str) -> str:
    """The same declarations in a fixed form."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
    return ast.unparse(tree) + "\n"


def generated() -> str:
    stub = Path(mx.__file__).with_name("core.pyi")
    return without_docstrings(stub.read_text())


def test_stub_is_the_reviewed_one():
    assert generated() == GOLDEN.read_text()


if __name__ == "__main__" and "--update" in sys.argv:
    GOLDEN.write_text(generated())
