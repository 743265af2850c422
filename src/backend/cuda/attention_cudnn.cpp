// Attention of many rows in float16 and bfloat16 by cuDNN's flash kernels. A
// plan costs tens of milliseconds to make, so plans are kept by shape and
// small problems are left to the other kernels.
#include <cudnn_frontend.h>

#include <array>
#include <cstring>
#include <unordered_map>

#include "backend/cuda/attention.h"

namespace mlx::core::cuda {

namespace {

namespace fe = cudnn_frontend;

// What a plan depends on.
struct PlanKey {
  std::array<int64_t, 24> words{};
  bool operator==(const PlanKey&) const = default;
};

struct PlanHash {
  size_t operator()(const PlanKey& key) const {
    size_t hash = 0;
    for (int64_t word : key.words) {
      hash = (hash ^ static_cast<size_t>(word)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

PlanKey key_of(const AttentionProblem& p, Dtype dtype) {
  PlanKey key;
  size_t n = 0;
  auto add = [&](int64_t word) { key.words[n++] = word; };
  for (int i = 0; i < 3; ++i) {
    add(p.q_strides[i]);
    add(p.k_strides[i]);
    add(p.v_strides[i]);
  }
  add(p.batch);
  add(p.kv_heads);
  add(p.group);
  add(p.tokens);
  add(p.keys);
  add(p.features);
  add(p.value_features);
  add(p.causal);
  add(static_cast<int64_t>(dtype.val()));
  int32_t scale_bits = 0;
  std::memcpy(&scale_bits, &p.scale, sizeof(scale_bits));
  add(scale_bits);
  return key;
}

enum Uid : int64_t { kQueries = 1, kKeys, kValues, kOut };

fe::graph::Tensor_attributes tensor(
    Uid uid,
    int64_t batch,
    int64_t heads,
    int64_t tokens,
    int64_t features,
    const int64_t* strides) {
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_dim({batch, heads, tokens, features})
      .set_stride({strides[0], strides[1], strides[2], 1});
}

using Plan = std::shared_ptr<fe::graph::Graph>;

// Null when cuDNN has no kernel for it.
Plan make_plan(const AttentionProblem& p, Dtype dtype, cudnnHandle_t handle) {
  auto graph = std::make_shared<fe::graph::Graph>();
  auto type =
      dtype == float16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
  graph->set_io_data_type(type)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  int64_t heads = int64_t(p.kv_heads) * p.group;
  auto q = graph->tensor(
      tensor(kQueries, p.batch, heads, p.tokens, p.features, p.q_strides));
  auto k = graph->tensor(
      tensor(kKeys, p.batch, p.kv_heads, p.keys, p.features, p.k_strides));
  auto v = graph->tensor(tensor(
      kValues, p.batch, p.kv_heads, p.keys, p.value_features, p.v_strides));
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(false)
                     .set_attn_scale(p.scale);
  if (p.causal) {
    // The last query sees the last key.
    options
        .set_diagonal_alignment(
            p.tokens == p.keys ? fe::DiagonalAlignment_t::TOP_LEFT
                               : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  }
  auto [out, stats] = graph->sdpa(q, k, v, options);
  int64_t row = p.value_features;
  int64_t head = row * p.tokens;
  out->set_output(true)
      .set_uid(kOut)
      .set_dim({p.batch, heads, p.tokens, p.value_features})
      .set_stride({head * heads, head, row, 1});
  bool built = graph->build(handle, {fe::HeurMode_t::A}).is_good();
  return built ? graph : nullptr;
}

// One handle and one set of plans for the process; used under the lock.
struct Cudnn {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  std::unordered_map<PlanKey, Plan, PlanHash> plans;

  Cudnn() {
    if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) {
      handle = nullptr;
    }
  }
};

Cudnn& cudnn() {
  static auto* the_cudnn = new Cudnn;
  return *the_cudnn;
}

// Plans of lengths that do not come again are forgotten in the end.
constexpr size_t kPlansKept = 512;

// Multiply-adds from which on a plan pays.
constexpr double kWorth = 1 << 27;

bool suits(const AttentionProblem& p, Dtype dtype) {
  double work = double(p.batch) * p.kv_heads * p.group * p.tokens * p.keys *
                (p.features + p.value_features);
  return (dtype == float16 || dtype == bfloat16) && p.aligned &&
         p.mask_kind == MaskKind::none && p.sinks == nullptr &&
         p.features <= 128 && p.value_features <= 128 && p.features % 8 == 0 &&
         p.value_features % 8 == 0 && p.tokens >= 64 &&
         (!p.causal || p.tokens <= p.keys) && work >= kWorth;
}

}  // namespace

bool attention_cudnn(const AttentionProblem& p, Dtype dtype, Encoder& e) {
  if (!suits(p, dtype)) {
    return false;
  }
  Cudnn& c = cudnn();
  std::lock_guard lock(c.mutex);
  if (c.handle == nullptr) {
    return false;
  }
  if (c.plans.size() >= kPlansKept) {
    c.plans.clear();
  }
  auto [it, is_new] = c.plans.try_emplace(key_of(p, dtype));
  if (is_new) {
    it->second = make_plan(p, dtype, c.handle);
  }
  const Plan& plan = it->second;
  if (plan == nullptr) {
    return false;
  }
  cudnnSetStream(c.handle, e.stream());
  Scratch workspace =
      e.scratch(static_cast<size_t>(plan->get_workspace_size()));
  std::unordered_map<int64_t, void*> tensors = {
      {kQueries, const_cast<void*>(p.q)},
      {kKeys, const_cast<void*>(p.k)},
      {kValues, const_cast<void*>(p.v)},
      {kOut, p.out}};
  auto status = plan->execute(c.handle, tensors, workspace.get());
  if (!status.is_good()) {
    throw std::runtime_error(
        "[scaled_dot_product_attention] cuDNN failed: " + status.get_message() +
        ".");
  }
  return true;
}

}  // namespace mlx::core::cuda
