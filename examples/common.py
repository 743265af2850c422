"""What the examples share: arguments, devices, and how a program ends."""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import Any, Callable

import mlx.core as mx

DEVICES = {"cpu": mx.cpu, "gpu": mx.gpu}

# What a file with nonsense in it can lead to.
LOAD_ERRORS = (
    ArithmeticError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class ExampleError(Exception):
    """Ends the program with one line on standard error."""


def number(kind: type, is_valid: Callable[[Any], bool], range_text: str) -> Any:
    """For argparse: a finite number in a range."""

    def parse(text: str) -> Any:
        value = kind(text)
        if not math.isfinite(value) or not is_valid(value):
            raise argparse.ArgumentTypeError(f"{text} is not {range_text}")
        return value

    parse.__name__ = kind.__name__  # argparse names it when `kind` fails
    return parse


positive = number(int, lambda n: n >= 1, "at least 1")
rate = number(float, lambda r: r > 0, "positive")
seed = number(int, lambda s: 0 <= s < 2**64, "from 0 to 2^64 - 1")


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", choices=DEVICES, help="where to compute (default: gpu if usable)"
    )


def use_device(name: str | None) -> None:
    """Compute there from now on; None changes nothing."""
    if name is None:
        return
    try:
        mx.set_default_device(DEVICES[name])
    except ValueError:
        raise ExampleError(f"no {name} here") from None


def exit_status(
    program: str,
    run: Callable[[argparse.Namespace], None],
    options: argparse.Namespace,
) -> int:
    """Run a program; errors that it foresees are one line on standard error."""
    try:
        run(options)
    except ExampleError as error:
        print(f"{program}:", " ".join(str(error).split()), file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has gone; keep Python from writing to it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
