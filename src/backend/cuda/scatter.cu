// Writing slices at positions. Of several updates of one slice the last one
// must stay, whatever the order in which threads come: with few positions
// each block looks whether a later one means the same slice; with many, a
// table says which position owns a slice, found by atomic maxima. Beside the
// indices, moves twice the bytes of the updates.
#include <algorithm>

#include "backend/cuda/dispatch.h"
#include "backend/cuda/positions.h"
#include "backend/cuda/scatter.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
// Results of 2^31 elements and more are worth no second copy of long code.
template <typename Index>
constexpr int in_flight = sizeof(Index) == 4 ? 2 : 1;
// Up to here every block reads all later indices.
constexpr int64_t kFewPositions = 1024;

// The table needs no initial values: whoever owns a slice at first is one of
// its positions.
template <typename Index>
__global__ void __launch_bounds__(kThreads) claim_slices(
    const __grid_constant__ Positions slots, Index* owner, bool is_last) {
  auto count = static_cast<Index>(slots.count);
  Index step = Index(gridDim.x) * kThreads;
  for (Index p = Index(blockIdx.x) * kThreads + threadIdx.x; p < count;
       p += step) {
    int64_t slot;
    if (!slots.locate(p, slot)) {
      continue;
    }
    if (!is_last) {
      owner[slot] = p;
    } else if (owner[slot] < p) {
      if constexpr (sizeof(Index) == 4) {
        atomicMax(owner + slot, p);
      } else {
        atomicMax(reinterpret_cast<unsigned long long*>(owner + slot), p);
      }
    }
  }
}

// As gather_slices, with the indexed array on the other side. `owner` is null
// where no two positions can mean the same slice.
template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads) scatter_slices(
    const T* __restrict__ from,
    T* __restrict__ to,
    const __grid_constant__ Positions positions,
    const __grid_constant__ StridedAxes<2> slice,
    FastDivisor divide,
    uint64_t size,
    Index total,
    const __grid_constant__ Positions slots,
    const Index* owner) {
  constexpr int kInFlight = in_flight<Index>;
  Index step = Index(gridDim.x) * kThreads;
  Index first = Index(blockIdx.x) * kThreads + threadIdx.x;
  for (Index base = first; base < total; base += step * kInFlight) {
    T values[kInFlight];
    int64_t target[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      Index n = base + j * step;
      target[j] = -1;
      if (n >= total) {
        continue;
      }
      Index p;
      if constexpr (sizeof(Index) == 4) {
        p = divide.quotient(n);
      } else {
        p = n / size;
      }
      int64_t slot;
      if (owner && !(slots.locate(p, slot) && owner[slot] == p)) {
        continue;
      }
      int64_t begin;
      if (positions.locate(p, begin)) {
        int64_t at[2];
        slice.locate(static_cast<Index>(n - p * static_cast<Index>(size)), at);
        target[j] = begin + at[0];
        values[j] = from[positions.walk(p, positions.update_strides) + at[1]];
      }
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      if (target[j] >= 0) {
        to[target[j]] = values[j];
      }
    }
  }
}

// A block for one position and a part of its slice.
template <typename T>
__global__ void __launch_bounds__(kThreads) scatter_few(
    const T* __restrict__ from,
    T* __restrict__ to,
    const __grid_constant__ Positions positions,
    const __grid_constant__ StridedAxes<2> slice,
    uint64_t size,
    const __grid_constant__ Positions slots) {
  uint32_t p = blockIdx.x;
  int64_t slot;
  if (!slots.locate(p, slot)) {
    return;
  }
  bool is_replaced = false;
  for (uint32_t later = p + 1 + threadIdx.x; later < gridDim.x;
       later += blockDim.x) {
    int64_t other;
    is_replaced = is_replaced || (slots.locate(later, other) && other == slot);
  }
  if (__syncthreads_or(is_replaced)) {
    return;
  }
  int64_t begin;
  positions.locate(p, begin);
  from += positions.walk(p, positions.update_strides);
  to += begin;
  uint64_t step = uint64_t(gridDim.y) * blockDim.x;
  for (uint64_t n = uint64_t(blockIdx.y) * blockDim.x + threadIdx.x; n < size;
       n += step) {
    int64_t at[2];
    if (size >> 31) {
      slice.locate(n, at);
    } else {
      slice.locate(static_cast<uint32_t>(n), at);
    }
    to[at[0]] = from[at[1]];
  }
}

template <typename Index>
void claim(const Slots& slots, Index* owner, Encoder& e) {
  dim3 grid = grid_for(static_cast<size_t>(slots.positions.count), kThreads);
  for (bool is_last : {false, true}) {
    e.launch(
        claim_slices<Index>,
        grid,
        kThreads,
        0,
        slots.positions,
        owner,
        is_last);
  }
}

struct Work {
  const void* from;
  void* to;
  const Positions& positions;
  const SlicePlan& plan;
  const Slots& slots;
  Encoder& e;
};

template <typename T>
void launch_few(const Work& work) {
  size_t size = work.plan.size();
  size_t pieces = std::min<size_t>((size + 1023) / 1024, 4096);
  int threads = size < 128 ? 64 : kThreads;
  work.e.launch(
      scatter_few<T>,
      dim3(
          static_cast<unsigned>(work.positions.count),
          static_cast<unsigned>(pieces)),
      threads,
      0,
      static_cast<const T*>(work.from),
      static_cast<T*>(work.to),
      work.positions,
      work.plan.writing(),
      size,
      work.slots.positions);
}

template <typename T, typename Index>
void launch_many(const Work& work, dim3 grid, size_t total) {
  size_t size = work.plan.size();
  bool is_small = sizeof(Index) == 4;
  // One position owns all it writes.
  bool has_owners = work.positions.count > 1;
  Scratch table =
      work.e.scratch(has_owners ? work.slots.count * sizeof(Index) : 1);
  if (has_owners) {
    claim(work.slots, table.get<Index>(), work.e);
  }
  work.e.launch(
      scatter_slices<T, Index>,
      grid,
      kThreads,
      0,
      static_cast<const T*>(work.from),
      static_cast<T*>(work.to),
      work.positions,
      work.plan.writing(),
      FastDivisor(is_small ? static_cast<uint32_t>(size) : 1),
      size,
      total,
      work.slots.positions,
      has_owners ? table.get<Index>() : nullptr);
}

template <typename T>
void launch(const Work& work) {
  if (work.positions.count > 1 && work.positions.count <= kFewPositions) {
    launch_few<T>(work);
    return;
  }
  size_t total = work.plan.size() * static_cast<size_t>(work.positions.count);
  dim3 grid = grid_for(total, kThreads);
  if (fits_32_bits(total + size_t(grid.x) * kThreads * in_flight<uint32_t>)) {
    launch_many<T, uint32_t>(work, grid, total);
  } else {
    launch_many<T, uint64_t>(work, grid, total);
  }
}

// Slices that reach over other positions' along an indexed axis may overlap in
// part.
bool may_overlap(const IndexedBy& by) {
  bool overlaps = false;
  for (const auto& entry : by.entries) {
    overlaps = overlaps || entry.slice > 1;
  }
  return overlaps &&
         std::any_of(by.shape.begin(), by.shape.end(), [](ShapeElem n) {
           return n > 1;
         });
}

// Positions of single elements instead of slices.
IndexedBy by_element(IndexedBy by, const array& updates, const array& out) {
  size_t leading = by.shape.size();
  by.shape = updates.shape();
  by.update_strides = updates.strides();
  by.target_strides.insert(
      by.target_strides.end(), out.strides().begin(), out.strides().end());
  for (auto& entry : by.entries) {
    entry.strides.resize(leading + out.ndim(), 0);
  }
  return by;
}

// Slices with the same place along all indexed axes are the same.
Slots slice_slots(IndexedBy by) {
  int64_t count = 1;
  by.target_strides = Strides(by.shape.size(), 0);
  for (auto& entry : by.entries) {
    entry.stride = count;
    count *= entry.length;
  }
  return {by.positions(), static_cast<size_t>(count)};
}

}  // namespace

void write_slices(
    const void* from,
    void* to,
    Positions positions,
    SlicePlan slice,
    const Slots& slots,
    size_t itemsize,
    Encoder& e) {
  size_t width = slice.widen(itemsize, positions, {from, to});
  if (note_slice(from, to, positions, slice, width, e)) {
    return;
  }
  Work work{from, to, positions, slice, slots, e};
  if (width == 16) {
    launch<uint4>(work);
    return;
  }
  visit_width(
      width, [&](auto tag) { launch<typename decltype(tag)::type>(work); });
}

void scatter(
    const Scatter& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  const array& updates = inputs.back();
  start_from(inputs[0], out, e);
  if (updates.size() == 0) {
    return;
  }
  const auto& [mode, axes] = op.params();
  size_t leading = updates.ndim() - out.ndim();
  auto split = static_cast<std::ptrdiff_t>(leading);
  Shape sizes(updates.shape().begin() + split, updates.shape().end());
  IndexedBy by = indexed_by(
      "scatter", inputs.data() + 1, inputs.size() - 2, axes, out, sizes, e);
  by.clamps = false;
  by.update_strides =
      Strides(updates.strides().begin(), updates.strides().begin() + split);
  SlicePlan slice(
      sizes,
      out.strides(),
      Strides(updates.strides().begin() + split, updates.strides().end()));
  const void* from = e.in(updates);
  void* to = e.out(out);
  if (mode != Accumulate::none) {
    accumulate_slices(mode, out.dtype(), from, to, by.positions(), slice, e);
  } else if (may_overlap(by)) {
    Positions elements = by_element(by, updates, out).positions();
    write_slices(
        from,
        to,
        elements,
        SlicePlan({}, {}, {}),
        {elements, out.size()},
        out.itemsize(),
        e);
  } else {
    write_slices(
        from, to, by.positions(), slice, slice_slots(by), out.itemsize(), e);
  }
}

void scatter_axis(
    const ScatterAxis& op,
    const array& src,
    const array& indices,
    const array& values,
    array& out,
    Encoder& e) {
  const auto& [mode, axis] = op.params();
  start_from(src, out, e);
  if (indices.size() == 0) {
    return;
  }
  auto [by, slice] =
      along_axis("put_along_axis", out, &values, indices, axis, e);
  by.clamps = false;
  Positions positions = by.positions();
  const void* from = e.in(values);
  void* to = e.out(out);
  if (mode == Accumulate::none) {
    write_slices(
        from, to, positions, slice, {positions, out.size()}, out.itemsize(), e);
  } else {
    accumulate_slices(mode, out.dtype(), from, to, positions, slice, e);
  }
}

}  // namespace mlx::core::cuda
