// The programs around the bodies of custom kernels, and the checks before. The
// programs are compiled where there is a gpu
// (python/tests/test_cuda_kernel.py).
#include "backend/cuda/custom_kernel_text.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cuda/jit_types.h"
#include "backend/cuda/program_testing.h"
#include "mlx/ops.h"

namespace mlx::core::cuda {
namespace {

fast::CustomKernelParams params(
    const std::string& source, const std::string& header = "") {
  auto given = std::make_shared<const fast::KernelSource>(fast::KernelSource{
      "my kernel", {"a", "b"}, {"out"}, source, header, true, 0});
  return {
      given,
      {{"T", float16}, {"n", -3}, {"yes", true}},
      {{4, 1, 1}, {2, 1, 1}},
      {},
      false};
}

std::string text_of(const std::string& source, const std::string& header = "") {
  std::vector<array> inputs = {zeros({2}, bfloat16), array(true)};
  return kernel_text(params(source, header), inputs, {zeros({2}, complex64)});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CustomKernelText, HasTheSignatureAndTheBody) {
  std::string text = text_of("  BODY;", "HEADER");
  EXPECT_TRUE(has(
      text,
      "HEADER\nextern \"C\" __global__ void custom_kernel_my_kernel(\n"
      "    const bfloat16_t* a,\n    const bool* b,\n    complex64_t* out) {\n"
      "  using T = float16_t;\n  constexpr int n = -3;\n"
      "  constexpr bool yes = true;\n  BODY;\n}\n"))
      << text;
}

TEST(CustomKernelText, PassesWhatTheBodyNames) {
  std::string text = text_of("b_shape[0]; a_strides[1]; a_ndim;");
  EXPECT_TRUE(
      has(text,
          "const bfloat16_t* a,\n    const __grid_constant__ KernelStrides "
          "a_strides,\n    const int a_ndim,\n    const bool* b,\n    const "
          "__grid_constant__ KernelShape b_shape,\n"))
      << text;
}

TEST(CustomKernelText, ReadsHeadersOnlyForWordsOfTheirs) {
  EXPECT_FALSE(has(text_of("cooperative_groups::this_grid();"), "#include"));
  EXPECT_TRUE(has(text_of("__hadd(x, y);"), "#include <cuda_fp16.h>"));
  EXPECT_FALSE(has(text_of("__hadd(x, y);"), "struct alignas(2)"));
  EXPECT_TRUE(
      has(text_of("cg::tiled_partition<32>(block);"),
          "#include <cooperative_groups.h>"));
  EXPECT_TRUE(has(text_of("", "cuda::std::x"), "#include <cuda/std/limits>"));
}

TEST(CustomKernelText, SignaturesTellTypesAndArgumentsApart) {
  auto given = params("");
  array f32 = zeros({2});
  array f16 = zeros({2}, float16);
  std::string first = signature(given, {f32, f16}, {f32});
  EXPECT_EQ(first, signature(given, {zeros({9}), f16}, {f32}));
  EXPECT_NE(first, signature(given, {f16, f32}, {f32}));
  EXPECT_NE(first, signature(given, {f32, f16}, {f16}));
  given.template_args[1].second = 4;
  EXPECT_NE(first, signature(given, {f32, f16}, {f32}));
}

TEST(CustomKernelText, EveryTypeHasAName) {
  for (Dtype type :
       {bool_,
        uint8,
        uint16,
        uint32,
        uint64,
        int8,
        int16,
        int32,
        int64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64}) {
    EXPECT_STRNE(jit::type_name(type), "");
  }
}

#ifdef MLX_HAVE_NVRTC

// One body with every type as input and output, and all that the prelude has.
std::string body_of_all_types() {
  return R"(
    auto i = cooperative_groups::this_grid().thread_rank();
    auto block = cg::this_thread_block();
    T t = a[i];
    t += 1;
    t *= a[0];
    float16_t h = float(t);
    bfloat16_t b16 = h + 0.5f;
    b16 = b16 * h + 1;
    complex64_t z(inf, INFINITY);
    z = z * z + 1.0f / (z - complex64_t(float(t)));
    uint64_t wide = WARP_SIZE + block.thread_rank() + block.size();
    int64_t at = elem_to_loc(i, a_shape.data(), a_strides.data(), a_ndim);
    cg::sync(block);
    if (yes && !(b16 < h) && isnan(NAN)) {
      out[at] = z * complex64_t(b_shape[0] + b_strides[0] + n + wide);
    })";
}

TEST(CustomKernelText, CompilesWithoutHeaders) {
  std::string body = body_of_all_types();
  EXPECT_EQ(
      complaint(text_of(body, "template <typename T> T f(T x) {return x;}")),
      "");
}

TEST(CustomKernelText, PassesAllTypesThrough) {
  for (Dtype type :
       {bool_,
        uint8,
        uint16,
        uint32,
        uint64,
        int8,
        int16,
        int32,
        int64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64}) {
    array x = zeros({2}, type);
    EXPECT_EQ(
        complaint(
            kernel_text(params("auto t = a[0]; out[0] = t;"), {x, x}, {x})),
        "");
  }
}

TEST(CustomKernelText, CompilesWithTheToolkitsHeaders) {
  std::string body = R"(
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    __half2 two = __floats2half2_rn(1.0f, 2.0f);
    T t = float(a[tile.thread_rank()]);
    int64_t at = elem_to_loc(n, a_shape.data(), a_strides.data(), a_ndim);
    out[at] = complex64_t(tile.shfl(float(t), 3) + __low2float(two)) * inf;)";
  std::vector<std::string> folders = {
      MLX_CUDA_INCLUDE, MLX_CUDA_INCLUDE "/cccl"};
  EXPECT_EQ(complaint(text_of(body), folders), "");
}

#endif

TEST(CustomKernel, EqualSourcesAreEquivalent) {
  auto one = params("x");
  auto same = params("x");
  EXPECT_TRUE(one == same);
  same.size.grid[0] = 5;
  EXPECT_FALSE(one == same);
  EXPECT_FALSE(one == params("y"));
}

TEST(CustomKernel, ChecksWhatItIsGiven) {
  auto kernel = fast::cuda_kernel("k", {"a"}, {"out"}, "");
  array a = zeros({4});
  using Dims = std::tuple<int, int, int>;
  auto call = [&](size_t inputs, size_t shapes, Dims grid, Dims block) {
    return kernel(
        std::vector<array>(inputs, a),
        std::vector<Shape>(shapes, Shape{4}),
        {float32},
        grid,
        block,
        {},
        {},
        false,
        {});
  };
  using Wrong = std::invalid_argument;
  EXPECT_THROW(call(2, 1, {4, 1, 1}, {4, 1, 1}), Wrong);
  EXPECT_THROW(call(1, 2, {4, 1, 1}, {4, 1, 1}), Wrong);
  EXPECT_THROW(call(1, 1, {-1, 1, 1}, {4, 1, 1}), Wrong);
  EXPECT_THROW(call(1, 1, {4, 1, 1}, {0, 1, 1}), Wrong);
  EXPECT_THROW(call(1, 1, {4, 1, 1}, {1025, 1, 1}), Wrong);
  EXPECT_THROW(call(1, 1, {4, 1, 1}, {1, 1, 65}), Wrong);
  EXPECT_THROW(call(1, 1, {1, 1, 70000}, {1, 1, 1}), Wrong);
  EXPECT_THROW(fast::cuda_kernel("k", {"1a"}, {"out"}, ""), Wrong);
  EXPECT_THROW(fast::cuda_kernel("k", {"a"}, {"a"}, ""), Wrong);
  EXPECT_THROW(fast::cuda_kernel("k", {"a"}, {}, ""), Wrong);
  EXPECT_THROW(fast::cuda_kernel("k", {"a"}, {"b"}, "", "", true, -1), Wrong);
  EXPECT_THROW(fast::metal_kernel("k", {}, {"b"}, ""), std::runtime_error);
  if (find_backend(Device::gpu) == nullptr) {
    EXPECT_THROW(call(1, 1, {4, 1, 1}, {4, 1, 1}), std::runtime_error);
  }
}

}  // namespace
}  // namespace mlx::core::cuda
