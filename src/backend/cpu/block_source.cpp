// Gathering operands into blocks.
#include "backend/cpu/block_source.h"

#include <algorithm>
#include <cstring>

namespace mlx::core::cpu {

BlockView::BlockView(
    const void* data,
    size_t item_size,
    const Shape& shape,
    const Strides& strides)
    : data_(static_cast<const char*>(data)), item_size_(item_size) {
  Layout layout;
  std::tie(layout.shape, layout.strides) = collapse_contiguous_dims(
      shape, strides, std::numeric_limits<int32_t>::max());
  bool one = true;
  int64_t row = 1;
  bool row_major = true;
  for (size_t i = layout.shape.size(); i-- > 0;) {
    one = one && layout.strides[i] == 0;
    row_major = row_major && layout.strides[i] == row;
    row *= layout.shape[i];
  }
  kind_ = one ? Kind::scalar : row_major ? Kind::contiguous : Kind::strided;
  if (kind_ == Kind::strided) {
    layout_ = std::make_unique<Layout>(std::move(layout));
  }
}

const void* BlockView::strided(size_t begin, size_t n, char* buffer) const {
  const auto& [shape, strides] = *layout_;
  size_t last = shape.size() - 1;
  size_t cols = shape[last];
  size_t col = begin % cols;
  // Position of the row that `begin` lies in, axis by axis.
  int64_t position[64];
  int64_t loc = 0;
  size_t row = begin / cols;
  for (size_t i = last; i-- > 0;) {
    position[i] = static_cast<int64_t>(row % shape[i]);
    row /= shape[i];
    loc += position[i] * strides[i];
  }
  char* to = buffer;
  while (n > 0) {
    size_t run = std::min(cols - col, n);
    const char* from =
        data_ + (loc + static_cast<int64_t>(col) * strides[last]) *
                    static_cast<int64_t>(item_size_);
    if (strides[last] != 1) {
      gather_block(from, strides[last], to, run, item_size_);
    } else if (run == n && to == buffer) {
      return from;
    } else {
      std::memcpy(to, from, run * item_size_);
    }
    to += run * item_size_;
    n -= run;
    col = 0;
    for (size_t i = last; i-- > 0;) {
      loc += strides[i];
      if (++position[i] < shape[i]) {
        break;
      }
      loc -= position[i] * strides[i];
      position[i] = 0;
    }
  }
  return buffer;
}

const void* BlockSource::block(size_t begin, size_t n) {
  const void* from = view_->block(begin, n, gathered_);
  if (!convert_) {
    return from;
  }
  bool is_scalar = view_->kind() == BlockView::Kind::scalar;
  if (!is_scalar || !converted_scalar_) {
    const void* in[] = {from};
    convert_(in, converted_, is_scalar ? 1 : n);
    converted_scalar_ = is_scalar;
  }
  return converted_;
}

bool is_transposed(const array& a, const Shape& shape) {
  if (a.flags().row_contiguous || a.ndim() < 2 || a.shape() != shape) {
    return false;
  }
  auto [merged, strides] = collapse_contiguous_dims(a);
  size_t last = merged.size() - 1;
  return merged.size() >= 2 && strides[last] > 1 &&
         merged[last] * strides[last] * static_cast<int64_t>(a.itemsize()) >
             (16 << 10) &&
         strides[last - 1] == 1;
}

}  // namespace mlx::core::cpu
