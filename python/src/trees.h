// Trees of Python objects: lists, tuples and dicts, nested; anything else is
// a leaf. mx.random.state counts as a list of one array.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <vector>

#include "mlx/array.h"

namespace mlx::python {

/// The arrays among the leaves, in order; other leaves are passed over.
std::vector<core::array> tree_arrays(nanobind::handle tree);

/// New containers with fn(leaf) in place of each leaf. Containers are plain
/// lists and dicts; tuples keep their type.
nanobind::object map_tree(
    nanobind::handle tree,
    const std::function<nanobind::object(nanobind::handle)>& fn);

/// The items in a tuple of the type that `tuple` has.
nanobind::object tuple_like(
    nanobind::handle tuple, const nanobind::list& items);

/// What leaves besides arrays do: stay in the structure, or raise
/// std::invalid_argument.
enum class OtherLeaves { keep, refuse };

/// A tree taken apart: its arrays, and its structure with a mark in place of
/// each.
struct FlatTree {
  std::vector<core::array> arrays;
  nanobind::object structure;
};

/// Takes a tree apart; `op` is named in the error.
FlatTree flatten_tree(
    nanobind::handle tree, OtherLeaves others, const char* op);

/// Whether a leaf of a structure stands for an array.
bool is_mark(nanobind::handle leaf);

/// A structure with arrays from `next` on in place of the marks; `next` moves
/// behind those used.
nanobind::object fill_tree(
    nanobind::handle structure,
    const std::vector<core::array>& arrays,
    size_t& next);
nanobind::object fill_tree(
    nanobind::handle structure, const std::vector<core::array>& arrays);

}  // namespace mlx::python
