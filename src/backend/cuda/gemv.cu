// A matrix times a vector: decoding reads its weights this way. Every element
// of the matrix is read once, 16 bytes at a time; the vector stays in the L1
// cache.
//
// gemv_lines: the elements of a line are contiguous. 1 to 8 warps take two
// lines, which share what is read of x; each thread has eight loads of 16 bytes
// in flight.
// gemv_columns: lines are contiguous side by side. A block takes a strip of 128
// bytes, eight threads a row, 32 rows at a time.
// Few lines of great depth are cut into parts, which a second kernel adds.
#include <algorithm>
#include <optional>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/index.cuh"
#include "backend/cuda/device/overlap.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/gemv.h"

namespace mlx::core::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kLines = 2;   // of a group of warps
constexpr int kUnroll = 4;  // packs of a line in flight
constexpr int kAcross = 8;  // threads along a row of a strip
constexpr int kDown = kThreads / kAcross;

template <typename T>
struct GemvParams {
  const T* w;
  const T* x;
  const T* c;
  T* out;
  float* partial;  // parts x batch x lines, or nullptr
  int64_t lines;
  int64_t depth;
  int64_t pitch;
  int64_t x_stride;
  int64_t c_stride;
  int64_t batches;
  int64_t part;  // depth of a part
  float alpha;
  float beta;
  int warps_per_group;
  bool packed;  // w allows accesses of 16 bytes; for lines, x too
};

template <typename T>
__device__ __forceinline__ void write_result(
    const GemvParams<T>& p,
    int64_t batch,
    int64_t c_offset,
    int64_t line,
    float sum) {
  if (p.partial != nullptr) {
    p.partial[(blockIdx.z * p.batches + batch) * p.lines + line] = sum;
    return;
  }
  float result = p.alpha * sum;
  if (p.beta != 0.0f) {
    result =
        fmaf(p.beta, to_compute(p.c[c_offset + line * p.c_stride]), result);
  }
  p.out[batch * p.lines + line] = convert<T>(result);
}

template <typename T>
__device__ __forceinline__ void add_products(
    const Pack<T, pack_size_v<T>>& w,
    const Pack<T, pack_size_v<T>>& x,
    float& sum) {
#pragma unroll
  for (int i = 0; i < pack_size_v<T>; ++i) {
    sum = fmaf(to_compute(w[i]), to_compute(x[i]), sum);
  }
}

/// What one thread adds up of two lines, over its share of [begin, end).
template <typename T>
__device__ __forceinline__ void sum_lines(
    const GemvParams<T>& p,
    const T* first,
    const T* second,
    const T* x,
    int64_t begin,
    int64_t end,
    int thread,
    int threads,
    float (&sums)[kLines]) {
  constexpr int V = pack_size_v<T>;
  if (p.packed) {
    int64_t step = int64_t(threads) * V;
    int64_t k = begin + int64_t(thread) * V;
    for (; k + V <= end; k += kUnroll * step) {
      // Past the end the first pack is read again, and not used.
      Pack<T, V> w0[kUnroll];
      Pack<T, V> w1[kUnroll];
      Pack<T, V> by[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        int64_t at = k + i * step + V <= end ? k + i * step : k;
        w0[i] = load_pack<V>(first + at);
        w1[i] = load_pack<V>(second + at);
        by[i] = load_pack<V>(x + at);
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        float more[kLines] = {sums[0], sums[1]};
        add_products(w0[i], by[i], more[0]);
        add_products(w1[i], by[i], more[1]);
        bool inside = k + i * step + V <= end;
        sums[0] = inside ? more[0] : sums[0];
        sums[1] = inside ? more[1] : sums[1];
      }
    }
    begin += (end - begin) / V * V;
  }
  for (int64_t k = begin + thread; k < end; k += threads) {
    float by = to_compute(x[k * p.x_stride]);
    sums[0] = fmaf(to_compute(first[k]), by, sums[0]);
    sums[1] = fmaf(to_compute(second[k]), by, sums[1]);
  }
}

/// Asks for what a thread will read first of two lines, both at `k`.
template <typename T>
__device__ __forceinline__ void ask_for_lines(
    const GemvParams<T>& p, int64_t line, int64_t k, int64_t end, int threads) {
  if (!p.packed || p.batches > 1 || line >= p.lines) {
    return;
  }
  int64_t pitch = line + 1 < p.lines ? p.pitch : 0;
#pragma unroll
  for (int i = 0; i < kUnroll; ++i, k += int64_t(threads) * pack_size_v<T>) {
    if (k < end) {
      ask_for(p.w + line * p.pitch + k);
      ask_for(p.w + line * p.pitch + pitch + k);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 3)
    gemv_lines(GemvParams<T> p, StridedAxes<3> axes) {
  __shared__ float shared[kWarps][kLines];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int group = warp / p.warps_per_group;
  int in_group = warp % p.warps_per_group;
  int groups = kWarps / p.warps_per_group;
  int64_t line = (int64_t(blockIdx.x) * groups + group) * kLines;
  int64_t begin = blockIdx.z * p.part;
  int64_t end = min(begin + p.part, p.depth);
  int thread = in_group * 32 + lane;
  int threads = p.warps_per_group * 32;
  ask_for_lines(p, line, begin + thread * pack_size_v<T>, end, threads);
  begin_after(p.w, p.x, p.c);
  for (int64_t batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    int64_t offsets[3];
    axes.locate(batch, offsets);
    float sums[kLines] = {};
    if (line < p.lines) {
      // A last single line is read twice; only one sum of it is written.
      const T* first = p.w + offsets[0] + line * p.pitch;
      const T* second = line + 1 < p.lines ? first + p.pitch : first;
      sum_lines(
          p,
          first,
          second,
          p.x + offsets[1],
          begin,
          end,
          thread,
          threads,
          sums);
    }
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
#pragma unroll
      for (int other = 16; other > 0; other /= 2) {
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], other);
      }
      if (lane == 0) {
        shared[warp][i] = sums[i];
      }
    }
    __syncthreads();
    if (in_group == 0 && lane < kLines && line + lane < p.lines) {
      float sum = 0.0f;
      for (int i = 0; i < p.warps_per_group; ++i) {
        sum += shared[warp + i][lane];
      }
      write_result(p, batch, offsets[2], line + lane, sum);
    }
    __syncthreads();
  }
}

/// What one thread adds up of V neighbouring lines over its rows of a strip.
template <typename T>
__device__ __forceinline__ void sum_columns(
    const GemvParams<T>& p,
    const T* w,
    const T* x,
    int64_t line,
    int64_t begin,
    int64_t end,
    float (&sums)[pack_size_v<T>]) {
  constexpr int V = pack_size_v<T>;
  int64_t k = begin + threadIdx.x / kAcross;
  if (p.packed && line + V <= p.lines) {
    for (; k < end; k += kUnroll * kDown) {
      // Past the end the first row is read again, and not used.
      Pack<T, V> rows[kUnroll];
      float by[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        int64_t at = k + i * kDown < end ? k + i * kDown : k;
        rows[i] = load_pack<V>(w + at * p.pitch + line);
        by[i] = to_compute(x[at * p.x_stride]);
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        bool inside = k + i * kDown < end;
#pragma unroll
        for (int j = 0; j < V; ++j) {
          float more = fmaf(to_compute(rows[i][j]), by[i], sums[j]);
          sums[j] = inside ? more : sums[j];
        }
      }
    }
    return;
  }
  for (; k < end; k += kDown) {
    float by = to_compute(x[k * p.x_stride]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if (line + j < p.lines) {
        sums[j] = fmaf(to_compute(w[k * p.pitch + line + j]), by, sums[j]);
      }
    }
  }
}

/// Asks for what a thread will read first of its columns.
template <typename T>
__device__ __forceinline__ void ask_for_columns(
    const GemvParams<T>& p, int64_t line, int64_t begin, int64_t end) {
  constexpr int V = pack_size_v<T>;
  if (!p.packed || p.batches > 1 || line + V > p.lines) {
    return;
  }
  int64_t k = begin + threadIdx.x / kAcross;
#pragma unroll
  for (int i = 0; i < kUnroll; ++i, k += kDown) {
    if (k < end) {
      ask_for(p.w + k * p.pitch + line);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 3)
    gemv_columns(GemvParams<T> p, StridedAxes<3> axes) {
  constexpr int V = pack_size_v<T>;
  constexpr int kStrip = kAcross * V;
  __shared__ float shared[kWarps][kStrip];
  int warp = threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  int across = threadIdx.x % kAcross;
  int64_t strip = int64_t(blockIdx.x) * kStrip;
  int64_t begin = blockIdx.z * p.part;
  int64_t end = min(begin + p.part, p.depth);
  ask_for_columns(p, strip + across * V, begin, end);
  begin_after(p.w, p.x, p.c);
  for (int64_t batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    int64_t offsets[3];
    axes.locate(batch, offsets);
    float sums[V] = {};
    sum_columns(
        p,
        p.w + offsets[0],
        p.x + offsets[1],
        strip + across * V,
        begin,
        end,
        sums);
#pragma unroll
    for (int j = 0; j < V; ++j) {
#pragma unroll
      for (int other = kAcross; other < 32; other *= 2) {
        sums[j] += __shfl_xor_sync(0xffffffffu, sums[j], other);
      }
      if (lane < kAcross) {
        shared[warp][across * V + j] = sums[j];
      }
    }
    __syncthreads();
    if (threadIdx.x < kStrip && strip + threadIdx.x < p.lines) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < kWarps; ++i) {
        sum += shared[i][threadIdx.x];
      }
      write_result(p, batch, offsets[2], strip + threadIdx.x, sum);
    }
    __syncthreads();
  }
}

/// Adds the parts of every sum.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    gemv_finish(GemvParams<T> p, StridedAxes<3> axes, int parts) {
  int64_t size = p.batches * p.lines;
  int64_t step = int64_t(gridDim.x) * kThreads;
  const float* partial = p.partial;
  p.partial = nullptr;
  begin_after(partial, p.c);
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < size;
       i += step) {
    float sum = 0.0f;
    for (int part = 0; part < parts; ++part) {
      sum += partial[part * size + i];
    }
    int64_t batch = i / p.lines;
    int64_t offsets[3];
    axes.locate(batch, offsets);
    write_result(p, batch, offsets[2], i - batch * p.lines, sum);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) scale_elements(
    const T* from, StridedAxes<1> axes, double factor, T* to, int64_t size) {
  int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < size;
       i += step) {
    int64_t offset[1];
    axes.locate(i, offset);
    T x = from[offset[0]];
    if constexpr (is_complex_v<T>) {
      auto by = static_cast<float>(factor);
      to[i] = complex64(x.re * by, x.im * by);
    } else if constexpr (std::is_same_v<T, double>) {
      to[i] = x * factor;
    } else {
      to[i] = convert<T>(to_compute(x) * static_cast<float>(factor));
    }
  }
}

bool is_aligned(const void* address, int64_t itemsize, const Strides& strides) {
  auto bits = reinterpret_cast<uintptr_t>(address);
  for (int64_t stride : strides) {
    bits |= static_cast<uintptr_t>(stride * itemsize);
  }
  return bits % 16 == 0;
}

/// Where the work is cut: warps for two lines, parts of the depth.
struct GemvPlan {
  int warps_per_group = 1;
  int64_t blocks = 1;
  int parts = 1;
};

GemvPlan plan_gemv(const GemvArgs& args, int64_t batches, int pack) {
  GemvPlan plan;
  int64_t processors = device_facts().multiprocessors;
  int64_t most_parts;
  if (args.depth_is_inner) {
    int64_t pairs = (args.lines + kLines - 1) / kLines;
    int64_t warp_step = int64_t(32) * pack;
    while (plan.warps_per_group < kWarps &&
           pairs * batches * plan.warps_per_group < processors * 32 &&
           args.depth > plan.warps_per_group * warp_step) {
      plan.warps_per_group *= 2;
    }
    int64_t groups = kWarps / plan.warps_per_group;
    plan.blocks = (pairs + groups - 1) / groups;
    most_parts = args.depth / 16384;
  } else {
    int64_t strip = int64_t(kAcross) * pack;
    plan.blocks = (args.lines + strip - 1) / strip;
    most_parts = args.depth / 512;
  }
  int64_t wanted = 4 * processors / std::max<int64_t>(plan.blocks * batches, 1);
  plan.parts = static_cast<int>(
      std::clamp<int64_t>(std::min(wanted, most_parts), 1, 64));
  return plan;
}

/// Moves x to where it can be read by 16 bytes.
Scratch pack_x(GemvArgs& args, int64_t pack, Encoder& e) {
  int64_t pitch = (args.depth + pack - 1) / pack * pack;
  Shape shape;
  Strides from;
  Strides to;
  int64_t size = pitch;
  for (size_t i = args.batch_shape.size(); i-- > 0;) {
    bool once = args.x_batch[i] == 0;
    shape.insert(shape.begin(), once ? 1 : args.batch_shape[i]);
    from.insert(from.begin(), args.x_batch[i]);
    to.insert(to.begin(), once ? 0 : size);
    size *= shape[0];
  }
  args.x_batch = to;
  shape.push_back(static_cast<ShapeElem>(args.depth));
  from.push_back(args.x_stride);
  to.push_back(1);
  auto itemsize = static_cast<size_t>(args.type.size());
  Scratch packed = e.scratch(static_cast<size_t>(size) * itemsize);
  copy_strided(args.x, from, packed.get(), to, shape, itemsize, e);
  args.x = packed.get();
  args.x_stride = 1;
  return packed;
}

template <typename T>
void run_gemv(GemvArgs args, Encoder& e) {
  constexpr int V = pack_size_v<T>;
  auto itemsize = static_cast<int64_t>(sizeof(T));
  bool packed = is_aligned(args.w, itemsize, args.w_batch) &&
                (args.lines == 1 || args.pitch * itemsize % 16 == 0);
  std::optional<Scratch> x;
  if (packed && args.depth_is_inner &&
      !(args.x_stride == 1 && is_aligned(args.x, itemsize, args.x_batch))) {
    x.emplace(pack_x(args, V, e));
  }
  int64_t batches = 1;
  for (ShapeElem n : args.batch_shape) {
    batches *= n;
  }
  // One product needs no table of axes.
  StridedAxes<3> axes{};
  if (batches > 1) {
    axes = strided_axes<3>(
        "matmul", args.batch_shape, {args.w_batch, args.x_batch, args.c_batch});
  }
  GemvPlan plan = plan_gemv(args, batches, V);
  int64_t part = (args.depth + plan.parts - 1) / plan.parts;
  part = (part + V - 1) / V * V;
  plan.parts = static_cast<int>((args.depth + part - 1) / part);
  std::optional<Scratch> partial;
  if (plan.parts > 1) {
    partial.emplace(e.scratch(
        sizeof(float) *
        static_cast<size_t>(plan.parts * batches * args.lines)));
  }
  GemvParams<T> p{
      .w = static_cast<const T*>(args.w),
      .x = static_cast<const T*>(args.x),
      .c = static_cast<const T*>(args.c),
      .out = static_cast<T*>(args.out),
      .partial = partial ? partial->get<float>() : nullptr,
      .lines = args.lines,
      .depth = args.depth,
      .pitch = args.pitch,
      .x_stride = args.x_stride,
      .c_stride = args.c_stride,
      .batches = batches,
      .part = part,
      .alpha = args.alpha,
      .beta = args.beta,
      .warps_per_group = plan.warps_per_group,
      .packed = packed};
  dim3 grid(
      static_cast<unsigned>(plan.blocks),
      static_cast<unsigned>(std::min<int64_t>(batches, 65535)),
      static_cast<unsigned>(plan.parts));
  auto* kernel = args.depth_is_inner ? gemv_lines<T> : gemv_columns<T>;
  e.launch_overlapped(kernel, grid, kThreads, 0, p, axes);
  if (plan.parts > 1) {
    e.launch_overlapped(
        gemv_finish<T>,
        grid_for(static_cast<size_t>(batches * args.lines), kThreads),
        kThreads,
        0,
        p,
        axes,
        plan.parts);
  }
}

}  // namespace

void gemv(const GemvArgs& args, Encoder& e) {
  if (args.type == Dtype::Val::float16) {
    run_gemv<half>(args, e);
  } else if (args.type == Dtype::Val::bfloat16) {
    run_gemv<bhalf>(args, e);
  } else {
    run_gemv<float>(args, e);
  }
}

void scaled_copy(
    Dtype type,
    const void* from,
    const Shape& shape,
    const Strides& strides,
    double factor,
    void* to,
    Encoder& e) {
  auto axes = strided_axes<1>("addmm", shape, {strides});
  int64_t size = 1;
  for (ShapeElem n : shape) {
    size *= n;
  }
  auto run = [&]<typename T>(TypeTag<T>) {
    e.launch(
        scale_elements<T>,
        grid_for(static_cast<size_t>(size), kThreads),
        kThreads,
        0,
        static_cast<const T*>(from),
        axes,
        factor,
        static_cast<T*>(to),
        size);
  };
  if (type == Dtype::Val::complex64) {
    run(TypeTag<complex64>());
  } else {
    visit_real_float(type, run);
  }
}

}  // namespace mlx::core::cuda
