// Gathering operands into blocks.
#include "backend/cpu/block_source.h"

#include <algorithm>
#include <cstring>

namespace mlx::core::cpu {

BlockSource::BlockSource(
    const array& a, const Shape& shape, const Strides& strides, Dtype compute)
    : data_(a.data<char>()), item_size_(a.itemsize()) {
  std::tie(shape_, strides_) = collapse_contiguous_dims(
      shape, strides, std::numeric_limits<int32_t>::max());
  bool one = true;
  int64_t row = 1;
  bool row_major = true;
  for (size_t i = shape_.size(); i-- > 0;) {
    one = one && strides_[i] == 0;
    row_major = row_major && strides_[i] == row;
    row *= shape_[i];
  }
  if (one) {
    kind_ = Kind::scalar;
  } else if (row_major) {
    kind_ = Kind::contiguous;
  }
  if (a.dtype() != compute) {
    convert_ = convert_block(a.dtype(), compute);
  }
}

const void* BlockSource::block(size_t begin, size_t n) {
  if (kind_ == Kind::scalar) {
    if (convert_ && !converted_scalar_) {
      const void* in[] = {data_};
      convert_(in, converted_, 1);
      converted_scalar_ = true;
    }
    return convert_ ? converted_ : data_;
  }
  const char* from = data_ + begin * item_size_;
  if (kind_ == Kind::strided) {
    gather(begin, n, gathered_);
    from = gathered_;
  }
  if (!convert_) {
    return from;
  }
  const void* in[] = {from};
  convert_(in, converted_, n);
  return converted_;
}

void BlockSource::gather(size_t begin, size_t n, char* to) {
  size_t last = shape_.size() - 1;
  size_t cols = shape_[last];
  size_t col = begin % cols;
  // Position of the row that `begin` lies in, axis by axis.
  int64_t position[64];
  int64_t loc = 0;
  size_t row = begin / cols;
  for (size_t i = last; i-- > 0;) {
    position[i] = static_cast<int64_t>(row % shape_[i]);
    row /= shape_[i];
    loc += position[i] * strides_[i];
  }
  while (n > 0) {
    size_t run = std::min(cols - col, n);
    const char* from =
        data_ + (loc + static_cast<int64_t>(col) * strides_[last]) *
                    static_cast<int64_t>(item_size_);
    if (strides_[last] == 1) {
      std::memcpy(to, from, run * item_size_);
    } else {
      gather_block(from, strides_[last], to, run, item_size_);
    }
    to += run * item_size_;
    n -= run;
    col = 0;
    for (size_t i = last; i-- > 0;) {
      loc += strides_[i];
      if (++position[i] < shape_[i]) {
        break;
      }
      loc -= position[i] * strides_[i];
      position[i] = 0;
    }
  }
}

}  // namespace mlx::core::cpu
