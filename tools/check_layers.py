#!/usr/bin/env python3
"""Fail when a source file includes one from a layer above it.

The layers are those of ARCHITECTURE.md. Each may use those before it:

    types < graph < ops < transforms < fast, linalg, fft, random, io,
    distributed < python

Backends stand under backend/backend.h: they see graph, types and the private
headers that define operations (src/ops/softmax.h), never the functions that
build graphs (include/mlx/ops.h) nor the transforms. Only backend/registry.cpp
may name a backend. Circles of includes are reported too.

usage: check_layers.py [ROOT]      exit status 1 when an arrow points up
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

RANKS = {"types": 0, "graph": 1, "ops": 2, "transforms": 3, "python": 5}
RANKS |= dict.fromkeys(["fast", "linalg", "fft", "random", "io", "distributed"], 4)
BACKENDS = ("common", "cpu", "cuda")

# Public headers by layer. A header that is not named here belongs to graph.
PUBLIC = {
    "types": ["api.h", "dtype.h", "error.h", "small_vector.h", "version.h"],
    "ops": ["ops.h", "einsum.h"],
    "transforms": ["transforms.h", "transforms_impl.h", "compile.h", "export.h"],
    "fast": ["fast.h"],
    "linalg": ["linalg.h"],
    "fft": ["fft.h"],
    "random": ["random.h"],
    "io": ["io.h"],
}
PUBLIC_LAYER = {name: layer for layer, names in PUBLIC.items() for name in names}
# Headers whose content the interface fixes across layers: who may see them.
SHARED = {
    "include/mlx/transforms.h": ["graph"],  # eval and async_eval stand there
    "include/mlx/utils.h": ["types"],  # operator<< of shapes and dtypes
    "include/mlx/dtype_utils.h": ["types"],
}
SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".def"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


def layer_of(path: PurePosixPath) -> str:
    """The layer of a file given by its path inside the repository."""
    parts = path.parts
    if parts[:2] == ("include", "mlx"):
        if parts[2] in ("types", "ops", "io", "distributed", "backend"):
            return "graph" if parts[2] == "backend" else parts[2]
        return "top" if parts[2] == "mlx.h" else PUBLIC_LAYER.get(parts[2], "graph")
    if parts[0] == "src" and len(parts) > 2:
        if parts[1] != "backend":
            return parts[1]
        if len(parts) > 3:
            return parts[2]
        return "registry" if path.name == "registry.cpp" else "graph"
    return "python" if parts[:2] == ("python", "src") else "top"


def complaint(source: PurePosixPath, target: PurePosixPath) -> str | None:
    """Why `source` must not include `target`, or None if it may."""
    above, below = layer_of(source), layer_of(target)
    for layer in (above, below):
        if layer not in (*RANKS, *BACKENDS, "registry", "top"):
            return f"the folder {layer} belongs to no layer"
    if "registry" in (above, below) or above == "top":
        return None
    if above in SHARED.get(str(target), []):
        return None
    if above in BACKENDS:
        return backend_complaint(above, below, target)
    if below in BACKENDS:
        return f"{above} must not know the backend folder {below}"
    if below == "top":
        return None if above == "python" else f"{above} must not use everything"
    if RANKS[below] > RANKS[above]:
        return f"{above} must not use {below}, which lies above it"
    return None


def backend_complaint(backend: str, below: str, target: PurePosixPath) -> str | None:
    if below in BACKENDS:
        if below in (backend, "common"):
            return None
        return f"backend {backend} must not know {below}"
    if below in ("python", "top", "transforms"):
        return f"a backend must not use {below}"
    if target.parts[0] == "include" and RANKS[below] > RANKS["graph"]:
        return "a backend sees operation classes, not functions that build graphs"
    return None


def included(root: Path, source: Path) -> Iterator[Path]:
    """The files of this repository that `source` includes."""
    for name in INCLUDE.findall(source.read_text(errors="replace")):
        for base in (source.parent, root / "include", root / "src", root):
            candidate = (base / name).resolve()
            if candidate.is_file() and candidate.is_relative_to(root):
                yield candidate
                break


def read_graph(root: Path) -> dict[PurePosixPath, list[PurePosixPath]]:
    def inside(path: Path) -> PurePosixPath:
        return PurePosixPath(path.relative_to(root).as_posix())

    return {
        inside(path): [inside(p) for p in included(root, path)]
        for folder in ("include", "src", "python/src")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES
    }


def find_cycle(
    graph: dict[PurePosixPath, list[PurePosixPath]],
) -> list[PurePosixPath]:
    """One circle of includes, or an empty list."""
    done: set[PurePosixPath] = set()
    trail: list[PurePosixPath] = []

    def visit(node: PurePosixPath) -> list[PurePosixPath]:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return []
        trail.append(node)
        for target in graph.get(node, []):
            if cycle := visit(target):
                return cycle
        trail.pop()
        done.add(node)
        return []

    for node in graph:
        if cycle := visit(node):
            return cycle
    return []


def check(root: Path) -> list[str]:
    """Every complaint about the tree under `root`."""
    graph = read_graph(root)
    messages = [
        f"{source}: includes {target}: {why}"
        for source, targets in graph.items()
        for target in targets
        if (why := complaint(source, target))
    ]
    if cycle := find_cycle(graph):
        messages.append("include circle: " + " -> ".join(map(str, cycle)))
    return messages


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    messages = check(root)
    print("\n".join(messages) or "layers: no upward include")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
