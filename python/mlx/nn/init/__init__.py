"""Initializers: functions from an array to fresh values of its shape.

They suit `Module.apply`, which calls them with every parameter. Arrays of more
than two axes count as (outputs, kernel ..., inputs), as the weights of layers do.
"""

from mlx.nn.init.fans import glorot_normal, glorot_uniform, he_normal, he_uniform
from mlx.nn.init.matrices import identity, orthogonal, sparse
from mlx.nn.init.values import constant, normal, uniform

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "normal",
    "orthogonal",
    "sparse",
    "uniform",
]
