// Launches of device/qmv.cuh, shared by the units of float16 and bfloat16.
#pragma once

#include <algorithm>
#include <optional>

#include "backend/cuda/copy.h"
#include "backend/cuda/device/qmv.cuh"
#include "backend/cuda/qmv.h"

namespace mlx::core::cuda {

/// Operands as the kernel wants them, copied where they are not.
template <typename T>
class QmvOperands {
 public:
  QmvOperands(const QmmArgs& args, Encoder& e) {
    const QuantizedMatrix& w = args.w;
    bool as_is = (args.col_stride == 1 || w.cols == 1) &&
                 (args.row_stride == w.cols || args.rows == 1) &&
                 is_aligned(args.x);
    x = static_cast<const T*>(args.x);
    if (!as_is) {
      auto rows = static_cast<ShapeElem>(args.rows);
      auto cols = static_cast<ShapeElem>(w.cols);
      x_copy_.emplace(e.scratch(sizeof(T) * size_t(args.rows * w.cols)));
      copy_strided(
          args.x,
          {args.row_stride, args.col_stride},
          x_copy_->get(),
          {w.cols, 1},
          {rows, cols},
          sizeof(T),
          e);
      x = x_copy_->template get<T>();
    }
    codes = w.codes;
    if (!is_aligned(w.codes)) {
      auto bytes = static_cast<size_t>(w.rows * w.cols / 8 * w.bits);
      codes_copy_.emplace(e.scratch(bytes));
      e.copy_bytes(codes_copy_->get(), w.codes, bytes);
      codes = codes_copy_->template get<uint32_t>();
    }
  }

  const T* x;
  const uint32_t* codes;

 private:
  static bool is_aligned(const void* address) {
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
  }

  std::optional<Scratch> x_copy_;
  std::optional<Scratch> codes_copy_;
};

template <typename T, int Bits, int Group, int Rows, int Tiles>
void launch_qmv(const QmmArgs& args, Encoder& e) {
  constexpr int64_t kRowsOfBlock = Rows * Tiles;
  const QuantizedMatrix& w = args.w;
  QmvOperands<T> operands(args, e);
  int64_t groups = w.cols / Group;
  int64_t rounds = (groups + kQmvRound - 1) / kQmvRound;
  constexpr int64_t kLines = kQmvLines<Tiles>;
  int64_t line_blocks = (w.rows + kLines - 1) / kLines;
  int64_t row_blocks = (args.rows + kRowsOfBlock - 1) / kRowsOfBlock;
  // All blocks at once, with as many warps as then fit: alike on the four parts
  // of a multiprocessor. Where fewer than four or two would fit, blocks of four
  // take turns.
  constexpr int64_t kMostWarps = 16384 / (32 * kQmvRegisters<Rows, Tiles>)*4;
  constexpr int64_t kFewestWarps = Rows == 1 ? 4 : 2;
  int64_t processors = device_facts().multiprocessors;
  int64_t blocks = (line_blocks * row_blocks + processors - 1) / processors;
  int64_t warps = std::min<int64_t>(kMostWarps / blocks, 16);
  warps = warps > 4 ? warps / 4 * 4 : warps;
  warps = std::min(warps < kFewestWarps ? 4 : warps, rounds);
  auto addresses = reinterpret_cast<uintptr_t>(w.scales) |
                   reinterpret_cast<uintptr_t>(w.biases);
  QmvParams<T> p{
      .codes = operands.codes,
      .scales = static_cast<const T*>(w.scales),
      .biases = static_cast<const T*>(w.biases),
      .x = operands.x,
      .out = static_cast<T*>(args.out),
      .lines = w.rows,
      .rows = args.rows,
      .depth = static_cast<int>(w.cols),
      .pairs = groups % 2 == 0 && addresses % 4 == 0};
  dim3 grid(
      static_cast<unsigned>(line_blocks), static_cast<unsigned>(row_blocks));
  e.launch_overlapped(
      qmv<T, Bits, Group, Rows, Tiles>,
      grid,
      static_cast<unsigned>(warps * 32),
      sizeof(float) * static_cast<size_t>(warps * (kLines / 4) * Tiles * 32),
      p);
}

template <typename T, int Bits, int Group>
void qmv_of_group(const QmmArgs& args, Encoder& e) {
  // Widths that are rare get fewer kernels.
  constexpr bool kRare = Bits != 4 && Bits != 8;
  if constexpr (!kRare) {
    if (args.rows == 1) {
      return launch_qmv<T, Bits, Group, 1, 1>(args, e);
    }
    if (args.rows <= 4) {
      return launch_qmv<T, Bits, Group, 4, 1>(args, e);
    }
  }
  if (args.rows <= 8) {
    launch_qmv<T, Bits, Group, 8, 1>(args, e);
  } else if (args.rows <= 16) {
    launch_qmv<T, Bits, Group, 8, 2>(args, e);
  } else {
    launch_qmv<T, Bits, Group, 8, kRare ? 2 : 4>(args, e);
  }
}

template <typename T, int Bits>
void qmv_of_width(const QmmArgs& args, Encoder& e) {
  switch (args.w.group_size) {
    case 32:
      return qmv_of_group<T, Bits, 32>(args, e);
    case 64:
      return qmv_of_group<T, Bits, 64>(args, e);
    default:
      return qmv_of_group<T, Bits, 128>(args, e);
  }
}

}  // namespace mlx::core::cuda
