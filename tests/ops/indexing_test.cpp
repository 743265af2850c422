// src/ops/{gather,scatter,slice_update,dynamic_slice,masked_scatter}.cpp and
// their CPU kernels: values, errors, layouts, updates in place.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "backend/cpu/threads.h"
#include "ops/indexing_testing.h"

namespace mlx::core {
namespace {

template <typename E, typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

TEST(Take, AlongAxes) {
  array a = counting({2, 3, 2});
  array i({2, -3, 1}, int32);
  expect_values(
      take(a, array({1, 0}, int32), 0), {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  expect_values(take(a, i, 1), {4, 5, 0, 1, 2, 3, 10, 11, 6, 7, 8, 9});
  array nested = take(a, array({0, 1, 1, 0}, {2, 2}, uint8), 2);
  EXPECT_EQ(nested.shape(), (Shape{2, 3, 2, 2}));
  expect_values(take(nested, 0, 0), {0, 1, 1, 0, 2, 3, 3, 2, 4, 5, 5, 4});
  expect_values(take(a, array(7, int64)), {7});
  expect_values(take(a, -1), {11});
  expect_values(take(transpose(a), array({1}, int32), 0), {1, 7, 3, 9, 5, 11});
}

TEST(Take, EveryElementSizeAndLongRows) {
  for (Dtype t : {bool_, int8, float16, bfloat16, int32, float64, complex64}) {
    array a = astype(counting({5, 700}, int32), t);
    array rows = take(a, array({4, 0, 4}, int32), 0);
    array expected = concatenate({take(a, 4, 0), take(a, 0, 0), take(a, 4, 0)});
    expect_same(flatten(rows), expected);
    expect_same(
        take(transpose(a), array({3, 2}, int32), 0),
        transpose(slice(a, {0, 3}, {5, 1}, {1, -1})));
  }
}

TEST(Take, LargerThanABlock) {
  array a = counting({3000});
  std::vector<int> order(20000);
  std::vector<double> expected;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i * 7919 % 3000);
    expected.push_back(order[i]);
  }
  array i(order.begin(), {20000}, int32);
  expect_values(take(a, i, 0), expected);
  expect_values(take(a, reshape(i, {100, 200}), 0), expected);
  array strided = slice(concatenate({i, i}), {0}, {40000}, {2});
  EXPECT_EQ(values(take(a, strided, 0))[3], order[6]);
}

TEST(Take, Errors) {
  array a = counting({2, 3});
  EXPECT_EQ(
      error_of<std::out_of_range>([&] { take(a, 3, 1); }),
      "[take] index out of range: 3 for axis 1 of length 3. Expected -length "
      "<= index < length.");
  EXPECT_THROW(take(a, -4, 1), std::out_of_range);
  EXPECT_EQ(
      error_of<std::invalid_argument>([&] { take(a, array(0.5f), 0); }),
      "[take] bad type of indices: float32. Expected integers.");
  EXPECT_THROW(take(a, array(true), 0), std::invalid_argument);
  EXPECT_THROW(take(a, array(0), 2), std::invalid_argument);
  array none = zeros({0, 3});
  EXPECT_THROW(take(none, array({0}), 0), std::invalid_argument);
  array no_index(static_cast<const int*>(nullptr), {0}, int32);
  EXPECT_EQ(take(none, no_index, 0).shape(), (Shape{0, 3}));
}

TEST(Gather, SlicesAndBroadcastIndices) {
  array a = counting({4, 5});
  array rows({0, 3}, {2, 1}, int32);
  array columns({1, -2, 0}, int64);
  array out = gather(a, {rows, columns}, {0, 1}, {1, 2});
  EXPECT_EQ(out.shape(), (Shape{2, 3, 1, 2}));
  expect_values(out, {1, 2, 3, 4, 0, 1, 16, 17, 18, 19, 15, 16});
  expect_values(gather(a, {columns}, {1}, {2, 1}), {1, 6, 3, 8, 0, 5});
  EXPECT_THROW(gather(a, {rows}, {0, 1}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(gather(a, {rows, rows}, {0, 0}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(gather(a, {rows}, {0}, {5, 1}), std::invalid_argument);
  EXPECT_THROW(gather(a, {rows}, {0}, {1}), std::invalid_argument);
}

// Out of range: reading moves to the nearest position.
TEST(Gather, OutOfRangeStaysInside) {
  array a = counting({4});
  expect_values(take(a, array({9, -9, 4}, int32), 0), {3, 0, 3});
  array huge({UINT64_MAX, uint64_t{2}}, uint64);
  expect_values(take(a, huge, 0), {3, 2});
  expect_values(gather(a, {array({3}, int32)}, {0}, {2}), {2, 3});
  expect_values(take_along_axis(a, array({-7, 100}, int32), 0), {0, 3});
}

TEST(Gather, CheckingMode) {
  array a = counting({4});
  setenv("MLX_CHECK_INDICES", "1", 1);
  EXPECT_THROW(take(a, array({4}, int32), 0).eval(), std::out_of_range);
  EXPECT_THROW(
      scatter(a, array({-5}, int32), zeros({1, 1}), 0).eval(),
      std::out_of_range);
  EXPECT_THROW(
      take_along_axis(a, array({4}, int32), 0).eval(), std::out_of_range);
  EXPECT_THROW(slice(a, array({3}, int32), {0}, {2}).eval(), std::out_of_range);
  expect_values(take(a, array({-4}, int32), 0), {0});
  unsetenv("MLX_CHECK_INDICES");
}

TEST(TakeAlongAxis, ValuesLayoutsErrors) {
  array a = counting({2, 3});
  array i({2, 0, 1, 1}, {2, 2}, int32);
  expect_values(take_along_axis(a, i, 1), {2, 0, 4, 4});
  expect_values(take_along_axis(a, array({1}, {1, 1}, int32), 0), {3, 4, 5});
  expect_values(take_along_axis(transpose(a), transpose(i), 0), {2, 4, 0, 4});
  array deep = counting({2, 3, 4});
  array d({0, 2, 1, 1, 0, 2, 1, 0}, {2, 1, 4}, int32);
  expect_values(take_along_axis(deep, d, 1), {0, 9, 6, 7, 12, 21, 18, 15});
  EXPECT_THROW(take_along_axis(a, array({0}, int32), 0), std::invalid_argument);
  EXPECT_THROW(
      take_along_axis(a, zeros({3, 3}, int32), 1), std::invalid_argument);
  EXPECT_THROW(take_along_axis(a, zeros({2, 1}), 1), std::invalid_argument);
}

TEST(SliceUpdate, ModesAndStrides) {
  array a = counting({3, 4});
  array u({10, 20}, float32);
  expect_values(
      slice_update(a, u, Shape{0, 0}, {3, 4}, {2, 2}),
      {10, 1, 20, 3, 4, 5, 6, 7, 10, 9, 20, 11});
  expect_values(
      slice_update(a, u, Shape{2, 3}, {0, 1}, {-1, -1}),
      {0, 1, 2, 3, 4, 5, 20, 10, 8, 9, 20, 10});
  array v({2, 5}, float32);
  auto row = [](const array& x) { return take(x, 1, 0); };
  expect_values(
      row(slice_update_add(a, v, Shape{1, 1}, {2, 3})), {4, 7, 11, 7});
  expect_values(
      row(slice_update_prod(a, v, Shape{1, 1}, {2, 3})), {4, 10, 30, 7});
  expect_values(row(slice_update_max(a, v, Shape{1, 2}, {2, 4})), {4, 5, 6, 7});
  expect_values(row(slice_update_min(a, v, Shape{1, 2}, {2, 4})), {4, 5, 2, 5});
  expect_same(slice_update(a, v, Shape{1, 1}, {1, 3}), a);
  EXPECT_EQ(slice_update(a, array(1.5f), Shape{0, 0}, {3, 4}).dtype(), float32);
  EXPECT_EQ(
      values(slice_update(counting({2}, int32), array(1.7f), Shape{0}, {1}))[0],
      1);
  EXPECT_THROW(
      slice_update(a, zeros({3}), Shape{0, 0}, {3, 4}), std::invalid_argument);
  EXPECT_THROW(slice_update(a, u, Shape{0}, {3}), std::invalid_argument);
  EXPECT_THROW(
      slice_update(a, u, Shape{0, 0}, {3, 4}, {0, 1}), std::invalid_argument);
}

TEST(SliceUpdate, AccumulatesEveryType) {
  for (Dtype t :
       {uint8,
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
    array a = astype(counting({3, 37}, int32), t);
    array u = astype(counting({37}, int32), t);
    array two = slice_update_add(a, u, Shape{1, 0}, {2, 37});
    array product = slice_update_prod(a, array(2, t), Shape{0, 0}, {3, 1});
    std::vector<double> sums = values(two);
    EXPECT_EQ(sums[36], 36) << t.size();
    EXPECT_EQ(sums[37], 37);
    EXPECT_EQ(sums[37 + 36], 73 + 36);
    EXPECT_EQ(values(product)[74], t == int8 ? -108 : 148);
    EXPECT_EQ(
        values(slice_update_max(a, u, Shape{0, 0}, {3, 37}))[36 + 37], 73);
    EXPECT_EQ(
        values(slice_update_min(a, u, Shape{0, 0}, {3, 37}))[36 + 37], 36);
  }
  array flags({true, false, true, false});
  array others({true, true, false, false});
  expect_values(slice_update_add(flags, others, Shape{0}, {4}), {1, 1, 1, 0});
  expect_values(slice_update_prod(flags, others, Shape{0}, {4}), {1, 0, 0, 0});
}

TEST(SliceUpdate, NanStaysInMaximum) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  for (Dtype t : {float16, bfloat16, float32, float64}) {
    array a({nan, 1.0f, 2.0f});
    array u({1.0f, nan, 1.0f});
    auto out =
        values(slice_update_max(astype(a, t), astype(u, t), Shape{0}, {3}));
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]) && out[2] == 2);
  }
}

TEST(DynamicSlice, ClampsAndWraps) {
  array a = counting({3, 4});
  auto at = [&](int i) { return slice(a, array({i}, int32), {1}, {3, 2}); };
  expect_values(at(1), {1, 2, 5, 6, 9, 10});
  expect_values(at(3), {2, 3, 6, 7, 10, 11});
  expect_values(at(-3), {1, 2, 5, 6, 9, 10});
  expect_values(at(-30), {0, 1, 4, 5, 8, 9});
  expect_values(slice(a, array(2, uint8), {0}, {1, 3}), {8, 9, 10});
  expect_values(slice(a, array({1, 2}, int32), {1, 0}, {1, 1}), {9});
  EXPECT_THROW(slice(a, array({1.0f}), {0}, {1, 4}), std::invalid_argument);
  EXPECT_THROW(slice(a, array({1}, int32), {0}, {4, 4}), std::invalid_argument);
  EXPECT_THROW(slice(a, array({1}, int32), {0}, {1}), std::invalid_argument);
  EXPECT_THROW(
      slice(a, array({1, 1}, int32), {0}, {1, 1}), std::invalid_argument);
  EXPECT_THROW(
      slice(a, array({1, 1}, int32), {0, -2}, {1, 1}), std::invalid_argument);
}

TEST(DynamicSlice, Update) {
  array a = counting({3, 4});
  array start({1}, int32);
  auto second = [](const array& x) { return take(x, 1, 0); };
  expect_values(
      second(slice_update(a, array({9, 8}, {1, 2}, float32), start, {0})),
      {9, 8, 6, 7});
  expect_values(second(slice_update(a, array(7.0f), start, {0})), {7, 7, 7, 7});
  expect_values(
      second(slice_update(a, array({7, 8}, float32), start, {1})),
      {4, 7, 8, 7});
  expect_values(
      second(slice_update(
          a, array({7, 8}, float32), array({9, 1}, int32), {1, 0})),
      {4, 5, 7, 8});
  EXPECT_THROW(slice_update(a, zeros({5}), start, {1}), std::invalid_argument);
  EXPECT_THROW(
      slice_update(a, zeros({1, 1, 1}), start, {1}), std::invalid_argument);
}

TEST(Scatter, ModesAndOutOfRange) {
  array a = counting({5});
  array i({1, -1, 1, 9, -9}, int32);
  array u({10, 20, 30, 40, 50}, {5, 1}, float32);
  expect_values(scatter(a, i, u, 0), {0, 30, 2, 3, 20});
  expect_values(scatter_add(a, i, u, 0), {0, 41, 2, 3, 24});
  expect_values(scatter_prod(a, i, u, 0), {0, 300, 2, 3, 80});
  expect_values(scatter_max(a, i, u, 0), {0, 30, 2, 3, 20});
  expect_values(scatter_min(a, i, negative(u), 0), {0, -30, 2, 3, -20});
  EXPECT_THROW(scatter(a, i, zeros({4, 1}), 0), std::invalid_argument);
  EXPECT_THROW(scatter(a, i, zeros({5, 6}), 0), std::invalid_argument);
  EXPECT_THROW(scatter(a, i, zeros({5}), 0), std::invalid_argument);
  EXPECT_THROW(scatter(a, astype(i, float32), u, 0), std::invalid_argument);
  EXPECT_EQ(
      error_of<std::invalid_argument>([&] {
        scatter_add(a, i, u, 1);
      }).substr(0, 40),
      "[scatter_add] axis out of range: 1 for a");
}

TEST(Scatter, SlicesAndSeveralAxes) {
  array a = zeros({3, 4});
  array u = counting({2, 1, 2});
  expect_values(
      scatter(a, {array({2, 0}, int32), array(1, int32)}, u, {0, 1}),
      {0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0});
  // Slices that overlap in part.
  expect_values(
      scatter_add(zeros({4}), array({0, 1, 2}, int32), counting({3, 2}), 0),
      {0, 3, 7, 5});
  expect_values(
      scatter_add(transpose(a), array({1, 1}, int32), ones({2, 1, 3}), 0),
      {0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0});
}

// The sum is rounded in the order of the updates, on any number of threads.
TEST(Scatter, SumsDoNotDependOnThreads) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (auto [rows, width] : {std::pair{60000, 1}, {3000, 3}, {400, 600}}) {
    std::vector<float> numbers(size_t(rows) * width);
    std::vector<int> at(rows);
    for (float& x : numbers) {
      x = normal(random);
    }
    for (int& i : at) {
      i = static_cast<int>(random() % 50);
    }
    array u(numbers.begin(), {rows, 1, width});
    array i(at.begin(), {rows});
    std::vector<float> expected(50 * width, 0);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < width; ++c) {
        expected[at[r] * width + c] += numbers[size_t(r) * width + c];
      }
    }
    for (int threads : {1, 2, 5}) {
      cpu::set_num_threads(threads);
      array out = scatter_add(zeros({50, width}), i, u, 0);
      out.eval();
      EXPECT_EQ(
          std::vector<float>(out.data<float>(), out.data<float>() + out.size()),
          expected)
          << rows << " " << threads;
    }
    cpu::set_num_threads(0);
  }
}

TEST(PutAlongAxis, ValuesAndSums) {
  array a = counting({2, 3});
  array i({2, 0, 1, 1}, {2, 2}, int32);
  array v({10, 20, 30, 40}, {2, 2}, float32);
  expect_values(put_along_axis(a, i, v, 1), {20, 1, 10, 3, 40, 5});
  expect_values(scatter_add_axis(a, i, v, 1), {20, 1, 12, 3, 74, 5});
  expect_values(
      put_along_axis(a, array({1}, {1, 1}, int32), array(9.0f), 0),
      {0, 1, 2, 9, 9, 9});
  expect_values(
      scatter_add_axis(transpose(a), transpose(i), transpose(v), 0),
      {20, 3, 1, 74, 12, 5});
  expect_values(
      put_along_axis(a, array({7, -9}, {2, 1}, int32), array(9.0f), 1),
      {0, 1, 2, 3, 4, 5});
  array deep = zeros({2, 3, 2, 2});
  array broadcast = broadcast_to(array({0, 2}, {2, 1, 1}, int32), {2, 2, 2, 2});
  array sums = scatter_add_axis(
      transpose(deep, {0, 1, 3, 2}), broadcast, ones({2, 2, 2, 2}), 1);
  EXPECT_EQ(values(sums)[0], 1);
  EXPECT_EQ(values(sums)[4], 0);
  EXPECT_EQ(values(sums)[8], 1);
  EXPECT_THROW(
      put_along_axis(a, array({1}, int32), v, 0), std::invalid_argument);
  EXPECT_THROW(put_along_axis(a, i, zeros({3, 2}), 1), std::invalid_argument);
}

TEST(MaskedScatter, RowsScalarsErrors) {
  array a = counting({3, 2});
  array rows({true, false, true});
  expect_values(
      masked_scatter(a, rows, array({7, 8, 9, 10}, {2, 2}, float32)),
      {7, 8, 2, 3, 9, 10});
  expect_values(masked_scatter(a, rows, array(5)), {5, 5, 2, 3, 5, 5});
  expect_values(
      masked_scatter(a, rows, array({5, 6}, int32)), {5, 6, 2, 3, 5, 6});
  array all({true, false, true, true, false, false}, {3, 2});
  expect_values(
      masked_scatter(a, all, array({7, 8, 9, 10}, int32)), {7, 1, 8, 9, 4, 5});
  EXPECT_THROW(
      masked_scatter(a, all, array({7, 8}, int32)).eval(), std::runtime_error);
  EXPECT_THROW(
      masked_scatter(a, array({true, false}), array(1)), std::invalid_argument);
  EXPECT_THROW(
      masked_scatter(a, array({1, 0, 1}, int32), array(1)),
      std::invalid_argument);
  EXPECT_THROW(masked_scatter(a, all, zeros({1, 1})), std::invalid_argument);
  EXPECT_THROW(masked_scatter(a, rows, zeros({3})), std::invalid_argument);
  std::vector<bool> even(20000);
  for (size_t i = 0; i < even.size(); i += 2) {
    even[i] = true;
  }
  array out = masked_scatter(
      zeros({20000}), array(even.begin(), {20000}, bool_), counting({10000}));
  EXPECT_EQ(values(out)[19998], 9999);
  EXPECT_EQ(values(out)[19999], 0);
}

// Who holds the only handle pays for the slice alone.
TEST(InPlace, MemoryIsTakenOver) {
  array cache = add(zeros({4, 1111, 100}), array(1.0f));
  cache.eval();
  const float* memory = cache.data<float>();
  for (int step = 0; step < 3; ++step) {
    cache =
        slice_update(cache, array(2.0f), Shape{0, step, 0}, {4, step + 1, 100});
    cache.eval();
    EXPECT_EQ(cache.data<float>(), memory);
  }
  cache = slice_update(cache, array(3.0f), array({5}, int32), {1});
  cache = scatter(cache, array({7}, int32), ones({1, 4, 1, 100}), 1);
  cache = put_along_axis(cache, zeros({1, 1, 1}, int32), array(9.0f), 1);
  cache = slice_update_add(cache, array(1.0f), Shape{0, 0, 0}, {1, 1, 1});
  cache.eval();
  EXPECT_EQ(cache.data<float>(), memory);
  std::vector<double> now = values(take(cache, 3, 0));
  EXPECT_EQ(now[0], 9);
  EXPECT_EQ(now[100], 2);
  EXPECT_EQ(now[300], 1);
  EXPECT_EQ(now[500], 3);
}

TEST(InPlace, OthersKeepTheOldValue) {
  array a = add(zeros({64}), array(1.0f));
  a.eval();
  array view = slice(a, {0}, {8});
  view.eval();
  array b = slice_update(a, array(2.0f), Shape{0}, {4});
  b.eval();
  EXPECT_NE(a.data<float>(), b.data<float>());
  EXPECT_EQ(values(a)[0], 1);
  a = slice_update(a, array(3.0f), Shape{0}, {4});
  a.eval();
  EXPECT_EQ(values(view)[0], 1);
  EXPECT_EQ(values(b)[0], 2);
  EXPECT_EQ(values(a)[0], 3);
  // A reader that has not run yet.
  array later = slice(b, {0}, {8});
  b = slice_update(b, array(4.0f), Shape{0}, {4});
  b.eval();
  EXPECT_EQ(values(later)[0], 2);
}

// exp's derivative reads its output, which nobody else holds.
TEST(InPlace, NotWhatADerivativeNeeds) {
  auto f = [](const array& x) {
    array y = slice_update_add(exp(x), array(5.0f), Shape{0}, Shape{1});
    y.eval();
    return y;
  };
  array ones_like_x({1, 1, 1}, float32);
  auto [y, grad] = vjp(f, array({0, 0, 0}, float32), ones_like_x);
  expect_values(y, {6, 1, 1});
  expect_values(grad, {1, 1, 1});
}

}  // namespace
}  // namespace mlx::core
