// Helpers of batch rules and derivatives.
#include "ops/rules.h"

#include <algorithm>

#include "graph/postponed.h"
#include "mlx/ops.h"
#include "ops/views.h"

namespace mlx::core {

ShapeElem batch_size(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (axes[i] >= 0) {
      return inputs[i].shape(axes[i]);
    }
  }
  return 1;
}

Shape with_batch(Shape shape, ShapeElem batch) {
  shape.insert(shape.begin(), batch);
  return shape;
}

std::vector<int> shifted(std::vector<int> axes) {
  for (int& a : axes) {
    ++a;
  }
  return axes;
}

array with_batch(const array& x, int axis, ShapeElem batch, Stream s) {
  return axis >= 0 ? batch_to_front(x, axis, s)
                   : broadcast_to(x, with_batch(x.shape(), batch), s);
}

std::vector<array> all_batched(
    const std::vector<array>& inputs, const std::vector<int>& axes, Stream s) {
  ShapeElem batch = batch_size(inputs, axes);
  std::vector<array> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.push_back(with_batch(inputs[i], axes[i], batch, s));
  }
  return out;
}

array broadcast_like(const array& x, const array& like, Stream s) {
  MLX_POSTPONE("broadcast_like", broadcast_like(in[0], in[1], s), x, like);
  return broadcast_to(x, like.shape(), s);
}

std::vector<array> filled_tangents(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums,
    Stream s) {
  std::vector<array> all;
  for (size_t i = 0; i < primals.size(); ++i) {
    auto it = std::find(argnums.begin(), argnums.end(), static_cast<int>(i));
    all.push_back(
        it == argnums.end() ? zeros_like(primals[i], s)
                            : tangents[it - argnums.begin()]);
  }
  return all;
}

}  // namespace mlx::core
