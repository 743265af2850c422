// The executor of elementwise operations. The limit is memory bandwidth, so a
// thread takes blocks of 1024 elements through load, convert, operation,
// convert and store while they are in its first cache; large results are
// stored past the caches, which saves reading their lines (45 against 34 GB/s
// for a copy on a 2-core Zen 4).
#include "backend/cpu/elementwise.h"

#include <cstring>

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
  /// Types of the first operand and of the others.
  Dtype first;
  Dtype others;
};

// An operand as all threads see it.
struct Operand {
  BlockView view;
  BlockFn convert = nullptr;

  // `in_order`: its elements are to be taken in the order of memory.
  void read(const array& in, const Shape& shape, bool in_order, Dtype compute) {
    using Kind = BlockView::Kind;
    const char* data = in.data<char>();
    if (in.size() == 1 || in_order) {
      Kind kind = in.size() == 1 ? Kind::scalar : Kind::contiguous;
      view = BlockView(data, in.itemsize(), kind);
    } else {
      view =
          BlockView(data, in.itemsize(), shape, broadcast_strides(in, shape));
    }
    if (in.dtype() != compute) {
      convert = convert_block(in.dtype(), compute);
    }
  }
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

  void add(const Operand& operand) {
    sources_[count_++].open(operand.view, operand.convert);
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
      in[k] = sources_[k].block(at, n);
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
  BlockSource sources_[kMaxOperands];
  alignas(64) char result_[kBlockBytes];
  alignas(64) char narrowed_[kBlockBytes];
};

void run(const BlockOp& op, const std::vector<array>& given, array& out) {
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
  Operand operands[kMaxOperands];
  for (size_t k = 0; k < inputs->size(); ++k) {
    Dtype compute = k == 0 ? op.first : op.others;
    operands[k].read((*inputs)[k], out.shape(), layout != nullptr, compute);
  }
  bool streaming =
      out.nbytes() >= kStreamingBytes && out.data_shared_ptr().use_count() == 1;
  parallel_for(
      (out.size() + kBlock - 1) / kBlock,
      kGrainBlocks,
      [&](size_t begin, size_t end) {
        Chunk chunk(op, out, streaming);
        for (size_t k = 0; k < inputs->size(); ++k) {
          chunk.add(operands[k]);
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
  BlockOp block{
      function,
      elementwise_result_dtype(op.op(), compute),
      is_select ? bool_ : compute,
      compute};
  run(block, inputs, out);
}

void as_type(const AsType&, const array& x, array& out) {
  if (x.data_size() == 1) {
    // A repeated element stays one.
    out.set_data(allocator::malloc(out.itemsize()), 1, x.strides(), x.flags());
    const void* from[] = {x.data<char>()};
    convert_block(x.dtype(), out.dtype())(from, out.data<char>(), 1);
    return;
  }
  BlockOp block{
      convert_block(x.dtype(), out.dtype()), out.dtype(), x.dtype(), x.dtype()};
  run(block, {x}, out);
}

}  // namespace mlx::core::cpu
