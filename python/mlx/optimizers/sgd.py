"""Gradient descent with momentum."""

from __future__ import annotations

import mlx.core as mx
from mlx.optimizers.base import Float32Optimizer, LearningRate, State


class SGD(Float32Optimizer):
    r"""Gradient descent, with momentum if wanted.

    .. math:: g &\leftarrow g + \lambda w \\
        v &\leftarrow \mu v + (1 - \tau) g \\
        w &\leftarrow w - \eta \, v \quad \text{(Nesterov: } g + \mu v \text{)}

    Without momentum the step is :math:`\eta g`. Sutskever et al., "On the
    importance of initialization and momentum in deep learning" (2013),
    https://proceedings.mlr.press/v28/sutskever13.html.

    Args:
        learning_rate: :math:`\eta`, or a function of the step.
        momentum: :math:`\mu`; 0 turns it off.
        weight_decay: :math:`\lambda`, the factor of an L2 penalty.
        dampening: :math:`\tau`.
        nesterov: Whether to look one step ahead.

    Raises:
        ValueError: If `nesterov` is asked for without momentum or with dampening.

    Example:
        >>> import mlx.core as mx
        >>> import mlx.optimizers as optim
        >>> optimizer = optim.SGD(0.5, momentum=0.5)
        >>> w, gradient = {"w": mx.array([4.0])}, {"w": mx.array([1.0])}
        >>> for _ in range(2):
        ...     w = optimizer.apply_gradients(gradient, w)
        >>> w, optimizer.state["w"]["v"]
        ({'w': array([2.75], dtype=float32)}, array([1.5], dtype=float32))
    """

    def __init__(
        self,
        learning_rate: LearningRate,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"[SGD] nesterov does not go with momentum {momentum} and dampening "
                f"{dampening}. It needs a positive momentum and no dampening."
            )
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    def init_single(self, parameter: mx.array, state: State) -> None:
        """``v``, the momentum."""
        state["v"] = mx.zeros_like(parameter)

    def _rule(self, gradient: mx.array, parameter: mx.array, state: State) -> mx.array:
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum <= 0:
            return parameter - self.learning_rate * gradient
        fresh = gradient
        if self.dampening > 0:
            fresh = (1 - self.dampening) * gradient
        state["v"] = self.momentum * state["v"] + fresh
        step = gradient + self.momentum * state["v"] if self.nesterov else state["v"]
        return parameter - self.learning_rate * step
