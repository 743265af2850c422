// Skinny products. Weights that are contiguous along the depth give dot
// products; weights whose lines lie side by side are added up row by row into
// sums that stay in L1. Either way a weight is loaded once for up to 8 rows.
#include "backend/cpu/kernels/gemv.h"

#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

template <typename T>
struct GemvSums {
  T* data;
  int64_t row_stride;
  int64_t line_stride;
};

/// Folds the lanes of sums that dot_lines left in memory; always in the same
/// order, halves onto halves.
template <typename T>
T fold_lanes(const T* lanes) {
  T part[Vec<T>::size];
  __builtin_memcpy(part, lanes, sizeof(part));
  for (int n = Vec<T>::size / 2; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) {
      part[i] += part[i + n];
    }
  }
  return part[0];
}

/// Elements added to one set of sums; a multiple of every vector.
constexpr int64_t kDotBlock = 2048;

/// Lines x Rows dot products at once; the more there are, the fewer loads.
template <typename T, typename S, int Lines, int Rows>
void dot_lines(
    const S* w,
    int64_t stride,
    const T* x,
    int64_t depth,
    const GemvSums<T>& sums) {
  using V = Vec<T>;
  V acc[Lines][Rows];
  V total[Lines][Rows];
  auto clear = [](V(&sums)[Lines][Rows]) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int i = 0; i < Lines; ++i) {
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        sums[i][r] = V(T(0));
      }
    }
  };
  auto add_up = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int i = 0; i < Lines; ++i) {
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        total[i][r] += acc[i][r];
      }
    }
  };
  auto step = [&](int64_t k, auto load_w, auto load_x)
      __attribute__((always_inline)) {
    V weights[Lines];
#pragma GCC unroll 8
    for (int i = 0; i < Lines; ++i) {
      weights[i] = load_w(w + i * stride + k);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      V xr = load_x(x + r * depth + k);
#pragma GCC unroll 8
      for (int i = 0; i < Lines; ++i) {
        acc[i][r] = fma(weights[i], xr, acc[i][r]);
      }
    }
  };
  clear(total);
  const int64_t whole = depth / V::size * V::size;
  int64_t k = 0;
  while (k < whole) {
    // Blocks, so that errors grow with their number and not with the depth.
    int64_t end = whole - k < kDotBlock ? whole : k + kDotBlock;
    clear(acc);
    for (; k < end; k += V::size) {
      step(
          k,
          [](const S* p)
              __attribute__((always_inline)) { return load_as<T>(p); },
          [](const T* p) __attribute__((always_inline)) { return V::load(p); });
    }
    add_up();
  }
  if (size_t rest = size_t(depth - k); rest > 0) {
    clear(acc);
    step(
        k,
        [&](const S* p) __attribute__((always_inline)) {
          return load_partial_as<T>(p, rest);
        },
        [&](const T* p) __attribute__((always_inline)) {
          return V::load_partial(p, rest);
        });
    add_up();
  }
  alignas(64) T lanes[Lines][Rows][V::size];
#pragma GCC unroll 8
  for (int i = 0; i < Lines; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      total[i][r].store(lanes[i][r]);
    }
  }
  for (int i = 0; i < Lines; ++i) {
    for (int r = 0; r < Rows; ++r) {
      sums.data[r * sums.row_stride + i * sums.line_stride] =
          fold_lanes(lanes[i][r]);
    }
  }
}

template <typename T, typename S, int Rows>
void dot_all(
    const S* w,
    int64_t stride,
    const T* x,
    int64_t lines,
    int64_t depth,
    GemvSums<T> sums) {
  constexpr int kLines = Rows <= 2 ? 4 : (Rows == 3 ? 3 : 2);
  int64_t i = 0;
  for (; i + kLines <= lines; i += kLines) {
    dot_lines<T, S, kLines, Rows>(w + i * stride, stride, x, depth, sums);
    sums.data += kLines * sums.line_stride;
  }
  for (; i < lines; ++i) {
    dot_lines<T, S, 1, Rows>(w + i * stride, stride, x, depth, sums);
    sums.data += sums.line_stride;
  }
}

/// Adds Steps rows of w, each times its number of x, to sums[Rows][lines].
template <typename T, typename S, int Steps, int Rows>
void add_steps(
    const S* w,
    int64_t stride,
    const T* x,
    int64_t depth,
    int64_t lines,
    T* sums,
    int64_t sums_stride) {
  using V = Vec<T>;
  for (int64_t j = 0; j < lines; j += V::size) {
    size_t lanes = size_t(lines - j < V::size ? lines - j : V::size);
    V weights[Steps];
#pragma GCC unroll 8
    for (int k = 0; k < Steps; ++k) {
      const S* from = w + k * stride + j;
      __builtin_prefetch(from + Steps * stride);
      weights[k] =
          lanes == V::size ? load_as<T>(from) : load_partial_as<T>(from, lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      T* place = sums + r * sums_stride + j;
      V acc = V::load(place);
#pragma GCC unroll 8
      for (int k = 0; k < Steps; ++k) {
        acc = fma(V(x[r * depth + k]), weights[k], acc);
      }
      acc.store(place);
    }
  }
}

template <typename T, typename S, int Rows>
void add_all(
    const S* w,
    int64_t stride,
    const T* x,
    int64_t lines,
    int64_t depth,
    GemvSums<T> sums) {
  constexpr int kSteps = 4;
  constexpr int64_t kChunk = 4096 / Rows / 64 * 64;  // 16 KiB of float sums
  alignas(64) T acc[Rows * kChunk];
  for (int64_t start = 0; start < lines; start += kChunk) {
    int64_t width = lines - start < kChunk ? lines - start : kChunk;
    __builtin_memset(acc, 0, sizeof(acc));
    int64_t k = 0;
    for (; k + kSteps <= depth; k += kSteps) {
      add_steps<T, S, kSteps, Rows>(
          w + k * stride + start, stride, x + k, depth, width, acc, kChunk);
    }
    for (; k < depth; ++k) {
      add_steps<T, S, 1, Rows>(
          w + k * stride + start, stride, x + k, depth, width, acc, kChunk);
    }
    for (int r = 0; r < Rows; ++r) {
      for (int64_t i = 0; i < width; ++i) {
        sums.data[r * sums.row_stride + (start + i) * sums.line_stride] =
            acc[r * kChunk + i];
      }
    }
  }
}

template <typename T, typename S>
void multiply(
    const GemmSource& source,
    const T* x,
    int64_t rows,
    int64_t first,
    int64_t lines,
    int64_t depth,
    GemvSums<T> sums) {
  const S* w = static_cast<const S*>(source.data) + first * source.line_stride;
  bool dots = source.depth_stride == 1;
  int64_t stride = dots ? source.line_stride : source.depth_stride;
  // Eight rows at most: 5 to 8 in two parts of three or four.
  while (rows > 0) {
    int64_t part = rows > 4 ? (rows + 1) / 2 : rows;
    if (part == 1) {
      (dots ? dot_all<T, S, 1>
            : add_all<T, S, 1>)(w, stride, x, lines, depth, sums);
    } else if (part == 2) {
      (dots ? dot_all<T, S, 2>
            : add_all<T, S, 2>)(w, stride, x, lines, depth, sums);
    } else if (part == 3) {
      (dots ? dot_all<T, S, 3>
            : add_all<T, S, 3>)(w, stride, x, lines, depth, sums);
    } else {
      (dots ? dot_all<T, S, 4>
            : add_all<T, S, 4>)(w, stride, x, lines, depth, sums);
    }
    rows -= part;
    x += part * depth;
    sums.data += part * sums.row_stride;
  }
}

template <typename T, typename S>
void copy_lines(const GemmSource& source, int64_t lines, int64_t depth, T* to) {
  constexpr int64_t n = Vec<T>::size;
  for (int64_t i = 0; i < lines; ++i) {
    const S* from = static_cast<const S*>(source.data) + i * source.line_stride;
    for (int64_t k = 0; k < depth; k += n) {
      size_t lanes = size_t(depth - k < n ? depth - k : n);
      if (source.depth_stride == 1 && lanes == size_t(n)) {
        load_as<T>(from + k).store(to + i * depth + k);
        continue;
      }
      S gathered[n];
      const S* part = from + k;
      if (source.depth_stride != 1) {
        for (size_t j = 0; j < lanes; ++j) {
          gathered[j] = from[(k + int64_t(j)) * source.depth_stride];
        }
        part = gathered;
      }
      load_partial_as<T>(part, lanes).store_partial(to + i * depth + k, lanes);
    }
  }
}

}  // namespace

void gemv_rows(
    const GemmSource& source, int64_t lines, int64_t depth, void* to) {
  if (source.type == Dtype::Val::float64) {
    copy_lines<double, double>(source, lines, depth, static_cast<double*>(to));
  } else if (source.type == Dtype::Val::float16) {
    copy_lines<float, float16_t>(source, lines, depth, static_cast<float*>(to));
  } else if (source.type == Dtype::Val::bfloat16) {
    copy_lines<float, bfloat16_t>(
        source, lines, depth, static_cast<float*>(to));
  } else {
    copy_lines<float, float>(source, lines, depth, static_cast<float*>(to));
  }
}

void gemv_lines(
    const GemmSource& w,
    const void* x,
    int64_t rows,
    int64_t first,
    int64_t lines,
    int64_t depth,
    void* sums,
    int64_t row_stride,
    int64_t line_stride) {
  if (w.type == Dtype::Val::float64) {
    multiply<double, double>(
        w,
        static_cast<const double*>(x),
        rows,
        first,
        lines,
        depth,
        {static_cast<double*>(sums), row_stride, line_stride});
    return;
  }
  auto run = w.type == Dtype::Val::float16
                 ? multiply<float, float16_t>
                 : (w.type == Dtype::Val::bfloat16 ? multiply<float, bfloat16_t>
                                                   : multiply<float, float>);
  run(w,
      static_cast<const float*>(x),
      rows,
      first,
      lines,
      depth,
      {static_cast<float*>(sums), row_stride, line_stride});
}

}  // namespace mlx::core::cpu::MLX_ISA
