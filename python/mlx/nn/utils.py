"""Transforms that know modules."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, cast

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx.utils import tree_flatten, tree_unflatten


def value_and_grad(
    model: Module, fn: Callable[..., Any]
) -> Callable[..., tuple[Any, Any]]:
    """Differentiate a function with respect to the parameters of a model.

    Args:
        model: The model that `fn` uses.
        fn: Returns a scalar array, or a tuple that begins with one.

    Returns:
        A function of the same arguments that returns the value of `fn` and the
        gradient, a tree like that of ``model.trainable_parameters()``.

    Raises:
        ValueError: When called, if the model has nothing to train or the value
            is not a scalar.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> layer = nn.Linear(2, 1)
        >>> step = nn.value_and_grad(layer, lambda x: layer(x).sum())
        >>> value, gradient = step(mx.array([[1.0, 2.0]]))
        >>> gradient["weight"].tolist()
        [[1.0, 2.0]]
    """
    traced: dict[str, mx.array] = {}

    def run(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        traced.update(_by_path(parameters))
        model.update(parameters)
        return fn(*args, **kwargs)

    run_with_gradient = mx.value_and_grad(run)

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        parameters = model.trainable_parameters()
        originals = _by_path(parameters)
        if not originals:
            raise ValueError(
                f"[value_and_grad] nothing to train: {type(model).__name__}. "
                "The model must have parameters that are not frozen."
            )
        try:
            return run_with_gradient(parameters, *args, **kwargs)
        finally:
            _put_back(model, traced, originals)
            traced.clear()

    return wrapped


def _by_path(tree: dict[str, Any]) -> dict[str, mx.array]:
    return cast("dict[str, mx.array]", tree_flatten(tree, destination={}))


def _put_back(
    model: Module, traced: dict[str, mx.array], originals: dict[str, mx.array]
) -> None:
    """Take traced arrays out of the model again.

    Parameters that the function itself assigned stay as it left them.
    """
    now = _by_path(model.parameters())
    old = {
        path: originals[path]
        for path, array in traced.items()
        if now.get(path) is array
    }
    if old:
        model.update(tree_unflatten(old))
