// What Python cannot see of matrix products: node equality, shapes without
// evaluation, the classes that build them, errors by C++ type.
#include "ops/matmul.h"

#include <gtest/gtest.h>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "ops/quantized.h"

namespace mlx::core {
namespace {

TEST(MatmulOps, NodeHasShapeAndTypeBeforeEvaluation) {
  array out = matmul(ones({4, 2, 3}, float16), ones({3, 5}, bfloat16));
  EXPECT_EQ(out.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(out.dtype(), float32);
  EXPECT_EQ(out.status(), array::unscheduled);
}

TEST(MatmulOps, BatchTimesOneMatrixIsOneProduct) {
  array out = matmul(ones({4, 2, 3}), ones({3, 5}));
  // Reshape of a product of 8 rows.
  ASSERT_EQ(out.inputs().size(), 1u);
  EXPECT_EQ(out.inputs()[0].shape(), (Shape{8, 5}));
}

TEST(MatmulOps, ProductOfOnes) {
  array out = matmul(ones({2, 300}), ones({300, 3}));
  out.eval();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(out.data<float>()[i], 300);
  }
}

TEST(MatmulOps, AddMMIsEquivalentWithEqualFactors) {
  Stream s = default_stream(default_device());
  AddMM a(s, {1.0f, 2.0f}), same(s, {1.0f, 2.0f}), other(s, {1.0f, 3.0f});
  EXPECT_TRUE(a.is_equivalent(same));
  EXPECT_FALSE(a.is_equivalent(other));
  EXPECT_STREQ(a.name(), "AddMM");
}

TEST(MatmulOps, OutputShapesFollowTheInputs) {
  Stream s = default_stream(default_device());
  EXPECT_EQ(
      Matmul(s).output_shapes({ones({7, 2, 3}), ones({7, 3, 5})})[0],
      (Shape{7, 2, 5}));
  QuantizedMatmul product(s, {64, 4, true});
  array codes = zeros({6, 16}, uint32);
  EXPECT_EQ(product.output_shapes({ones({3, 128}), codes})[0], (Shape{3, 6}));
  EXPECT_EQ(
      QuantizedMatmul(s, {64, 4, false})
          .output_shapes({ones({3, 6}), codes})[0],
      (Shape{3, 128}));
  auto shapes = Quantize(s, {32, 5}).output_shapes({ones({2, 96})});
  EXPECT_EQ(shapes[0], (Shape{2, 15}));
  EXPECT_EQ(shapes[1], (Shape{2, 3}));
}

TEST(MatmulOps, ErrorsAreInvalidArguments) {
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), std::invalid_argument);
  EXPECT_THROW(matmul(array(1.0f), ones({1})), std::invalid_argument);
  EXPECT_THROW(
      matmul(ones({2, 3}, int32), ones({3, 2}, int32)), std::invalid_argument);
  EXPECT_THROW(
      addmm(ones({9}), ones({2, 3}), ones({3, 5})), std::invalid_argument);
  EXPECT_THROW(tensordot(ones({2}), ones({2}), 2), std::invalid_argument);
  EXPECT_THROW(quantize(ones({2, 60})), std::invalid_argument);
}

TEST(QuantizedOps, CodesHaveNoDerivative) {
  auto parts = quantize(ones({2, 64}));
  auto f = [&](const std::vector<array>& in) {
    return std::vector<array>{dequantize(in[0], parts[1], parts[2])};
  };
  EXPECT_THROW(vjp(f, {parts[0]}, {ones({2, 64})}), std::runtime_error);
}

}  // namespace
}  // namespace mlx::core
