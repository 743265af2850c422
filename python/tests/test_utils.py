"""mlx.utils: functions on trees."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx.utils import (
    tree_flatten,
    tree_map,
    tree_map_with_path,
    tree_merge,
    tree_reduce,
    tree_unflatten,
)

Point = namedtuple("Point", ["x", "y"])
TREE = {"a": [1, (2, 3)], "b": 4}


def test_map_keeps_the_kind_of_every_branch() -> None:
    assert tree_map(lambda x: -x, TREE) == {"a": [-1, (-2, -3)], "b": -4}
    assert tree_map(lambda x: x + 1, Point(1, 2)) == Point(2, 3)
    empty: Any = {"a": [], "b": (), "c": {}}
    assert tree_map(lambda x: x, empty) == empty
    assert tree_map(lambda x: x, None) is None


def test_map_over_several_trees() -> None:
    assert tree_map(lambda x, y: x + y, TREE, TREE) == {"a": [2, (4, 6)], "b": 8}
    # The first tree decides; the others may have more, and any value at a leaf.
    assert tree_map(lambda x, y: y, {"a": 1}, {"a": [5], "c": 7}) == {"a": [5]}


@pytest.mark.parametrize(
    ("tree", "other"), [([1, 2], [1]), ({"a": 1}, {"b": 1}), ([1], 2), ([[1]], [None])]
)
def test_map_over_trees_that_differ(tree: Any, other: Any) -> None:
    with pytest.raises(ValueError, match=r"^\[tree_map\] the trees differ"):
        tree_map(lambda x, y: x, tree, other)
    with pytest.raises(ValueError, match=r"^\[tree_map_with_path\] the trees differ"):
        tree_map_with_path(lambda p, x, y: x, tree, other)


def test_map_stops_at_chosen_leaves() -> None:
    def is_pair(x: Any) -> bool:
        return isinstance(x, tuple)

    assert tree_map(lambda x: 0, TREE, is_leaf=is_pair) == {"a": [0, 0], "b": 0}


def test_map_with_path() -> None:
    paths = tree_map_with_path(lambda p, x: p, TREE)
    assert paths == {"a": ["a.0", ("a.1.0", "a.1.1")], "b": "b"}
    assert tree_map_with_path(lambda p, x: p, [1], path="root") == ["root.0"]
    assert tree_map_with_path(lambda p, x: p, 1) is None
    assert tree_map_with_path(lambda p, x, y: (p, x, y), [1], [2]) == [("0", 1, 2)]


def test_flatten() -> None:
    pairs = [("a.0", 1), ("a.1.0", 2), ("a.1.1", 3), ("b", 4)]
    assert tree_flatten(TREE) == pairs
    assert tree_flatten({"a": [], "b": {}}) == []
    assert tree_flatten(5) == [("", 5)]
    assert tree_flatten([1], prefix=".model") == [("model.0", 1)]
    assert tree_flatten([None]) == [("0", None)]
    assert tree_flatten(TREE, is_leaf=lambda x: isinstance(x, list)) == [
        ("a", [1, (2, 3)]),
        ("b", 4),
    ]


def test_flatten_into_a_destination() -> None:
    table = {"z": 0}
    assert tree_flatten({"a": [1]}, destination=table) is table
    assert table == {"z": 0, "a.0": 1}
    pairs: list[Any] = [("z", 0)]
    assert tree_flatten({"a": [1]}, destination=pairs) is pairs
    assert pairs == [("z", 0), ("a.0", 1)]
    with pytest.raises(ValueError, match=r"^\[tree_flatten\].*tuple"):
        tree_flatten({}, destination=())  # type: ignore[arg-type]


def test_unflatten() -> None:
    assert tree_unflatten({"a.0": 1, "b": 2}) == {"a": [1], "b": 2}
    assert tree_unflatten([("", 5)]) == 5
    assert tree_unflatten([]) == []
    assert tree_unflatten([("a.2", 1)]) == {"a": [{}, {}, 1]}
    assert tree_unflatten([("1", "b"), ("0", "a")]) == ["a", "b"]
    assert tree_unflatten([("0", 1), ("x", 2)]) == {"0": 1, "x": 2}
    assert tree_unflatten([("-1", 1)]) == {"-1": 1}


def test_unflatten_refuses_what_is_no_tree() -> None:
    with pytest.raises(ValueError, match=r"^\[tree_unflatten\] a path is given twice"):
        tree_unflatten([("a.b", 1), ("a.b", 2)])
    with pytest.raises(ValueError, match=r"^\[tree_unflatten\] a list has too many"):
        tree_unflatten([("4000000000", 1)])


words = st.text("abcxyz", min_size=1, max_size=4)
trees = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(words, inner, min_size=1, max_size=4)
    ),
    max_leaves=20,
)


@settings(derandomize=True, max_examples=200)
@given(trees)
def test_unflatten_undoes_flatten(tree: Any) -> None:
    assert tree_unflatten(tree_flatten(tree)) == tree
    assert tree_unflatten(tree_flatten(tree, destination={})) == tree


@settings(derandomize=True, max_examples=100)
@given(trees)
def test_map_and_reduce_see_the_leaves_in_order(tree: Any) -> None:
    leaves = [leaf for _, leaf in tree_flatten(tree)]
    seen: list[int] = []
    tree_map(seen.append, tree)
    assert seen == leaves
    assert tree_reduce(lambda all_, x: [*all_, x], tree, []) == leaves


def test_reduce() -> None:
    assert tree_reduce(lambda a, x: a + x, TREE) == 10
    assert tree_reduce(lambda a, x: a + x, TREE, 100) == 110
    assert tree_reduce(lambda a, x: a + x, []) is None
    assert tree_reduce(lambda a, x: a + x, {}, 7) == 7
    rows = [[1, 2], [3]]
    longest = tree_reduce(
        lambda a, x: max(a, len(x)), rows, 0, is_leaf=lambda x: x in rows
    )
    assert longest == 2


def test_merge() -> None:
    assert tree_merge({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert tree_merge([{"a": 1}], [{"b": 1}, 3]) == [{"a": 1, "b": 1}, 3]
    assert tree_merge({"a": None}, {"a": 3}) == {"a": 3}
    assert tree_merge({"a": 3}, {"a": []}) == {"a": 3}
    assert tree_merge({"a": 1}, {"a": 2}, lambda x, y: (x, y)) == {"a": (1, 2)}
    first = {"a": {"b": 1}}
    assert tree_merge(first, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert first == {"a": {"b": 1}}


@pytest.mark.parametrize("other", [{"a": 2}, {"a": [2]}, {"a": {"b": 2}}])
def test_merge_refuses_two_values_at_one_place(other: Any) -> None:
    with pytest.raises(ValueError, match=r"^\[tree_merge\] both trees have a value"):
        tree_merge({"a": 1}, other)


@pytest.mark.parametrize(("one", "other"), [({}, []), ([], ()), ((), {})])
def test_merge_of_empty_branches(one: Any, other: Any) -> None:
    with pytest.raises(ValueError, match="empty containers differ"):
        tree_merge({"a": one}, {"a": other})
    assert tree_merge({"a": one}, {"a": one}) == {"a": one}
    assert tree_merge({"a": one}, {"a": [1]}) == {"a": [1]}
    assert tree_merge({"a": None}, {"a": one}) == {"a": one}
