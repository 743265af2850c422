"""Cases with empty operands, made from the others."""

from __future__ import annotations

from collections.abc import Iterator

from .row import Case

# What the interface refuses to do with nothing, and cases whose static arguments
# ask for what an empty array has not.
REFUSE_EMPTY = {
    "median",
    "logsumexp",
    "argmax",
    "argmin",
    "random.categorical",
    "kron",
    "hadamard_transform",
}
TIED = {"slice", "unflatten", "rope.freqs"}


def emptied(case: Case) -> Iterator[Case]:
    """The case with each of its lengths replaced by zero, wherever it stands."""
    for length in sorted({n for shape in case.shapes for n in shape if n > 1}):
        shapes = [tuple(0 if n == length else n for n in s) for s in case.shapes]
        static = dict(case.static)
        if isinstance(static.get("shape"), tuple):
            static["shape"] = tuple(0 if n == length else n for n in static["shape"])
        yield Case(tuple(shapes), static)
