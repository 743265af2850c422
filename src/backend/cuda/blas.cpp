// Descriptors and the choice of a kernel cost more than small products do, so
// both are kept. Sums split over the depth are added in float32: the kernels
// that would add them in a half type are left out.
#include "backend/cuda/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "types/error.h"

namespace mlx::core::cuda {

namespace {

constexpr size_t kWorkspace = size_t(32) << 20;
/// Plans kept; all are dropped when there are more, which real programs do not
/// have.
constexpr size_t kMostPlans = 8192;

void check_blas(cublasStatus_t status, const char* op, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(
        message(op, what, " failed: ", cublasLtGetStatusString(status), "."));
  }
}

cublasLtHandle_t blas_handle() {
  static cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    check_blas(cublasLtCreate(&made), "cuda", "starting cuBLASLt");
    return made;
  }();
  return handle;
}

bool allows_tf32() {
  static const bool allows = [] {
    const char* set = std::getenv("MLX_ENABLE_TF32");
    return set != nullptr && *set != '\0' && std::string_view(set) != "0";
  }();
  return allows;
}

struct BlasTypes {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};

BlasTypes blas_types(Dtype type) {
  switch (type.val()) {
    case Dtype::Val::float16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case Dtype::Val::bfloat16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case Dtype::Val::float64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case Dtype::Val::complex64:
      return {CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F};
    default:
      return {
          CUDA_R_32F,
          allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          CUDA_R_32F};
  }
}

/// All that a plan depends on, packed into numbers.
using PlanKey = std::array<int64_t, 13>;

struct PlanHash {
  size_t operator()(const PlanKey& key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int64_t x : key) {
      hash = (hash ^ static_cast<uint64_t>(x)) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// Bytes that every matrix of the batch is aligned to, at most 256.
uint32_t alignment(const BlasMatrix& x, int64_t count, int64_t itemsize) {
  auto bits = reinterpret_cast<uintptr_t>(x.data) | 256u;
  if (count > 1) {
    bits |= static_cast<uintptr_t>(x.batch_stride * itemsize);
  }
  return 1u << std::countr_zero(bits);
}

struct Alignments {
  uint32_t a, b, c, d;
};

PlanKey key_of(const BlasProduct& p, const Alignments& by) {
  auto log = [](uint32_t x) { return int64_t(std::countr_zero(x)); };
  int64_t flags = static_cast<int64_t>(p.type.val());
  flags = flags << 3 | int64_t(p.a.transposed) << 2 |
          int64_t(p.b.transposed) << 1 | int64_t(p.bias != nullptr);
  flags =
      flags << 2 | int64_t(p.beta != 0) << 1 | int64_t(p.c.data == p.d.data);
  flags = flags << 16 | log(by.a) << 12 | log(by.b) << 8 | log(by.c) << 4 |
          log(by.d);
  return {
      flags,
      p.m,
      p.n,
      p.k,
      p.count,
      p.a.leading,
      p.b.leading,
      p.c.leading,
      p.d.leading,
      p.a.batch_stride,
      p.b.batch_stride,
      p.c.batch_stride,
      p.d.batch_stride};
}

/// Descriptors of a product and the kernel found for it.
struct Plan {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t c = nullptr;
  cublasLtMatrixLayout_t d = nullptr;
  cublasLtMatmulAlgo_t algo;
  size_t workspace = 0;
  bool found = false;
  /// Held while a call uses `desc`, where the bias is written.
  std::mutex mutex;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a, b, c, d}) {
      if (layout != nullptr) {
        cublasLtMatrixLayoutDestroy(layout);
      }
    }
    if (desc != nullptr) {
      cublasLtMatmulDescDestroy(desc);
    }
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t which, const T& value) {
    check_blas(
        cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof(value)),
        "cuda",
        "describing a product");
  }
};

cublasLtMatrixLayout_t make_layout(
    const BlasProduct& p, const BlasMatrix& x, int64_t rows, int64_t cols) {
  if (x.transposed) {
    std::swap(rows, cols);
  }
  cublasLtMatrixLayout_t layout = nullptr;
  auto set = [&](cublasLtMatrixLayoutAttribute_t which, const auto& value) {
    check_blas(
        cublasLtMatrixLayoutSetAttribute(layout, which, &value, sizeof(value)),
        p.op,
        "describing a matrix");
  };
  check_blas(
      cublasLtMatrixLayoutCreate(
          &layout,
          blas_types(p.type).data,
          static_cast<uint64_t>(rows),
          static_cast<uint64_t>(cols),
          x.leading),
      p.op,
      "describing a matrix");
  if (p.count > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(p.count));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x.batch_stride);
  }
  return layout;
}

/// What a kernel may rely on and use.
struct Preference {
  cublasLtMatmulPreference_t handle = nullptr;

  Preference() {
    check_blas(
        cublasLtMatmulPreferenceCreate(&handle),
        "cuda",
        "choosing a product's kernel");
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t which, const T& value) {
    check_blas(
        cublasLtMatmulPreferenceSetAttribute(
            handle, which, &value, sizeof(value)),
        "cuda",
        "choosing a product's kernel");
  }
};

void choose_kernel(Plan& plan, const Alignments& by) {
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  preference.set(
      CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, by.a);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, by.b);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, by.c);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, by.d);
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      blas_handle(),
      plan.desc,
      plan.a,
      plan.b,
      plan.c,
      plan.d,
      preference.handle,
      1,
      &result,
      &count);
  plan.found = status == CUBLAS_STATUS_SUCCESS && count > 0 &&
               result.state == CUBLAS_STATUS_SUCCESS;
  plan.algo = result.algo;
  plan.workspace = result.workspaceSize;
}

std::shared_ptr<Plan> make_plan(const BlasProduct& p, const Alignments& by) {
  auto plan = std::make_shared<Plan>();
  BlasTypes types = blas_types(p.type);
  check_blas(
      cublasLtMatmulDescCreate(&plan->desc, types.compute, types.scale),
      p.op,
      "describing a product");
  auto operation = [](const BlasMatrix& x) {
    return static_cast<int32_t>(x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  plan->set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.a));
  plan->set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.b));
  if (p.bias != nullptr) {
    plan->set(
        CUBLASLT_MATMUL_DESC_EPILOGUE,
        static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS));
    plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  }
  plan->a = make_layout(p, p.a, p.m, p.k);
  plan->b = make_layout(p, p.b, p.k, p.n);
  plan->c = make_layout(p, p.c, p.m, p.n);
  plan->d = make_layout(p, p.d, p.m, p.n);
  choose_kernel(*plan, by);
  return plan;
}

std::shared_ptr<Plan> find_plan(const BlasProduct& p) {
  static std::mutex mutex;
  static auto* plans =
      new std::unordered_map<PlanKey, std::shared_ptr<Plan>, PlanHash>;
  auto itemsize = static_cast<int64_t>(p.type.size());
  Alignments by{
      alignment(p.a, p.count, itemsize),
      alignment(p.b, p.count, itemsize),
      alignment(p.c, p.count, itemsize),
      alignment(p.d, p.count, itemsize)};
  PlanKey key = key_of(p, by);
  std::lock_guard lock(mutex);
  auto found = plans->find(key);
  if (found != plans->end()) {
    return found->second;
  }
  if (plans->size() >= kMostPlans) {
    plans->clear();
  }
  return plans->emplace(key, make_plan(p, by)).first->second;
}

/// alpha or beta in the type that cuBLASLt wants.
union BlasScalar {
  float single[2];
  double wide;
};

BlasScalar as_scalar(double x, Dtype type) {
  BlasScalar scalar{};
  if (type == Dtype::Val::float64) {
    scalar.wide = x;
  } else {
    scalar.single[0] = static_cast<float>(x);
  }
  return scalar;
}

}  // namespace

bool run_blas(const BlasProduct& p, Encoder& e) {
  std::shared_ptr<Plan> plan = find_plan(p);
  if (!plan->found) {
    if (p.bias != nullptr) {
      return false;
    }
    throw std::runtime_error(message(
        p.op,
        "cuBLASLt has no kernel for a product of ",
        p.type,
        " with m, n, k: ",
        p.n,
        ", ",
        p.m,
        ", ",
        p.k,
        "."));
  }
  BlasScalar alpha = as_scalar(p.alpha, p.type);
  BlasScalar beta = as_scalar(p.beta, p.type);
  std::optional<Scratch> work;
  if (plan->workspace > 0) {
    work.emplace(e.scratch(plan->workspace));
  }
  std::lock_guard lock(plan->mutex);
  if (p.bias != nullptr) {
    plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  }
  check_blas(
      cublasLtMatmul(
          blas_handle(),
          plan->desc,
          &alpha,
          p.a.data,
          plan->a,
          p.b.data,
          plan->b,
          &beta,
          p.c.data,
          plan->c,
          const_cast<void*>(p.d.data),
          plan->d,
          &plan->algo,
          work ? work->get() : nullptr,
          plan->workspace,
          e.stream()),
      p.op,
      "the product by cuBLASLt");
  return true;
}

}  // namespace mlx::core::cuda
