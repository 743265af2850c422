"""Putting the values of a tree into a module, for `Module.update` and its kin.

Written against plain dictionaries and lists, so that it needs no `Module`.
"""

from __future__ import annotations

from typing import Any, Callable, cast

import mlx.core as mx
from mlx.utils import tree_flatten


def _is_empty(value: Any) -> bool:
    return isinstance(value, (dict, list)) and not value


class Replace:
    """One update of a module from a tree.

    `fits` tells about an old and a new value: True, the new one replaces it;
    None, go into both; False, the new one does not belong there.
    """

    def __init__(
        self,
        op: str,
        noun: str,
        wanted: str,
        strict: bool,
        fits: Callable[[Any, Any], bool | None],
    ) -> None:
        self._op = f"[Module.{op}]"
        self._noun = noun
        self._wanted = wanted
        self._strict = strict
        self._fits = fits

    def into(self, target: Any, source: Any, path: str = "") -> None:
        if _is_empty(source):
            return
        if isinstance(source, dict) and isinstance(target, dict):
            items = cast("dict[str, Any]", source)
            for key, new in items.items():
                self._one(cast("dict[str, Any]", target), key, new, path)
        elif isinstance(source, list) and isinstance(target, list):
            for i, new in enumerate(cast("list[Any]", source)):
                self._one(cast("list[Any]", target), i, new, path)
        else:
            # Narrowing left unknown item types; only the class matters here.
            given = type(source).__name__  # pyright: ignore[reportUnknownArgumentType]
            self._refuse(
                f"wrong type at {path or 'the root'}: {given} for "
                f"{type(target).__name__}. It must be like the tree it updates."
            )

    def _one(self, target: Any, key: Any, new: Any, path: str) -> None:
        place = f"{path}.{key}" if path else str(key)
        if isinstance(target, list):
            length = len(cast("list[Any]", target))
            if key >= length:
                self._refuse(
                    f"list index out of range: {place!r}. "
                    f"The list of the module has {length} items."
                )
                return
        elif key not in target:
            self._refuse(
                f"no such {self._noun}: {place!r}. Names must be those of the module."
            )
            return
        fits = self._fits(target[key], new)
        if fits:
            target[key] = new
        elif fits is None:
            self.into(target[key], new, place)
        elif not _is_empty(new):
            self._refuse(
                f"wrong type for {self._noun} {place!r}: {type(new).__name__}. "
                f"It must be {self._wanted}."
            )

    def _refuse(self, what: str) -> None:
        if self._strict:
            raise ValueError(f"{self._op} {what}")


def check_weights(parameters: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise ValueError unless names and shapes are those of the parameters."""
    op = "[Module.load_weights]"
    known = cast("dict[str, mx.array]", tree_flatten(parameters, destination={}))
    for what, names in (
        ("parameters not in the module", sorted(given.keys() - known.keys())),
        ("parameters missing", sorted(known.keys() - given.keys())),
    ):
        if names:
            raise ValueError(
                f"{op} {len(names)} {what}: {', '.join(names)}. "
                "Pass strict=False to allow this."
            )
    for name, old in known.items():
        new = given[name]
        if not isinstance(new, mx.array):
            raise ValueError(
                f"{op} wrong type for {name!r}: {type(new).__name__}. "
                "It must be an array."
            )
        if new.shape != old.shape:
            raise ValueError(
                f"{op} wrong shape for {name!r}: {new.shape}. "
                f"The module has {old.shape}."
            )
