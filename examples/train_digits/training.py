"""The network, its training step, and all that a checkpoint must hold."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Callable

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_unflatten

from .data import Digits

WIDTH = 256
DROPOUT = 0.4
WEIGHT_DECAY = 0.05
DECAY = 0.997  # of the learning rate, each step
# What a checkpoint holds besides arrays.
NUMBERS = {"seed": int, "batch_size": int, "learning_rate": float, "epoch": int}


def make_network() -> nn.Module:
    """Images (N, 64) to logits (N, 10)."""
    return nn.Sequential(
        nn.Linear(64, WIDTH),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, 10),
    )


class Training:
    """A network and its optimizer, somewhere on their way.

    Args:
        seed: Of the initial weights, of dropout and of the order of the images.
        batch_size: Images a step.
        learning_rate: Of AdamW in the first step.

    Attributes:
        losses: Of all steps so far.
        epoch: How many passes over the images are complete.
    """

    def __init__(self, seed: int, batch_size: int, learning_rate: float) -> None:
        mx.random.seed(seed)
        self.seed = seed
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.epoch = 0
        self.losses: list[float] = []
        self.network = make_network()
        self.optimizer = optim.AdamW(
            optim.exponential_decay(learning_rate, DECAY),
            weight_decay=WEIGHT_DECAY,
            bias_correction=True,
        )
        self.optimizer.init(self.network.trainable_parameters())

    def compiled_step(self) -> Callable[[Digits], mx.array]:
        """A function that trains on a batch and returns its loss."""
        # What the step reads and replaces besides its arguments.
        state = [self.network.state, self.optimizer.state, mx.random.state]

        def loss(images: mx.array, labels: mx.array) -> mx.array:
            logits = self.network(images)
            return nn.losses.cross_entropy(logits, labels, reduction="mean")

        loss_and_gradient = nn.value_and_grad(self.network, loss)

        @partial(mx.compile, inputs=state, outputs=state)
        def step(images: mx.array, labels: mx.array) -> mx.array:
            value, gradients = loss_and_gradient(images, labels)
            self.optimizer.update(self.network, gradients)
            return value

        def run(batch: Digits) -> mx.array:
            value = step(batch.images, batch.labels)
            mx.eval(value, state)
            return value

        return run

    def accuracy(self, digits: Digits) -> float:
        """The share of images that the network names rightly."""
        self.network.eval()
        named = mx.argmax(self.network(digits.images), axis=-1)
        self.network.train()
        return mx.mean(named == digits.labels).item()

    def save(self, file: Path) -> None:
        """Write a checkpoint in place of an older one, whole or not at all."""
        arrays = {
            f"network.{path}": array for path, array in _flat(self.network.parameters())
        }
        arrays.update(
            (f"optimizer.{path}", array) for path, array in _flat(self.optimizer.state)
        )
        arrays["random"] = mx.random.state[0]
        arrays["losses"] = mx.array(self.losses, mx.float32)
        metadata = {name: str(getattr(self, name)) for name in NUMBERS}
        unfinished = file.with_name(f".{file.name}.unfinished.safetensors")
        mx.save_safetensors(str(unfinished), arrays, metadata)
        unfinished.replace(file)

    @staticmethod
    def load(file: Path, learning_rate: float | None = None) -> Training:
        """What `save` wrote.

        Args:
            file: The checkpoint.
            learning_rate: In place of the one it was made with, if given.

        Raises:
            ValueError: If the file holds something else.
        """
        arrays, metadata = mx.load(
            str(file), format="safetensors", return_metadata=True
        )
        parts: dict[str, dict[str, mx.array]] = {}
        for path, array in arrays.items():
            part, _, below = path.partition(".")
            parts.setdefault(part, {})[below] = array
        try:
            numbers = {name: kind(metadata[name]) for name, kind in NUMBERS.items()}
            network, optimizer = parts["network"], tree_unflatten(parts["optimizer"])
            key, losses = parts["random"][""], parts["losses"][""]
        except KeyError as error:
            raise ValueError(f"it lacks {error}") from None
        epoch = numbers.pop("epoch")
        if learning_rate is not None:
            numbers["learning_rate"] = learning_rate
        training = Training(**numbers)
        training.epoch = epoch
        training.losses = losses.tolist()
        training.network.load_weights(list(network.items()))
        training.optimizer.state = optimizer
        training.optimizer.init(training.network.trainable_parameters())
        mx.random.state[0] = key
        return training


def _flat(tree: Any) -> list[tuple[str, mx.array]]:
    return list(tree_flatten(tree, destination={}).items())
