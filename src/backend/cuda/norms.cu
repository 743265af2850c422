// A packed row up to 32 KiB stays in registers from its only reading to its
// only writing. Other rows are read once more for each mean. The variance is
// that of the centred values: the difference of the mean square and the squared
// mean loses all digits where the mean is large.
#include "backend/cuda/copy.h"
#include "backend/cuda/device/row.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/norms.h"
#include "backend/cuda/row_view.h"

namespace mlx::core::cuda {

namespace {

template <typename T>
struct Rows {
  const T* x;
  int64_t pitch;
  /// Null where there is none.
  const T* weight;
  const T* bias;
  T* y;
  int64_t rows;
  int64_t n;
  float eps;
  /// Layer rather than RMS normalisation.
  bool centered;
};

template <typename A>
__device__ __forceinline__ A factor_of(A power, float eps) {
  return A(1) / sqrt(power + A(eps));
}

// The sum of (x - mean)^2 over a pack.
template <typename T>
__device__ __forceinline__ compute_t<T> power_of(
    const RowPack<T>& pack, compute_t<T> mean) {
  compute_t<T> x[RowPack<T>::N];
  pack.split(x);
  compute_t<T> power(0);
#pragma unroll
  for (auto v : x) {
    power += (v - mean) * (v - mean);
  }
  return power;
}

// Up to 512 threads a row, 64 bytes of it and of its weights in flight for each
// of them: 64 KiB of rows on a processor at 64 registers, which is why a bias
// is read only when it is wanted. Moves each element in and out once. An absent
// weight is 1, an absent bias -0, which leave what they meet as it is.
template <typename T, int K, bool centered>
__global__ void __maxnreg__(kHeldRegisters) norm_held(Rows<T> a) {
  using A = compute_t<T>;
  constexpr int N = pack_size_v<T>;
  using Row = HeldRow<T, K>;
  __shared__ A shared[64];
  RowCombiner<A> combine(shared);
  int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  int n = static_cast<int>(a.n);
  Row held;
  held.fill(A(0));
  if (row < a.rows) {
    held.load(a.x + row * a.pitch, n);
  }
  Row weight;
  weight.fill(A(1));
  if (a.weight) {
    weight.load(a.weight, n);
  }
  A share = A(1) / static_cast<A>(n);
  A mean = A(0);
  if constexpr (centered) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      A x[N];
      held.packs[k].split(x);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        mean += x[i];
      }
    }
    mean = combine(mean, A(0), SumOf()) * share;
    held.stay_joined();
  }
  A power = A(0);
#pragma unroll
  for (int k = 0; k < K; ++k) {
    A part = power_of(held.packs[k], mean);
    power += Row::place(k) < n ? part : A(0);
  }
  power = combine(power, A(0), SumOf()) * share;
  A factor = factor_of(power, a.eps);
  held.stay_joined();
  weight.stay_joined();
  T* y = a.y + row * a.n;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    A x[N];
    A w[N];
    held.packs[k].split(x);
    weight.packs[k].split(w);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      x[i] = (x[i] - mean) * factor * w[i];
    }
    bool exists = Row::place(k) < n && row < a.rows;
    if constexpr (centered) {
      RowPack<T> bias = RowPack<T>::of(-A(0));
      if (exists && a.bias) {
        bias.load(a.bias + Row::place(k));
      }
      A b[N];
      bias.split(b);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        x[i] += b[i];
      }
    }
    if (exists) {
      RowPack<T> pack;
      pack.join(x);
      pack.store(y + Row::place(k));
    }
  }
}

// Up to 1024 threads a row, 16 KiB a step. Partial sums go to double after
// each step.
template <typename T, bool packed>
__global__ void __launch_bounds__(kWalkThreads) norm_walk(Rows<T> a) {
  using A = compute_t<T>;
  using Row = RowStep<T, packed>;
  __shared__ double shared[64];
  RowCombiner<double> combine(shared);
  int64_t step = Row::size();
  int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  int64_t n = row < a.rows ? a.n : 0;
  const T* x = a.x + row * a.pitch;
  auto each_step = [&](auto&& f) {
    for (int64_t at = 0; at < n; at += step) {
      int m = static_cast<int>(n - at < step ? n - at : step);
      Row held;
      held.load(x + at, m, A(0));
      f(held, at, m);
    }
  };
  double total = 0;
  if (a.centered) {
    each_step([&](const Row& held, int64_t, int) {
      A part = A(0);
#pragma unroll
      for (A v : held.values) {
        part += v;
      }
      total += static_cast<double>(part);
    });
    total = combine(total, 0.0, SumOf());
  }
  A mean = static_cast<A>(total / static_cast<double>(a.n));
  double power = 0;
  each_step([&](const Row& held, int64_t, int m) {
    A part = A(0);
#pragma unroll
    for (int i = 0; i < Row::N; ++i) {
      A d = Row::place(i) < m ? held.values[i] - mean : A(0);
      part += d * d;
    }
    power += static_cast<double>(part);
  });
  power = combine(power, 0.0, SumOf()) / static_cast<double>(a.n);
  A factor = static_cast<A>(factor_of(power, a.eps));
  each_step([&](Row& held, int64_t at, int m) {
    Row weight;
    Row bias;
    if (a.weight) {
      weight.load(a.weight + at, m, A(0));
    }
    if (a.bias) {
      bias.load(a.bias + at, m, A(0));
    }
#pragma unroll
    for (int i = 0; i < Row::N; ++i) {
      A y = (held.values[i] - mean) * factor;
      y = a.weight ? y * weight.values[i] : y;
      held.values[i] = a.bias ? y + bias.values[i] : y;
    }
    held.store(a.y + row * a.n + at, m);
  });
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

template <typename T>
void launch_rows(const Rows<T>& rows, bool packed, Encoder& e) {
  RowSplit split = row_split(rows.rows, rows.n, sizeof(T), packed);
  auto launch = [&](auto* kernel) {
    e.launch(kernel, split.grid(rows.rows), split.block, 0, rows);
  };
  if (split.packs == 0) {
    launch(packed ? &norm_walk<T, true> : &norm_walk<T, false>);
  } else {
    visit_packs(split.packs, [&](auto packs) {
      launch(
          rows.centered ? &norm_held<T, packs(), true>
                        : &norm_held<T, packs(), false>);
    });
  }
}

// Notes few short rows without bias in the encoder's list.
bool note_rms_norm(
    const RowView& view,
    const array* weight,
    array& out,
    float eps,
    Encoder& e) {
  const void* from = e.in(view.data);
  const void* scale = weight ? e.in(*weight) : nullptr;
  if (view.rows > 4 || view.rows * view.n > 8192 || view.pitch < 0 ||
      view.rows * view.pitch > 65536 || !batches(out.dtype()) ||
      !e.can_batch()) {
    return false;
  }
  BatchEntry entry{};
  entry.kind = BatchKind::rms_norm;
  entry.types[0] = batch_type(out.dtype());
  entry.norm = {
      from,
      scale,
      e.out(out),
      nullptr,
      nullptr,
      static_cast<int32_t>(view.rows),
      static_cast<int32_t>(view.n),
      static_cast<int32_t>(view.pitch),
      eps};
  e.batch(entry);
  return true;
}

void norm(
    const fast::NormParams& params,
    bool centered,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  const array& x = inputs[0];
  if (!x.flags().row_contiguous || !e.donate_to_noted(x, out)) {
    e.allocate(out);
  }
  if (out.size() == 0) {
    return;
  }
  RowView view = row_view(x, e);
  // x stands for what is absent.
  const array scale = params.has_weight ? row_contiguous(inputs[1], e) : x;
  const array shift = params.has_bias ? row_contiguous(inputs.back(), e) : x;
  const array* weight = params.has_weight ? &scale : nullptr;
  if (!centered && note_rms_norm(view, weight, out, params.eps, e)) {
    return;
  }
  visit_real_float(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = e.in<T>(view.data);
    const T* factors = params.has_weight ? e.in<T>(scale) : nullptr;
    const T* bias = params.has_bias ? e.in<T>(shift) : nullptr;
    bool packed =
        view.is_packed(from) && is_aligned(factors) && is_aligned(bias);
    launch_rows(
        Rows<T>{
            from,
            view.pitch,
            factors,
            bias,
            e.out<T>(out),
            view.rows,
            view.n,
            params.eps,
            centered},
        packed,
        e);
  });
}

}  // namespace

void rms_norm(
    const fast::RMSNorm& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  norm(op.params(), false, inputs, out, e);
}

void layer_norm(
    const fast::LayerNorm& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  norm(op.params(), true, inputs, out, e);
}

}  // namespace mlx::core::cuda
