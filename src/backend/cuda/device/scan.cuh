// The two kernels of scans, for one combination and type of element. Elements
// have the numbers of the order in which they are combined: reverse scans
// count from the row's end.
#pragma once

#include "backend/cuda/device/combine.cuh"
#include "backend/cuda/device/row.cuh"
#include "backend/cuda/device/shuffle.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/scan_pass.h"

namespace mlx::core::cuda {

/// Where a tile of a row lies: element i is at first[i], in reverse at
/// first[-1 - i]; `left` of them are there. `packed` says that packs of 16
/// bytes begin at their multiples.
template <typename T>
struct TilePlace {
  T* first;
  int left;
  bool reverse;
  bool packed;

  template <int N>
  __device__ __forceinline__ void load(int i, Pack<T, N>& to) const {
    if (packed && i + N <= left) {
      to = load_pack<N>(reverse ? first - i - N : first + i);
      if (reverse) {
        turn(to);
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (i + j < left) {
        to[j] = reverse ? first[-1 - i - j] : first[i + j];
      }
    }
  }
  template <int N>
  __device__ __forceinline__ void store(int i, Pack<T, N> from) const {
    if (packed && i + N <= left) {
      if (reverse) {
        turn(from);
      }
      store_pack(reverse ? first - i - N : first + i, from);
      return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (i + j < left) {
        (reverse ? first[-1 - i - j] : first[i + j]) = from[j];
      }
    }
  }

 private:
  template <int N>
  static __device__ __forceinline__ void turn(Pack<T, N>& pack) {
#pragma unroll
    for (int j = 0; j < N / 2; ++j) {
      T other = pack[j];
      pack[j] = pack[N - 1 - j];
      pack[N - 1 - j] = other;
    }
  }
};

/// Each lane gets the combination of the lanes up to its own.
template <typename Op, typename A>
__device__ __forceinline__ A scan_lanes(const Op& op, A x, int lane) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    A before = shuffle_up(x, step);
    x = lane >= step ? op(before, x) : x;
  }
  return x;
}

/// A tile of K packs a thread, neighbouring threads with neighbouring packs.
template <typename T>
struct ScanTile {
  using A = compute_t<T>;
  static constexpr int N = pack_size_v<T>;
  static constexpr int K = N > 4 ? 16 / N : 4;
  Pack<T, N> packs[K];

  static __device__ __forceinline__ int size() {
    return K * N * static_cast<int>(blockDim.x);
  }
  static __device__ __forceinline__ int place(int k) {
    return (k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) *
           N;
  }
  __device__ __forceinline__ void load(const TilePlace<T>& from) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      from.load(place(k), packs[k]);
    }
  }
  __device__ __forceinline__ A get(int k, int j, int left, A neutral) const {
    return place(k) + j < left ? to_compute(packs[k][j]) : neutral;
  }
};

/// A warp or a block of eight a chunk of a row (blockDim.x threads; several
/// rows a block where they are warps). A tile goes through registers: elements
/// of a pack, packs of a warp, and at last the up to 32 sums of warps, which
/// every warp scans for itself behind one barrier.
template <typename Op, typename T>
__global__ void __launch_bounds__(kScanThreads, 3) scan_rows(ScanArgs a) {
  using A = compute_t<T>;
  using Tile = ScanTile<T>;
  constexpr int N = Tile::N;
  constexpr int K = Tile::K;
  __shared__ A shared[2][8][32];
  Op op;
  A neutral = Op::template neutral<A>();
  int lane = static_cast<int>(threadIdx.x) % 32;
  int warp = static_cast<int>(threadIdx.x) / 32;
  int warps = static_cast<int>(blockDim.x) / 32;
  int64_t items = a.rows * a.chunks;
  int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (item >= items) {
    return;  // a whole warp, whose rows are its own
  }
  // What was read last by the pass before may still be in the cache.
  item = a.before ? items - 1 - item : item;
  int64_t begin = item % a.chunks * a.chunk;
  int64_t left = begin + a.chunk < a.n ? a.chunk : a.n - begin;
  int64_t first = item / a.chunks * a.n + (a.reverse ? a.n - begin : begin);
  const T* x = static_cast<const T*>(a.x) + first;
  T* y = static_cast<T*>(a.y) + first;
  int64_t step = a.reverse ? -Tile::size() : Tile::size();
  A carry = a.before ? static_cast<const A*>(a.before)[item] : neutral;
  A total = neutral;
  int turn = 0;
  for (; left > 0; left -= Tile::size(), x += step, y += step, turn ^= 1) {
    int here = left < Tile::size() ? static_cast<int>(left) : Tile::size();
    Tile tile;
    tile.load({const_cast<T*>(x), here, a.reverse, a.packed});
    if (a.totals) {
#pragma unroll
      for (int i = 0; i < K * N; ++i) {
        total = op(total, tile.get(i / N, i % N, here, neutral));
      }
      continue;
    }
    A v[K][N];
    A before[K];
    A* slots = shared[turn][threadIdx.y];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      v[k][0] = tile.get(k, 0, here, neutral);
#pragma unroll
      for (int j = 1; j < N; ++j) {
        v[k][j] = op(v[k][j - 1], tile.get(k, j, here, neutral));
      }
      A up_to = scan_lanes(op, v[k][N - 1], lane);
      before[k] = shuffle_up(up_to, 1);
      if (lane == 31) {
        slots[k * warps + warp] = up_to;
      }
    }
    if (warps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
    A sums = scan_lanes(op, lane < K * warps ? slots[lane] : neutral, lane);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      int mine = k * warps + warp;
      A other = shuffle_from(sums, mine > 0 ? mine - 1 : 0);
      A start = mine > 0 ? op(carry, other) : carry;
      start = lane > 0 ? op(start, before[k]) : start;
      A shown = start;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        A up_to = op(start, v[k][j]);
        tile.packs[k][j] = convert<T>(a.inclusive ? up_to : shown);
        shown = up_to;
      }
      TilePlace<T>{y, here, a.reverse, a.packed}.store(
          Tile::place(k), tile.packs[k]);
    }
    carry = op(carry, shuffle_from(sums, K * warps - 1));
  }
  if (a.totals) {
    RowCombiner<A> combine(&shared[0][0][0]);
    total = combine(total, neutral, op);
    if (threadIdx.x == 0) {
      static_cast<A*>(a.totals)[item] = total;
    }
  }
}

/// A thread a column and chunk; neighbouring threads have neighbouring
/// columns, and eight elements are in flight for each of them. Also for rows
/// so short that a thread takes one (cols = 1).
template <typename Op, typename T>
__global__ void __launch_bounds__(kScanThreads) scan_columns(ScanArgs a) {
  using A = compute_t<T>;
  constexpr int kInFlight = 8;
  Op op;
  int64_t id = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= a.rows * a.chunks * a.cols) {
    return;
  }
  int64_t item = id / a.cols;
  int64_t begin = item % a.chunks * a.chunk;
  int64_t end = begin + a.chunk < a.n ? begin + a.chunk : a.n;
  int64_t step = a.reverse ? -a.cols : a.cols;
  int64_t place = item / a.chunks * a.n * a.cols + id % a.cols +
                  (a.reverse ? a.n - 1 - begin : begin) * a.cols;
  const T* x = static_cast<const T*>(a.x) + place;
  T* y = static_cast<T*>(a.y) + place;
  A total = a.before ? static_cast<const A*>(a.before)[id]
                     : Op::template neutral<A>();
  for (int64_t at = begin; at < end; at += kInFlight) {
    T some[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (at + k < end) {
        some[k] = x[k * step];
      }
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (at + k < end) {
        A before = total;
        total = op(total, to_compute(some[k]));
        if (!a.totals) {
          y[k * step] = convert<T>(a.inclusive ? total : before);
        }
      }
    }
    x += kInFlight * step;
    y += kInFlight * step;
  }
  if (a.totals) {
    static_cast<A*>(a.totals)[id] = total;
  }
}

template <typename Op, typename T>
void launch_scan(const ScanPass& pass, Encoder& e) {
  auto* kernel = pass.is_rows ? &scan_rows<Op, T> : &scan_columns<Op, T>;
  e.launch(kernel, pass.grid, pass.block, 0, pass.args);
}

/// Sums and products wrap, so that the sign does not matter to them.
template <typename Op>
void launch_unsigned_scan(const ScanPass& pass, Dtype dtype, Encoder& e) {
  visit_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      launch_scan<Op, uint8_t>(pass, e);
    } else if constexpr (std::is_integral_v<T>) {
      launch_scan<Op, std::make_unsigned_t<T>>(pass, e);
    } else {
      launch_scan<Op, T>(pass, e);
    }
  });
}

/// Maxima and minima.
template <typename Op>
void launch_ordered_scan(const ScanPass& pass, Dtype dtype, Encoder& e) {
  visit_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      launch_scan<Op, uint8_t>(pass, e);
    } else {
      launch_scan<Op, T>(pass, e);
    }
  });
}

}  // namespace mlx::core::cuda
