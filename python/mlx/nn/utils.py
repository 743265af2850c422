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


def checkpoint(
    module: Module, fn: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Call a module without keeping what its gradient needs in between.

    Intermediate arrays are computed again when the gradient is, which takes time
    and saves memory. Gradients flow to the arguments and to the parameters. Chen et
    al., "Training deep nets with sublinear memory cost" (2016),
    https://arxiv.org/abs/1604.06174.

    Args:
        module: The module whose parameters `fn` uses.
        fn: What is called; the module itself if None.

    Returns:
        A function of the same arguments and result as `fn`.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.nn as nn
        >>> layer = nn.Linear(2, 1)
        >>> saving = nn.utils.checkpoint(layer)
        >>> step = nn.value_and_grad(layer, lambda x: saving(x).sum())
        >>> _, gradient = step(mx.array([[1.0, 2.0]]))
        >>> gradient["weight"].tolist()
        [[1.0, 2.0]]
    """
    call: Callable[..., Any] = module if fn is None else fn

    def run(parameters: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        # Runs once more for the gradient: the module is as before after each run.
        originals = module.trainable_parameters()
        module.update(parameters)
        try:
            return call(*args, **kwargs)
        finally:
            module.update(originals)

    run_and_forget = mx.checkpoint(run)

    @wraps(call)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_and_forget(module.trainable_parameters(), *args, **kwargs)

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
