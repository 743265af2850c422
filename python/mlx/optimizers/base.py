"""Optimizer, the base class: state, schedules, and the walk over trees.

The state is a plain tree of arrays: ``step``, ``learning_rate`` and, at the place
of each parameter, a dictionary of what its rule remembers. So it can be saved,
and captured by a compiled step.
"""

from __future__ import annotations

from typing import Any, Callable, Union, cast

import mlx.core as mx
from mlx.utils import tree_map

Schedule = Callable[[mx.array], mx.array]
LearningRate = Union[float, Schedule]
State = dict[str, Any]


class Optimizer:
    """Base class of optimizers.

    A subclass gives `init_single` and `apply_single` for one parameter; the base
    class walks trees, counts steps and follows schedules.

    Args:
        schedulers: Functions of the step, by the name of what they set in the state.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> class SignDescent(optim.Optimizer):
        ...     def __init__(self, learning_rate):
        ...         super().__init__()
        ...         self._maybe_schedule("learning_rate", learning_rate)
        ...
        ...     def init_single(self, parameter, state):
        ...         pass  # nothing to remember
        ...
        ...     def apply_single(self, gradient, parameter, state):
        ...         return parameter - self.learning_rate * mx.sign(gradient)
        >>> step = SignDescent(0.5).apply_gradients
        >>> step({"w": mx.array([3.0, -7.0])}, {"w": mx.array([1.0, 1.0])})
        {'w': array([0.5, 1.5], dtype=float32)}
    """

    def __init__(self, schedulers: dict[str, Schedule] | None = None) -> None:
        self._initialized = False
        self._state: State = {"step": mx.array(0, mx.uint64)}
        self._schedulers = dict(schedulers or {})

    def update(self, model: Any, gradients: Any) -> None:
        """Replace the parameters of a model by better ones.

        Args:
            model: A module, or a dictionary of parameters.
            gradients: A tree like that of the parameters; it may lack some.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.nn as nn
            >>> import mlx.optimizers as optim
            >>> model = nn.Linear(1, 1, bias=False).update({"weight": mx.ones((1, 1))})
            >>> optim.SGD(0.5).update(model, {"weight": mx.ones((1, 1))})
            >>> model.weight.item()
            0.5
        """
        model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: Any) -> None:
        """Make the state of parameters that have none yet.

        Called by the first `apply_gradients`. What is there already, for example
        from a file, stays.

        Args:
            parameters: A dictionary of parameters, nested as deep as wanted, or a
                lone array.

        Raises:
            ValueError: If it is a list or tuple: the state could not be saved.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.optimizers as optim
            >>> optimizer = optim.SGD(0.1, momentum=0.9)
            >>> optimizer.init({"w": mx.ones((2,))})
            >>> optimizer.state["w"]
            {'v': array([0, 0], dtype=float32)}
        """
        if isinstance(parameters, (list, tuple)):
            raise ValueError(
                f"[{type(self).__name__}.init] parameters are a "
                f"{type(parameters).__name__}. Expected a dict, or an array alone."
            )
        self._initialized = True
        self._complete(parameters, self._state)

    def _complete(self, parameters: Any, state: Any) -> Any:
        """`state` with what `parameters` has and it has not."""
        if isinstance(parameters, (list, tuple)):
            items = cast("list[Any]", parameters)
            old = cast("list[Any]", state if isinstance(state, (list, tuple)) else [])
            return [
                self._complete(item, old[i] if i < len(old) else None)
                for i, item in enumerate(items)
            ]
        table = cast("State", state if isinstance(state, dict) else {})
        if isinstance(parameters, dict):
            for key, value in cast("dict[str, Any]", parameters).items():
                table[key] = self._complete(value, table.get(key))
            return table
        fresh: State = {}
        self.init_single(parameters, fresh)
        for name, value in fresh.items():
            table.setdefault(name, value)
        return table

    def init_single(self, parameter: mx.array, state: State) -> None:
        """Put what the rule remembers of a parameter into an empty dictionary.

        Args:
            parameter: The parameter.
            state: To be filled.

        Raises:
            NotImplementedError: If the subclass does not say.
        """
        raise NotImplementedError(
            f"[{type(self).__name__}.init_single] not defined. "
            "A subclass of Optimizer must define it."
        )

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """One step of the optimizer.

        Args:
            gradients: A tree of arrays.
            parameters: A tree that has at least the branches of `gradients`.

        Returns:
            The new parameters, a tree like `gradients`.

        Raises:
            ValueError: If a gradient has no parameter, or has come after `init`.

        Example:
            >>> import mlx.core as mx
            >>> import mlx.optimizers as optim
            >>> w, gradient = mx.array([1.0, 2.0]), mx.array([1.0, -1.0])
            >>> optim.SGD(0.5).apply_gradients({"w": gradient}, {"w": w})
            {'w': array([0.5, 2.5], dtype=float32)}
        """
        if not self._initialized:
            self.init(tree_map(_second, gradients, parameters))
        for name, schedule in self._schedulers.items():
            self._state[name] = as_array(schedule(self.step))
        self._state["step"] = self.step + 1
        return tree_map(self.apply_single, gradients, parameters, self._state)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: State
    ) -> mx.array:
        """The rule: the new value of one parameter.

        Args:
            gradient: Its gradient.
            parameter: Its value.
            state: What `init_single` made, to be changed.

        Raises:
            NotImplementedError: If the subclass does not say.
        """
        raise NotImplementedError(
            f"[{type(self).__name__}.apply_single] not defined. "
            "A subclass of Optimizer must define it."
        )

    @property
    def state(self) -> State:
        """The state, a tree of arrays. What is assigned is completed when used."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """How many steps were taken, a uint64 array."""
        return self._state["step"]

    @property
    def learning_rate(self) -> mx.array:
        """The learning rate of the last step, or what was assigned."""
        return self._state["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        self._state["learning_rate"] = mx.array(learning_rate)

    def _maybe_schedule(self, name: str, value: float | mx.array | Schedule) -> None:
        """Put a number into the state, or before each step what a function says."""
        if callable(value):
            self._schedulers[name] = value
            value = value(self.step)
        self._state[name] = as_array(value)


class Float32Optimizer(Optimizer):
    """Optimizers whose rule is worked out in float32 where arrays are narrower.

    Parameter and state keep their dtypes; only what is kept is rounded. A rule is
    `_rule`, the arguments and result of `apply_single` in wide types.
    """

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: State
    ) -> mx.array:
        wide = {name: widened(value) for name, value in state.items()}
        result = self._rule(widened(gradient), widened(parameter), wide)
        for name, value in wide.items():
            state[name] = value.astype(state[name].dtype)
        return result.astype(parameter.dtype)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        raise NotImplementedError


def _second(_: Any, parameter: mx.array) -> mx.array:
    return parameter


def widened(value: mx.array) -> mx.array:
    return value.astype(mx.float32) if value.dtype in _HALF else value


_HALF = (mx.float16, mx.bfloat16)


def as_array(value: float | mx.array) -> mx.array:
    return value if isinstance(value, mx.array) else mx.array(value)


def check(kind: str, name: str, value: float, is_valid: bool, range_text: str) -> None:
    """Raise when an argument of the optimizer `kind` is out of its range."""
    if not is_valid:
        raise ValueError(
            f"[{kind}] {name} out of range: {value}. It must be {range_text}."
        )
