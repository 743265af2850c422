// Index arrays of every integer type, strided and broadcast.
#include "backend/cpu/index_reader.h"

#include <algorithm>

#include "backend/common/layouts.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

[[noreturn]] void outside_error(const IndexedAxis& axis, int64_t index) {
  throw std::out_of_range(message(
      axis.op,
      "index out of range: ",
      index,
      " for an axis of length ",
      axis.length,
      " and a last position of ",
      axis.last,
      "."));
}

template <typename T>
void add_typed(
    const T* indices,
    int64_t step,
    int64_t n,
    const IndexedAxis& axis,
    Outside outside,
    bool check,
    int64_t* offsets) {
  for (int64_t i = 0; i < n; ++i) {
    T raw = indices[i * step];
    int64_t at;
    if constexpr (std::is_same_v<T, uint64_t>) {
      at = static_cast<int64_t>(std::min(raw, uint64_t{INT64_MAX}));
    } else {
      at = static_cast<int64_t>(raw);
    }
    at = at < 0 ? at + axis.length : at;
    if (at < 0 || at > axis.last) {
      if (check || axis.last < 0) {
        outside_error(axis, at < 0 ? at - axis.length : at);
      }
      if (outside == Outside::leave_out) {
        offsets[i] = kLeftOut;
        continue;
      }
      at = std::clamp<int64_t>(at, 0, axis.last);
    }
    if (offsets[i] != kLeftOut) {
      offsets[i] += at * axis.stride;
    }
  }
}

}  // namespace

bool check_indices() {
  return env::get_var("MLX_CHECK_INDICES", 0) != 0;
}

void add_offsets(
    const void* indices,
    Dtype dtype,
    int64_t step,
    int64_t n,
    const IndexedAxis& axis,
    Outside outside,
    bool check,
    int64_t* offsets) {
  auto add = [&](auto tag) {
    add_typed(
        static_cast<const decltype(tag)*>(indices),
        step,
        n,
        axis,
        outside,
        check,
        offsets);
  };
  switch (dtype.val()) {
    case Dtype::Val::uint8:
      return add(uint8_t{});
    case Dtype::Val::uint16:
      return add(uint16_t{});
    case Dtype::Val::uint32:
      return add(uint32_t{});
    case Dtype::Val::uint64:
      return add(uint64_t{});
    case Dtype::Val::int8:
      return add(int8_t{});
    case Dtype::Val::int16:
      return add(int16_t{});
    case Dtype::Val::int32:
      return add(int32_t{});
    case Dtype::Val::int64:
      return add(int64_t{});
    default:
      // Checked when the graph was built.
      throw std::logic_error(message(axis.op, "indices of type ", dtype, "."));
  }
}

IndexReader::IndexReader(
    const char* op,
    const array* first,
    size_t count,
    const std::vector<int>& axes,
    const Shape& shape,
    const Strides& strides,
    const Shape& slice_sizes,
    Outside outside)
    : outside_(outside), check_(check_indices()) {
  Shape wanted;
  for (size_t i = 0; i < count; ++i) {
    wanted = broadcast_shapes(wanted, first[i].shape());
  }
  for (ShapeElem n : wanted) {
    size_ *= n;
  }
  for (size_t i = 0; i < count; ++i) {
    int axis = axes[i];
    int64_t length = shape[axis];
    int64_t slice = slice_sizes[axis];
    entries_.push_back(
        {&first[i], {op, length, length - slice, strides[axis]}});
    strides_.push_back(broadcast_strides(first[i], wanted));
    may_overlap_ = may_overlap_ || (slice > 1 && first[i].size() > 1);
  }
  if (count > 0) {
    std::tie(shape_, strides_) = collapse_contiguous_dims(
        wanted, strides_, std::numeric_limits<int32_t>::max());
  }
}

void IndexReader::read(int64_t begin, int64_t n, int64_t* offsets) const {
  std::fill_n(offsets, n, 0);
  for (size_t k = 0; k < entries_.size(); ++k) {
    const array& indices = *entries_[k].indices;
    const char* base = indices.data<char>();
    auto itemsize = static_cast<int64_t>(indices.itemsize());
    auto add = [&](int64_t loc, int64_t step, int64_t from, int64_t count) {
      add_offsets(
          base + loc * itemsize,
          indices.dtype(),
          step,
          count,
          entries_[k].axis,
          outside_,
          check_,
          offsets + from);
    };
    if (shape_.size() <= 1) {
      int64_t step = shape_.empty() ? 0 : strides_[k][0];
      add(begin * step, step, 0, n);
      continue;
    }
    // Runs along the innermost axis.
    int64_t inner = shape_.back();
    for (int64_t done = 0; done < n;) {
      int64_t at = begin + done;
      int64_t run = std::min(n - done, inner - at % inner);
      add(elem_to_loc(at, shape_, strides_[k]), strides_[k].back(), done, run);
      done += run;
    }
  }
}

}  // namespace mlx::core::cpu
