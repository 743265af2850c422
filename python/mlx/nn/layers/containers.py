"""Modules that hold other modules."""

from __future__ import annotations

from typing import Any, Callable

from mlx.nn.layers.base import Module


class Sequential(Module):
    """Calls its modules one after another.

    Args:
        modules: Modules or other callables of one argument, kept in `layers`.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())(mx.ones((4, 2))).shape
        (4, 3)
    """

    def __init__(self, *modules: Callable[[Any], Any]) -> None:
        super().__init__()
        self.layers = list(modules)

    def __call__(self, x: Any) -> Any:
        for layer in self["layers"]:
            x = layer(x)
        return x
