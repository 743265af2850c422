// The two ways in which rows are sorted. Both are stable and take rows that
// lie one after the other in memory.
#pragma once

#include "backend/cuda/encoder.h"
#include "mlx/dtype.h"

namespace mlx::core::cuda {

/// `count` rows of `length` elements; what comes out are the elements in
/// order or, for `wants_indices`, their numbers (uint32) within the row.
struct SortedRows {
  const void* from;
  void* to;
  Dtype dtype;
  int64_t count;
  int64_t length;
  bool wants_indices;
};

/// Rows that fit in a block's shared memory (sort_short.cu); false, with
/// nothing done, when they do not.
bool sort_short_rows(const SortedRows& rows, Encoder& e);

/// Rows of any length, by passes over all of memory (sort_long.cu).
void sort_long_rows(const SortedRows& rows, Encoder& e);

/// Sorts `count` (up to 2^30) keys by the lowest `bits` bits, with an index
/// each where `indices` is given; spare memory for as many. Returns which of
/// two memories holds the result: 0 for the given one, 1 for the spare one.
struct RadixIndices {
  uint32_t* given = nullptr;
  uint32_t* spare = nullptr;
};
int radix_sort(
    uint32_t* keys,
    uint32_t* spare,
    RadixIndices indices,
    int count,
    int bits,
    Encoder& e);
int radix_sort(
    uint64_t* keys,
    uint64_t* spare,
    RadixIndices indices,
    int count,
    int bits,
    Encoder& e);

}  // namespace mlx::core::cuda
