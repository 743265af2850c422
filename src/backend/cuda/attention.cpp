// Attention: describes the problem and chooses who computes it.
#include "backend/cuda/attention.h"

#include <algorithm>

#include "backend/cuda/copy.h"

namespace mlx::core::cuda {

namespace {

array with_dense_rows(const array& x, Encoder& e) {
  return x.strides(-1) == 1 || x.shape(-1) == 1 ? x : row_contiguous(x, e);
}

void copy_strides(const array& x, int64_t (&to)[3]) {
  for (int i = 0; i < 3; ++i) {
    to[i] = x.strides(i);
  }
}

bool is_aligned(const array& x, const void* address) {
  auto bits = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < 3; ++i) {
    bits |= static_cast<uintptr_t>(x.strides(i)) * x.itemsize();
  }
  return bits % 16 == 0;
}

void describe_mask(const array& mask, AttentionProblem& p, Encoder& e) {
  p.mask = e.in(mask);
  p.mask_kind = mask.dtype() == bool_ ? MaskKind::boolean : MaskKind::additive;
  for (int i = 0; i < 4; ++i) {
    p.mask_strides[i] = mask.shape(i) == 1 ? 0 : mask.strides(i);
  }
}

bool by_cudnn(
    [[maybe_unused]] const AttentionProblem& p,
    [[maybe_unused]] Dtype dtype,
    [[maybe_unused]] Encoder& e) {
#ifdef MLX_HAVE_CUDNN
  return attention_cudnn(p, dtype, e);
#else
  return false;
#endif
}

// Rows a key head up to which reading keys once for all of them is the limit.
constexpr int kFewRows = 32;

}  // namespace

void attention(
    const fast::ScaledDotProductAttention& op,
    const std::vector<array>& inputs,
    array& out,
    Encoder& e) {
  const fast::AttentionParams& params = op.params();
  e.allocate(out);
  if (out.size() == 0) {
    return;
  }
  if (inputs[1].shape(2) == 0) {  // the sum of nothing
    e.fill_bytes(e.out(out), 0, out.nbytes());
    return;
  }
  array q = with_dense_rows(inputs[0], e);
  array k = with_dense_rows(inputs[1], e);
  array v = with_dense_rows(inputs[2], e);
  AttentionProblem p{};
  p.q = e.in(q);
  p.k = e.in(k);
  p.v = e.in(v);
  p.out = e.out(out);
  copy_strides(q, p.q_strides);
  copy_strides(k, p.k_strides);
  copy_strides(v, p.v_strides);
  p.batch = q.shape(0);
  p.kv_heads = k.shape(1);
  p.group = q.shape(1) / k.shape(1);
  p.tokens = q.shape(2);
  p.keys = k.shape(2);
  p.features = q.shape(3);
  p.value_features = v.shape(3);
  p.scale = params.scale;
  p.causal = params.causal;
  p.aligned = is_aligned(q, p.q) && is_aligned(k, p.k) && is_aligned(v, p.v);
  if (params.has_mask) {
    describe_mask(inputs[3], p, e);
  }
  if (params.has_sinks) {
    p.sinks = e.in(inputs.back());
    p.sink_stride = inputs.back().strides(0);
  }
  bool few = p.group * p.tokens <= kFewRows || p.tokens <= 4;
  if (few && std::max(p.features, p.value_features) <= kFewFeatures) {
    switch (out.dtype().val()) {
      case Dtype::Val::float16:
        return attention_few_float16(p, e);
      case Dtype::Val::bfloat16:
        return attention_few_bfloat16(p, e);
      default:
        return attention_few_float32(p, e);
    }
  }
  if (!by_cudnn(p, out.dtype(), e)) {
    attention_scores(p, out.dtype(), e);
  }
}

}  // namespace mlx::core::cuda
