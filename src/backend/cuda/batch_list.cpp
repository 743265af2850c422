// Finds what a list's entries touch, and from that who does them and when.
#include "backend/cuda/batch_list.h"

#include <algorithm>

#include "backend/cuda/own_results.h"

namespace mlx::core::cuda {

namespace {

constexpr int kAnyBlock = -1;
constexpr int kMustMeet = -2;

// Of the types that lists know.
int64_t size_of(uint8_t type) {
  switch (static_cast<Dtype::Val>(type)) {
    case Dtype::Val::bool_:
      return 1;
    case Dtype::Val::float16:
    case Dtype::Val::bfloat16:
      return 2;
    case Dtype::Val::int64:
      return 8;
    default:
      return 4;
  }
}

ByteSpan span(const void* from, int64_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(from);
  return from ? ByteSpan{begin, begin + static_cast<uintptr_t>(bytes)}
              : ByteSpan{};
}

BatchUse use_of_elementwise(const BatchEntry& entry) {
  BatchUse use;
  int64_t n = entry.size;
  use.write = span(entry.elementwise.to, n * size_of(entry.types[3]));
  for (int k = 0; k < entry.operands; ++k) {
    if ((entry.immediates >> k & 1) == 0) {
      int64_t items = (entry.splats >> k & 1) != 0 ? 1 : n;
      use.reads[k] = span(
          reinterpret_cast<const void*>(entry.elementwise.from[k]),
          items * size_of(entry.types[k]));
    }
  }
  return use;
}

struct Axis {
  int64_t size;
  int64_t stride;
};

ByteSpan span_of_axes(const void* from, const Axis (&axes)[4], int64_t width) {
  int64_t low = 0;
  int64_t high = 0;
  for (const Axis& axis : axes) {
    int64_t reach = (axis.size - 1) * axis.stride;
    (reach < 0 ? low : high) += reach;
  }
  return span(
      static_cast<const char*>(from) + low * width, (high - low + 1) * width);
}

// Where a position is the device's, all places that it may mean.
BatchUse use_of_copy(const BatchEntry& entry) {
  const BatchEntry::Copy& copy = entry.copy;
  int64_t y = copy.sizes[0];
  int64_t x = copy.sizes[1];
  int64_t z = entry.size / (y * x);
  auto reach = [&](const void* first, const int32_t(&strides)[3], bool moves) {
    Axis of_position{1, 0};
    if (copy.position && moves) {
      of_position = {int64_t{copy.last} + 1, copy.stride};
    }
    return span_of_axes(
        first,
        {{z, strides[0]}, {y, strides[1]}, {x, strides[2]}, of_position},
        entry.width);
  };
  BatchUse use;
  use.write = reach(copy.to, copy.to_strides, !copy.moves_from);
  use.reads[0] = reach(copy.from, copy.from_strides, copy.moves_from);
  use.reads[1] = span(copy.position, size_of(entry.types[0]));
  return use;
}

BatchUse use_of_norm(const BatchEntry& entry) {
  const BatchEntry::Norm& norm = entry.norm;
  int64_t size = size_of(entry.types[0]);
  BatchUse use;
  use.write = span(norm.to, int64_t{norm.rows} * norm.n * size);
  use.reads[0] =
      span(norm.from, (int64_t{norm.rows - 1} * norm.pitch + norm.n) * size);
  use.reads[1] = span(norm.weight, norm.n * size);
  return use;
}

BatchUse use_of_rope(const BatchEntry& entry) {
  const BatchEntry::Rope& rope = entry.rope;
  int64_t size = size_of(entry.types[0]);
  int64_t heads = entry.size / rope.features;
  BatchUse use;
  use.write = span(rope.to, entry.size * size);
  use.reads[0] =
      span(rope.from, ((heads - 1) * rope.head_stride + rope.features) * size);
  use.reads[1] =
      span(rope.freqs, (int64_t{rope.half} * rope.freqs_stride + 1) * 4);
  use.reads[2] = span(rope.offset, 4);
  return use;
}

BatchUse use_of_row(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow& row = entry.quantized_row;
  int64_t octets = int64_t{entry.size} * (row.depth / 8);
  int64_t numbers = (octets >> row.octet_shift) * size_of(entry.types[1]);
  int64_t size = size_of(entry.types[0]);
  BatchUse use;
  use.write = span(row.to, entry.size * size);
  use.reads[0] = span(row.codes, octets * row.bits);
  use.reads[1] = span(row.scales, numbers);
  use.reads[2] = span(row.biases, numbers);
  use.reads[3] = span(row.x, row.depth * size);
  return use;
}

BatchUse use_of_dequantize(const BatchEntry& entry) {
  const BatchEntry::QuantizedRow& row = entry.quantized_row;
  int64_t octets = entry.size;
  int64_t numbers =
      (((octets - 1) >> row.octet_shift) + 1) * size_of(entry.types[1]);
  BatchUse use;
  use.write = span(row.to, octets * 8 * size_of(entry.types[0]));
  use.reads[0] = span(row.codes, octets * row.bits);
  use.reads[1] = span(row.scales, numbers);
  use.reads[2] = span(row.biases, numbers);
  return use;
}

BatchUse use_of_search(const BatchEntry& entry) {
  BatchUse use;
  use.write = span(entry.search.to, 4);
  use.reads[0] = span(entry.search.from, entry.size * size_of(entry.types[0]));
  return use;
}

BatchUse use_of_attention(const BatchEntry& entry) {
  const BatchEntry::Attention& a = entry.attention;
  int64_t size = size_of(entry.types[0]);
  int64_t heads = entry.size;
  int64_t last = heads / a.group - 1;
  int64_t last_key = a.keys - 1;
  int64_t features = a.feature_octets * 8;
  int64_t value_features = a.value_octets * 8;
  int64_t k = last * a.k_head + last_key * a.k_token + features;
  int64_t v = last * a.v_head + last_key * a.v_token + value_features;
  BatchUse use;
  use.write = a.splits == 1
                  ? span(a.to, heads * value_features * size)
                  : span(a.to, heads * a.splits * (value_features + 2) * 4);
  use.reads[0] = span(a.q, ((heads - 1) * a.q_head + features) * size);
  use.reads[1] = span(a.k, k * size);
  use.reads[2] = span(a.v, v * size);
  use.reads[3] = span(a.mask, a.keys * size_of(entry.types[1]));
  return use;
}

BatchUse use_of_join(const BatchEntry& entry) {
  const BatchEntry::Join& join = entry.join;
  int64_t heads = entry.size;
  BatchUse use;
  use.write =
      span(join.to, heads * join.value_features * size_of(entry.types[0]));
  use.reads[0] =
      span(join.from, heads * join.splits * (join.value_features + 2) * 4);
  return use;
}

/// Pieces of work that neighbouring blocks take.
uint32_t tasks_of(const BatchEntry& entry) {
  return entry.kind == BatchKind::attention
             ? entry.size * entry.attention.splits
             : entry.size;
}

}  // namespace

bool BatchUse::conflicts(const BatchUse& other) const {
  bool found = write.meets(other.write);
  for (int i = 0; i < most_reads; ++i) {
    found |= write.meets(other.reads[i]) || reads[i].meets(other.write);
  }
  return found;
}

bool BatchUse::writes_what_is_read_by(const BatchUse& other) const {
  bool found = false;
  for (const ByteSpan& read : other.reads) {
    found |= write.meets(read);
  }
  return found;
}

bool BatchUse::conflicts_by_row_alone(const BatchUse& other) const {
  bool found = write.meets(other.write) || writes_what_is_read_by(other);
  for (int i = 0; i < most_reads; ++i) {
    found |= i != row_of_product && reads[i].meets(other.write);
  }
  return !found;
}

BatchUse use_of(const BatchEntry& entry) {
  switch (entry.kind) {
    case BatchKind::elementwise:
      return use_of_elementwise(entry);
    case BatchKind::copy:
      return use_of_copy(entry);
    case BatchKind::rms_norm:
      return use_of_norm(entry);
    case BatchKind::rope:
      return use_of_rope(entry);
    case BatchKind::dequantize:
      return use_of_dequantize(entry);
    case BatchKind::search:
      return use_of_search(entry);
    case BatchKind::quantized_row:
      return use_of_row(entry);
    case BatchKind::attention:
      return use_of_attention(entry);
    default:
      return use_of_join(entry);
  }
}

void BatchList::add(const BatchEntry& entry, int blocks) {
  BatchHead& head = heads_.heads[count_];
  BatchEntry& added = entries_.entries[count_];
  bool wide = is_wide(entry.kind);
  if (!has_wide_ && !wide) {
    if (join_to_sum(entry)) {
      return;
    }
    head = {0, false, false};
    added = entry;
    join_copies();
    ++count_;
    return;
  }
  if (!has_wide_) {
    begin_wide(blocks);
  }
  BatchUse use = use_of(entry);
  added = entry;
  int block = block_for(use, wide);
  if (block == kMustMeet && entry.kind == BatchKind::quantized_row &&
      share_narrow(added, use)) {
    block = kAnyBlock;
  }
  head.after_meeting = block == kMustMeet;
  if (head.after_meeting) {
    use_count_ = 0;
    next_narrow_ = 0;
    shared_owner_ = kAnyBlock;
  }
  head.everywhere = false;
  if (wide) {
    head.block = BatchHead::all;
    added.first = static_cast<uint16_t>(take_blocks(tasks_of(entry)));
  } else {
    head.block = static_cast<uint8_t>(block >= 0 ? block : take_narrow());
  }
  use.block = head.block;
  uses_[use_count_++] = use;
  ++count_;
}

// The norm of a sum that was noted last becomes one entry with it: the block
// meets once less, and both operands and the weight are on their way together.
bool BatchList::join_to_sum(const BatchEntry& entry) {
  constexpr int kMost = kNormNumbers * kNarrowThreads;
  if (!stays_narrow_ || count_ == 0 || entry.kind != BatchKind::rms_norm ||
      entry.norm.rows != 1 || entry.norm.n > kMost) {
    return false;
  }
  BatchEntry& last = entries_.entries[count_ - 1];
  uint8_t type = entry.types[0];
  if (last.kind != BatchKind::elementwise || last.op != ElementwiseOp::add ||
      last.immediates != 0 || last.splats != 0 || last.types[0] != type ||
      last.types[1] != type || last.types[3] != type ||
      last.elementwise.to != entry.norm.from ||
      last.size != static_cast<uint32_t>(entry.norm.n) ||
      use_of(last).write.meets(use_of(entry).reads[1])) {
    return false;
  }
  BatchEntry::Elementwise sum = last.elementwise;
  last = entry;
  last.norm.from = reinterpret_cast<const void*>(sum.from[0]);
  last.norm.added = reinterpret_cast<const void*>(sum.from[1]);
  last.norm.sum = sum.to;
  return true;
}

// The entry that is added and the one before it, if both are copies apart.
void BatchList::join_copies() {
  if (count_ == 0) {
    return;
  }
  BatchEntry& last = entries_.entries[count_ - 1];
  const BatchEntry& added = entries_.entries[count_];
  bool is_taken = count_ > 1 && entries_.entries[count_ - 2].goes_with_next;
  last.goes_with_next = !is_taken && last.kind == BatchKind::copy &&
                        added.kind == BatchKind::copy &&
                        !use_of(added).conflicts(use_of(last));
}

int BatchList::threads() const {
  uint32_t widest = kFewestThreads;
  for (int i = 0; i < count_; ++i) {
    const BatchEntry& entry = entries_.entries[i];
    bool is_norm = entry.kind == BatchKind::rms_norm;
    widest = std::max(
        widest, is_norm ? static_cast<uint32_t>(entry.norm.n) : entry.size);
  }
  return static_cast<int>(
      std::min<uint32_t>((widest + 31) / 32 * 32, kNarrowThreads));
}

// What has been noted so far is one block's.
void BatchList::begin_wide(int blocks) {
  has_wide_ = true;
  blocks_ = blocks;
  next_block_ = 0;
  shared_owner_ = kAnyBlock;
  next_narrow_ = count_ > 0 ? 1 % blocks : 0;
  use_count_ = std::min(count_, kMostUses);
  for (int i = 0; i < use_count_; ++i) {
    uses_[i] = use_of(entries_.entries[i]);
  }
}

int BatchList::block_for(const BatchUse& use, bool wide) const {
  if (use_count_ == kMostUses) {
    return kMustMeet;
  }
  int block = kAnyBlock;
  for (int i = 0; i < use_count_; ++i) {
    const BatchUse& other = uses_[i];
    if (!use.conflicts(other)) {
      continue;
    }
    bool elsewhere = block != kAnyBlock && block != other.block;
    elsewhere |= other.everywhere && use.writes_what_is_read_by(other);
    if (wide || other.block == BatchHead::all || elsewhere) {
      return kMustMeet;
    }
    block = other.block;
  }
  return block;
}

// The same few blocks each time: they have the instructions at hand.
int BatchList::take_narrow() {
  int block = next_narrow_;
  next_narrow_ = (block + 1) % blocks_;
  return block;
}

// Makes the narrow entries that the product waits for everybody's; false where
// that cannot be.
bool BatchList::share_narrow(BatchEntry& product, const BatchUse& use) {
  if (use_count_ == kMostUses) {
    return false;
  }
  int owner = kAnyBlock;
  for (int i = 0; i < use_count_; ++i) {
    const BatchUse& other = uses_[i];
    if (!use.conflicts(other)) {
      continue;
    }
    bool elsewhere = owner != kAnyBlock && owner != other.block;
    if (other.block == BatchHead::all || elsewhere ||
        !use.conflicts_by_row_alone(other)) {
      return false;
    }
    owner = other.block;
  }
  if (shared_owner_ != kAnyBlock && shared_owner_ != owner) {
    return false;  // its results have the memory until blocks have met
  }
  OwnResults results(static_cast<uint8_t>(owner));
  int first = count_ - use_count_;
  for (int i = 0; i < use_count_; ++i) {
    if (uses_[i].block == owner &&
        !results.add(entries_.entries[first + i], uses_[i])) {
      return false;
    }
  }
  if (!results.finish(product, use)) {
    return false;
  }
  for (int i = 0; i < use_count_; ++i) {
    if (uses_[i].block == owner) {
      results.apply(entries_.entries[first + i]);
      heads_.heads[first + i].everywhere = true;
      uses_[i].everywhere = true;
    }
  }
  shared_owner_ = owner;
  return true;
}

int BatchList::take_blocks(uint32_t tasks) {
  int first = next_block_;
  auto blocks = static_cast<uint32_t>(blocks_);
  next_block_ =
      static_cast<int>((static_cast<uint32_t>(first) + tasks) % blocks);
  return first;
}

}  // namespace mlx::core::cuda
