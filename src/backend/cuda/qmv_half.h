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

template <typename T, int Bits, int Unit, int Tiles>
void launch_qmv(const QmmArgs& args, Encoder& e) {
  constexpr int kStep = QmvUnit<Bits, Unit, Tiles>::step;
  constexpr int64_t kMostWarps = Tiles == 1 ? 16 : 8;
  const QuantizedMatrix& w = args.w;
  QmvOperands<T> operands(args, e);
  int64_t units = w.cols / Unit;
  int64_t line_blocks = (w.rows + kQmvLines - 1) / kQmvLines;
  int64_t row_blocks = (args.rows + 8 * Tiles - 1) / (8 * Tiles);
  int64_t wanted = int64_t(device_facts().multiprocessors) * 24;
  int64_t warps = 4;
  while (warps < kMostWarps && line_blocks * row_blocks * warps < wanted &&
         units > warps * kStep) {
    warps *= 2;
  }
  auto access = static_cast<uintptr_t>(std::max(kStep, 2) * 2);
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
      .depth = w.cols,
      .row_words = w.cols / 32 * w.bits,
      .scale_shift = 0,
      .scales_packed = w.group_size == Unit && units % kStep == 0 &&
                       addresses % access == 0};
  while ((Unit << p.scale_shift) < w.group_size) {
    ++p.scale_shift;
  }
  e.launch(
      qmv<T, Bits, Unit, Tiles>,
      dim3(
          static_cast<unsigned>(line_blocks),
          static_cast<unsigned>(row_blocks)),
      static_cast<unsigned>(warps * 32),
      static_cast<size_t>(warps) * Tiles * 4 * 32 * sizeof(float),
      p);
}

template <typename T, int Bits, int Unit>
void qmv_of_unit(const QmmArgs& args, Encoder& e) {
  if (args.rows <= 8) {
    launch_qmv<T, Bits, Unit, 1>(args, e);
  } else if (args.rows <= 16 || (Bits != 4 && Bits != 8)) {
    launch_qmv<T, Bits, Unit, 2>(args, e);
  } else {
    launch_qmv<T, Bits, Unit, Bits == 4 || Bits == 8 ? 4 : 2>(args, e);
  }
}

template <typename T, int Bits>
void qmv_of_width(const QmmArgs& args, Encoder& e) {
  if constexpr (Bits == 4 || Bits == 8) {
    if (args.w.group_size == 128) {
      return qmv_of_unit<T, Bits, 128>(args, e);
    }
    if (args.w.group_size == 64) {
      return qmv_of_unit<T, Bits, 64>(args, e);
    }
  }
  qmv_of_unit<T, Bits, 32>(args, e);
}

template <typename T>
void qmv_of_type(const QmmArgs& args, Encoder& e) {
  switch (args.w.bits) {
    case 2:
      return qmv_of_width<T, 2>(args, e);
    case 3:
      return qmv_of_width<T, 3>(args, e);
    case 4:
      return qmv_of_width<T, 4>(args, e);
    case 5:
      return qmv_of_width<T, 5>(args, e);
    case 6:
      return qmv_of_width<T, 6>(args, e);
    default:
      return qmv_of_width<T, 8>(args, e);
  }
}

}  // namespace mlx::core::cuda
