// Operations that combine the elements along axes. Both keep the axes, with
// length 1; the public functions squeeze them.
#pragma once

#include "ops/reduce_type.h"
#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Axes counted from 0 and sorted. `dtype` is that of the result: bool for all
/// and any, else the input's or what reduce_accumulator gives for it.
struct ReduceParams {
  ReduceType type;
  std::vector<int> axes;
  Dtype dtype;
  bool operator==(const ReduceParams& o) const {
    return type == o.type && axes == o.axes && dtype == o.dtype;
  }
};

class Reduce final : public Structured<Reduce, ReduceParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Reduce";
  MLX_ALL_RULES()
};

struct ArgReduceParams {
  bool largest;
  int axis;
  bool operator==(const ArgReduceParams&) const = default;
};

/// The position (uint32) of the first largest or smallest element.
class ArgReduce final : public Structured<ArgReduce, ArgReduceParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "ArgReduce";
  MLX_ALL_RULES()
};

/// The axes of an array of `ndim` axes, all when `axes` is null, counted from
/// 0, sorted and without repetition. `check` is checked_axis or
/// checked_reduction_axis.
std::vector<int> reduction_axes(
    const char* op,
    const std::vector<int>& axes,
    int ndim,
    int (*check)(std::string_view, int, int));

/// All axes of `a`.
std::vector<int> all_axes(const array& a);

/// `x` with `axes` moved to the end and merged into one; `restore` undoes it
/// for an array of that shape.
array axes_to_last(const array& x, const std::vector<int>& axes, Stream s);
array axes_from_last(
    const array& x, const std::vector<int>& axes, const Shape& shape, Stream s);

}  // namespace mlx::core
