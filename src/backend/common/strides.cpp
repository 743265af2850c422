// Collapsing of axes, strided iteration, reshapes without a copy.
#include "mlx/backend/common/utils.h"

namespace mlx::core {

std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(
    const Shape& shape, const std::vector<Strides>& strides, int64_t size_cap) {
  Shape out_shape;
  std::vector<Strides> out_strides(strides.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) {
      continue;
    }
    bool merge = !out_shape.empty() &&
                 int64_t{out_shape.back()} * shape[axis] <= size_cap;
    for (size_t k = 0; merge && k < strides.size(); ++k) {
      merge = out_strides[k].back() == strides[k][axis] * shape[axis];
    }
    if (merge) {
      out_shape.back() *= shape[axis];
    } else {
      out_shape.push_back(shape[axis]);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (merge) {
        out_strides[k].back() = strides[k][axis];
      } else {
        out_strides[k].push_back(strides[k][axis]);
      }
    }
  }
  if (out_shape.empty() && !shape.empty()) {
    out_shape.push_back(1);
    for (Strides& s : out_strides) {
      s.push_back(0);
    }
  }
  return {std::move(out_shape), std::move(out_strides)};
}

std::pair<Shape, Strides> collapse_contiguous_dims(
    const Shape& shape, const Strides& strides, int64_t size_cap) {
  auto [s, all] =
      collapse_contiguous_dims(shape, std::vector<Strides>{strides}, size_cap);
  return {std::move(s), std::move(all[0])};
}

std::pair<Shape, Strides> collapse_contiguous_dims(
    const array& a, int64_t size_cap) {
  return collapse_contiguous_dims(a.shape(), a.strides(), size_cap);
}

ContiguousIterator::ContiguousIterator(const array& a) {
  std::tie(shape_, strides_) = collapse_contiguous_dims(a);
  pos_ = Shape(shape_.size(), 0);
}

ContiguousIterator::ContiguousIterator(
    const Shape& shape, const Strides& strides, int dims) {
  std::tie(shape_, strides_) = collapse_contiguous_dims(
      Shape(shape.begin(), shape.begin() + dims),
      Strides(strides.begin(), strides.begin() + dims));
  pos_ = Shape(shape_.size(), 0);
}

void ContiguousIterator::step(int64_t s) {
  for (int i = static_cast<int>(shape_.size()) - 1; i >= 0 && s > 0; --i) {
    int64_t at = pos_[i] + s;
    s = at / shape_[i];
    int64_t next = at % shape_[i];
    loc += (next - pos_[i]) * strides_[i];
    pos_[i] = static_cast<ShapeElem>(next);
  }
}

int64_t ContiguousIterator::contiguous_suffix() {
  if (shape_.empty() || strides_.back() != 1) {
    return 0;
  }
  return shape_.back() - pos_.back();
}

void ContiguousIterator::seek(int64_t n) {
  reset();
  step(n);
}

void ContiguousIterator::reset() {
  loc = 0;
  std::fill(pos_.begin(), pos_.end(), 0);
}

std::pair<bool, Strides> prepare_reshape(const array& in, const array& out) {
  if (in.size() == 0 || in.flags().row_contiguous) {
    return {false, make_contiguous_strides(out.shape())};
  }
  // Every run of output axes must lie within one collapsed input axis.
  auto [shape, strides] = collapse_contiguous_dims(in);
  Strides out_strides(out.ndim(), 0);
  size_t axis = 0;
  int64_t left = shape.empty() ? 1 : shape[0];
  for (size_t i = 0; i < out.ndim(); ++i) {
    int64_t n = out.shape()[i];
    if (n == 1) {
      continue;
    }
    while (left == 1 && axis + 1 < shape.size()) {
      left = shape[++axis];
    }
    if (left % n != 0) {
      return {true, {}};
    }
    left /= n;
    out_strides[i] = left * strides[axis];
  }
  return {false, std::move(out_strides)};
}

void shared_buffer_reshape(
    const array& in, const Strides& out_strides, array& out) {
  auto [reached, row, column] = check_contiguity(out.shape(), out_strides);
  array::Flags flags = in.flags();
  flags.contiguous = flags.contiguous && reached == in.data_size();
  flags.row_contiguous = row;
  flags.col_contiguous = column;
  if (row) {
    flags.contiguous = true;
  }
  out.copy_shared_buffer(in, out_strides, flags, in.data_size());
}

}  // namespace mlx::core
