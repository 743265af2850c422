// Packing for the matrix product: copies lines of a strided matrix into panels,
// converting 16-bit floats and splitting complex numbers on the way. Each
// number is read and written once; whole vectors wherever a stride is one.
#include <utility>

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/gemm_micro.h"
#include "backend/cpu/kernels/register_transpose.h"
#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA {

namespace {

/// Lines contiguous along the depth: blocks of N x N through registers. A
/// panel that is not a multiple of N wide is covered from its end, and each
/// store may spill into numbers that are written later; only the last one of
/// the panel must not. Missing lines repeat the last one.
template <typename T, typename S, int Width>
void pack_along_depth(
    const S* source, int64_t line_stride, int64_t lines, int64_t depth, T* to) {
  constexpr int n = Vec<T>::size;
  constexpr int covers = (Width + n - 1) / n;
  typename Vec<T>::RawT rows[n];
  for (int64_t k = 0; k < depth; k += n) {
    size_t steps = size_t(depth - k < n ? depth - k : n);
    for (int cover = covers - 1; cover >= 0; --cover) {
      constexpr int kMissing = covers * n - Width;
      for (int i = 0; i < n; ++i) {
        int64_t line = cover * n + i < lines ? cover * n + i : lines - 1;
        const S* from = source + line * line_stride + k;
        rows[i] =
            steps == n ? load_as<T>(from).v : load_partial_as<T>(from, steps).v;
      }
      transpose_registers<n>(rows);
      bool spills = kMissing > 0 && cover == covers - 1;
      for (size_t i = 0; i < steps; ++i) {
        T* place = to + (k + int64_t(i)) * Width + cover * n;
        if (spills && k + int64_t(i) + 1 == depth) {
          Vec<T>(rows[i]).store_partial(place, size_t(n - kMissing));
        } else {
          Vec<T>(rows[i]).store(place);
        }
      }
    }
  }
}

/// One depth of one panel, when lines lie side by side.
template <typename T, typename S, int Width>
MLX_INLINE void pack_step(const S* from, int64_t lines, T* place) {
  constexpr int n = Vec<T>::size;
#pragma GCC unroll 4
  for (int j = 0; j < Width; j += n) {
    constexpr int rest = Width % n == 0 ? n : Width % n;
    int width = Width - j < n ? rest : n;
    int64_t left = lines - j < width ? lines - j : width;
    if (left == n) {
      load_as<T>(from + j).store(place + j);
    } else if (left > 0) {
      load_partial_as<T>(from + j, size_t(left))
          .store_partial(place + j, size_t(left));
    }
  }
}

/// Lines side by side: each depth is one run through memory over all panels,
/// since a run per panel would touch a page for every cache line.
template <typename T, typename S, int Width>
void pack_along_lines(
    const S* source,
    int64_t depth_stride,
    int64_t lines,
    int64_t depth,
    T* to) {
  for (int64_t k = 0; k < depth; ++k) {
    const S* from = source + k * depth_stride;
    T* place = to + k * Width;
    int64_t i = 0;
    for (; i + Width <= lines; i += Width) {
      __builtin_prefetch(from + i + 8 * depth_stride);
      pack_step<T, S, Width>(from + i, Width, place + i * depth);
    }
    if (i < lines) {
      pack_step<T, S, Width>(from + i, lines - i, place + i * depth);
    }
  }
}

/// Neither stride is one.
template <typename T, typename S, int Width>
void pack_strided(
    const S* source,
    int64_t line_stride,
    int64_t depth_stride,
    int64_t lines,
    int64_t depth,
    T* to) {
  for (int64_t k = 0; k < depth; ++k) {
    S gathered[Width];
    for (int64_t i = 0; i < lines; ++i) {
      gathered[i] = source[i * line_stride + k * depth_stride];
    }
    pack_step<T, S, Width>(gathered, lines, to + k * Width);
  }
}

template <typename T, typename S, int Width>
void pack(
    const GemmSource& source,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    void* panels) {
  T* to = static_cast<T*>(panels);
  const S* from = static_cast<const S*>(source.data) +
                  line * source.line_stride + start * source.depth_stride;
  if (source.line_stride == 1) {
    pack_along_lines<T, S, Width>(from, source.depth_stride, lines, depth, to);
    return;
  }
  for (int64_t i = 0; i < lines; i += Width) {
    int64_t present = lines - i < Width ? lines - i : Width;
    const S* first = from + i * source.line_stride;
    if (source.depth_stride == 1) {
      pack_along_depth<T, S, Width>(
          first, source.line_stride, present, depth, to + i * depth);
    } else {
      pack_strided<T, S, Width>(
          first,
          source.line_stride,
          source.depth_stride,
          present,
          depth,
          to + i * depth);
    }
  }
}

/// Rows of a complex A: depth 2k holds real parts, 2k + 1 imaginary parts.
void pack_complex_a(
    const GemmSource& source,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    float* to) {
  for (int64_t i = 0; i < lines; ++i) {
    const float* from =
        static_cast<const float*>(source.data) +
        2 * ((line + i) * source.line_stride + start / 2 * source.depth_stride);
    float* panel = to + i / kTileRows * kTileRows * depth + i % kTileRows;
    for (int64_t k = 0; k < depth; k += 2) {
      panel[k * kTileRows] = from[k * source.depth_stride];
      panel[(k + 1) * kTileRows] = from[k * source.depth_stride + 1];
    }
  }
}

/// Columns of a complex B, two panel columns and two depths per number.
void pack_complex_b(
    const GemmSource& source,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    float* to) {
  constexpr int width = kTileCols<float>;
  for (int64_t i = 0; i < lines; i += 2) {
    const float* from = static_cast<const float*>(source.data) +
                        (line + i) * source.line_stride +
                        start * source.depth_stride;
    float* panel = to + i / width * width * depth + i % width;
    for (int64_t k = 0; k < depth; k += 2) {
      float re = from[k * source.depth_stride];
      float im = from[k * source.depth_stride + 1];
      panel[k * width] = re;
      panel[k * width + 1] = im;
      panel[(k + 1) * width] = -im;
      panel[(k + 1) * width + 1] = re;
    }
  }
}

template <typename T, int Width>
void pack_real(
    const GemmSource& source,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    void* panels) {
  if constexpr (sizeof(T) == sizeof(double)) {
    pack<T, double, Width>(source, line, lines, start, depth, panels);
  } else if (source.type == Dtype::Val::float16) {
    pack<T, float16_t, Width>(source, line, lines, start, depth, panels);
  } else if (source.type == Dtype::Val::bfloat16) {
    pack<T, bfloat16_t, Width>(source, line, lines, start, depth, panels);
  } else {
    pack<T, float, Width>(source, line, lines, start, depth, panels);
  }
}

}  // namespace

void gemm_pack(
    const GemmSource& source,
    GemmSide side,
    int64_t line,
    int64_t lines,
    int64_t start,
    int64_t depth,
    void* panels) {
  bool is_a = side == GemmSide::a;
  if (source.type == Dtype::Val::complex64) {
    auto pack_complex = is_a ? pack_complex_a : pack_complex_b;
    pack_complex(
        source, line, lines, start, depth, static_cast<float*>(panels));
  } else if (source.type == Dtype::Val::float64) {
    auto pack_wide = is_a ? pack_real<double, kTileRows>
                          : pack_real<double, kTileCols<double>>;
    pack_wide(source, line, lines, start, depth, panels);
  } else {
    auto pack_float =
        is_a ? pack_real<float, kTileRows> : pack_real<float, kTileCols<float>>;
    pack_float(source, line, lines, start, depth, panels);
  }
}

}  // namespace mlx::core::cpu::MLX_ISA
