#!/usr/bin/env python3
"""Report files and functions that have grown long.

A file of more than 600 lines or a function of more than 60 makes one think;
this prints them, longest first, so that one can. C++ functions are found by
their braces, which is right for formatted code and needs no compiler.

usage: house_report.py [ROOT] [--file-lines N] [--function-lines N]
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

FOLDERS = [
    "include", "src", "python", "tests", "benchmarks", "examples", "tools"
]  # fmt: skip
CPP = {".h", ".cpp", ".cu", ".cuh"}
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
QUIET = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
Span = tuple[int, str, int]  # lines, name, first line


def blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n") or " "


def cpp_functions(text: str) -> Iterator[Span]:
    text = DIRECTIVE.sub(blank, QUIET.sub(blank, text))
    stack: list[tuple[str, str, int]] = []  # kind, head, position
    head_start = 0
    for mark in re.finditer(r"[{};]", text):
        if mark.group() == "{":
            head = text[head_start : mark.start()].strip()
            inside = all(kind == "container" for kind, _, _ in stack)
            name = re.search(r"([~\w:]+|operator\S+)\s*\(", head)
            if CONTAINER.search(head.split("(")[0]) and "(" not in head:
                kind = "container"
            else:
                kind = "function" if inside and name else "block"
            stack.append((kind, name.group(1) if name else "", mark.start()))
        elif mark.group() == "}" and stack:
            kind, name_text, start = stack.pop()
            if kind == "function":
                lines = text.count("\n", start, mark.start()) + 1
                yield lines, name_text, text.count("\n", 0, start) + 1
        head_start = mark.end()


def python_functions(text: str) -> Iterator[Span]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            end = node.end_lineno or node.lineno
            yield end - node.lineno + 1, node.name, node.lineno


def sources(root: Path) -> Iterator[tuple[Path, str]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CPP | {".py"}:
                yield path, path.read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, nargs="?", default=Path())
    parser.add_argument("--file-lines", type=int, default=600)
    parser.add_argument("--function-lines", type=int, default=60)
    options = parser.parse_args()
    files: list[tuple[int, Path]] = []
    functions: list[tuple[int, str]] = []
    for path, text in sources(options.root):
        files.append((text.count("\n"), path))
        finder = python_functions if path.suffix == ".py" else cpp_functions
        for lines, name, first in finder(text):
            functions.append((lines, f"{path}:{first} {name}"))
    print(f"{len(files)} files, {sum(n for n, _ in files)} lines")
    for lines, path in sorted(files, reverse=True):
        if lines > options.file_lines:
            print(f"{lines:6} lines  {path}")
    long = [f for f in functions if f[0] > options.function_lines]
    print(f"{len(functions)} functions, {len(long)} of more than "
          f"{options.function_lines} lines")  # fmt: skip
    for lines, where in sorted(long, reverse=True):
        print(f"{lines:6} lines  {where}")


if __name__ == "__main__":
    main()
