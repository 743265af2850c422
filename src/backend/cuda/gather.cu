// Reading slices at positions that index arrays give. One kernel for all: what
// differs is how wide the elements are in which slices can be copied. Whole
// rows of a table go in pieces of 16 bytes. Moves twice the bytes of the
// result, and the indices, which neighbouring threads share.
#include "backend/cuda/copy.h"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/gather.h"
#include "backend/cuda/positions.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
// Results of 2^31 elements and more are worth no second copy of long code.
template <typename Index>
constexpr int in_flight = sizeof(Index) == 4 ? 4 : 1;

// Element n of the result is element n % size of the slice of position
// n / size. A thread has several in flight, a grid apart.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads) gather_slices(
    const T* __restrict__ from,
    T* __restrict__ to,
    const __grid_constant__ Positions positions,
    const __grid_constant__ StridedAxes<1> slice,
    FastDivisor divide,
    uint64_t size,
    Index total) {
  constexpr int kInFlight = in_flight<Index>;
  Index step = Index(gridDim.x) * kThreads;
  Index first = Index(blockIdx.x) * kThreads + threadIdx.x;
  for (Index base = first; base < total; base += step * kInFlight) {
    T values[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      Index n = base + j * step;
      if (n < total) {
        Index p;
        if constexpr (sizeof(Index) == 4) {
          p = divide.quotient(n);
        } else {
          p = n / size;
        }
        int64_t at[1];
        slice.locate(static_cast<Index>(n - p * static_cast<Index>(size)), at);
        int64_t target;
        positions.locate(p, target);
        values[j] = from[target + at[0]];
      }
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      Index n = base + j * step;
      if (n < total) {
        to[n] = values[j];
      }
    }
  }
}

template <typename T>
void launch(
    const void* from,
    void* to,
    const Positions& positions,
    const SlicePlan& plan,
    Encoder& e) {
  auto slice = plan.reading();
  size_t size = plan.size();
  size_t total = size * static_cast<size_t>(positions.count);
  dim3 grid = grid_for(total, kThreads);
  size_t over = total + size_t(grid.x) * kThreads * in_flight<uint32_t>;
  bool is_small = fits_32_bits(over);
  FastDivisor divide(is_small ? static_cast<uint32_t>(size) : 1);
  auto run = [&](auto kernel) {
    e.launch(
        kernel,
        grid,
        kThreads,
        0,
        static_cast<const T*>(from),
        static_cast<T*>(to),
        positions,
        slice,
        divide,
        size,
        total);
  };
  if (is_small) {
    run(gather_slices<T, uint32_t>);
  } else {
    run(gather_slices<T, uint64_t>);
  }
}

}  // namespace

void read_slices(
    const void* from,
    void* to,
    Positions positions,
    SlicePlan slice,
    size_t itemsize,
    Encoder& e) {
  size_t width = slice.widen(itemsize, positions, {from, to});
  if (note_slice(from, to, positions, slice, width, e)) {
    return;
  }
  if (width == 16) {
    launch<uint4>(from, to, positions, slice, e);
    return;
  }
  visit_width(width, [&](auto tag) {
    launch<typename decltype(tag)::type>(from, to, positions, slice, e);
  });
}

void gather(
    const Gather& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  const array& a = inputs[0];
  const auto& [axes, slice_sizes] = op.params();
  IndexedBy by = indexed_by(
      "gather", inputs.data() + 1, inputs.size() - 1, axes, a, slice_sizes, e);
  read_slices(
      e.in(a),
      e.out(out),
      by.positions(),
      SlicePlan(slice_sizes, a.strides()),
      a.itemsize(),
      e);
}

// Inner axes along which the index stays the same are slices.
void gather_axis(
    const GatherAxis& op,
    const array& a,
    const array& indices,
    array& out,
    Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  int axis = op.params().axis;
  auto [by, slice] =
      along_axis("take_along_axis", a, nullptr, indices, axis, e);
  read_slices(e.in(a), e.out(out), by.positions(), slice, a.itemsize(), e);
}

}  // namespace mlx::core::cuda
