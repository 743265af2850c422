"""Optimizers, and schedules of their learning rates.

One step: ``optimizer.update(model, gradients)``. To compile it, let the compiled
function capture ``[model.state, optimizer.state]``.
"""

from mlx.optimizers import optimizers, schedulers
from mlx.optimizers.optimizers import (
    SGD,
    AdaDelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    MultiOptimizer,
    Muon,
    Optimizer,
    RMSprop,
    clip_grad_norm,
)
from mlx.optimizers.schedulers import (
    cosine_decay,
    exponential_decay,
    join_schedules,
    linear_schedule,
    step_decay,
)

__all__ = [
    "SGD",
    "AdaDelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "MultiOptimizer",
    "Muon",
    "Optimizer",
    "RMSprop",
    "clip_grad_norm",
    "cosine_decay",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "optimizers",
    "schedulers",
    "step_decay",
]
