// Small helpers of the tests of indexing.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace mlx::core {

/// The elements in row-major order, as doubles.
inline std::vector<double> values(const array& a) {
  array dense = contiguous(a);
  dense.eval();
  std::vector<double> out(dense.size());
  detail::visit_dtype(dense.dtype(), [&](auto tag) {
    const auto* data = dense.data<decltype(tag)>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = detail::convert<double>(data[i]);
    }
  });
  return out;
}

/// 0, 1, 2, ... in a shape.
inline array counting(const Shape& shape, Dtype dtype = float32) {
  size_t size = 1;
  for (ShapeElem n : shape) {
    size *= n;
  }
  std::vector<double> numbers(size);
  for (size_t i = 0; i < size; ++i) {
    numbers[i] = static_cast<double>(i);
  }
  return array(numbers.begin(), shape, dtype);
}

inline void expect_values(const array& a, const std::vector<double>& expected) {
  EXPECT_EQ(values(a), expected);
}

/// Equal shapes and elements.
inline void expect_same(const array& a, const array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(values(a), values(b));
}

/// Entry i of a batch along `axis`.
inline array entry(const array& a, int i, int axis) {
  return axis < 0 ? a : take(a, i, axis);
}

/// vmap against a loop, for every choice of batched inputs (each along the
/// axis given, -1 for never).
inline void expect_vmap_is_loop(
    const std::function<array(const std::vector<array>&)>& f,
    const std::vector<array>& inputs,
    const std::vector<int>& batch_axes) {
  int n = static_cast<int>(inputs.size());
  auto many = [&](const std::vector<array>& in) {
    return std::vector<array>{f(in)};
  };
  for (int chosen = 1; chosen < 1 << n; ++chosen) {
    std::vector<int> axes(n, -1);
    std::vector<array> given;
    int batch = 0;
    bool possible = true;
    for (int i = 0; i < n; ++i) {
      bool batched = chosen >> i & 1;
      possible = possible && (!batched || batch_axes[i] >= 0);
      if (batched && batch_axes[i] >= 0) {
        axes[i] = batch_axes[i];
        batch = inputs[i].shape(axes[i]);
        given.push_back(inputs[i]);
      } else {
        given.push_back(entry(inputs[i], 0, batch_axes[i]));
      }
    }
    if (!possible) {
      continue;
    }
    array together = vmap(many, axes, {0})(given)[0];
    for (int b = 0; b < batch; ++b) {
      std::vector<array> single;
      for (int i = 0; i < n; ++i) {
        single.push_back(entry(given[i], b, axes[i]));
      }
      SCOPED_TRACE(testing::Message() << "choice " << chosen << " entry " << b);
      expect_same(take(together, b, 0), f(single));
    }
  }
}

}  // namespace mlx::core
