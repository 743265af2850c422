// Writing slices at fixed positions, reading and writing them at positions
// that an array gives.
#pragma once

#include "ops/indexing.h"
#include "ops/rules.h"
#include "ops/structured.h"
#include "ops/views.h"

namespace mlx::core {

struct SliceUpdateParams {
  Accumulate mode;
  SliceParams slice;
  bool operator==(const SliceUpdateParams&) const = default;
};

/// Inputs: source, update of the slice's shape and the source's type.
class SliceUpdate final : public Structured<SliceUpdate, SliceUpdateParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "SliceUpdate";
  MLX_ALL_RULES()
};

/// `axes` are those that the start array has an entry for.
struct DynamicSliceParams {
  std::vector<int> axes;
  Shape slice_size;
  bool operator==(const DynamicSliceParams&) const = default;
};

/// Inputs: array, start.
class DynamicSlice final : public Structured<DynamicSlice, DynamicSliceParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "DynamicSlice";
  MLX_ALL_RULES()
};

/// Inputs: source, update with as many axes, start.
class DynamicSliceUpdate final
    : public Structured<DynamicSliceUpdate, AxesParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "DynamicSliceUpdate";
  MLX_ALL_RULES()
};

/// A normalised slice without the axes `dropped` (sorted, of length 1 in it):
/// what indexing with ranges and integers reads.
array take_slice(
    const array& a,
    const SliceParams& slice,
    const std::vector<int>& dropped,
    Stream s);

/// `src` with `update`, broadcast and cast, at a normalised slice.
array slice_update(
    const array& src,
    const array& update,
    SliceParams slice,
    Accumulate mode,
    Stream s);

}  // namespace mlx::core
