"""All optimizers in one place, under the name that the interface gives it."""

from mlx.optimizers.adafactor import Adafactor
from mlx.optimizers.adam import Adam, Adamax, AdamW, Lion
from mlx.optimizers.adaptive import AdaDelta, Adagrad, RMSprop
from mlx.optimizers.base import Optimizer
from mlx.optimizers.multi import MultiOptimizer, clip_grad_norm
from mlx.optimizers.muon import Muon
from mlx.optimizers.sgd import SGD

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
]
