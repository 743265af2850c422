// Strided copies. Three kernels: runs of neighbouring bytes are copied as wider
// elements; a transposition goes through a tile in shared memory, so that
// reads and writes both touch whole lines; anything else goes element by
// element, four in flight a thread.
#include <utility>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/index.cuh"
#include "backend/cuda/dispatch.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;

template <typename T, typename Index>
__global__ void copy_elements(
    const T* from, T* to, StridedAxes<2> axes, Index size) {
  Index step = Index(gridDim.x) * kThreads * kInFlight;
  Index first = Index(blockIdx.x) * kThreads * kInFlight + threadIdx.x;
  for (Index base = first; base < size; base += step) {
    T value[kInFlight];
    int64_t target[kInFlight];
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      Index i = base + Index(j) * kThreads;
      if (i < size) {
        int64_t offset[2];
        axes.locate(i, offset);
        value[j] = from[offset[0]];
        target[j] = offset[1];
      }
    }
#pragma unroll
    for (int j = 0; j < kInFlight; ++j) {
      if (base + Index(j) * kThreads < size) {
        to[target[j]] = value[j];
      }
    }
  }
}

// By one access: the compiler would write packs element by element, as they
// are put together, at 0.8 of the speed.
template <typename T, int pack>
__device__ __forceinline__ void store_whole(T* to, const Pack<T, pack>& from) {
  if constexpr (sizeof(from) == 16) {
    uint32_t words[4];
    memcpy(words, &from, 16);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(words[0]),
                 "r"(words[1]),
                 "r"(words[2]),
                 "r"(words[3])
                 : "memory");
  } else {
    store_pack(to, from);
  }
}

// Tiles of 64 x 64 elements: `rows` run along the axis that neighbours in
// `to`, `columns` along the one that neighbours in `from`. With packs a thread
// moves 16 bytes at a time on both sides.
constexpr int kTile = 64;
// Blocks go in bands of so many tiles across the columns, so that those at
// work together read and write some kB of neighbouring memory.
constexpr int kBand = 4;
// Blocks that a multiprocessor shall hold at once: their registers and tiles
// leave room for no more.
template <typename T, int pack>
inline constexpr int kTileBlocks = sizeof(T) == 8 ? 5
                                   : pack == 1    ? 6
                                                  : 8;

struct TilePlan {
  int64_t rows;           // the length of the axis with stride 1 in `to`
  int64_t columns;        // the length of the axis with stride 1 in `from`
  int64_t row_stride;     // in `from`
  int64_t column_stride;  // in `to`
  uint32_t row_tiles;
  uint32_t column_tiles;
};

template <typename T, int pack>
__global__ void __launch_bounds__(kThreads, (kTileBlocks<T, pack>))
    copy_tiles(const T* from, T* to, TilePlan plan, StridedAxes<2> batch) {
  __shared__ T tile[kTile][kTile + 4 / (sizeof(T) < 4 ? sizeof(T) : 4)];
  constexpr int kAcross = kTile / pack;
  constexpr int kStep = kThreads / kAcross;
  uint32_t tiles = plan.row_tiles * plan.column_tiles;
  uint32_t which = blockIdx.x / tiles;
  uint32_t in_plane = blockIdx.x - which * tiles;
  uint32_t of_band = plan.row_tiles * kBand;
  uint32_t band = in_plane / of_band;
  uint32_t in_band = in_plane - band * of_band;
  uint32_t width = min(plan.column_tiles - band * kBand, uint32_t(kBand));
  uint32_t row_tile = in_band / width;
  uint32_t column_tile = band * kBand + in_band - row_tile * width;
  int64_t row0 = int64_t(row_tile) * kTile;
  int64_t column0 = int64_t(column_tile) * kTile;
  int64_t offset[2];
  batch.locate(which, offset);
  from += offset[0] + row0 * plan.row_stride + column0;
  to += offset[1] + column0 * plan.column_stride + row0;
  int rows = static_cast<int>(min(int64_t(kTile), plan.rows - row0));
  int columns = static_cast<int>(min(int64_t(kTile), plan.columns - column0));
  int across = (threadIdx.x % kAcross) * pack;
  int down = threadIdx.x / kAcross;
  from += down * plan.row_stride + across;
  to += down * plan.column_stride + across;
  Pack<T, pack> loaded[kTile / kStep];
#pragma unroll
  for (int j = 0; j < kTile / kStep; ++j) {
    if (down + j * kStep < rows && across < columns) {
      loaded[j] = load_pack<pack>(from);
    }
    from += kStep * plan.row_stride;
  }
#pragma unroll
  for (int j = 0; j < kTile / kStep; ++j) {
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      tile[down + j * kStep][across + i] = loaded[j][i];
    }
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kTile / kStep; ++j) {
    int column = down + j * kStep;
    if (column < columns && across < rows) {
      Pack<T, pack> moved;
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        moved[i] = tile[across + i][column];
      }
      store_whole(to, moved);
    }
    to += kStep * plan.column_stride;
  }
}

// The axes of a copy, from's strides at [0] and to's at [1].
struct Axes {
  Shape sizes;
  Strides from;
  Strides to;

  size_t count() const {
    size_t n = 1;
    for (ShapeElem size : sizes) {
      n *= static_cast<size_t>(size);
    }
    return n;
  }
  void erase(size_t i) {
    auto at = static_cast<std::ptrdiff_t>(i);
    sizes.erase(sizes.begin() + at);
    from.erase(from.begin() + at);
    to.erase(to.begin() + at);
  }
};

// Axes in the order of `to`'s memory, so that neighbouring threads write
// neighbouring elements; merged. Most are in order already.
Axes merged_axes(const Shape& shape, const Strides& from, const Strides& to) {
  SmallVector<size_t> order;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    size_t at = order.size();
    order.push_back(axis);
    for (; at > 0 && std::abs(to[order[at - 1]]) < std::abs(to[axis]); --at) {
      order[at] = order[at - 1];
    }
    order[at] = axis;
  }
  Axes sorted;
  for (size_t axis : order) {
    sorted.sizes.push_back(shape[axis]);
    sorted.from.push_back(from[axis]);
    sorted.to.push_back(to[axis]);
  }
  merge_axes(sorted.sizes, {&sorted.from, &sorted.to});
  if (sorted.sizes.empty()) {
    return {{1}, {0}, {0}};
  }
  return sorted;
}

StridedAxes<2> strided(const Axes& axes) {
  return axes_table<2>("copy", axes.sizes, {&axes.from, &axes.to});
}

// How many elements can be moved as one of up to 16 bytes.
size_t widening(
    const Axes& axes, const void* from, const void* to, size_t itemsize) {
  if (axes.from.back() != 1 || axes.to.back() != 1) {
    return 1;
  }
  auto bits = reinterpret_cast<uintptr_t>(from) |
              reinterpret_cast<uintptr_t>(to) |
              static_cast<uintptr_t>(axes.sizes.back()) * itemsize;
  for (size_t i = 0; i + 1 < axes.sizes.size(); ++i) {
    bits |= static_cast<uintptr_t>(axes.from[i]) * itemsize;
    bits |= static_cast<uintptr_t>(axes.to[i]) * itemsize;
  }
  size_t width = 16;
  while (width > itemsize && bits % width != 0) {
    width /= 2;
  }
  return width / itemsize;
}

template <typename T>
void launch_elements(const void* from, void* to, const Axes& axes, Encoder& e) {
  size_t size = axes.count();
  dim3 grid = grid_for((size + kInFlight - 1) / kInFlight, kThreads, 32);
  auto* in = static_cast<const T*>(from);
  auto* out = static_cast<T*>(to);
  if (fits_32_bits(size + size_t(grid.x) * kThreads * kInFlight)) {
    e.launch(
        copy_elements<T, uint32_t>,
        grid,
        kThreads,
        0,
        in,
        out,
        strided(axes),
        static_cast<uint32_t>(size));
  } else {
    e.launch(
        copy_elements<T, uint64_t>,
        grid,
        kThreads,
        0,
        in,
        out,
        strided(axes),
        size);
  }
}

// Notes a small copy in the encoder's list.
bool note_copy(
    const void* from, void* to, const Axes& axes, size_t width, Encoder& e) {
  size_t size = axes.count();
  size_t ndim = axes.sizes.size();
  if (size > BatchEntry::most_elements || ndim > 3 || !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::copy;
  entry.width = static_cast<uint8_t>(width);
  entry.size = static_cast<uint32_t>(size);
  entry.copy.from = from;
  entry.copy.to = to;
  entry.copy.sizes[0] = entry.copy.sizes[1] = 1;
  for (size_t i = 0; i < ndim; ++i) {
    size_t at = i + 3 - ndim;
    auto from_stride = static_cast<int32_t>(axes.from[i]);
    auto to_stride = static_cast<int32_t>(axes.to[i]);
    if (from_stride != axes.from[i] || to_stride != axes.to[i]) {
      return false;
    }
    entry.copy.from_strides[at] = from_stride;
    entry.copy.to_strides[at] = to_stride;
    if (at > 0) {
      entry.copy.sizes[at - 1] = static_cast<uint32_t>(axes.sizes[i]);
    }
  }
  e.batch(entry);
  return true;
}

void copy_runs(
    const void* from, void* to, Axes axes, size_t itemsize, Encoder& e) {
  size_t factor = widening(axes, from, to, itemsize);
  size_t width = factor * itemsize;
  if (factor > 1) {
    auto n = static_cast<int64_t>(factor);
    axes.sizes.back() /= static_cast<ShapeElem>(factor);
    for (size_t i = 0; i + 1 < axes.sizes.size(); ++i) {
      axes.from[i] /= n;
      axes.to[i] /= n;
    }
  }
  if (note_copy(from, to, axes, width, e)) {
    return;
  }
  if (width == 16) {
    launch_elements<uint4>(from, to, axes, e);
    return;
  }
  visit_width(width, [&](auto tag) {
    launch_elements<typename decltype(tag)::type>(from, to, axes, e);
  });
}

// The axis along which `from` has neighbours, if that is not the last one and
// both are long enough for tiles to pay; else -1.
int transposed_axis(const Axes& axes) {
  size_t last = axes.sizes.size() - 1;
  if (axes.to[last] != 1 || axes.from[last] == 1 || axes.sizes[last] < 16) {
    return -1;
  }
  for (size_t i = 0; i < last; ++i) {
    if (axes.from[i] == 1 && axes.sizes[i] >= 16) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

template <typename T>
void launch_tiles(
    const void* from, void* to, Axes axes, int across, Encoder& e) {
  TilePlan plan;
  size_t last = axes.sizes.size() - 1;
  plan.rows = axes.sizes[last];
  plan.columns = axes.sizes[across];
  plan.row_stride = axes.from[last];
  plan.column_stride = axes.to[across];
  plan.row_tiles = static_cast<uint32_t>((plan.rows + kTile - 1) / kTile);
  plan.column_tiles = static_cast<uint32_t>((plan.columns + kTile - 1) / kTile);
  axes.erase(last);
  axes.erase(static_cast<size_t>(across));
  constexpr int pack = pack_size_v<T>;
  auto bits =
      static_cast<uintptr_t>(
          plan.rows | plan.columns | plan.row_stride | plan.column_stride) *
      sizeof(T);
  for (size_t i = 0; i < axes.sizes.size(); ++i) {
    bits |= static_cast<uintptr_t>(axes.from[i] | axes.to[i]) * sizeof(T);
  }
  bits |= reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  if (axes.sizes.empty()) {
    axes = {{1}, {0}, {0}};
  }
  size_t blocks = axes.count() * plan.row_tiles * plan.column_tiles;
  auto kernel = bits % 16 == 0 ? copy_tiles<T, pack> : copy_tiles<T, 1>;
  e.launch(
      kernel,
      dim3(static_cast<unsigned>(blocks)),
      kThreads,
      0,
      static_cast<const T*>(from),
      static_cast<T*>(to),
      plan,
      strided(axes));
}

}  // namespace

void copy_strided(
    const void* from,
    const Strides& from_strides,
    void* to,
    const Strides& to_strides,
    const Shape& shape,
    size_t itemsize,
    Encoder& e) {
  Axes axes = merged_axes(shape, from_strides, to_strides);
  size_t size = axes.count();
  if (size == 0) {
    return;
  }
  if (axes.sizes.size() == 1 && axes.from[0] == 1 && axes.to[0] == 1 &&
      size * itemsize >= size_t(1) << 16) {
    e.copy_bytes(to, from, size * itemsize);
    return;
  }
  int across = size <= BatchEntry::most_elements ? -1 : transposed_axis(axes);
  if (across >= 0) {
    visit_width(itemsize, [&](auto tag) {
      launch_tiles<typename decltype(tag)::type>(from, to, axes, across, e);
    });
    return;
  }
  copy_runs(from, to, std::move(axes), itemsize, e);
}

array row_contiguous(const array& in, Encoder& e) {
  if (in.flags().row_contiguous) {
    return in;
  }
  array made = e.temporary(in.shape(), in.dtype());
  copy_strided(
      e.in(in),
      in.strides(),
      e.out(made),
      made.strides(),
      in.shape(),
      in.itemsize(),
      e);
  return made;
}

void copy_into_new(const array& in, array& out, Encoder& e) {
  e.allocate(out);
  copy_strided(
      e.in(in),
      in.strides(),
      e.out(out),
      out.strides(),
      in.shape(),
      in.itemsize(),
      e);
}

}  // namespace mlx::core::cuda
