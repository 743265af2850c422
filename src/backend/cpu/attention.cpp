// Attention: cuts the queries into blocks of rows and hands them to threads.
// Heads of a group that read the same keys go into one block while their rows
// fit, so that decoding reads keys and values once. Keys behind the last one
// that a mask shows are not read: a cache may have more room than it has keys.
#include "backend/cpu/kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/copy.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/scratch.h"
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
  size_t work_per_row() const { return k.shape(2) * (q.shape(3) + v.shape(3)); }
};

float sink_of(const array& sinks, size_t head) {
  int64_t i = static_cast<int64_t>(head) * sinks.strides(0);
  return mlx::core::detail::visit_dtype(sinks.dtype(), [&](auto tag) {
    return mlx::core::detail::convert<float>(sinks.data<decltype(tag)>()[i]);
  });
}

// One behind the last true element; `keys` where there is none, since such a
// row is averaged over all keys.
size_t shown_keys(const uint8_t* mask, int64_t stride, size_t keys) {
  size_t end = keys;
  if (stride == 1) {
    uint64_t eight = 0;
    while (end >= sizeof(eight)) {
      std::memcpy(&eight, mask + end - sizeof(eight), sizeof(eight));
      if (eight != 0) {
        break;
      }
      end -= sizeof(eight);
    }
  }
  while (end > 0 && !mask[static_cast<int64_t>(end - 1) * stride]) {
    --end;
  }
  return end > 0 ? end : keys;
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
    if (p.mask->dtype() == bool_) {
      block.limits[r] = shown_keys(
          static_cast<const uint8_t*>(block.mask_rows[r]),
          block.mask_stride,
          block.keys);
    }
  }
  if (p.sinks) {
    block.sinks[r] = sink_of(*p.sinks, head);
  }
}

// The rows [first, first + count) of a key head's group, head by head.
AttentionBlock make_block(
    const Problem& p,
    size_t batch,
    size_t kv_head,
    size_t first,
    size_t count) {
  AttentionBlock block = {};
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
  block.scratch = static_cast<float*>(scratch(
      ScratchUse::sums,
      sizeof(float) *
          attention_scratch_floats(block.features, block.value_features)));
  block.last_key = block.keys;
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
  return block;
}

// Multiply-adds that are worth a hand-over to another thread.
constexpr size_t kWorth = 100000;

// Many rows: blocks of them.
void many_rows(const Problem& p, size_t rows) {
  size_t kv_heads = p.k.shape(1);
  // Blocks do not cross heads once a head fills one by itself.
  size_t span = p.tokens() >= kAttentionRows ? p.tokens() : rows;
  size_t blocks_per_span = (span + kAttentionRows - 1) / kAttentionRows;
  size_t spans = rows / span;
  size_t units = p.q.shape(0) * kv_heads * spans * blocks_per_span;
  size_t work = std::min(span, kAttentionRows) * p.work_per_row();
  size_t grain = std::max<size_t>(1, kWorth / std::max<size_t>(work, 1));
  parallel_for(units, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      // Long rows first where causal: they take the longest.
      size_t part = blocks_per_span - 1 - i / (units / blocks_per_span);
      size_t rest = i % (units / blocks_per_span);
      size_t in_span = part * kAttentionRows;
      size_t first = rest % spans * span + in_span;
      size_t head = rest / spans % kv_heads;
      size_t batch = rest / spans / kv_heads;
      size_t count = std::min(kAttentionRows, span - in_span);
      attention_block(make_block(p, batch, head, first, count));
    }
  });
}

// How many keys some row of the first `rows` of each head sees.
size_t reach(const Problem& p, size_t heads, size_t rows) {
  size_t keys = p.k.shape(2);
  if (!p.mask || p.mask->dtype() != bool_) {
    return keys;
  }
  size_t most = 0;
  for (size_t head = 0; head < heads && most < keys; ++head) {
    AttentionBlock block =
        make_block(p, head / p.k.shape(1), head % p.k.shape(1), 0, rows);
    most = std::max(most, *std::max_element(block.limits, block.limits + rows));
  }
  return most;
}

// Few rows: all rows of a key head together; where heads are too few for the
// threads, long keys are cut into ranges whose results are joined afterwards.
void few_rows(const Problem& p, size_t rows) {
  size_t kv_heads = p.k.shape(1);
  size_t heads = p.q.shape(0) * kv_heads;
  size_t keys = reach(p, heads, rows);
  size_t pieces = (keys + kAttentionKeys - 1) / kAttentionKeys;
  size_t wanted = (4 * size_t(num_threads()) + heads - 1) / heads;
  size_t per_row = keys * (p.q.shape(3) + p.v.shape(3));
  size_t worth = rows * per_row / kWorth;
  size_t splits = std::max<size_t>(1, std::min({wanted, worth, pieces}));
  size_t step = (pieces + splits - 1) / splits * kAttentionKeys;
  splits = std::max<size_t>(1, (keys + step - 1) / step);
  size_t width = attention_partial_floats(p.v.shape(3));
  float* partial = nullptr;
  if (splits > 1) {
    partial = static_cast<float*>(scratch(
        ScratchUse::shared_panels,
        sizeof(float) * heads * splits * rows * width));
  }
  size_t work = rows * per_row / splits;
  size_t grain = std::max<size_t>(1, kWorth / std::max<size_t>(work, 1));
  parallel_for(heads * splits, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      size_t head = i / splits;
      size_t first_key = i % splits * step;
      AttentionBlock block =
          make_block(p, head / kv_heads, head % kv_heads, 0, rows);
      block.first_key = first_key;
      block.last_key = std::min(keys, first_key + step);
      block.partial = partial ? partial + i * rows * width : nullptr;
      attention_few(block);
    }
  });
  for (size_t head = 0; partial && head < heads; ++head) {
    AttentionBlock block =
        make_block(p, head / kv_heads, head % kv_heads, 0, rows);
    for (size_t r = 0; r < rows; ++r) {
      attention_join(
          partial + (head * splits * rows + r) * width,
          splits,
          rows * width,
          p.v.shape(3),
          p.out.dtype(),
          block.out_rows[r]);
    }
  }
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
  size_t rows = p.group() * p.tokens();
  if (rows <= kFewAttentionRows) {
    few_rows(p, rows);
  } else {
    many_rows(p, rows);
  }
}

}  // namespace mlx::core::cpu
