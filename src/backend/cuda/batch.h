// Small operations that wait for their neighbours: a launch costs the host
// more than the device needs for a few thousand elements, so they are noted in
// a list, and the list is launched as one kernel before anything else is.
//
// Narrow entries are the work of one block. Wide ones, products with a
// quantized matrix and attention of one token, are shared by all blocks. A list
// of narrow entries alone runs in one block; any other takes a block of each
// multiprocessor, and the blocks meet where an entry needs what another block
// has done (batch_list.h finds these places). A few narrow entries before a
// product are done by every block, for itself alone, rather than met for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mlx/dtype.h"
#include "ops/elementwise_op.h"

namespace mlx::core::cuda {

enum class BatchKind : uint8_t {
  elementwise,
  copy,
  rms_norm,
  rope,
  dequantize,
  search,
  // Wide ones.
  quantized_row,
  attention,
  attention_join
};

constexpr bool is_wide(BatchKind kind) {
  return kind >= BatchKind::quantized_row;
}

/// One operation. Addresses are the device's.
struct BatchEntry {
  /// Elements up to which one block is as good as many.
  static constexpr size_t most_elements = 8192;

  struct Elementwise {
    uint64_t from[3];  // an address, or the bits of an immediate operand
    void* to;
  };
  /// Elements of `width` bytes along three axes; strides in elements. With a
  /// position, of types[0] and known to the device, one side begins so far
  /// along an axis: below 0 it counts from the end, and moves to the nearest
  /// where the slice fits.
  struct Copy {
    const void* from;
    const void* position;  // or null
    void* to;
    uint32_t sizes[2];  // of the inner axes
    int32_t from_strides[3];
    int32_t to_strides[3];
    int32_t length;  // of the position's axis
    int32_t last;    // of its positions
    int32_t stride;
    bool moves_from;  // else it moves `to`
  };
  /// With `added`, a row of as many numbers, the norm is that of the sum, which
  /// is kept too.
  struct Norm {
    const void* from;
    const void* weight;  // or null
    void* to;
    const void* added;  // or null
    void* sum;
    int32_t rows;
    int32_t n;
    int32_t pitch;
    float eps;
  };

  /// One token: heads of `features` each, the first 2 * half turn.
  struct Rope {
    const void* from;
    const float* freqs;     // or null
    const int32_t* offset;  // null: `position` is known
    void* to;
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

  /// A row of x times the transpose of a quantized matrix of `size` lines; or
  /// without x, the numbers of `size` octets of codes. types[0] is that of x
  /// and the result, types[1] that of scales and biases.
  struct QuantizedRow {
    const uint32_t* codes;
    const void* scales;
    const void* biases;
    const void* x;  // 16-byte aligned
    void* to;
    int32_t depth;
    uint8_t bits;
    uint8_t octet_shift;  // octets in a group, as a power of two
  };

  /// One query row of each of `size` heads. With several splits each leaves its
  /// part, float32, for attention_join: values, maximum, sum. Strides in
  /// elements, of heads and of tokens. A mask, one for all heads, is of
  /// types[1]: bool or the type of q.
  struct Attention {
    const void* q;
    const void* k;
    const void* v;
    const void* mask;  // or null; 16-byte aligned
    void* to;
    int32_t q_head;
    int32_t k_head;
    int32_t k_token;
    int32_t v_head;
    int32_t v_token;
    int32_t keys;
    float scale;
    uint8_t feature_octets;
    uint8_t value_octets;
    uint8_t group;  // query heads a key head
    uint8_t splits;
  };
  /// The place of the largest of `size` numbers, or of the smallest.
  struct Search {
    const void* from;  // 16-byte aligned
    uint32_t* to;
    bool largest;
  };
  struct Join {
    const float* from;
    void* to;
    int32_t splits;
    int32_t value_features;
  };

  static constexpr int most_own = 4;

  BatchKind kind;
  ElementwiseOp op;
  uint8_t operands;    // of an elementwise operation
  uint8_t width;       // of a copy's elements
  uint8_t types[4];    // of the operands, then of the result
  uint8_t immediates;  // bit k: operand k is from[k] itself
  uint8_t splats;      // bit k: operand k is one element
  uint16_t first;      // the block that begins
  uint32_t size;
  /// Of a copy that does not touch what the next entry, another, does: in a
  /// list of narrow entries they are done side by side.
  bool goes_with_next;
  /// Where blocks but `owner` have operands and results in memory of their own:
  /// words of what follows, and bytes from its beginning.
  uint8_t owner;
  uint8_t own_count;
  uint8_t own_words[most_own];
  uint16_t own_bytes[most_own];
  union {
    Elementwise elementwise;
    Copy copy;
    Norm norm;
    Rope rope;
    QuantizedRow quantized_row;
    Attention attention;
    Join join;
    Search search;
  };
};
// A list's entries travel with its launch and lie in shared memory.
static_assert(sizeof(BatchEntry) <= 104);

/// Whether lists know the type: the real floating types of up to 32 bits.
constexpr bool batches(Dtype t) {
  return t.val() == Dtype::Val::float32 || t.val() == Dtype::Val::float16 ||
         t.val() == Dtype::Val::bfloat16;
}

/// The types of positions and lengths.
constexpr bool batches_whole(Dtype::Val t) {
  return t == Dtype::Val::int32 || t == Dtype::Val::uint32 ||
         t == Dtype::Val::int64;
}

/// Whether lists know the operation on whole numbers; of bools, the few that
/// masks are put together by.
constexpr bool batches_whole(ElementwiseOp op, bool is_bool) {
  switch (op) {
    case ElementwiseOp::add:
    case ElementwiseOp::subtract:
    case ElementwiseOp::multiply:
    case ElementwiseOp::negative:
    case ElementwiseOp::maximum:
    case ElementwiseOp::minimum:
    case ElementwiseOp::less:
    case ElementwiseOp::less_equal:
    case ElementwiseOp::greater:
    case ElementwiseOp::greater_equal:
      return !is_bool;
    case ElementwiseOp::equal:
    case ElementwiseOp::not_equal:
    case ElementwiseOp::logical_and:
    case ElementwiseOp::logical_or:
    case ElementwiseOp::logical_not:
    case ElementwiseOp::bitwise_and:
    case ElementwiseOp::bitwise_or:
      return true;
    default:
      return false;
  }
}

/// Whether lists know an operation of one or two operands; `real` converts.
constexpr bool batches(ElementwiseOp op, Dtype from, Dtype to) {
  bool is_bool = from.val() == Dtype::Val::bool_;
  bool gives_whole = to.val() == Dtype::Val::bool_ || batches_whole(to.val());
  if (!is_bool && !batches_whole(from.val())) {
    return batches(from) && (batches(to) || to.val() == Dtype::Val::bool_);
  }
  if (op == ElementwiseOp::real) {
    return gives_whole || to.val() == Dtype::Val::float32;
  }
  return batches_whole(op, is_bool) && gives_whole;
}

constexpr uint8_t batch_type(Dtype t) {
  return static_cast<uint8_t>(t.val());
}

/// What travels with one launch.
template <int capacity>
struct Batch {
  BatchEntry entries[capacity];
};

/// Who does an entry, apart from the entry, because all blocks look at all.
struct BatchHead {
  static constexpr uint8_t all = 255;
  uint8_t block;  // or all
  bool after_meeting;
  bool everywhere;  // by other blocks too, for themselves
};

template <int capacity>
struct BatchHeads {
  BatchHead heads[capacity];
};

/// Threads of a block for narrow entries: as many as the widest can use.
constexpr int kFewestThreads = 128;

constexpr int kFewEntries = 6;
constexpr int kNarrowEntries = 40;
constexpr int kNarrowThreads = 1024;
/// Of a row whose norm is taken, what a thread has at a time.
constexpr int kNormNumbers = 4;
constexpr int kWideEntries = 160;
constexpr int kWideThreads = 512;
constexpr int kMostBlocks = 254;
/// What a block has for results of its own.
constexpr int kOwnBytes = 24 << 10;
/// The depth of products and the features of a head that lists know.
constexpr int kBatchDepth = 4096;
constexpr int kBatchFeatures = 128;

using BatchKernelFew = void (*)(int count, Batch<kFewEntries>);
using BatchKernelNarrow = void (*)(int count, Batch<kNarrowEntries>);
BatchKernelFew batch_kernel_few();
BatchKernelNarrow batch_kernel_narrow();

/// All blocks must run at once (a cooperative launch); `meetings` counts how
/// often one has come to a meeting, over all launches on a stream.
using BatchKernelWide = void (*)(
    int count,
    BatchHeads<kWideEntries>,
    Batch<kWideEntries>,
    unsigned long long* meetings);
BatchKernelWide batch_kernel_wide();

}  // namespace mlx::core::cuda
