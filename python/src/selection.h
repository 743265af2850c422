// What an index expression selects: Python objects sorted into one entry an
// axis, with bounds checked and masks turned into positions.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "mlx/array.h"

namespace mlx::python {

namespace nb = nanobind;
namespace mx = mlx::core;

/// One part of an index expression as it was written.
struct IndexPart {
  enum class Kind { integer, slice, new_axis, ellipsis, array };
  Kind kind;
  /// The integer.
  int64_t at = 0;
  /// The slice: parts that were None have no value.
  std::optional<int64_t> start = {};
  std::optional<int64_t> stop = {};
  std::optional<int64_t> step = {};
  /// Integers, or a mask when of type bool.
  std::optional<mx::array> values = {};

  bool is_mask() const;
  /// The number of axes it is about.
  int axes() const;
};

/// Raises std::invalid_argument for objects that are no index.
std::vector<IndexPart> index_parts(nb::handle index);

struct Entry {
  enum class Kind { at, range, new_axis, indices };
  Kind kind;
  int axis = -1;
  /// The position, or a range in NumPy's sense with negatives resolved: stop
  /// is -1 where a negative step runs to the first element.
  mx::ShapeElem start = 0;
  mx::ShapeElem stop = 0;
  mx::ShapeElem step = 1;
  std::optional<mx::array> indices;

  /// The number of elements of a range.
  mx::ShapeElem length() const;
  /// Whether it leaves an axis of `source` as it is.
  bool is_whole(const mx::array& source) const;
  /// Whether it takes part in the common shape of index arrays, as integers
  /// do beside arrays.
  bool is_advanced() const { return kind == Kind::at || kind == Kind::indices; }
};

struct Selection {
  /// The array with axes merged where a mask covers several.
  mx::array source;
  /// Every axis of the source once, in order, and new axes between.
  std::vector<Entry> entries;
  bool has_indices = false;

  /// The common shape of the index arrays.
  mx::Shape index_shape() const;
  /// Whether the index arrays, and integers beside them, follow one another.
  bool is_side_by_side() const;
  /// Where the axes of the index arrays stand among those of the ranges: at
  /// the first of them when they stand side by side, else in front.
  int index_position() const;
  /// The shape of what is selected.
  mx::Shape shape() const;
  /// Positions of the new axes in that shape.
  std::vector<int> new_axes() const;
};

/// Raises std::invalid_argument for too many indices and two ellipses,
/// std::out_of_range for integers out of range. Masks are computed.
Selection select(const mx::array& a, const std::vector<IndexPart>& parts);

}  // namespace mlx::python
