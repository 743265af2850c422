"""The handwritten digits that scikit-learn brings along: 1797 images of 8 by 8.

Source: E. Alpaydin and C. Kaynak, "Optical recognition of handwritten digits"
(1998), UCI machine learning repository, https://doi.org/10.24432/C50P49.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

TEST_SHARE = 0.2
SPLIT_SEED = 0  # not the training's: every run is tested on the same images


@dataclass(frozen=True)
class Digits:
    """Images (N, 64) with values in [0, 1] and labels (N,) from 0 to 9."""

    images: mx.array
    labels: mx.array


def load() -> tuple[Digits, Digits]:
    """The training and the test part."""
    from sklearn.datasets import load_digits  # takes a second that --help need not wait

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(images))
    count = round(TEST_SHARE * len(images))
    test, training = (
        Digits(mx.array(images[part]), mx.array(labels[part].astype(np.int32)))
        for part in (order[:count], order[count:])
    )
    return training, test


def batches(digits: Digits, size: int, seed: int, epoch: int) -> Iterator[Digits]:
    """All images but an incomplete last batch, in an order of the epoch's own.

    Seed and epoch alone decide the order, so that a resumed training goes on with
    what would have come.
    """
    key = mx.random.split(mx.random.key(seed), epoch + 1)[epoch]
    order = mx.random.permutation(digits.labels.shape[0], key=key)
    for start in range(0, order.shape[0] - size + 1, size):
        chosen = order[start : start + size]
        yield Digits(digits.images[chosen], digits.labels[chosen])
