// Derivatives and batch rules of the indexing operations.
#include <gtest/gtest.h>

#include "ops/indexing_testing.h"

namespace mlx::core {
namespace {

using Inputs = std::vector<array>;
using Function = std::function<array(const Inputs&)>;

// <c, J t> and <J^T c, t> for integer-valued tangents and cotangents, which
// are then exact.
void expect_transposed(const Function& f, const Inputs& primals) {
  auto many = [&](const Inputs& in) { return Inputs{f(in)}; };
  Inputs tangents;
  for (size_t i = 0; i < primals.size(); ++i) {
    array t = counting(primals[i].shape());
    tangents.push_back(add(t, array(static_cast<float>(i + 1))));
  }
  array out = f(primals);
  array c = subtract(counting(out.shape()), array(2.0f));
  auto [_, moved] = jvp(many, primals, tangents);
  auto [__, grads] = vjp(many, primals, Inputs{c});
  auto dot = [](const array& x, const array& y) {
    std::vector<double> a = values(x);
    std::vector<double> b = values(y);
    double total = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      total += a[i] * b[i];
    }
    return total;
  };
  double backward = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_EQ(grads[i].shape(), primals[i].shape());
    backward += dot(grads[i], tangents[i]);
  }
  EXPECT_EQ(dot(c, moved[0]), backward);
}

const Shape kStart{0, 1};
const Shape kStop{2, 4};
const Shape kStep{1, 2};

TEST(IndexingGradients, AreTransposed) {
  array a = counting({2, 4});
  array u = add(counting({2, 2}), array(3.5f));
  array i({1, -1, 0, 0}, {2, 2}, int32);
  array at({1}, int32);
  array mask({true, false, false, true, true, false, true, false}, {2, 4});
  std::vector<std::pair<Function, Inputs>> cases = {
      {[](const Inputs& x) {
         return slice_update(x[0], x[1], kStart, kStop, kStep);
       },
       {a, u}},
      {[](const Inputs& x) {
         return slice_update_add(x[0], x[1], kStart, kStop, kStep);
       },
       {a, u}},
      {[](const Inputs& x) {
         return slice_update_prod(x[0], x[1], kStart, kStop, kStep);
       },
       {a, u}},
      {[](const Inputs& x) {
         return slice_update_max(x[0], x[1], kStart, kStop, kStep);
       },
       {a, u}},
      {[](const Inputs& x) {
         return slice_update_min(x[0], x[1], kStart, kStop, kStep);
       },
       {a, u}},
      {[at](const Inputs& x) {
         return slice(x[0], at, {1}, {2, 2});
       },
       {a}},
      {[at](const Inputs& x) { return slice_update(x[0], x[1], at, {1}); },
       {a, u}},
      {[i](const Inputs& x) { return take(x[0], i, 0); }, {a}},
      {[i](const Inputs& x) { return take(x[0], i, 1); }, {a}},
      {[i](const Inputs& x) {
         return gather(x[0], {i, i}, {1, 0}, {1, 1});
       },
       {a}},
      {[i](const Inputs& x) { return take_along_axis(x[0], i, 1); }, {a}},
      {[i](const Inputs& x) { return scatter_add(x[0], flatten(i), x[1], 1); },
       {a, counting({4, 2, 1})}},
      {[](const Inputs& x) {
         return scatter(x[0], array({3, 1}, int32), x[1], 1);
       },
       {a, counting({2, 2, 1})}},
      {[i](const Inputs& x) { return scatter_max(x[0], flatten(i), x[1], 1); },
       {a, counting({4, 2, 1})}},
      {[i](const Inputs& x) { return scatter_min(x[0], flatten(i), x[1], 1); },
       {a, counting({4, 2, 1})}},
      {[i](const Inputs& x) {
         return scatter_prod(x[0], flatten(i), counting({4, 2, 1}), 1);
       },
       {a}},
      {[](const Inputs& x) {
         array to({3, 0, 1, 2}, {2, 2}, int32);
         return put_along_axis(x[0], to, x[1], 1);
       },
       {a, u}},
      {[i](const Inputs& x) { return scatter_add_axis(x[0], i, x[1], 1); },
       {a, u}},
      {[mask](const Inputs& x) { return masked_scatter(x[0], mask, x[1]); },
       {a, counting({5})}},
  };
  for (size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE(testing::Message() << "case " << n);
    expect_transposed(cases[n].first, cases[n].second);
  }
}

TEST(IndexingGradients, Values) {
  array x({1, 2, 3}, float32);
  array i({1, 1}, int32);
  array c({4, 5, 6}, float32);
  auto scatter_maximum = [&](const Inputs& in) {
    return Inputs{scatter_max(in[0], i, in[1], 0)};
  };
  auto grads = vjp(scatter_maximum, {x, array({2, 4}, {2, 1}, float32)}, {c});
  expect_values(grads.second[0], {4, 0, 6});
  expect_values(grads.second[1], {0, 5});
  grads = vjp(scatter_maximum, {x, array({4, 4}, {2, 1}, float32)}, {c});
  expect_values(grads.second[1], {5, 5});
  auto gathered = [&](const array& a) { return take(a, i, 0); };
  expect_values(vjp(gathered, x, array({3, 4}, float32)).second, {0, 7, 0});
}

TEST(IndexingGradients, NotOfIndices) {
  auto by_index = [](const Inputs& in) {
    return Inputs{take(in[0], in[1], 0)};
  };
  Inputs primals = {counting({3}), array({1}, int32)};
  EXPECT_THROW(vjp(by_index, primals, {counting({1})}), std::invalid_argument);
  auto product = [](const Inputs& in) {
    return Inputs{scatter_prod(in[0], array({1}, int32), in[1], 0)};
  };
  EXPECT_THROW(
      vjp(product, {counting({3}), counting({1, 1})}, {counting({3})}),
      std::invalid_argument);
}

TEST(IndexingVmap, IsALoop) {
  array a = counting({3, 4, 2});  // batch in the middle
  array i({1, -1, 0, 0, 1, 2, 2, 1}, {4, 2}, int32);
  array j({1, 0, 0, 1, 1, 0, 0, 0}, {2, 4}, int32);
  std::vector<std::pair<Function, std::pair<Inputs, std::vector<int>>>> cases =
      {
          {[](const Inputs& x) { return take(x[0], x[1], 0); },
           {{a, i}, {1, 0}}},
          {[](const Inputs& x) { return take(x[0], x[1], 1); },
           {{a, j}, {1, 1}}},
          {[](const Inputs& x) {
             return gather(x[0], {x[1], x[2]}, {0, 1}, {2, 1});
           },
           {{a, i, j}, {1, 0, 1}}},
          {[](const Inputs& x) {
             return take_along_axis(x[0], reshape(x[1], {2, 1}), 0);
           },
           {{a, i}, {1, 0}}},
          {[](const Inputs& x) { return scatter_add(x[0], {x[1]}, x[2], {0}); },
           {{a, i, counting({2, 1, 2, 4})}, {1, 0, 3}}},
          {[](const Inputs& x) {
             return scatter(x[0], {array({2, 0}, int32), x[1]}, x[2], {0, 1});
           },
           {{a, j, counting({4, 2, 1, 1})}, {1, 1, 0}}},
          {[](const Inputs& x) {
             return put_along_axis(x[0], reshape(x[1], {2, 1}), x[2], 0);
           },
           {{a,
             array({1, 0, 0, 2, 1, 2, 2, 1}, {4, 2}, int32),
             counting({4, 2, 2})},
            {1, 0, 0}}},
          {[](const Inputs& x) {
             return slice_update(x[0], x[1], {0, 0}, {3, 2}, {2, 1});
           },
           {{a, counting({2, 2, 4})}, {1, 2}}},
          {[](const Inputs& x) {
             return slice(x[0], x[1], {0, 1}, {2, 1});
           },
           {{a, i}, {1, 0}}},
          {[](const Inputs& x) {
             return slice_update(x[0], x[1], x[2], {0, 1});
           },
           {{a, counting({4, 2, 1}), i}, {1, 0, 0}}},
          {[](const Inputs& x) { return masked_scatter(x[0], x[1], x[2]); },
           {{a,
             array(
                 {true,
                  false,
                  true,
                  false,
                  true,
                  false,
                  true,
                  true,
                  true,
                  true,
                  false,
                  false},
                 {4, 3}),
             counting({3, 2, 4})},
            {1, 0, 2}}},
      };
  for (size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE(testing::Message() << "case " << n);
    auto& [f, inputs] = cases[n];
    expect_vmap_is_loop(f, inputs.first, inputs.second);
  }
}

}  // namespace
}  // namespace mlx::core
