// Handles and nodes: construction, siblings, release of long and circular
// graphs, views of foreign memory.
#include "mlx/array.h"

#include <gtest/gtest.h>

#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"

namespace mlx::core {
namespace {

TEST(Array, HoldsWhatItWasMadeOf) {
  array a({1.5f, 2.5f, 3.5f});
  EXPECT_EQ(a.shape(), Shape{3});
  EXPECT_EQ(a.dtype(), float32);
  EXPECT_EQ(a.data<float>()[1], 2.5f);
  array b({1, 2, 3, 4}, {2, 2}, int16);
  EXPECT_EQ(b.data<int16_t>()[3], 4);
  EXPECT_EQ(array(true).item<bool>(), true);
  EXPECT_EQ(array(3).dtype(), int32);
  EXPECT_EQ(array(3.0).dtype(), float32);
  EXPECT_THROW(array({1, 2, 3}, Shape{2, 2}), std::invalid_argument);
}

TEST(Array, ItemNeedsOneElement) {
  EXPECT_THROW(array({1, 2}, int32).item<int>(), std::invalid_argument);
  EXPECT_EQ(array({7}, int32).item<float>(), 7.0f);
}

TEST(Array, ALongChainIsFreedWithoutRecursion) {
  array x(1.0f);
  for (int i = 0; i < 300000; ++i) {
    x = x + x;
  }
  SUCCEED();  // the stack would overflow here
}

TEST(Array, ALongChainIsEvaluated) {
  array x(0.0f);
  for (int i = 0; i < 100000; ++i) {
    x = x + array(1.0f);
  }
  EXPECT_EQ(x.item<float>(), 100000.0f);
}

TEST(Array, SiblingsThatNobodyEvaluatesAreFreed) {
  size_t before = get_active_memory();
  for (int i = 0; i < 100; ++i) {
    array big = zeros({1000}) + array(1.0f);
    eval(big);
    std::vector<array> parts = split(big, 4);
    array kept = parts[2];
    parts.clear();
    EXPECT_EQ(kept.shape(), Shape{250});
  }
  EXPECT_EQ(get_active_memory(), before);
}

TEST(Array, SiblingsKnowTheirOrder) {
  std::vector<array> parts = split(arange(6), 3);
  std::vector<array> all = parts[1].outputs();
  ASSERT_EQ(all.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].id(), parts[i].id());
  }
}

TEST(Array, ForeignMemoryIsGivenBack) {
  bool freed = false;
  float values[4] = {1, 2, 3, 4};
  {
    array a(values, {4}, float32, [&](void*) { freed = true; });
    EXPECT_EQ(sum(a).item<float>(), 10.0f);
    EXPECT_FALSE(freed);
  }
  EXPECT_TRUE(freed);
}

TEST(Array, IteratesOverTheFirstAxis) {
  array a = reshape(arange(6), {3, 2});
  int row = 0;
  for (array r : a) {
    EXPECT_EQ(r.shape(), Shape{2});
    EXPECT_EQ(take(r, 0, 0).item<int>(), 2 * row++);
  }
  EXPECT_EQ(row, 3);
  EXPECT_THROW(array(1).begin(), std::invalid_argument);
}

TEST(Array, AnEvaluatedArrayForgetsItsInputs) {
  array a = ones({2}) + array(1.0f);
  EXPECT_TRUE(a.has_primitive());
  eval(a);
  EXPECT_FALSE(a.has_primitive());
  EXPECT_TRUE(a.inputs().empty());
}

}  // namespace
}  // namespace mlx::core
