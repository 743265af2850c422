// An operand of an elementwise operation, block by block.
#pragma once

#include <memory>

#include "backend/cpu/kernels/elementwise.h"
#include "mlx/array.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

/// Elements of a block; a float32 block fills 4 KiB.
inline constexpr size_t kBlock = 1024;
/// Bytes of a buffer for one block of any type.
inline constexpr size_t kBlockBytes = kBlock * 8;

/// How the elements of an array lie in the row-major order of a shape that it
/// broadcasts to. Made once for all threads.
class BlockView {
 public:
  enum class Kind : uint8_t { scalar, contiguous, strided };

  BlockView() = default;
  /// Elements that follow each other, or one for all (scalar).
  BlockView(const void* data, size_t item_size, Kind kind)
      : data_(static_cast<const char*>(data)),
        item_size_(item_size),
        kind_(kind) {}
  /// `strides` are those of the array broadcast to `shape`.
  BlockView(
      const void* data,
      size_t item_size,
      const Shape& shape,
      const Strides& strides);

  Kind kind() const { return kind_; }
  size_t item_size() const { return item_size_; }

  /// The elements [begin, begin + n): in place if they lie in memory as needed,
  /// else in `buffer`. A scalar gives one element.
  const void* block(size_t begin, size_t n, void* buffer) const {
    switch (kind_) {
      case Kind::scalar:
        return data_;
      case Kind::contiguous:
        return data_ + begin * item_size_;
      default:
        return strided(begin, n, static_cast<char*>(buffer));
    }
  }

 private:
  const void* strided(size_t begin, size_t n, char* buffer) const;

  struct Layout {
    Shape shape;
    Strides strides;
  };

  const char* data_ = nullptr;
  size_t item_size_ = 0;
  Kind kind_ = Kind::scalar;
  std::unique_ptr<Layout> layout_;  // of strided elements
};

/// Gives the elements of an array as contiguous elements of the type to
/// compute in. One object a thread and operand.
class BlockSource {
 public:
  // Not defaulted: a constant beginning would clear the buffers, 16 KiB for
  // each operand of each operation.
  BlockSource() {}

  /// `convert` makes elements of the type to compute in; null if they are.
  void open(const BlockView& view, BlockFn convert) {
    view_ = &view;
    convert_ = convert;
  }

  /// The block, in place if it lies in memory as needed, else in a buffer of
  /// this object. A scalar gives one element.
  const void* block(size_t begin, size_t n);

 private:
  const BlockView* view_ = nullptr;
  BlockFn convert_ = nullptr;
  bool converted_scalar_ = false;
  alignas(64) char gathered_[kBlockBytes];
  alignas(64) char converted_[kBlockBytes];
};

/// Whether the innermost axis of `a` jumps while another axis is contiguous:
/// each element would touch a cache line of its own, so it should be
/// transposed first, in tiles. `shape` is the shape of the operation.
bool is_transposed(const array& a, const Shape& shape);

}  // namespace mlx::core::cpu
