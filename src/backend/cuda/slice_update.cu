// Slices: writing moves the update's bytes alone, in one launch, when the
// source's memory can be taken over. Start positions that an array gives are
// read by the kernels of gather and scatter, as one position of a slice.
#include "backend/cuda/copy.h"
#include "backend/cuda/positions.h"
#include "backend/cuda/slice_update.h"

namespace mlx::core::cuda {

namespace {

// The one position where a slice begins: entry i of `start` counts along
// axes[i].
IndexedBy started_at(
    const char* op,
    const array& start,
    const std::vector<int>& axes,
    const array& indexed,
    const Shape& slice_size,
    Encoder& e) {
  IndexedBy by{op};
  if (axes.empty()) {
    return by;
  }
  by.fault = e.faults().index_site(op);
  int64_t step = start.ndim() ? start.strides(0) : 0;
  const char* first = e.in<char>(start);
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = axes[i];
    auto offset =
        static_cast<int64_t>(i) * step * static_cast<int64_t>(start.itemsize());
    by.entries.push_back(
        {first + offset,
         start.dtype(),
         {},
         indexed.shape(axis),
         slice_size[axis],
         indexed.strides(axis)});
  }
  return by;
}

}  // namespace

void slice_update(
    const SliceUpdate& op,
    const array& src,
    const array& update,
    array& out,
    Encoder& e) {
  start_from(src, out, e);
  if (update.size() == 0) {
    return;
  }
  const auto& [mode, slice] = op.params();
  Strides strides = out.strides();
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += slice.start[i] * strides[i];
    strides[i] *= slice.strides[i];
  }
  char* to = e.out<char>(out) + offset * static_cast<int64_t>(out.itemsize());
  if (mode == Accumulate::none) {
    copy_strided(
        e.in(update),
        update.strides(),
        to,
        strides,
        update.shape(),
        out.itemsize(),
        e);
  } else {
    accumulate_slices(
        mode,
        out.dtype(),
        e.in(update),
        to,
        IndexedBy{"slice_update"}.positions(),
        SlicePlan(update.shape(), strides, update.strides()),
        e);
  }
}

void dynamic_slice(
    const DynamicSlice& op,
    const array& a,
    const array& start,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  const auto& [axes, slice_size] = op.params();
  read_slices(
      e.in(a),
      e.out(out),
      started_at("slice", start, axes, a, slice_size, e).positions(),
      SlicePlan(slice_size, a.strides()),
      a.itemsize(),
      e);
}

void dynamic_slice_update(
    const DynamicSliceUpdate& op,
    const array& src,
    const array& update,
    const array& start,
    array& out,
    Encoder& e) {
  start_from(src, out, e);
  if (update.size() == 0) {
    return;
  }
  IndexedBy by = started_at(
      "slice_update", start, op.params().axes, out, update.shape(), e);
  Positions positions = by.positions();
  write_slices(
      e.in(update),
      e.out(out),
      positions,
      SlicePlan(update.shape(), out.strides(), update.strides()),
      {positions, 1},
      out.itemsize(),
      e);
}

}  // namespace mlx::core::cuda
