"""Adafactor: second moments kept as a row and a column."""

from __future__ import annotations

import mlx.core as mx
from mlx.optimizers.base import Float32Optimizer, LearningRate, State


class Adafactor(Float32Optimizer):
    r"""Steps scaled by a second moment that needs little memory.

    For matrices (the last two axes of larger arrays) the running means of
    squared gradients along rows, :math:`r`, and columns, :math:`c`, stand for all:

    .. math:: u &= g / \sqrt{r c / \operatorname{mean}(r)} \\
        w &\leftarrow w - \eta_t \, u / \max(1, \operatorname{rms}(u) / d)

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory
    cost" (2018), https://arxiv.org/abs/1804.04235.

    Args:
        learning_rate: :math:`\eta_t` where `relative_step` is False, or a function
            of the step.
        eps: What is added to squared gradients, and the least size that
            `scale_parameter` takes a parameter to have.
        clip_threshold: :math:`d`, the largest root mean square of a step.
        decay_rate: The exponent of the step :math:`t` in the share
            :math:`t^{\mathrm{decay\_rate}}` that the newest gradient has in the means.
        beta_1: How much of the mean of steps is kept; None keeps no such mean.
        weight_decay: Factor of the parameter that is taken off, with the rate.
        scale_parameter: Whether the rate is multiplied by the root mean square of
            the parameter.
        relative_step: Whether the rate is :math:`\min(10^{-2}, 1 / \sqrt t)`.
        warmup_init: Whether that rate grows from zero, as :math:`10^{-6} t`.

    Raises:
        ValueError: When used without a learning rate, if `relative_step` is False.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.Adafactor(0.5, relative_step=False, scale_parameter=False)
        >>> w = {"w": mx.full((2, 3), 4.0)}
        >>> optimizer.apply_gradients({"w": mx.full((2, 3), 2.0)}, w)["w"][0, 0].item()
        3.5
        >>> {name: value.shape for name, value in optimizer.state["w"].items()}
        {'exp_avg_sq_row': (2,), 'exp_avg_sq_col': (3,)}
    """

    def __init__(
        self,
        learning_rate: LearningRate | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``exp_avg_sq``, whole or as ``_row`` and ``_col``, and ``exp_avg``."""
        shape, dtype = parameter.shape, parameter.dtype
        if parameter.ndim >= 2:
            state["exp_avg_sq_row"] = mx.zeros(shape[:-1], dtype)
            state["exp_avg_sq_col"] = mx.zeros(shape[:-2] + shape[-1:], dtype)
        else:
            state["exp_avg_sq"] = mx.zeros(shape, dtype)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros(shape, dtype)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        rate = self._rate(parameter)
        step = gradient * self._inverse_root(gradient, state)
        step = step / mx.maximum(1.0, _rms(step) / self.clip_threshold) * rate
        if self.beta_1 is not None:
            step = self.beta_1 * state["exp_avg"] + (1 - self.beta_1) * step
            state["exp_avg"] = step
        if self.weight_decay != 0:
            parameter = parameter * (1 - self.weight_decay * rate)
        return parameter - step

    def _rate(self, parameter: mx.array) -> mx.array:
        if self.relative_step:
            step = self.step.astype(mx.float32)
            largest = 1e-6 * step if self.warmup_init else 1e-2
            rate = mx.minimum(largest, mx.rsqrt(step))
        elif "learning_rate" in self.state:
            rate = self.learning_rate
        else:
            raise ValueError(
                "[Adafactor] no learning rate: relative_step is False. "
                "Give learning_rate."
            )
        if self.scale_parameter:
            rate = rate * mx.maximum(self.eps[1], _rms(parameter))
        return rate

    def _inverse_root(self, gradient: mx.array, state: State) -> mx.array:
        """What the gradient is multiplied by, from the means, which it renews."""
        newest = self.step.astype(mx.float32) ** self.decay_rate
        squares = mx.square(gradient) + self.eps[0]

        def renewed(name: str, value: mx.array) -> mx.array:
            state[name] = state[name] + newest * (value - state[name])
            return state[name]

        if gradient.ndim < 2:
            return mx.rsqrt(renewed("exp_avg_sq", squares))
        return self._approximate_exp_moving_avg(
            renewed("exp_avg_sq_row", mx.mean(squares, axis=-1)),
            renewed("exp_avg_sq_col", mx.mean(squares, axis=-2)),
        )

    def _approximate_exp_moving_avg(self, row: mx.array, col: mx.array) -> mx.array:
        """1 / sqrt(row col / mean(row)), an outer product."""
        rows = mx.rsqrt(row / mx.mean(row, axis=-1, keepdims=True))
        return mx.expand_dims(rows, -1) * mx.expand_dims(mx.rsqrt(col), -2)


def _rms(x: mx.array) -> mx.array:
    return mx.sqrt(mx.mean(mx.square(x)))
