"""Schedules: learning rates as functions of the step.

The step is an array, so a compiled training step follows its schedule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable

import mlx.core as mx

Schedule = Callable[[Any], Any]


def _check_positive(op: str, name: str, value: int) -> None:
    if value <= 0:
        raise ValueError(f"[{op}] {name} out of range: {value}. It must be positive.")


def exponential_decay(init: float, decay_rate: float) -> Schedule:
    r"""The rate :math:`\mathrm{init} \cdot \mathrm{decay\_rate}^t` in step :math:`t`.

    Args:
        init: The first rate.
        decay_rate: The factor of each step.

    Example:
        >>> import mlx.optimizers as optim
        >>> schedule = optim.exponential_decay(0.5, 0.5)
        >>> [schedule(step) for step in range(3)]
        [0.5, 0.25, 0.125]
    """

    def schedule(step: Any) -> Any:
        return init * float(decay_rate) ** step

    return schedule


def step_decay(init: float, decay_rate: float, step_size: int) -> Schedule:
    """A rate that is multiplied by a factor every so many steps.

    Args:
        init: The first rate.
        decay_rate: The factor.
        step_size: How many steps have one rate.

    Raises:
        ValueError: If `step_size` is not positive.

    Example:
        >>> import mlx.optimizers as optim
        >>> schedule = optim.step_decay(0.5, 0.5, 2)
        >>> [schedule(step) for step in range(5)]
        [0.5, 0.5, 0.25, 0.25, 0.125]
    """
    _check_positive("step_decay", "step_size", step_size)

    def schedule(step: Any) -> Any:
        return init * float(decay_rate) ** (step // step_size)

    return schedule


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Schedule:
    r"""Half a wave from `init` down to `end`, which then stays.

    .. math:: \mathrm{end} + \tfrac12 (\mathrm{init} - \mathrm{end})
        (1 + \cos(\pi t / \mathrm{decay\_steps}))

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts"
    (2017), https://arxiv.org/abs/1608.03983.

    Args:
        init: The first rate.
        decay_steps: After how many steps the last rate is reached.
        end: The last rate.

    Raises:
        ValueError: If `decay_steps` is not positive.

    Example:
        >>> import mlx.optimizers as optim
        >>> schedule = optim.cosine_decay(1.0, 100)
        >>> [round(schedule(step).item(), 3) for step in (0, 50, 100, 150)]
        [1.0, 0.5, 0.0, 0.0]
    """
    _check_positive("cosine_decay", "decay_steps", decay_steps)

    def schedule(step: Any) -> mx.array:
        angle = mx.minimum(step, decay_steps) * (math.pi / decay_steps)
        return end + 0.5 * (init - end) * (1.0 + mx.cos(angle))

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Schedule:
    """A straight line from `init` to `end`, which then stays.

    Args:
        init: The first rate.
        end: The last rate.
        steps: After how many steps the last rate is reached.

    Raises:
        ValueError: If `steps` is not positive.

    Example:
        >>> import mlx.optimizers as optim
        >>> warmup = optim.linear_schedule(0.0, 0.5, 4)
        >>> [warmup(step).item() for step in (0, 1, 4, 9)]
        [0.0, 0.125, 0.5, 0.5]
    """
    _check_positive("linear_schedule", "steps", steps)

    def schedule(step: Any) -> mx.array:
        return init + mx.minimum(step, steps) * ((end - init) / steps)

    return schedule


def join_schedules(
    schedules: Sequence[Schedule], boundaries: Sequence[int]
) -> Schedule:
    """Schedules one after the other, each beginning with its own step 0.

    Args:
        schedules: The schedules.
        boundaries: For each but the first, the step in which it begins.

    Raises:
        ValueError: If there are no schedules, or not one boundary less than there
            are schedules.

    Example:
        >>> import mlx.optimizers as optim
        >>> warmup = optim.linear_schedule(0.0, 0.5, 2)
        >>> schedule = optim.join_schedules(
        ...     [warmup, optim.exponential_decay(0.5, 0.5)], [2]
        ... )
        >>> [schedule(step).item() for step in range(5)]
        [0.0, 0.25, 0.5, 0.25, 0.125]
    """
    if not schedules:
        raise ValueError("[join_schedules] no schedules. Expected at least one.")
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(
            f"[join_schedules] {len(boundaries)} boundaries for {len(schedules)} "
            "schedules. There must be one for each but the first."
        )

    def schedule(step: Any) -> Any:
        rate = schedules[0](step)
        for boundary, following in zip(boundaries, schedules[1:]):
            # The step is unsigned: before the boundary it counts as 0.
            later = following(mx.maximum(step, boundary) - boundary)
            rate = mx.where(mx.array(step) < boundary, rate, later)
        return rate

    return schedule
