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

// What keys and values of one head are, in bytes, before they are split, how
// much a split has, and the most that all heads may read in a list: more where
// a mask of bools may leave little of it.
constexpr int64_t kBatchHead = int64_t(256) << 10;
constexpr int64_t kBatchSplit = int64_t(64) << 10;
constexpr int64_t kBatchKeys = int64_t(32) << 20;
constexpr int64_t kBatchMaskedKeys = int64_t(128) << 20;

// Lists know a row for all heads.
bool has_batched_mask(const AttentionProblem& p) {
  return p.mask_kind == MaskKind::none ||
         (p.mask_strides[1] == 0 && (p.mask_strides[3] == 1 || p.keys == 1) &&
          reinterpret_cast<uintptr_t>(p.mask) % 16 == 0);
}

bool fits_a_list(const AttentionProblem& p, Dtype dtype) {
  int64_t strides = 0;
  for (int i = 1; i < 3; ++i) {
    // A negative one sets the highest bits.
    strides |= p.q_strides[i] | p.k_strides[i] | p.v_strides[i];
  }
  return p.batch == 1 && p.tokens == 1 && has_batched_mask(p) &&
         p.sinks == nullptr && p.aligned && p.features % 8 == 0 &&
         p.value_features % 8 == 0 &&
         std::max(p.features, p.value_features) <= kBatchFeatures &&
         p.group <= 255 && strides >> 31 == 0 && batches(dtype);
}

// In the encoder's list, where it may be.
void note(const BatchEntry& entry, Encoder& e) {
  if (e.can_batch_wide()) {
    e.batch(entry);
  } else {
    attention_short(entry, e);
  }
}

// Attention of one token to a short cache.
bool attend_short(const AttentionProblem& p, Dtype dtype, Encoder& e) {
  int64_t heads = int64_t{p.kv_heads} * p.group;
  int64_t head_bytes = int64_t{p.keys} * (p.features + p.value_features) *
                       static_cast<int64_t>(dtype.size());
  int64_t most =
      p.mask_kind == MaskKind::boolean ? kBatchMaskedKeys : kBatchKeys;
  if (!fits_a_list(p, dtype) || heads * head_bytes > most) {
    return false;
  }
  int64_t splits = 1;
  if (head_bytes > kBatchHead) {
    int64_t at_once = device_facts().multiprocessors / heads;
    splits = std::clamp<int64_t>(at_once, 1, head_bytes / kBatchSplit);
    splits = std::min<int64_t>(splits, 255);
  }
  BatchEntry entry{};
  entry.kind = BatchKind::attention;
  entry.types[0] = batch_type(dtype);
  entry.types[1] = batch_type(p.mask_kind == MaskKind::boolean ? bool_ : dtype);
  entry.size = static_cast<uint32_t>(heads);
  entry.attention = {
      p.q,
      p.k,
      p.v,
      p.mask,
      p.out,
      static_cast<int32_t>(p.q_strides[1]),
      static_cast<int32_t>(p.k_strides[1]),
      static_cast<int32_t>(p.k_strides[2]),
      static_cast<int32_t>(p.v_strides[1]),
      static_cast<int32_t>(p.v_strides[2]),
      p.keys,
      p.scale,
      static_cast<uint8_t>(p.features / 8),
      static_cast<uint8_t>(p.value_features / 8),
      static_cast<uint8_t>(p.group),
      static_cast<uint8_t>(splits)};
  if (splits == 1) {
    note(entry, e);
    return true;
  }
  Scratch parts = e.scratch(
      static_cast<size_t>(heads * splits * (p.value_features + 2)) *
      sizeof(float));
  entry.attention.to = parts.get();
  note(entry, e);
  BatchEntry join{};
  join.kind = BatchKind::attention_join;
  join.types[0] = entry.types[0];
  join.size = entry.size;
  join.join = {
      parts.get<float>(),
      p.out,
      static_cast<int32_t>(splits),
      p.value_features};
  note(join, e);
  return true;
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
  if (attend_short(p, out.dtype(), e)) {
    return;
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
