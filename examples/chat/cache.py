"""Keys and values of the tokens so far, so that a new one need not read them again.

All caches answer what `Block.attention` asks: the position of the first new token
(`length`), the keys and values to look at (`extend`), and which of them (`mask`).
"""

from __future__ import annotations

import mlx.core as mx


class Cache:
    """Keys and values (1, kv_heads, room, head_dims) of one layer.

    Room is made `step` positions at a time. Setting `length` lower forgets what
    came last.

    Attributes:
        length: How many positions are filled.
        rows: Keys and values, empty at first. The list stays the same one, so a
            compiled function can capture it.
    """

    step = 256

    def __init__(self) -> None:
        self.length = 0
        self.rows: list[mx.array] = []

    def extend(self, keys: mx.array, values: mx.array) -> list[mx.array]:
        """Append and return all positions so far."""
        start, end = self.length, self.length + keys.shape[2]
        if not self.rows:
            self.rows[:] = [new[..., :0, :] for new in (keys, values)]
        self.make_room(end)
        for rows, new in zip(self.rows, (keys, values)):
            rows[..., start:end, :] = new
        self.length = end
        return [rows[..., :end, :] for rows in self.rows]

    def make_room(self, length: int) -> None:
        """For so many positions in all; what is there stays."""
        room = -(-length // self.step) * self.step
        for i, old in enumerate(self.rows):
            if old.shape[2] < room:
                shape = (*old.shape[:2], room - self.length, old.shape[3])
                kept = old[..., : self.length, :]
                self.rows[i] = mx.concatenate([kept, mx.zeros(shape, old.dtype)], 2)

    def mask(self, length: int) -> str | None:
        return "causal" if length > 1 else None


class NoCache:
    """In place of a `Cache` where whole texts are read at once, any number of them."""

    length = 0

    def extend(self, keys: mx.array, values: mx.array) -> list[mx.array]:
        return [keys, values]

    def mask(self, length: int) -> str | None:
        return "causal" if length > 1 else None


class CacheAt:
    """A `Cache` at a position that only the device knows, for compiled steps.

    Shapes are the same at every position: attention has all the room before it,
    and a mask says what is filled.

    Args:
        cache: Has room at `position`; its rows are replaced.
        position: Where the next token goes, one int32.
        filled: For each position of the room, whether it counts.
    """

    def __init__(self, cache: Cache, position: mx.array, filled: mx.array) -> None:
        self.length = position
        self._rows = cache.rows
        self._filled = filled

    def extend(self, keys: mx.array, values: mx.array) -> list[mx.array]:
        for i, new in enumerate((keys, values)):
            self._rows[i] = mx.slice_update(self._rows[i], new, self.length, (2,))
        return self._rows

    def mask(self, length: int) -> mx.array:
        return self._filled
