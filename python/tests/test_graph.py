"""Graphs as DOT text."""

from __future__ import annotations

import io

import mlx.core as mx
import pytest


def test_export_to_dot(tmp_path):
    x = mx.array([1.0, 2.0])
    y = mx.exp(x) + 1
    text = io.StringIO()
    mx.export_to_dot(text, y, x=x)
    lines = text.getvalue().splitlines()
    assert lines[0] == "digraph {" and lines[-1] == "}"
    assert '  { rank=source; "x"; }' in lines
    assert sum("Exp" in line for line in lines) == 1
    path = tmp_path / "graph.dot"
    mx.export_to_dot(path, y, x=x)
    assert path.read_text() == text.getvalue()
    # Nothing was evaluated.
    mx.export_to_dot(str(path), out=y)
    assert "Exp" in path.read_text() and '"out"' in path.read_text()


def test_errors_of_export_to_dot(tmp_path):
    x = mx.array(1.0)
    with pytest.raises(RuntimeError, match="cannot be written"):
        mx.export_to_dot(tmp_path / "none" / "graph.dot", x)
    with pytest.raises(ValueError, match="no array: str"):
        mx.export_to_dot(tmp_path / "graph.dot", "x")
    with pytest.raises(ValueError, match="no file: int"):
        mx.export_to_dot(3, x)
