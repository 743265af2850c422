"""Learn to read digits: ``python -m examples.train_digits --plot loss.png``.

The result goes to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples.common import (
    LOAD_ERRORS,
    ExampleError,
    add_device,
    exit_status,
    positive,
    rate,
    seed,
    use_device,
)

from .data import Digits, batches, load
from .training import Training

DEFAULTS = {"batch_size": 64, "learning_rate": 2e-3, "seed": 0}


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_digits",
        description="Train a small network on scikit-learn's handwritten digits.",
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        default=25,
        metavar="N",
        help="passes over the images, those of a resumed training included "
        "(default: 25)",
    )
    parser.add_argument(
        "--batch-size",
        type=positive,
        metavar="N",
        help="images a step (default: 64)",
    )
    parser.add_argument(
        "--learning-rate",
        type=rate,
        metavar="R",
        help="of AdamW at first; it falls with every step (default: 0.002, or as the "
        "checkpoint has it)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="S",
        help="of weights, dropout and the order of the images (default: 0)",
    )
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write a checkpoint here after every epoch (safetensors)",
    )
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on from this checkpoint"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw the loss of every step"
    )
    add_device(parser)
    return parser.parse_args(arguments)


def start(options: argparse.Namespace) -> Training:
    """A new training, or the one of the checkpoint."""
    if options.resume is None:
        given = {
            name: default if getattr(options, name) is None else getattr(options, name)
            for name, default in DEFAULTS.items()
        }
        return Training(**given)
    try:
        training = Training.load(options.resume, options.learning_rate)
    except LOAD_ERRORS as error:
        raise ExampleError(f"cannot resume from {options.resume}: {error}") from None
    for name in ("batch_size", "seed"):
        given, kept = getattr(options, name), getattr(training, name)
        if given not in (None, kept):
            raise ExampleError(
                f"{options.resume} was made with --{name.replace('_', '-')} {kept}, "
                f"not {given}"
            )
    return training


def train(
    training: Training, digits: Digits, test: Digits, epochs: int, save: Path | None
) -> float:
    """Go on to that many epochs; the seconds that steps took."""
    step = training.compiled_step()
    steps = digits.labels.shape[0] // training.batch_size
    seconds = 0.0
    accuracy = training.accuracy(test)
    with tqdm(
        total=epochs * steps,
        initial=training.epoch * steps,
        desc="training",
        unit="step",
        file=sys.stderr,
    ) as bar:
        while training.epoch < epochs:
            begin = time.perf_counter()
            for batch in batches(
                digits, training.batch_size, training.seed, training.epoch
            ):
                training.losses.append(step(batch).item())
                bar.update()
            training.epoch += 1
            seconds += time.perf_counter() - begin
            accuracy = training.accuracy(test)
            bar.set_postfix(loss=f"{training.losses[-1]:.3f}", test=f"{accuracy:.3f}")
            if save is not None:
                write(training, save)
    return seconds


def write(training: Training, file: Path) -> None:
    try:
        training.save(file)
    except (OSError, RuntimeError) as error:
        raise ExampleError(f"cannot write {file}: {error}") from None


def plot(losses: list[float], steps_an_epoch: int, file: Path) -> None:
    """The loss of every step, and its mean over each epoch."""
    from matplotlib.figure import Figure  # takes a second that others need not wait

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogy(range(1, len(losses) + 1), losses, linewidth=0.6, label="step")
    ends = range(steps_an_epoch, len(losses) + 1, steps_an_epoch)
    means = [sum(losses[end - steps_an_epoch : end]) / steps_an_epoch for end in ends]
    axes.semilogy(list(ends), means, label="mean of an epoch")
    axes.set(xlabel="step", ylabel="cross entropy", title="Handwritten digits")
    axes.legend()
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise ExampleError(f"cannot write {file}: {error}") from None


def run(options: argparse.Namespace) -> None:
    use_device(options.device)
    digits, test = load()
    training = start(options)
    count = digits.labels.shape[0]
    if training.batch_size > count:
        raise ExampleError(
            f"--batch-size {training.batch_size} is more than the {count} images"
        )
    done = len(training.losses)
    seconds = train(training, digits, test, options.epochs, options.save)
    if options.plot is not None:
        plot(training.losses, count // training.batch_size, options.plot)
    steps = len(training.losses) - done
    speed = f", {steps / seconds:.0f} steps/s" if steps else ""
    print(
        f"epoch {training.epoch}, step {len(training.losses)}: "
        f"test accuracy {training.accuracy(test):.4f}{speed}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit status."""
    return exit_status("train_digits", run, parse_arguments(arguments))


if __name__ == "__main__":
    sys.exit(main())
