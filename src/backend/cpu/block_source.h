// An operand of an elementwise operation, block by block.
#pragma once

#include "backend/cpu/kernels/elementwise.h"
#include "mlx/array.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

/// Elements of a block; a float32 block fills 4 KiB.
inline constexpr size_t kBlock = 1024;
/// Bytes of a buffer for one block of any type.
inline constexpr size_t kBlockBytes = kBlock * 8;

/// Gives the elements [begin, begin + n) of an array, counted in the output's
/// row-major order, as contiguous elements of the type to compute in. One
/// object a thread and operand.
class BlockSource {
 public:
  /// `strides` are those of `a` broadcast to `shape`.
  BlockSource(
      const array& a,
      const Shape& shape,
      const Strides& strides,
      Dtype compute);

  /// Whether all elements are one.
  bool is_scalar() const { return kind_ == Kind::scalar; }

  /// The block, in place if it lies in memory as needed, else in a buffer of
  /// this object. A scalar gives one element.
  const void* block(size_t begin, size_t n);

 private:
  enum class Kind { scalar, contiguous, strided };

  void gather(size_t begin, size_t n, char* to);

  const char* data_;
  size_t item_size_;
  Kind kind_ = Kind::strided;
  Shape shape_;
  Strides strides_;
  BlockFn convert_ = nullptr;
  bool converted_scalar_ = false;
  alignas(64) char gathered_[kBlockBytes];
  alignas(64) char converted_[kBlockBytes];
};

}  // namespace mlx::core::cpu
