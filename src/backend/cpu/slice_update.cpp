// Slices: reading is a view; writing moves the update's bytes alone when the
// source's memory can be taken over.
#include "backend/cpu/slice_update.h"

#include "backend/common/view_plan.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/in_place.h"
#include "backend/cpu/index_reader.h"

namespace mlx::core::cpu {

namespace {

// The offset of a slice of this size at the start that an array gives.
int64_t start_offset(
    const char* op,
    const array& start,
    const std::vector<int>& axes,
    const Shape& shape,
    const Strides& strides,
    const Shape& slice_size) {
  int64_t offset = 0;
  int64_t step = start.ndim() ? start.strides(0) : 0;
  bool check = check_indices();
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = axes[i];
    int64_t length = shape[axis];
    add_offsets(
        start.data<char>() + static_cast<int64_t>(i) * step *
                                 static_cast<int64_t>(start.itemsize()),
        start.dtype(),
        0,
        1,
        {op, length, length - slice_size[axis], strides[axis]},
        Outside::clamp,
        check,
        &offset);
  }
  return offset;
}

}  // namespace

void slice_update(
    const SliceUpdate& op, const array& src, const array& update, array& out) {
  start_from(src, out);
  const auto& [mode, slice] = op.params();
  Strides strides = out.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += slice.start[i] * strides[i];
    strides[i] *= slice.strides[i];
  }
  char* to = out.data<char>() + offset * static_cast<int64_t>(out.itemsize());
  if (mode == Accumulate::none) {
    copy_strided(
        update.data<char>(),
        update.strides(),
        to,
        strides,
        update.shape(),
        out.itemsize());
  } else {
    combine_strided(
        find_combine(mode, out.dtype()),
        update.data<char>(),
        update.strides(),
        to,
        strides,
        update.shape(),
        out.itemsize());
  }
}

void dynamic_slice(
    const DynamicSlice& op, const array& a, const array& start, array& out) {
  const auto& [axes, slice_size] = op.params();
  int64_t offset =
      out.size() == 0
          ? 0
          : start_offset(
                "slice", start, axes, a.shape(), a.strides(), slice_size);
  share_view(a, {a.strides(), offset}, out);
}

void dynamic_slice_update(
    const DynamicSliceUpdate& op,
    const array& src,
    const array& update,
    const array& start,
    array& out) {
  start_from(src, out);
  if (update.size() == 0) {
    return;
  }
  int64_t offset = start_offset(
      "slice_update",
      start,
      op.params().axes,
      out.shape(),
      out.strides(),
      update.shape());
  copy_strided(
      update.data<char>(),
      update.strides(),
      out.data<char>() + offset * static_cast<int64_t>(out.itemsize()),
      out.strides(),
      update.shape(),
      out.itemsize());
}

}  // namespace mlx::core::cpu
