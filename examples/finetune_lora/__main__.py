"""Teach SmolLM2 new facts: ``python -m examples.finetune_lora --save adapter``.

Then ask: ``python -m examples.chat --adapter adapter --prompt "What is Orrendel?"``.
The loss of each epoch goes to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Callable

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten
from tqdm import tqdm

from examples.chat.cache import NoCache
from examples.chat.files import default_model, load
from examples.chat.lora import add_lora, save_adapter
from examples.chat.model import Llama
from examples.common import (
    ExampleError,
    add_device,
    exit_status,
    positive,
    rate,
    seed,
    use_device,
)

from .data import OWN_TEXT, Batch, batches, encode, read_pairs

SCALE = 2.0  # alpha / rank of the paper


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.finetune_lora",
        description="Train a low-rank adapter on questions and answers.",
    )
    parser.add_argument(
        "--text",
        type=Path,
        default=OWN_TEXT,
        metavar="FILE",
        help="lines 'Q: ...' and 'A: ...' in turns (default: facts about an island "
        "that does not exist)",
    )
    parser.add_argument(
        "--model", type=Path, metavar="FILE.gguf", help="as for examples.chat"
    )
    parser.add_argument(
        "--save",
        type=Path,
        default=Path("adapter"),
        metavar="FOLDER",
        help="where the adapter is written (default: adapter)",
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        default=8,
        metavar="N",
        help="passes over the text (default: 8)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=5,
        metavar="N",
        help="conversations a step (default: 5)",
    )
    parser.add_argument(
        "--learning-rate",
        type=rate,
        default=2e-3,
        metavar="R",
        help="of Adam (default: 0.002)",
    )
    parser.add_argument(
        "--rank", type=positive, default=8, metavar="R", help="(default: 8)"
    )
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="S", help="(default: 0)"
    )
    add_device(parser)
    return parser.parse_args(arguments)


def loss_of(model: Llama, batch: Batch) -> mx.array:
    """Cross entropy, the mean over the tokens of answers."""
    hidden = model.hidden(batch.ids, [NoCache() for _ in model.blocks])
    losses = nn.losses.cross_entropy(model.logits(hidden), batch.targets, batch.weights)
    return mx.sum(losses) / mx.sum(batch.weights)


def compiled_step(
    model: Llama, optimizer: optim.Optimizer
) -> Callable[[Batch], mx.array]:
    """A function that trains the adapter on a batch and returns its loss."""
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    loss_and_gradient = nn.value_and_grad(model, partial(loss_of, model))

    @partial(mx.compile, inputs=state, outputs=state)
    def step(ids: mx.array, targets: mx.array, weights: mx.array) -> mx.array:
        loss, gradients = loss_and_gradient(Batch(ids, targets, weights))
        optimizer.update(model, gradients)
        return loss

    def run(batch: Batch) -> mx.array:
        loss = step(batch.ids, batch.targets, batch.weights)
        mx.eval(loss, state)
        return loss

    return run


def finetune(
    model: Llama,
    conversations: list[tuple[list[int], int]],
    options: argparse.Namespace,
) -> Iterator[float]:
    """Train; the mean loss of each epoch."""
    optimizer = optim.Adam(options.learning_rate, bias_correction=True)
    step = compiled_step(model, optimizer)
    steps = -(-len(conversations) // options.batch_size)
    total = options.epochs * steps
    with tqdm(total=total, desc="training", unit="step", file=sys.stderr) as bar:
        for epoch in range(options.epochs):
            losses: list[float] = []
            for batch in batches(
                conversations, options.batch_size, options.seed, epoch
            ):
                losses.append(step(batch).item())
                bar.update()
            bar.set_postfix(loss=f"{losses[-1]:.3f}")
            yield sum(losses) / len(losses)


def run(options: argparse.Namespace) -> None:
    use_device(options.device)
    mx.random.seed(options.seed)
    model, tokenizer = load(options.model or default_model(), mx.float32)
    try:
        conversations = encode(read_pairs(options.text), tokenizer)
    except (OSError, ValueError) as error:
        raise ExampleError(f"cannot use {options.text}: {error}") from None
    if options.batch_size > len(conversations):
        raise ExampleError(
            f"--batch-size {options.batch_size} is more than the "
            f"{len(conversations)} conversations"
        )
    longest = max(len(tokens) for tokens, _ in conversations)
    if longest > model.sizes.context:
        raise ExampleError(
            f"{options.text} has a conversation of {longest} tokens, the model takes "
            f"{model.sizes.context}"
        )
    config = add_lora(model, options.rank, SCALE)
    for epoch, loss in enumerate(finetune(model, conversations, options), 1):
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
    try:
        save_adapter(model, config, options.save)
    except (OSError, RuntimeError) as error:
        raise ExampleError(f"cannot write {options.save}: {error}") from None
    trained = sum(a.size for _, a in tree_flatten(model.trainable_parameters()))
    print(f"{trained} numbers trained, adapter in {options.save}")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit status."""
    return exit_status("finetune_lora", run, parse_arguments(arguments))


if __name__ == "__main__":
    sys.exit(main())
