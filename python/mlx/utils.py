"""Trees: nested lists, tuples and dictionaries with values at the leaves.

Parameters, gradients and optimizer states are such trees. A leaf is whatever is
not a list, tuple or dict. Paths join dictionary keys and list positions with
dots, for example ``layers.0.weight``.
"""

from __future__ import annotations

from typing import Any, Callable, cast

_NOTHING: Any = object()
# Stored text like "layers.999999999.w" must not make a list of that length.
_LONGEST_GAP = 1 << 20

Pairs = list[tuple[str, Any]]


def _is_inner(tree: Any, is_leaf: Callable[[Any], bool] | None) -> bool:
    if is_leaf is not None and is_leaf(tree):
        return False
    return isinstance(tree, (list, tuple, dict))


def _like(tree: Any, items: list[Any]) -> Any:
    """A list, tuple or named tuple as `tree`, made of `items`."""
    if isinstance(tree, list):
        return items
    kind = cast("type[Any]", type(tree))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _child(op: str, tree: Any, key: Any, path: str) -> Any:
    """The child of one of the further trees that stands at the same place."""
    try:
        return tree[key]
    except (KeyError, IndexError, TypeError):
        place = path or "the root"
        raise ValueError(
            f"[{op}] the trees differ: a further tree has no {key!r} at {place}. "
            "Every tree must have all branches of the first."
        ) from None


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def tree_map(
    fn: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Apply a function to every leaf.

    Args:
        fn: Called with a leaf of `tree` and the values of `rest` at its place.
        tree: The tree that sets the shape of the result.
        rest: Further trees that have at least the branches of `tree`; at a
            leaf of `tree` they may hold any value.
        is_leaf: Subtrees for which it is true are leaves too.

    Returns:
        A tree of the same shape that holds the results.

    Raises:
        ValueError: If one of `rest` lacks a branch of `tree`.

    Example:
        >>> from mlx.utils import tree_map
        >>> tree_map(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
        {'a': [11, 22]}
    """
    if not _is_inner(tree, is_leaf):
        return fn(tree, *rest)
    if isinstance(tree, dict):
        branches = cast("dict[Any, Any]", tree)
        return {
            key: tree_map(
                fn,
                value,
                *(_child("tree_map", r, key, "") for r in rest),
                is_leaf=is_leaf,
            )
            for key, value in branches.items()
        }
    mapped = [
        tree_map(
            fn,
            value,
            *(_child("tree_map", r, i, "") for r in rest),
            is_leaf=is_leaf,
        )
        for i, value in enumerate(tree)
    ]
    return _like(tree, mapped)


def tree_map_with_path(
    fn: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    path: Any | None = None,
) -> Any:
    """Apply a function to the path and value of every leaf.

    Args:
        fn: Called with the dotted path, the leaf and the values of `rest`.
        tree: The tree that sets the shape of the result.
        rest: Further trees that have at least the branches of `tree`.
        is_leaf: Subtrees for which it is true are leaves too.
        path: What the paths begin with. The path of a lone leaf is `path`.

    Returns:
        A tree of the same shape that holds the results.

    Raises:
        ValueError: If one of `rest` lacks a branch of `tree`.

    Example:
        >>> from mlx.utils import tree_map_with_path
        >>> tree_map_with_path(lambda p, x: f"{p}={x}", {"a": [1, (2,)]})
        {'a': ['a.0=1', ('a.1.0=2',)]}
    """
    if not _is_inner(tree, is_leaf):
        return fn(path, tree, *rest)

    def at(key: Any, value: Any) -> Any:
        below = (_child("tree_map_with_path", r, key, path or "") for r in rest)
        place = _join(path or "", key)
        return tree_map_with_path(fn, value, *below, is_leaf=is_leaf, path=place)

    if isinstance(tree, dict):
        branches = cast("dict[Any, Any]", tree)
        return {key: at(key, value) for key, value in branches.items()}
    return _like(tree, [at(i, value) for i, value in enumerate(tree)])


def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Callable[[Any], bool] | None = None,
    destination: Pairs | dict[str, Any] | None = None,
) -> Pairs | dict[str, Any]:
    """List the leaves with their paths.

    Args:
        tree: The tree. Empty branches leave no trace.
        prefix: Text put before each path, joined with a dot. Its first
            character is dropped, so write ``".model"`` for ``model``.
        is_leaf: Subtrees for which it is true are leaves too.
        destination: A list that is extended, or a dictionary that is updated,
            instead of a new list.

    Returns:
        `destination` or a list of (path, value) pairs. The path of a lone leaf
        is the empty text.

    Raises:
        ValueError: If `destination` is neither a list nor a dictionary.

    Example:
        >>> from mlx.utils import tree_flatten
        >>> tree_flatten({"a": [1, (2, 3)], "b": 4})
        [('a.0', 1), ('a.1.0', 2), ('a.1.1', 3), ('b', 4)]
        >>> tree_flatten({"a": [1]}, destination={})
        {'a.0': 1}
    """
    if destination is None:
        destination = []
    if isinstance(destination, list):
        pairs = destination

        def add(path: str, value: Any) -> None:
            pairs.append((path[1:], value))
    elif isinstance(destination, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        table = destination

        def add(path: str, value: Any) -> None:
            table[path[1:]] = value
    else:
        raise ValueError(
            "[tree_flatten] destination is of the wrong kind: "
            f"{type(destination).__name__}. Give a list, a dict or None."
        )
    _walk(tree, prefix, is_leaf, add)
    return destination


def _walk(
    tree: Any,
    path: str,
    is_leaf: Callable[[Any], bool] | None,
    visit: Callable[[str, Any], None],
) -> None:
    """Call `visit` with the path, each part led by a dot, and value of leaves."""
    if not _is_inner(tree, is_leaf):
        visit(path, tree)
    elif isinstance(tree, dict):
        for key, value in cast("dict[Any, Any]", tree).items():
            _walk(value, f"{path}.{key}", is_leaf, visit)
    else:
        for i, value in enumerate(tree):
            _walk(value, f"{path}.{i}", is_leaf, visit)


def tree_unflatten(tree: Pairs | dict[str, Any]) -> Any:
    """Rebuild the tree from paths and values.

    A branch whose keys are all numbers becomes a list, any other a dictionary.
    Positions of a list that no path names hold an empty dictionary.

    Args:
        tree: (path, value) pairs or a dictionary from path to value.

    Returns:
        The tree, the lone leaf when the only path is empty, and an empty list
        when there are no paths.

    Raises:
        ValueError: If a path is given twice, or a list would have a huge gap.

    Example:
        >>> from mlx.utils import tree_unflatten
        >>> tree_unflatten([("a.0", 1), ("a.1.0", 2), ("b", 3)])
        {'a': [1, [2]], 'b': 3}
    """
    pairs = list(tree.items()) if isinstance(tree, dict) else list(tree)
    if len(pairs) == 1 and pairs[0][0] == "":
        return pairs[0][1]
    return _grow([(path, path, value) for path, value in pairs])


def _grow(entries: list[tuple[str, str, Any]]) -> Any:
    """A branch from (rest of the path, whole path, value) entries.

    An empty rest means that the value itself stands here.
    """
    branches: dict[str, list[tuple[str, str, Any]]] = {}
    for rest, path, value in entries:
        key, _, below = rest.partition(".")
        branches.setdefault(key, []).append((below, path, value))
    built: dict[str, Any] = {}
    for key, below in branches.items():
        if len(below) == 1 and below[0][0] == "":
            built[key] = below[0][2]
            continue
        ends = [path for rest, path, _ in below if rest == ""]
        if len(ends) > 1:
            raise ValueError(
                f"[tree_unflatten] a path is given twice: {ends[0]!r}. "
                "Every path must be different."
            )
        built[key] = _grow(below)
    return _as_list(built) if all(map(_is_position, built)) else built


def _is_position(key: str) -> bool:
    return key.isascii() and key.isdecimal() and str(int(key)) == key


def _as_list(built: dict[str, Any]) -> list[Any]:
    length = max((int(key) + 1 for key in built), default=0)
    if length > len(built) + _LONGEST_GAP:
        raise ValueError(
            f"[tree_unflatten] a list has too many gaps: {len(built)} items, last "
            f"position {length - 1}. At most {_LONGEST_GAP} may be missing."
        )
    return [built.get(str(i), {}) for i in range(length)]


def tree_reduce(
    fn: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Fold the leaves into one value, from first to last.

    Args:
        fn: Called with the value so far and the next leaf.
        tree: The tree.
        initializer: The value to begin with; None begins with the first leaf.
        is_leaf: Subtrees for which it is true are leaves too.

    Returns:
        The last value; `initializer` when there are no leaves.

    Example:
        >>> from mlx.utils import tree_reduce
        >>> tree_reduce(lambda total, x: total + x, {"a": [1, 2], "b": 3})
        6
    """
    total: Any = _NOTHING if initializer is None else initializer

    def visit(_: str, leaf: Any) -> None:
        nonlocal total
        total = leaf if total is _NOTHING else fn(total, leaf)

    _walk(tree, "", is_leaf, visit)
    return None if total is _NOTHING else total


def _is_absent(tree: Any) -> bool:
    return tree is None or (isinstance(tree, (list, tuple, dict)) and not tree)


def tree_merge(
    tree_a: Any,
    tree_b: Any,
    merge_fn: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Unite two trees.

    None and empty branches count as absent, but two empty branches must be of
    one type.

    Args:
        tree_a: The first tree.
        tree_b: The second tree.
        merge_fn: Gives the value where both trees have one.

    Returns:
        A new tree with the leaves of both.

    Raises:
        ValueError: If both trees have a value at one place and there is no
            `merge_fn`, or empty containers of different types.

    Example:
        >>> from mlx.utils import tree_merge
        >>> tree_merge({"a": [1]}, {"a": [{}, 2], "b": 3})
        {'a': [1, 2], 'b': 3}
    """
    empty = (tree_a is not None and tree_b is not None) and (
        _is_absent(tree_a) and _is_absent(tree_b)
    )
    if empty and type(tree_a) is not type(tree_b):
        one, other = type(tree_a).__name__, type(tree_b).__name__
        raise ValueError(
            f"[tree_merge] empty containers differ: {one} and {other}. "
            "Expected one type."
        )
    if _is_absent(tree_a):
        return tree_b
    if _is_absent(tree_b):
        return tree_a
    if isinstance(tree_a, dict) and isinstance(tree_b, dict):
        first, second = cast("dict[Any, Any]", tree_a), cast("dict[Any, Any]", tree_b)
        keys = [*first, *(key for key in second if key not in first)]
        return {
            key: tree_merge(first.get(key), second.get(key), merge_fn) for key in keys
        }
    if isinstance(tree_a, (list, tuple)) and isinstance(tree_b, (list, tuple)):
        left, right = cast("list[Any]", tree_a), cast("list[Any]", tree_b)
        both = range(max(len(left), len(right)))
        merged = [
            tree_merge(
                left[i] if i < len(left) else None,
                right[i] if i < len(right) else None,
                merge_fn,
            )
            for i in both
        ]
        return _like(left, merged)
    if merge_fn is None:
        # Narrowing left unknown item types; only the class matters here.
        one = type(tree_a).__name__  # pyright: ignore[reportUnknownArgumentType]
        other = type(tree_b).__name__
        raise ValueError(
            f"[tree_merge] both trees have a value at one place: {one} and {other}. "
            "Give merge_fn to choose between them."
        )
    return merge_fn(tree_a, tree_b)
