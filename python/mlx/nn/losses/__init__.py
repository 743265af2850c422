"""Loss functions.

Each gives an array of losses, or by `reduction` their mean or sum. They are made
of differentiable operations and keep the dtype of their inputs.
"""

from mlx.nn.losses._common import Reduction
from mlx.nn.losses.likelihood import (
    binary_cross_entropy,
    cross_entropy,
    gaussian_nll_loss,
    kl_div_loss,
    nll_loss,
)
from mlx.nn.losses.margin import (
    cosine_similarity_loss,
    hinge_loss,
    margin_ranking_loss,
    triplet_loss,
)
from mlx.nn.losses.regression import (
    huber_loss,
    l1_loss,
    log_cosh_loss,
    mse_loss,
    smooth_l1_loss,
)

__all__ = [
    "Reduction",
    "binary_cross_entropy",
    "cosine_similarity_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_loss",
    "huber_loss",
    "kl_div_loss",
    "l1_loss",
    "log_cosh_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    "triplet_loss",
]
