"""Rows of what rearranges, joins and splits arrays."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from .row import Case, Operand, Row, case

THREE = (2, 3, 4)


def move(name: str, reference: Any, *cases: Case, **more: Any) -> Row:
    """A row of what only moves values."""
    return Row(name, more.pop("call", None) or name, reference, cases, **more)


def as_strided(x: Any, shape: Any, strides: Any, offset: int) -> Any:
    places = offset + sum(
        (np.arange(n) * s).reshape(-1, *[1] * (len(shape) - 1 - i))
        for i, (n, s) in enumerate(zip(shape, strides))
    )
    return x.ravel()[places]


VIEWS = [
    move(
        "reshape",
        np.reshape,
        case(THREE, shape=(4, 6)),
        case(THREE, shape=(3, -1, 2)),
        case((6,), shape=(1, 6, 1)),
        case((), shape=(1, 1)),
        case((0, 3), shape=(3, 0, 2)),
        nodes=("Reshape",),
    ),
    move(
        "flatten",
        lambda x, start_axis, end_axis: x.reshape(
            *x.shape[:start_axis], -1, *x.shape[x.ndim + end_axis + 1 :]
        ),
        case(THREE, start_axis=0, end_axis=-1),
        case(THREE, start_axis=1, end_axis=-1),
        case(THREE, start_axis=0, end_axis=-2),
        nodes=("Flatten",),
    ),
    move(
        "unflatten",
        lambda x, axis, shape: x.reshape(*x.shape[:axis], *shape, *x.shape[axis + 1 :]),
        case((2, 6), axis=1, shape=(2, 3)),
        case((6, 2), axis=0, shape=(3, -1)),
        nodes=("Unflatten",),
    ),
    move(
        "transpose",
        np.transpose,
        case(THREE, axes=None),
        case(THREE, axes=(2, 0, 1)),
        case((3, 4), axes=(-1, 0)),
        case((5,), axes=(0,)),
        case((), axes=None),
        nodes=("Transpose",),
    ),
    move("moveaxis", np.moveaxis, case(THREE, source=0, destination=-1)),
    move("swapaxes", np.swapaxes, case(THREE, axis1=0, axis2=2)),
    move(
        "expand_dims",
        np.expand_dims,
        case(THREE, axis=1),
        case((3,), axis=(0, -1)),
        case((), axis=0),
        nodes=("ExpandDims",),
    ),
    move(
        "squeeze",
        np.squeeze,
        case((1, 3, 1), axis=None),
        case((1, 3, 1), axis=(0,)),
        case((2, 1), axis=-1),
        nodes=("Squeeze",),
    ),
    move(
        "broadcast_to",
        np.broadcast_to,
        case((3, 1), shape=(2, 3, 4)),
        case((), shape=(5,)),
        case((2, 3), shape=(2, 3)),
        case((1, 3), shape=(0, 3)),
        nodes=("Broadcast",),
    ),
    move(
        "broadcast_arrays",
        lambda a, b: list(np.broadcast_arrays(a, b)),
        case((3, 1), (2, 1, 4)),
        case((), (3,)),
        operands=(Operand(), Operand()),
        result=("keep", "keep"),
        derivative=(0, 1),
        promotes=False,
    ),
    move(
        "contiguous",
        lambda x, allow_col_major: x,
        case(THREE, allow_col_major=False),
        case(THREE, allow_col_major=True),
        nodes=("Contiguous",),
    ),
    move(
        "as_strided",
        as_strided,
        case((12,), shape=(3, 4), strides=(4, 1), offset=0),
        case((3, 5), shape=(2, 3), strides=(5, 2), offset=1),
        case((12,), shape=(3, 3), strides=(2, 1), offset=2),
        case((4, 3), shape=(3,), strides=(-3,), offset=9),
        nodes=("AsStrided",),
    ),
    Row(
        "copy",
        lambda x: mx.asarray(x, copy=True),
        np.array,
        (case(THREE), case(())),
        nodes=("Copy",),
    ),
    Row(
        "depends",
        lambda a, b: mx.depends([a], [b])[0],
        lambda a, b: a,
        (case(THREE, (2,)),),
        (Operand(), Operand()),
        promotes=False,
        nodes=("Depends",),
    ),
    *(
        move(name, getattr(np, name), case(()), case((3,)), case((2, 3)), case(THREE))
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ),
    move("permute_dims", np.transpose, case(THREE, axes=(2, 0, 1))),
    move(
        "matrix_transpose", lambda x: np.swapaxes(x, -1, -2), case((3, 4)), case(THREE)
    ),
    move("flip", np.flip, case(THREE, axis=None), case(THREE, axis=(0, 2))),
    move(
        "roll",
        np.roll,
        case(THREE, shift=1, axis=None),
        case(THREE, shift=(1, -2), axis=(0, 2)),
    ),
]

TWO = (Operand(), Operand())


def split(x: Any, indices_or_sections: Any, axis: int) -> Any:
    return np.split(x, indices_or_sections, axis)


JOINS = [
    Row(
        "concatenate",
        lambda a, b, axis: mx.concatenate([a, b], axis=axis),
        lambda a, b, axis: np.concatenate([a, b], axis=axis),
        (
            case((2, 3), (1, 3), axis=0),
            case((2, 3, 4), (2, 2, 4), axis=1),
            case((2, 3), (2, 5), axis=-1),
            case((2, 3), (2, 2), axis=None),
            case((0, 3), (2, 3), axis=0),
        ),
        TWO,
        derivative=(0, 1),
        sized=lambda n: (
            case((n,), (n + 1,), axis=0),
            case((2, n), (2, 3), axis=1),
        ),
        nodes=("Concatenate",),
    ),
    Row(
        "concat",
        lambda a, b: mx.concat([a, b]),
        lambda a, b: np.concatenate([a, b]),
        (case((2, 3), (1, 3)),),
        TWO,
        derivative=(0, 1),
    ),
    Row(
        "stack",
        lambda a, b, axis: mx.stack([a, b], axis=axis),
        lambda a, b, axis: np.stack([a, b], axis=axis),
        (
            case((2, 3), (2, 3), axis=0),
            case((2, 3), (2, 3), axis=-1),
            case((), (), axis=0),
        ),
        TWO,
        derivative=(0, 1),
    ),
    move(
        "split",
        split,
        case((2, 6), indices_or_sections=3, axis=1),
        case((6, 2), indices_or_sections=3, axis=0),
        case((3, 7, 2), indices_or_sections=[1, 4], axis=-2),
        result=("keep", "keep", "keep"),
        nodes=("Split",),
    ),
    move(
        "unstack",
        lambda x, axis: list(np.moveaxis(x, axis, 0)),
        case((2, 3), axis=0),
        case((3, 2), axis=-1),
        result=("keep", "keep"),
    ),
    move(
        "repeat",
        np.repeat,
        case(THREE, repeats=2, axis=None),
        case(THREE, repeats=3, axis=1),
        case((3,), repeats=0, axis=0),
        sized=lambda n: (case((n,), repeats=2, axis=0),),
    ),
    move(
        "tile",
        np.tile,
        case((2, 3), reps=(2,)),
        case((2, 3), reps=(2, 1, 2)),
        case((3,), reps=(2, 2)),
        call=lambda x, reps: mx.tile(x, reps),
    ),
    Row(
        "pad",
        lambda x, v, width: mx.pad(x, width, constant_values=v),
        lambda x, v, width: np.pad(x, width, constant_values=v),
        (
            case((2, 3), (), width=1),
            case((2, 3), (), width=[(0, 2), (1, 0)]),
            case((3,), (), width=(2, 1)),
            case((0, 2), (), width=[(1, 1), (0, 0)]),
        ),
        TWO,
        derivative=(0, 1),
        promotes=False,
        sized=lambda n: (case((n,), (), width=(3, 2)),),
        batch="the border value has no batches",
        nodes=("Pad",),
    ),
    Row(
        "pad.zeros",
        lambda x, width: mx.pad(x, width),
        lambda x, width: np.pad(x, width),
        (case((2, 3), width=[(0, 2), (1, 0)]), case((3,), width=(2, 1))),
    ),
    Row(
        "pad.reflect",
        lambda x, width: mx.pad(x, width, mode="reflect"),
        lambda x, width: np.pad(x, width, mode="reflect"),
        (case((2, 3), width=[(0, 2), (4, 0)]), case((3,), width=(7, 1))),
    ),
    Row(
        "pad.symmetric",
        lambda x, width: mx.pad(x, width, mode="symmetric"),
        lambda x, width: np.pad(x, width, mode="symmetric"),
        (case((2, 3), width=[(0, 2), (4, 0)]), case((3,), width=(7, 1))),
    ),
    Row(
        "pad.edge",
        lambda x, width: mx.pad(x, width, mode="edge"),
        lambda x, width: np.pad(x, width, mode="edge"),
        (case((2, 3), width=[(0, 2), (1, 0)]), case((3,), width=(2, 1))),
    ),
    Row(
        "meshgrid",
        "meshgrid",
        lambda a, b: list(np.meshgrid(a, b)),
        (case((3,), (4,)),),
        TWO,
        result=("keep", "keep"),
        derivative=(0, 1),
        promotes=False,
    ),
]

ROWS = [*VIEWS, *JOINS]
