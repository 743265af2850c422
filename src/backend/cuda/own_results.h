// Narrow entries that every block does for itself: where their results lie in a
// block's own memory, and which operands are such results. One block, the
// owner, works on the addresses that were given, for those who read later.
#pragma once

#include "backend/cuda/batch_list.h"

namespace mlx::core::cuda {

class OwnResults {
 public:
  explicit OwnResults(uint8_t owner) : owner_(owner) {}

  /// The owner's next entry; false if others cannot do it: what they read must
  /// not be written meanwhile.
  bool add(const BatchEntry& entry, const BatchUse& use);
  /// The product that reads a result as its row.
  bool finish(BatchEntry& product, const BatchUse& use);
  /// Tells the next of the entries, in order, what add() found.
  void apply(BatchEntry& entry);

 private:
  static constexpr int kMost = 16;

  struct Result {
    ByteSpan span;
    int at;
  };
  struct Words {
    uint8_t count = 0;
    uint8_t words[BatchEntry::most_own];
    uint16_t bytes[BatchEntry::most_own];

    void add(int word, int64_t at) {
      words[count] = static_cast<uint8_t>(word);
      bytes[count++] = static_cast<uint16_t>(at);
    }
  };

  bool add_read(const ByteSpan& read, int word, Words& words);
  bool add_write(const ByteSpan& write, int word, Words& words);
  void tell(const Words& words, BatchEntry& entry) const;

  uint8_t owner_;
  Result results_[kMost];
  int result_count_ = 0;
  ByteSpan given_[kMost * BatchUse::most_reads];
  int given_count_ = 0;
  Words words_[kMost];
  int entry_count_ = 0;
  int applied_ = 0;
  int bytes_ = 0;
};

}  // namespace mlx::core::cuda
