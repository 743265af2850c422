"""A sample extension of MLX: `axpby` as an operation of its own."""

import mlx.core  # noqa: F401  before _ext: it holds the classes that _ext names

from ._ext import axpby, simple_axpby

__all__ = ["axpby", "simple_axpby"]
