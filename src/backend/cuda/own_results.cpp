// Places of results in a block's own memory.
#include "backend/cuda/own_results.h"

#include <algorithm>

namespace mlx::core::cuda {

bool OwnResults::add_read(const ByteSpan& read, int word, Words& words) {
  if (read.begin == read.end) {
    return true;
  }
  for (int i = 0; i < result_count_; ++i) {
    const Result& result = results_[i];
    if (!read.meets(result.span)) {
      continue;
    }
    if (read.begin < result.span.begin || read.end > result.span.end) {
      return false;
    }
    words.add(
        word, result.at + static_cast<int64_t>(read.begin - result.span.begin));
    return true;
  }
  given_[given_count_++] = read;
  return true;
}

// Results do not overlap; one may be written again.
bool OwnResults::add_write(const ByteSpan& write, int word, Words& words) {
  for (int i = 0; i < given_count_; ++i) {
    if (write.meets(given_[i])) {
      return false;
    }
  }
  for (int i = 0; i < result_count_; ++i) {
    const Result& result = results_[i];
    if (!write.meets(result.span)) {
      continue;
    }
    words.add(word, result.at);
    return write.begin == result.span.begin && write.end == result.span.end;
  }
  auto size = static_cast<int>(
      std::min<uintptr_t>(write.end - write.begin, kOwnBytes + 1));
  results_[result_count_++] = {write, bytes_};
  words.add(word, bytes_);
  bytes_ += (size + 15) / 16 * 16;
  return bytes_ <= kOwnBytes;
}

// Words of an elementwise entry are its operands, then the result; of a norm
// the row, the weight, the result.
bool OwnResults::add(const BatchEntry& entry, const BatchUse& use) {
  bool is_norm = entry.kind == BatchKind::rms_norm;
  if (!is_norm && entry.kind != BatchKind::elementwise) {
    return false;
  }
  Words& words = words_[entry_count_++];
  int result_word = is_norm ? 2 : 3;
  for (int i = 0; i < result_word; ++i) {
    if (!add_read(use.reads[i], i, words)) {
      return false;
    }
  }
  return add_write(use.write, result_word, words);
}

bool OwnResults::finish(BatchEntry& product, const BatchUse& use) {
  Words words;
  if (!add_read(
          use.reads[BatchUse::row_of_product],
          BatchUse::row_of_product,
          words) ||
      words.count == 0 || words.bytes[0] % 16 != 0) {
    return false;
  }
  tell(words, product);
  return true;
}

void OwnResults::apply(BatchEntry& entry) {
  tell(words_[applied_++], entry);
}

void OwnResults::tell(const Words& words, BatchEntry& entry) const {
  entry.owner = owner_;
  entry.own_count = words.count;
  std::copy_n(words.words, words.count, entry.own_words);
  std::copy_n(words.bytes, words.count, entry.own_bytes);
}

}  // namespace mlx::core::cuda
