// Plans without device code: strides, collapsing of axes, contiguity.
#pragma once

#include <filesystem>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core {

/// The folder of this library.
MLX_API std::filesystem::path current_binary_dir();

/// Offset in elements of the element number `elem` in row-major order.
inline int64_t elem_to_loc(
    int64_t elem, const Shape& shape, const Strides& strides) {
  int64_t loc = 0;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    loc += (elem % shape[i]) * strides[i];
    elem /= shape[i];
  }
  return loc;
}

inline int64_t elem_to_loc(int64_t elem, const array& a) {
  return a.flags().row_contiguous ? elem
                                  : elem_to_loc(elem, a.shape(), a.strides());
}

inline Strides make_contiguous_strides(const Shape& shape) {
  Strides strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * shape[i + 1];
  }
  return strides;
}

/// Merges neighbouring axes that every operand walks as one; drops axes of
/// length 1. A merged axis is at most `size_cap` long. Always at least one
/// axis for a non-empty shape list.
MLX_API std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(
    const Shape& shape,
    const std::vector<Strides>& strides,
    int64_t size_cap = std::numeric_limits<int32_t>::max());

MLX_API std::pair<Shape, Strides> collapse_contiguous_dims(
    const Shape& shape,
    const Strides& strides,
    int64_t size_cap = std::numeric_limits<int32_t>::max());

MLX_API std::pair<Shape, Strides> collapse_contiguous_dims(
    const array& a, int64_t size_cap = std::numeric_limits<int32_t>::max());

inline std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(
    const std::vector<array>& xs,
    size_t size_cap = std::numeric_limits<int32_t>::max()) {
  std::vector<Strides> strides;
  for (const array& x : xs) {
    strides.push_back(x.strides());
  }
  return collapse_contiguous_dims(
      xs[0].shape(), strides, static_cast<int64_t>(size_cap));
}

template <typename... Arrays, typename = enable_for_arrays_t<Arrays...>>
inline auto collapse_contiguous_dims(Arrays&&... xs) {
  return collapse_contiguous_dims(
      std::vector<array>{std::forward<Arrays>(xs)...});
}

/// Walks the elements of a strided array in row-major order; `loc` is the
/// offset in elements of the current one.
struct MLX_API ContiguousIterator {
  ContiguousIterator() = default;
  explicit ContiguousIterator(const array& a);
  /// The first `dims` axes of a shape.
  explicit ContiguousIterator(
      const Shape& shape, const Strides& strides, int dims);

  inline void step() {
    int i = static_cast<int>(shape_.size()) - 1;
    while (i >= 0 && pos_[i] == shape_[i] - 1) {
      loc -= strides_[i] * pos_[i];
      pos_[i] = 0;
      --i;
    }
    if (i >= 0) {
      loc += strides_[i];
      ++pos_[i];
    }
  }
  void step(int64_t s);
  /// Elements from here on in the innermost axis when its stride is 1.
  int64_t contiguous_suffix();
  void seek(int64_t n);
  void reset();

  int64_t loc{0};

 private:
  Shape shape_;
  Strides strides_;
  Shape pos_;
};

/// Number of elements reached, row-major, column-major.
inline auto check_contiguity(const Shape& shape, const Strides& strides) {
  size_t reached = 1;
  int64_t row = 1;
  int64_t column = 1;
  bool is_row = true;
  bool is_column = true;
  for (size_t i = 0, ri = shape.size(); i < shape.size(); ++i) {
    --ri;
    is_column &= strides[i] == column || shape[i] == 1;
    is_row &= strides[ri] == row || shape[ri] == 1;
    column *= shape[i];
    row *= shape[ri];
    if (strides[i] != 0) {
      reached *= shape[i];
    }
  }
  return std::make_tuple(reached, is_row, is_column);
}

/// Whether out may take over in's buffer: nobody else holds it, and it is not
/// much larger than needed (allocators round up by an eighth).
inline bool is_donatable(const array& in, const array& out) {
  constexpr size_t kSlack = 16384;
  return in.is_donatable() && in.itemsize() == out.itemsize() &&
         in.buffer_size() <= out.nbytes() + out.nbytes() / 8 + kSlack;
}

/// Whether a reshape needs a copy; the strides of a view if it does not.
MLX_API std::pair<bool, Strides> prepare_reshape(
    const array& in, const array& out);
MLX_API void shared_buffer_reshape(
    const array& in, const Strides& out_strides, array& out);

template <typename T>
inline SmallVector<T> remove_index(SmallVector<T> vec, size_t index) {
  vec.erase(vec.begin() + static_cast<std::ptrdiff_t>(index));
  return vec;
}

}  // namespace mlx::core
