"""Command line of the package: where its CMake files and headers are.

A C++ project finds the library with ``$(python -m mlx --cmake-dir)``.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m mlx", description="Say where parts of the package are."
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument(
        "--cmake-dir",
        action="store_true",
        help="print the folder that CMake needs as MLX_ROOT",
    )
    given = parser.parse_args()
    if given.version:
        import mlx.core as mx

        print(mx.__version__)
    elif given.cmake_dir:
        print(Path(__file__).absolute().parent)
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
