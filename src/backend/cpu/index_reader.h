// From index arrays to memory offsets: wrapping, bounds, strides.
#pragma once

#include <cstdint>
#include <vector>

#include "mlx/array.h"

namespace mlx::core::cpu {

/// What happens to an index that is out of range even after wrapping.
enum class Outside { clamp, leave_out };

/// In place of an offset: this position is left out.
inline constexpr int64_t kLeftOut = INT64_MIN;

/// Indices are read in blocks of at most this many.
inline constexpr int64_t kIndexBlock = 256;

/// Whether MLX_CHECK_INDICES asks for an error instead.
bool check_indices();

/// One axis of the indexed array.
struct IndexedAxis {
  const char* op;
  /// The axis' length, and the last position where a slice fits.
  int64_t length;
  int64_t last;
  int64_t stride;
};

/// Adds the offsets of n <= kIndexBlock indices along an axis to `offsets`
/// (kLeftOut stays). `indices` is the host address of the first one, `step`
/// the distance in elements from one to the next.
void add_offsets(
    const void* indices,
    Dtype dtype,
    int64_t step,
    int64_t n,
    const IndexedAxis& axis,
    Outside outside,
    bool check,
    int64_t* offsets);

/// The offsets that several index arrays, broadcast together, give.
class IndexReader {
 public:
  /// `indices[i]` positions slices of size slice_sizes[axes[i]] along axes[i]
  /// of an array with this shape and strides.
  IndexReader(
      const char* op,
      const array* first,
      size_t count,
      const std::vector<int>& axes,
      const Shape& shape,
      const Strides& strides,
      const Shape& slice_sizes,
      Outside outside);

  /// The number of positions.
  int64_t size() const { return size_; }
  /// Whether different positions may mean slices that overlap in part.
  bool may_overlap() const { return may_overlap_; }

  /// Offsets of the positions begin, ... begin + n - 1, n <= kIndexBlock.
  void read(int64_t begin, int64_t n, int64_t* offsets) const;

 private:
  struct Entry {
    const array* indices;
    IndexedAxis axis;
  };

  std::vector<Entry> entries_;
  Shape shape_;
  std::vector<Strides> strides_;
  int64_t size_ = 1;
  Outside outside_;
  bool check_;
  bool may_overlap_ = false;
};

}  // namespace mlx::core::cpu
