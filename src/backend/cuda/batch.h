// Small operations that wait for their neighbours: a launch costs the host
// more than the device needs for a few thousand elements, so what one block of
// threads does in a few steps is noted in a list, and the list is launched as
// one kernel before anything else is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mlx/dtype.h"
#include "ops/elementwise_op.h"

namespace mlx::core::cuda {

enum class BatchKind : uint8_t { elementwise, copy, rms_norm, rope };

/// One operation. Addresses are the device's.
struct BatchEntry {
  /// Elements up to which one block is as good as many.
  static constexpr size_t most_elements = 8192;

  struct Elementwise {
    uint64_t from[3];  // an address, or the bits of an immediate operand
    void* to;
  };
  /// Elements of `width` bytes along three axes; strides in elements.
  struct Copy {
    const void* from;
    void* to;
    uint32_t sizes[2];  // of the inner axes
    int32_t from_strides[3];
    int32_t to_strides[3];
  };
  struct Norm {
    const void* from;
    const void* weight;  // or null
    void* to;
    int32_t rows;
    int32_t n;
    int32_t pitch;
    float eps;
  };

  /// One token: heads of `features` each, the first 2 * half turn.
  struct Rope {
    const void* from;
    void* to;
    const float* freqs;  // or null
    double exponent;
    float scale;
    int32_t position;
    int32_t features;
    int32_t half;
    int32_t head_stride;
    int32_t freqs_stride;
    bool traditional;
    bool forward;
  };

  BatchKind kind;
  ElementwiseOp op;
  uint8_t operands;     // of an elementwise operation
  uint8_t width;        // of a copy's elements
  Dtype::Val types[4];  // of the operands, then of the result
  uint8_t immediates;   // bit k: operand k is from[k] itself
  uint8_t splats;       // bit k: operand k is one element
  uint32_t size;
  union {
    Elementwise elementwise;
    Copy copy;
    Norm norm;
    Rope rope;
  };
};

/// Whether lists know the type: the real floating types of up to 32 bits.
constexpr bool batches(Dtype t) {
  return t.val() == Dtype::Val::float32 || t.val() == Dtype::Val::float16 ||
         t.val() == Dtype::Val::bfloat16;
}

/// What travels with one launch.
template <int capacity>
struct Batch {
  int count;
  BatchEntry entries[capacity];
};

constexpr int kFewEntries = 6;
constexpr int kManyEntries = 40;
constexpr int kBatchThreads = 1024;

using BatchKernelFew = void (*)(Batch<kFewEntries>);
using BatchKernelMany = void (*)(Batch<kManyEntries>);
BatchKernelFew batch_kernel_few();
BatchKernelMany batch_kernel_many();

}  // namespace mlx::core::cuda
