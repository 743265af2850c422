// The executor of elementwise operations. The limit is memory bandwidth, so a
// thread takes blocks of 1024 elements through load, convert, operation,
// convert and store while they are in its first cache; large results are
// stored past the caches, which saves reading their lines (45 against 34 GB/s
// for a copy on a 2-core Zen 4).
#include "backend/cpu/elementwise.h"

#include <cstring>
#include <optional>

#include "backend/common/layouts.h"
#include "backend/cpu/block_source.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

constexpr size_t kMaxOperands = 3;
constexpr size_t kGrainBlocks = 8;

bool is_half(Dtype t) {
  return t == float16 || t == bfloat16;
}

// What one operation does with blocks.
struct BlockOp {
  BlockFn function;
  /// Type in which the function leaves its result.
  Dtype result;
};

// Gives out its buffer: an input's when it is free and fits, else a new one.
// With a layout, out takes it.
void prepare_output(
    const std::vector<array>& inputs, array& out, const array* layout) {
  for (const array& in : inputs) {
    bool fits = in.shape() == out.shape() && is_donatable(in, out) &&
                (layout ? in.strides() == layout->strides()
                        : in.flags().row_contiguous);
    if (fits) {
      out.copy_shared_buffer(in);
      return;
    }
  }
  if (layout) {
    out.set_data(
        allocator::malloc(out.nbytes()),
        out.size(),
        layout->strides(),
        layout->flags());
  } else {
    out.set_data(allocator::malloc(out.nbytes()));
  }
}

// The elements [begin, end) of the output.
class Chunk {
 public:
  Chunk(const BlockOp& op, array& out, bool streaming)
      : op_(op),
        to_(out.data<char>()),
        out_size_(out.itemsize()),
        streaming_(streaming) {
    if (out.dtype() != op.result) {
      narrow_ = convert_block(op.result, out.dtype());
    }
  }

  void add(
      const array& a,
      const Shape& shape,
      const Strides& strides,
      Dtype compute) {
    sources_[count_++].emplace(a, shape, strides, compute);
  }

  void run(size_t begin, size_t end) {
    size_t step = streaming_ ? kStreamedPiece / out_size_ : kBlock;
    for (size_t at = begin; at < end; at += step) {
      run_block(at, std::min(step, end - at));
    }
    if (streaming_) {
      finish_streaming();
    }
  }

 private:
  void run_block(size_t at, size_t n) {
    const void* in[kMaxOperands];
    for (size_t k = 0; k < count_; ++k) {
      in[k] = sources_[k]->block(at, n);
    }
    char* target = to_ + at * out_size_;
    // A result of another width, or one stored past the caches, is made in a
    // buffer first.
    bool direct = !narrow_ && !streaming_;
    char* result = direct ? target : result_;
    op_.function(in, result, n);
    if (narrow_) {
      const void* wide[] = {result_};
      result = streaming_ ? narrowed_ : target;
      narrow_(wide, result, n);
    }
    if (streaming_) {
      copy_streaming(result, target, n * out_size_);
    }
  }

  const BlockOp& op_;
  char* to_;
  size_t out_size_;
  bool streaming_;
  BlockFn narrow_ = nullptr;
  size_t count_ = 0;
  std::optional<BlockSource> sources_[kMaxOperands];
  alignas(64) char result_[kBlockBytes];
  alignas(64) char narrowed_[kBlockBytes];
};

void run(
    const BlockOp& op,
    const std::vector<array>& given,
    array& out,
    const std::vector<Dtype>& computes) {
  if (out.size() == 0) {
    allocate_output(out);
    return;
  }
  std::vector<array> copies;
  const std::vector<array>* inputs = &given;
  const array* layout = common_layout(given, out);
  if (!layout) {
    for (const array& in : given) {
      if (is_transposed(in, out.shape())) {
        copies = given;
        break;
      }
    }
    for (array& in : copies) {
      in = is_transposed(in, out.shape()) ? row_contiguous(in) : in;
    }
    inputs = copies.empty() ? inputs : &copies;
  }
  prepare_output(*inputs, out, layout);
  bool streaming =
      out.nbytes() >= kStreamingBytes && out.data_shared_ptr().use_count() == 1;
  parallel_for(
      (out.size() + kBlock - 1) / kBlock,
      kGrainBlocks,
      [&](size_t begin, size_t end) {
        Chunk chunk(op, out, streaming);
        for (size_t k = 0; k < inputs->size(); ++k) {
          const array& in = (*inputs)[k];
          if (layout) {
            // One axis; its length only has to differ from 1.
            chunk.add(
                in, Shape{2}, Strides{in.size() == 1 ? 0 : 1}, computes[k]);
          } else {
            chunk.add(
                in,
                out.shape(),
                broadcast_strides(in, out.shape()),
                computes[k]);
          }
        }
        chunk.run(begin * kBlock, std::min(end * kBlock, out.size()));
      });
}

}  // namespace

void elementwise(
    const Elementwise& op, const std::vector<array>& inputs, array& out) {
  bool is_select = op.op() == ElementwiseOp::select;
  Dtype operand = inputs.back().dtype();
  Dtype compute = is_half(operand) && !is_select ? float32 : operand;
  unsigned scalar_mask = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    // As BlockSource decides it: one element, or the output has only one.
    bool scalar = inputs[k].size() == 1 || inputs[k].data_size() == 1;
    scalar_mask |= (scalar ? 1u : 0u) << k;
  }
  BlockFn function = elementwise_block(op.op(), compute, scalar_mask);
  if (!function) {
    throw std::runtime_error(message(
        elementwise_info(op.op()).name,
        "has no cpu kernel for ",
        operand,
        "."));
  }
  std::vector<Dtype> computes(inputs.size(), compute);
  if (is_select) {
    computes[0] = bool_;
  }
  BlockOp block{function, elementwise_result_dtype(op.op(), compute)};
  run(block, inputs, out, computes);
}

void as_type(const AsType&, const array& x, array& out) {
  if (x.data_size() == 1) {
    // A repeated element stays one.
    out.set_data(allocator::malloc(out.itemsize()), 1, x.strides(), x.flags());
    const void* from[] = {x.data<char>()};
    convert_block(x.dtype(), out.dtype())(from, out.data<char>(), 1);
    return;
  }
  BlockOp block{convert_block(x.dtype(), out.dtype()), out.dtype()};
  run(block, {x}, out, {x.dtype()});
}

}  // namespace mlx::core::cpu
