// The position of the first largest or smallest element along an axis; a NaN
// counts as extreme. Reads each element once. Where there are few results,
// parts of the axis are searched first, then the parts' winners.
#include <algorithm>

#include "backend/cuda/arg_rows.h"
#include "backend/cuda/copy.h"
#include "backend/cuda/device/combine.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/work_split.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr uint32_t kNone = 0xffffffffu;

template <typename T>
struct ArgReduceArgs {
  const T* x;
  /// Where to look, `n` for each result; null: at positions 0 ... n - 1.
  const uint32_t* candidates;
  uint32_t* out;
  WalkAxes kept;
  int64_t results;
  int64_t n;
  int64_t n_of_part;
  int64_t stride;
  bool largest;
  /// 2^lane_bits threads share a result; whether they are neighbours, or those
  /// of different results are.
  int lane_bits;
  bool lanes_first;
};

/// The best element so far and its position.
template <typename A>
struct Best {
  A value;
  uint32_t at = kNone;

  static __device__ __forceinline__ bool beats(A a, A b, bool largest) {
    return !is_nan(b) &&
           (is_nan(a) || (largest ? is_less(b, a) : is_less(a, b)));
  }
  __device__ __forceinline__ void add(A x, uint32_t position, bool largest) {
    if (at == kNone || beats(x, value, largest)) {
      value = x;
      at = position;
    }
  }
  /// Of equal elements the first wins.
  __device__ __forceinline__ void merge(const Best& other, bool largest) {
    if (other.at == kNone) {
      return;
    }
    if (at == kNone || beats(other.value, value, largest) ||
        (other.at < at && !beats(value, other.value, largest))) {
      *this = other;
    }
  }
};

/// Threads of a result take every 2^lane_bits-th position, eight in flight,
/// and meet in shared memory. blockIdx.y is the part.
template <typename T>
__global__ void __launch_bounds__(kMostThreads)
    find_extremes(ArgReduceArgs<T> a) {
  using A = compute_t<T>;
  constexpr int kInFlight = 8;
  __shared__ A values[kMostThreads];
  __shared__ uint32_t positions[kMostThreads];
  int thread = static_cast<int>(threadIdx.x);
  int lanes = 1 << a.lane_bits;
  int of_block = static_cast<int>(blockDim.x) >> a.lane_bits;
  int lane = a.lanes_first ? thread & (lanes - 1) : thread / of_block;
  int in_block =
      a.lanes_first ? thread >> a.lane_bits : thread - lane * of_block;
  int64_t result = static_cast<int64_t>(blockIdx.x) * of_block + in_block;
  Best<A> best;
  if (result < a.results) {
    const T* x = a.x + a.kept.at(result);
    int64_t begin = blockIdx.y * a.n_of_part;
    int64_t end = begin + a.n_of_part;
    end = end < a.n ? end : a.n;
    int64_t i = begin + lane;
    if (a.candidates) {
      for (; i < end; i += lanes) {
        uint32_t at = a.candidates[result * a.n + i];
        best.add(to_compute(x[at * a.stride]), at, a.largest);
      }
    }
    for (; i + (kInFlight - 1) * lanes < end; i += kInFlight * lanes) {
      T some[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        some[k] = x[(i + k * lanes) * a.stride];
      }
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        best.add(
            to_compute(some[k]),
            static_cast<uint32_t>(i + k * lanes),
            a.largest);
      }
    }
    for (; i < end; i += lanes) {
      best.add(
          to_compute(x[i * a.stride]), static_cast<uint32_t>(i), a.largest);
    }
  }
  int place = lane * of_block + in_block;
  for (int half = lanes / 2; half > 0; half /= 2) {
    // The upper half hands over to the lower.
    if (lane >= half && lane < 2 * half) {
      values[place] = best.value;
      positions[place] = best.at;
    }
    __syncthreads();
    if (lane < half) {
      int from = place + half * of_block;
      best.merge(Best<A>{values[from], positions[from]}, a.largest);
    }
  }
  if (lane == 0 && result < a.results) {
    a.out[result * gridDim.y + blockIdx.y] = best.at;
  }
}

/// How a search is laid over the device.
struct Layout {
  int threads;
  int lane_bits;
  int64_t parts;
};

Layout layout_of(int64_t results, int64_t n, bool lanes_first) {
  int64_t threads = 256;
  int64_t lanes = power_of_two(ceil_div(n, 8));
  if (lanes_first) {
    if (results * threads < device_threads() && n > 8 * threads) {
      threads = kMostThreads;
    }
    lanes = std::min(lanes, threads);
  } else {
    // 32 neighbours are read together.
    lanes =
        std::min(lanes, threads / std::min<int64_t>(32, power_of_two(results)));
  }
  int64_t blocks = ceil_div(results * lanes, threads);
  int64_t parts = 1;
  if (blocks * threads < device_threads()) {
    parts = std::min(
        ceil_div(2 * device_threads(), blocks * threads),
        ceil_div(n, 32 * lanes));
  }
  return {static_cast<int>(threads), log2_of(lanes), parts};
}

/// The best of the `parts` candidates of each result.
template <typename T>
void search_candidates(
    ArgReduceArgs<T> a, const uint32_t* candidates, int64_t parts, Encoder& e) {
  a.candidates = candidates;
  a.n = parts;
  a.n_of_part = parts;
  a.lanes_first = true;
  int64_t lanes = std::min<int64_t>(256, power_of_two(parts));
  a.lane_bits = log2_of(lanes);
  dim3 grid(static_cast<unsigned>(ceil_div(a.results, 256 / lanes)));
  e.launch(find_extremes<T>, grid, 256, 0, a);
}

template <typename T>
void search(ArgReduceArgs<T> a, Encoder& e) {
  Layout layout = layout_of(a.results, a.n, a.lanes_first);
  a.lane_bits = layout.lane_bits;
  a.n_of_part = ceil_div(a.n, layout.parts);
  // Each has something to search.
  int64_t parts = ceil_div(a.n, a.n_of_part);
  int64_t of_block = layout.threads >> layout.lane_bits;
  dim3 grid(
      static_cast<unsigned>(ceil_div(a.results, of_block)),
      static_cast<unsigned>(parts));
  if (parts == 1) {
    e.launch(find_extremes<T>, grid, layout.threads, 0, a);
    return;
  }
  Scratch winners = e.scratch(a.results * parts * sizeof(uint32_t));
  uint32_t* out = a.out;
  a.out = winners.get<uint32_t>();
  e.launch(find_extremes<T>, grid, layout.threads, 0, a);
  a.out = out;
  search_candidates(a, winners.get<uint32_t>(), parts, e);
}

/// Whether the results' elements are rows of packs of 16 bytes, not too short.
template <typename T>
bool has_packed_rows(const ArgReduceArgs<T>& a) {
  constexpr int64_t pack = pack_size_v<T>;
  if (a.stride != 1 || a.n < 32 * pack ||
      reinterpret_cast<uintptr_t>(a.x) % 16 != 0) {
    return false;
  }
  for (int i = 0; i < a.kept.ndim; ++i) {
    if (a.kept.sizes[i] > 1 && a.kept.strides[i] % pack != 0) {
      return false;
    }
  }
  return true;
}

template <typename T>
void search_packed_rows(ArgReduceArgs<T> a, Dtype dtype, Encoder& e) {
  int64_t parts = arg_row_parts(a.results, a.n, dtype);
  constexpr int64_t pack = pack_size_v<T>;
  ArgRows rows{
      a.x,
      a.kept,
      a.results,
      a.n,
      ceil_div(ceil_div(a.n, parts), pack) * pack,
      a.out,
      a.largest};
  parts = ceil_div(a.n, rows.n_of_part);
  if (parts == 1) {
    arg_rows(rows, dtype, e);
    return;
  }
  Scratch winners = e.scratch(a.results * parts * sizeof(uint32_t));
  rows.out = winners.get<uint32_t>();
  arg_rows(rows, dtype, e);
  search_candidates(a, rows.out, parts, e);
}

/// Notes a row that one block searches anyway in the encoder's list. In a
/// recording launches cost the host nothing, so many blocks search long rows.
template <typename T>
bool note_search(const ArgReduceArgs<T>& a, Dtype dtype, Encoder& e) {
  int64_t most = e.is_recording() ? 8192 : 65536;
  if (a.results != 1 || a.n > most || (a.stride != 1 && a.n > 1) ||
      reinterpret_cast<uintptr_t>(a.x) % 16 != 0 || !batches(dtype) ||
      !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::search;
  entry.types[0] = batch_type(dtype);
  entry.size = static_cast<uint32_t>(a.n);
  entry.search = {a.x, a.out, a.largest};
  e.batch(entry);
  return true;
}

/// The axes but `axis` in row-major order, merged where memory allows.
std::vector<PlanAxis> kept_axes(const array& x, int axis) {
  auto [sizes, strides] = collapse_contiguous_dims(
      remove_index(x.shape(), axis), remove_index(x.strides(), axis));
  std::vector<PlanAxis> kept;
  for (size_t i = 0; i < sizes.size(); ++i) {
    kept.push_back({sizes[i], strides[i]});
  }
  if (kept.empty()) {
    kept.push_back({1, 0});
  }
  return kept;
}

}  // namespace

void arg_reduce(const ArgReduce& op, const array& x, array& out, Encoder& e) {
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  int axis = op.params().axis;
  array in = x;
  std::vector<PlanAxis> kept = kept_axes(in, axis);
  if (kept.size() > WalkAxes::most) {
    in = row_contiguous(in, e);
    kept = kept_axes(in, axis);
  }
  if (kept.size() > WalkAxes::most) {
    invalid("arg_reduce", "too many axes: ", x.ndim(), ".");
  }
  int64_t n = in.shape(axis);
  int64_t stride = in.strides(axis);
  const PlanAxis& neighbours = kept.back();
  bool lanes_first = neighbours.size == 1 || neighbours.stride == 0 ||
                     std::abs(stride) <= std::abs(neighbours.stride);
  Dtype dtype = in.dtype() == bool_ ? uint8 : in.dtype();
  visit_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      ArgReduceArgs<T> a{};
      a.x = e.in<T>(in);
      a.out = e.out<uint32_t>(out);
      a.kept = walk_axes(kept);
      a.results = static_cast<int64_t>(out.size());
      a.n = n;
      a.stride = stride;
      a.largest = op.params().largest;
      a.lanes_first = lanes_first;
      if (note_search(a, dtype, e)) {
        return;
      }
      if (!is_complex_v<T> && has_packed_rows(a)) {
        search_packed_rows(a, dtype, e);
      } else {
        search(a, e);
      }
    }
  });
}

}  // namespace mlx::core::cuda
