"""What all losses share: reductions, and checks of shapes where broadcasting
would hide a mistake."""

from __future__ import annotations

from typing import Literal, get_args

import mlx.core as mx

Reduction = Literal["none", "mean", "sum"]


def reduce(op: str, loss: mx.array, reduction: Reduction) -> mx.array:
    if reduction == "none":
        return loss
    if reduction == "mean":
        return mx.mean(loss)
    if reduction == "sum":  # pyright: ignore[reportUnnecessaryComparison]
        return mx.sum(loss)
    raise ValueError(
        f"[{op}] unknown reduction: {reduction!r}. Expected one of "
        f"{', '.join(map(repr, get_args(Reduction)))}."
    )


def same_shape(op: str, **arrays: mx.array) -> None:
    """Raise unless all have one shape; the names are those of the arguments."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"[{op}] shapes differ: {given}. They must be equal.")


def weighted(op: str, loss: mx.array, weights: mx.array | None) -> mx.array:
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ValueError(
            f"[{op}] weights have the wrong shape: {weights.shape}. "
            f"There must be one for each loss: {loss.shape}."
        )
    return loss * weights


def picked(op: str, values: mx.array, targets: mx.array, axis: int) -> mx.array:
    """The value at each target, whose shape is that of `values` without `axis`."""
    expected = values.shape[:axis] + values.shape[axis + 1 :]
    if targets.shape != expected:
        raise ValueError(
            f"[{op}] targets have the wrong shape: {targets.shape} for inputs of "
            f"{values.shape}. Expected {expected}, a class for each."
        )
    return mx.take_along_axis(values, mx.expand_dims(targets, axis), axis).squeeze(axis)


def checked_axis(op: str, array: mx.array, axis: int) -> int:
    """The axis counted from the front."""
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(
            f"[{op}] no such axis: {axis}. The input has {array.ndim} axes."
        )
    return axis % array.ndim


def not_negative(op: str, name: str, value: float) -> None:
    if not value >= 0:
        raise ValueError(f"[{op}] {name} is negative: {value}. It must be at least 0.")
