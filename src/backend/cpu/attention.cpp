// Attention: cuts the queries into blocks of rows and hands them to threads.
// Heads of a group that read the same keys go into one block while their rows
// fit, so that decoding reads keys and values once.
#include "backend/cpu/kernels/attention.h"

#include <vector>

#include "backend/cpu/copy.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

array with_dense_rows(const array& x) {
  return x.strides(-1) == 1 || x.shape(-1) == 1 ? x : row_contiguous(x);
}

const char* at(const array& x, int64_t elements) {
  return x.data<char>() + elements * static_cast<int64_t>(x.itemsize());
}

int64_t broadcast_stride(const array& x, int axis) {
  return x.shape(axis) == 1 ? 0 : x.strides(axis);
}

struct Problem {
  array q, k, v;
  const array* mask;
  const array* sinks;
  float scale;
  bool causal;
  array& out;

  size_t group() const { return q.shape(1) / k.shape(1); }
  size_t tokens() const { return q.shape(2); }
};

float sink_of(const array& sinks, size_t head) {
  int64_t i = static_cast<int64_t>(head) * sinks.strides(0);
  return mlx::core::detail::visit_dtype(sinks.dtype(), [&](auto tag) {
    return mlx::core::detail::convert<float>(sinks.data<decltype(tag)>()[i]);
  });
}

// Row r of a block: head `head`, token `token`.
void set_row(
    const Problem& p,
    AttentionBlock& block,
    size_t r,
    size_t batch,
    size_t head,
    size_t token) {
  auto b = static_cast<int64_t>(batch);
  auto h = static_cast<int64_t>(head);
  auto t = static_cast<int64_t>(token);
  block.query_rows[r] =
      at(p.q, b * p.q.strides(0) + h * p.q.strides(1) + t * p.q.strides(2));
  block.out_rows[r] = const_cast<char*>(
      at(p.out,
         b * p.out.strides(0) + h * p.out.strides(1) + t * p.out.strides(2)));
  int64_t keys = p.k.shape(2);
  int64_t limit =
      p.causal ? t + keys - static_cast<int64_t>(p.tokens()) + 1 : keys;
  block.limits[r] = static_cast<size_t>(std::max<int64_t>(limit, 0));
  if (p.mask) {
    block.mask_rows[r] =
        at(*p.mask,
           b * broadcast_stride(*p.mask, 0) + h * broadcast_stride(*p.mask, 1) +
               t * broadcast_stride(*p.mask, 2));
  }
  if (p.sinks) {
    block.sinks[r] = sink_of(*p.sinks, head);
  }
}

// The rows [first, first + count) of a key head's group, head by head.
void run_rows(
    const Problem& p,
    size_t batch,
    size_t kv_head,
    size_t first,
    size_t count,
    float* scratch) {
  AttentionBlock block;
  block.rows = count;
  block.keys = p.k.shape(2);
  block.features = p.q.shape(3);
  block.value_features = p.v.shape(3);
  block.scale = p.scale;
  block.dtype = p.q.dtype();
  auto b = static_cast<int64_t>(batch);
  auto h = static_cast<int64_t>(kv_head);
  block.key_base = at(p.k, b * p.k.strides(0) + h * p.k.strides(1));
  block.key_stride = p.k.strides(2);
  block.value_base = at(p.v, b * p.v.strides(0) + h * p.v.strides(1));
  block.value_stride = p.v.strides(2);
  block.has_mask = p.mask != nullptr;
  block.mask_stride = p.mask ? broadcast_stride(*p.mask, 3) : 0;
  block.mask_dtype = p.mask ? p.mask->dtype() : bool_;
  block.has_sinks = p.sinks != nullptr;
  block.scratch = scratch;
  for (size_t r = 0; r < count; ++r) {
    size_t row = first + r;
    set_row(
        p,
        block,
        r,
        batch,
        kv_head * p.group() + row / p.tokens(),
        row % p.tokens());
  }
  attention_block(block);
}

}  // namespace

void attention(
    const fast::ScaledDotProductAttention& op,
    const std::vector<array>& inputs,
    array& out) {
  const fast::AttentionParams& params = op.params();
  allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  Problem p{
      with_dense_rows(inputs[0]),
      with_dense_rows(inputs[1]),
      with_dense_rows(inputs[2]),
      params.has_mask ? &inputs[3] : nullptr,
      params.has_sinks ? &inputs.back() : nullptr,
      params.scale,
      params.causal,
      out};
  size_t kv_heads = p.k.shape(1);
  size_t rows = p.group() * p.tokens();
  // Blocks do not cross heads once a head fills one by itself.
  size_t span = p.tokens() >= kAttentionRows ? p.tokens() : rows;
  size_t blocks_per_span = (span + kAttentionRows - 1) / kAttentionRows;
  size_t spans = rows / span;
  size_t units = p.q.shape(0) * kv_heads * spans * blocks_per_span;
  size_t scratch_size = attention_scratch_floats(p.q.shape(3), p.v.shape(3));
  size_t work = std::min(span, kAttentionRows) * p.k.shape(2) *
                (p.q.shape(3) + p.v.shape(3));
  size_t grain = std::max<size_t>(1, 200000 / std::max<size_t>(work, 1));
  parallel_for(units, grain, [&](size_t begin, size_t end) {
    std::vector<float> scratch(scratch_size);
    for (size_t i = begin; i < end; ++i) {
      // Long rows first where causal: they take the longest.
      size_t part = blocks_per_span - 1 - i / (units / blocks_per_span);
      size_t rest = i % (units / blocks_per_span);
      size_t in_span = part * kAttentionRows;
      size_t first = rest % spans * span + in_span;
      size_t head = rest / spans % kv_heads;
      size_t batch = rest / spans / kv_heads;
      run_rows(
          p,
          batch,
          head,
          first,
          std::min(kAttentionRows, span - in_span),
          scratch.data());
    }
  });
}

}  // namespace mlx::core::cpu
