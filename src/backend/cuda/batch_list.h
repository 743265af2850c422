// The list of small operations on the host's side: who does an entry, and where
// blocks must meet before one. An entry needs a meeting if it reads or writes
// what another block reads or writes since the last one; addresses tell. What
// depends on narrow entries of one block alone goes to that block; a product
// that does makes them everybody's, if each block can have the results in
// memory of its own.
#pragma once

#include "backend/cuda/batch.h"

namespace mlx::core::cuda {

/// Bytes [begin, end) of the device.
struct ByteSpan {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool meets(const ByteSpan& other) const {
    return begin < other.end && other.begin < end;
  }
};

/// What an entry touches, and the block that does it.
struct BatchUse {
  static constexpr int most_reads = 4;
  ByteSpan write;
  ByteSpan reads[most_reads];
  uint8_t block = 0;
  bool everywhere = false;
  /// Which of a product's reads is its row.
  static constexpr int row_of_product = 3;

  bool conflicts(const BatchUse& other) const;
  /// For a product that conflicts: whether it only reads its row there.
  bool conflicts_by_row_alone(const BatchUse& other) const;
  bool writes_what_is_read_by(const BatchUse& other) const;
};

BatchUse use_of(const BatchEntry& entry);

class BatchList {
 public:
  /// `stays_narrow` says that it never gets wide entries.
  explicit BatchList(bool stays_narrow = false) : stays_narrow_(stays_narrow) {}

  int count() const { return count_; }
  bool has_wide() const { return has_wide_; }
  /// Whether it must be launched before such an entry is added.
  bool is_full(BatchKind kind) const {
    return count_ ==
           (has_wide_ || is_wide(kind) ? kWideEntries : kNarrowEntries);
  }
  /// Of the block that does a list of narrow entries.
  int threads() const;
  /// `blocks` take part in a list that has wide entries.
  void add(const BatchEntry& entry, int blocks);
  void clear() {
    count_ = 0;
    has_wide_ = false;
  }

  /// The kernels' parameters.
  void* entries() { return &entries_; }
  void* heads() { return &heads_; }

 private:
  // Operations since the last meeting that are compared with; one more and the
  // blocks meet without being asked.
  static constexpr int kMostUses = 16;

  bool join_to_sum(const BatchEntry& norm);
  void join_copies();
  void begin_wide(int blocks);
  int block_for(const BatchUse& use, bool wide) const;
  bool share_narrow(BatchEntry& product, const BatchUse& use);
  int take_blocks(uint32_t tasks);
  int take_narrow();

  Batch<kWideEntries> entries_;
  BatchHeads<kWideEntries> heads_;
  BatchUse uses_[kMostUses];
  int count_ = 0;
  int use_count_ = 0;
  int blocks_ = 0;
  int next_block_ = 0;    // for wide entries
  int next_narrow_ = 0;   // since the last meeting
  int shared_owner_ = 0;  // of what is done everywhere since then
  bool has_wide_ = false;
  bool stays_narrow_;
};

}  // namespace mlx::core::cuda
