"""Several optimizers for one model, and the norm of its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, cast

import mlx.core as mx
from mlx.optimizers.base import Optimizer, State, widened
from mlx.utils import tree_flatten, tree_map, tree_merge, tree_reduce, tree_unflatten

ParameterFilter = Callable[[str, mx.array], bool]


class MultiOptimizer(Optimizer):
    """Several optimizers, each for its part of the parameters.

    A parameter goes to the optimizer of the first filter that is true for it, else
    to the last.

    Args:
        optimizers: The optimizers.
        filters: For each but the last, a function of the dotted path and the
            gradient (or parameter) that says whether it is for this optimizer.

    Raises:
        ValueError: If there is not one filter less than there are optimizers.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.MultiOptimizer(
        ...     [optim.SGD(0.5), optim.SGD(0.25)],
        ...     [lambda path, array: path.endswith("weight")],
        ... )
        >>> ones = {"weight": mx.ones((1,)), "bias": mx.ones((1,))}
        >>> new = optimizer.apply_gradients(ones, ones)
        >>> new["weight"].item(), new["bias"].item()
        (0.5, 0.75)
    """

    def __init__(
        self,
        optimizers: Sequence[Optimizer],
        filters: Sequence[ParameterFilter] = (),
    ) -> None:
        super().__init__()
        if len(filters) != len(optimizers) - 1:
            raise ValueError(
                f"[MultiOptimizer] {len(filters)} filters for {len(optimizers)} "
                "optimizers. There must be one for each but the last."
            )
        self._state = {}
        self.optimizers = list(optimizers)
        self.filters = list(filters)

    def _split(self, tree: Any) -> list[Any]:
        """A tree for each optimizer, with the arrays that are its own."""
        parts: list[list[tuple[str, Any]]] = [[] for _ in self.optimizers]
        for path, array in cast("list[tuple[str, Any]]", tree_flatten(tree)):
            matches = (i for i, ours in enumerate(self.filters) if ours(path, array))
            parts[next(matches, -1)].append((path, array))
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: Any) -> None:
        """Make the state of each optimizer for its parameters.

        Args:
            parameters: A dictionary of parameters, nested as deep as wanted.
        """
        self._initialized = True
        for optimizer, part in zip(self.optimizers, self._split(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """One step of every optimizer.

        Args:
            gradients: A tree of arrays.
            parameters: A tree that has at least the branches of `gradients`.

        Returns:
            The new parameters, a tree of those that have gradients.
        """
        merged: Any = {}
        for optimizer, part in zip(self.optimizers, self._split(gradients)):
            merged = tree_merge(merged, optimizer.apply_gradients(part, parameters))
        return merged

    @property
    def state(self) -> State:
        """``states``, the list of those of the optimizers."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: State) -> None:
        states = state.get("states")
        if not isinstance(states, (list, tuple)) or len(
            cast("list[State]", states)
        ) != len(self.optimizers):
            raise ValueError(
                f"[MultiOptimizer.state] not a state of this optimizer: {list(state)}. "
                f"Expected 'states', a list of {len(self.optimizers)}."
            )
        for optimizer, its_state in zip(self.optimizers, cast("list[State]", states)):
            optimizer.state = its_state

    @property
    def step(self) -> mx.array:
        """How many steps were taken, a uint64 array."""
        return self.optimizers[0].step

    @property
    def learning_rate(self) -> mx.array:
        """The rate of the first optimizer; what is assigned goes to all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, mx.array]:
    r"""Scale gradients down to a norm.

    The norm is that of all gradients as one vector. Pascanu et al., "On the
    difficulty of training recurrent neural networks" (2013),
    https://arxiv.org/abs/1211.5063.

    Args:
        grads: A tree of arrays.
        max_norm: The largest norm. Gradients are multiplied by
            :math:`\min(1, \mathrm{max\_norm} / (\mathrm{norm} + 10^{-6}))`.

    Returns:
        The scaled gradients, of the dtypes they had, and the norm before, float32.

    Raises:
        ValueError: If `max_norm` is negative.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> grads, norm = optim.clip_grad_norm({"w": mx.array([3.0, 4.0])}, 10.0)
        >>> grads["w"].tolist(), norm.item()
        ([3.0, 4.0], 5.0)
    """
    if not max_norm >= 0:
        raise ValueError(
            f"[clip_grad_norm] max_norm out of range: {max_norm}. It must be >=0."
        )
    squares = tree_reduce(
        lambda total, grad: total + mx.sum(mx.square(widened(grad))),
        grads,
        mx.array(0.0),
    )
    norm = mx.sqrt(squares)
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)

    def scaled(grad: mx.array) -> mx.array:
        floating = mx.issubdtype(grad.dtype, mx.inexact)
        return (grad * scale).astype(grad.dtype) if floating else grad * scale

    return tree_map(scaled, grads), norm
