// Sorting along any axis, by rows that lie one after the other; and binary
// search.
#include "backend/cuda/copy.h"
#include "backend/cuda/device/sort_keys.cuh"
#include "backend/cuda/sort.h"
#include "backend/cuda/sort_rows.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;

// A thread a value; the sequence's middle elements stay in the caches.
__global__ void __launch_bounds__(kThreads) search_sorted_values(
    Dtype::Val type,
    const void* sequence,
    int64_t stride,
    int64_t length,
    const void* values,
    uint32_t* out,
    int64_t count,
    bool right) {
  int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    uint64_t key = load_key(values, type, i, true);
    int64_t low = 0;
    int64_t high = length;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      uint64_t there = load_key(sequence, type, middle * stride, true);
      if (there < key || (right && there == key)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    out[i] = static_cast<uint32_t>(low);
  }
}

void sort_rows(const SortedRows& rows, Encoder& e) {
  if (!sort_short_rows(rows, e)) {
    sort_long_rows(rows, e);
  }
}

template <typename T>
T with_last(T values, int axis) {
  auto moved = values[axis];
  values.erase(values.begin() + axis);
  values.push_back(moved);
  return values;
}

void sort_along(
    const array& x, array& out, int axis, bool wants_indices, Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  int64_t length = x.shape(axis);
  auto count = static_cast<int64_t>(x.size()) / length;
  SortedRows rows{nullptr, nullptr, x.dtype(), count, length, wants_indices};
  if (out.strides(axis) == 1 || length == 1) {
    array dense = row_contiguous(x, e);
    rows.from = e.in(dense);
    rows.to = e.out(out);
    sort_rows(rows, e);
    return;
  }
  // Along another axis: rows are brought together and taken apart again.
  Shape shape = with_last(x.shape(), axis);
  array moved = e.temporary(shape, x.dtype());
  array sorted = e.temporary(shape, out.dtype());
  copy_strided(
      e.in(x),
      with_last(x.strides(), axis),
      e.out(moved),
      moved.strides(),
      shape,
      x.itemsize(),
      e);
  rows.from = e.in(moved);
  rows.to = e.out(sorted);
  sort_rows(rows, e);
  copy_strided(
      e.in(sorted),
      sorted.strides(),
      e.out(out),
      with_last(out.strides(), axis),
      shape,
      out.itemsize(),
      e);
}

}  // namespace

void sort(const Sort& op, const array& x, array& out, Encoder& e) {
  sort_along(x, out, op.params().axis, false, e);
}

void arg_sort(const ArgSort& op, const array& x, array& out, Encoder& e) {
  sort_along(x, out, op.params().axis, true, e);
}

void search_sorted(
    const SearchSorted& op,
    const array& sequence,
    const array& values,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  if (sequence.size() == 0) {
    e.fill_bytes(e.out(out), 0, out.nbytes());
    return;
  }
  array dense = row_contiguous(values, e);
  e.launch(
      search_sorted_values,
      grid_for(out.size(), kThreads),
      kThreads,
      0,
      values.dtype().val(),
      e.in(sequence),
      sequence.strides(0),
      sequence.size(),
      e.in(dense),
      e.out<uint32_t>(out),
      out.size(),
      op.params().right);
}

}  // namespace mlx::core::cuda
