// What entries of a list of small operations say they read and write: blocks
// meet by that alone. The addresses are of no memory; no gpu is needed.
#include <gtest/gtest.h>

#include <memory>

#include "backend/cuda/batch_list.h"

namespace mlx::core::cuda {
namespace {

char* const kFrom = reinterpret_cast<char*>(0x100000);
char* const kTo = reinterpret_cast<char*>(0x200000);
char* const kPosition = reinterpret_cast<char*>(0x300000);

ByteSpan bytes(const void* from, int64_t begin, int64_t end) {
  auto first = reinterpret_cast<uintptr_t>(from);
  return {
      first + static_cast<uintptr_t>(begin),
      first + static_cast<uintptr_t>(end)};
}

void expect_span(const ByteSpan& got, const ByteSpan& want) {
  EXPECT_EQ(got.begin, want.begin);
  EXPECT_EQ(got.end, want.end);
}

BatchEntry add_one(const void* from, void* to, Dtype type, uint32_t size) {
  BatchEntry entry{};
  entry.kind = BatchKind::elementwise;
  entry.op = ElementwiseOp::add;
  entry.operands = 2;
  entry.immediates = 2;
  entry.types[0] = entry.types[1] = entry.types[3] = batch_type(type);
  entry.size = size;
  entry.elementwise = {{reinterpret_cast<uint64_t>(from), 1, 0}, to};
  return entry;
}

// One token of three heads, 16 bytes each, into caches with room for ten.
BatchEntry token_into_cache(Dtype position) {
  BatchEntry entry{};
  entry.kind = BatchKind::copy;
  entry.width = 16;
  entry.types[0] = batch_type(position);
  entry.size = 3;
  BatchEntry::Copy& copy = entry.copy;
  copy.from = kFrom;
  copy.position = kPosition;
  copy.to = kTo;
  copy.sizes[0] = 3;
  copy.sizes[1] = 1;
  copy.from_strides[1] = 1;
  copy.to_strides[1] = 10;
  copy.length = 10;
  copy.last = 9;
  copy.stride = 1;
  return entry;
}

TEST(BatchUse, WriteAtAPositionMeansEveryPlace) {
  BatchUse use = use_of(token_into_cache(int32));
  expect_span(use.write, bytes(kTo, 0, 3 * 10 * 16));
  expect_span(use.reads[0], bytes(kFrom, 0, 3 * 16));
  expect_span(use.reads[1], bytes(kPosition, 0, 4));
  use = use_of(token_into_cache(int64));
  expect_span(use.reads[1], bytes(kPosition, 0, 8));
}

TEST(BatchUse, ReadAtAPositionMeansEveryPlace) {
  BatchEntry entry = token_into_cache(uint32);
  entry.copy.moves_from = true;
  entry.copy.stride = -3;
  entry.copy.last = 4;
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, (2 * 10 + 1) * 16));
  expect_span(use.reads[0], bytes(kFrom, -3 * 4 * 16, 3 * 16));
}

TEST(BatchUse, KnownCopyMeansItsOwnPlaces) {
  BatchEntry entry = token_into_cache(int32);
  entry.copy.position = nullptr;
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, (2 * 10 + 1) * 16));
  EXPECT_EQ(use.reads[1].begin, use.reads[1].end);
}

TEST(BatchUse, WhoeverWritesAPositionIsMet) {
  BatchUse written = use_of(add_one(kFrom, kPosition, int32, 1));
  EXPECT_TRUE(use_of(token_into_cache(int32)).conflicts(written));
  BatchUse beside = use_of(add_one(kFrom + 64, kPosition + 4, int32, 1));
  EXPECT_FALSE(use_of(token_into_cache(int32)).conflicts(beside));
  EXPECT_TRUE(use_of(token_into_cache(int64)).conflicts(beside));
}

TEST(BatchUse, RopeReadsItsOffset) {
  BatchEntry entry{};
  entry.kind = BatchKind::rope;
  entry.types[0] = batch_type(float16);
  entry.size = 4 * 64;
  entry.rope.from = kFrom;
  entry.rope.to = kTo;
  entry.rope.features = 64;
  entry.rope.half = 32;
  entry.rope.head_stride = 100;
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, 4 * 64 * 2));
  expect_span(use.reads[0], bytes(kFrom, 0, (3 * 100 + 64) * 2));
  EXPECT_EQ(use.reads[2].begin, use.reads[2].end);
  entry.rope.offset = reinterpret_cast<const int32_t*>(kPosition);
  use = use_of(entry);
  expect_span(use.reads[2], bytes(kPosition, 0, 4));
  EXPECT_TRUE(use.conflicts(use_of(add_one(kFrom, kPosition, int32, 1))));
}

BatchEntry attention_entry(Dtype mask) {
  BatchEntry entry{};
  entry.kind = BatchKind::attention;
  entry.types[0] = batch_type(bfloat16);
  entry.types[1] = batch_type(mask);
  entry.size = 6;
  BatchEntry::Attention& a = entry.attention;
  a.q = kFrom;
  a.k = kFrom + 0x10000;
  a.v = kFrom + 0x20000;
  a.mask = kPosition;
  a.to = kTo;
  a.q_head = 64;
  a.k_head = 50 * 64;
  a.k_token = 64;
  a.v_head = 50 * 32;
  a.v_token = 32;
  a.keys = 50;
  a.feature_octets = 8;
  a.value_octets = 4;
  a.group = 3;
  a.splits = 1;
  return entry;
}

TEST(BatchUse, AttentionReadsItsMask) {
  BatchUse use = use_of(attention_entry(bool_));
  expect_span(use.write, bytes(kTo, 0, 6 * 32 * 2));
  expect_span(use.reads[0], bytes(kFrom, 0, 6 * 64 * 2));
  expect_span(use.reads[1], bytes(kFrom + 0x10000, 0, 2 * 50 * 64 * 2));
  expect_span(use.reads[2], bytes(kFrom + 0x20000, 0, 2 * 50 * 32 * 2));
  expect_span(use.reads[3], bytes(kPosition, 0, 50));
  use = use_of(attention_entry(bfloat16));
  expect_span(use.reads[3], bytes(kPosition, 0, 100));
}

TEST(BatchUse, PartsOfAttentionAreFloats) {
  BatchEntry entry = attention_entry(bool_);
  entry.attention.splits = 5;
  entry.attention.mask = nullptr;
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, 6 * 5 * (32 + 2) * 4));
  EXPECT_EQ(use.reads[3].begin, use.reads[3].end);
}

TEST(BatchUse, DequantizedGroupsNeedNotBeWhole) {
  BatchEntry entry{};
  entry.kind = BatchKind::dequantize;
  entry.types[0] = batch_type(float32);
  entry.types[1] = batch_type(float16);
  entry.size = 36;
  BatchEntry::QuantizedRow& row = entry.quantized_row;
  row.codes = reinterpret_cast<const uint32_t*>(kFrom);
  row.scales = kFrom + 0x1000;
  row.biases = kFrom + 0x2000;
  row.to = kTo;
  row.bits = 3;
  row.octet_shift = 3;
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, 36 * 8 * 4));
  expect_span(use.reads[0], bytes(kFrom, 0, 36 * 3));
  expect_span(use.reads[1], bytes(kFrom + 0x1000, 0, 5 * 2));
  expect_span(use.reads[2], bytes(kFrom + 0x2000, 0, 5 * 2));
  EXPECT_EQ(use.reads[3].begin, use.reads[3].end);
}

TEST(BatchUse, SearchGivesOnePlace) {
  BatchEntry entry{};
  entry.kind = BatchKind::search;
  entry.types[0] = batch_type(float16);
  entry.size = 1001;
  entry.search = {kFrom, reinterpret_cast<uint32_t*>(kTo), true};
  BatchUse use = use_of(entry);
  expect_span(use.write, bytes(kTo, 0, 4));
  expect_span(use.reads[0], bytes(kFrom, 0, 2002));
}

TEST(BatchUse, WholeNumbersHaveTheirSizes) {
  for (Dtype type : {int32, uint32, int64}) {
    BatchUse use = use_of(add_one(kFrom, kTo, type, 7));
    expect_span(use.write, bytes(kTo, 0, 7 * type.size()));
    expect_span(use.reads[0], bytes(kFrom, 0, 7 * type.size()));
    EXPECT_EQ(use.reads[1].begin, use.reads[1].end);
  }
  BatchEntry mask = add_one(kFrom, kTo, int32, 7);
  mask.types[3] = batch_type(bool_);
  expect_span(use_of(mask).write, bytes(kTo, 0, 7));
}

const BatchHead* heads(BatchList& list) {
  return static_cast<BatchHeads<kWideEntries>*>(list.heads())->heads;
}

TEST(BatchMeetings, AttentionWaitsForTheCacheThatIsWritten) {
  constexpr int kBlocks = 132;
  BatchEntry attention = attention_entry(bool_);
  attention.attention.to = kTo + 0x10000;
  auto list = std::make_unique<BatchList>();
  list->add(token_into_cache(int32), kBlocks);
  list->add(attention, kBlocks);
  EXPECT_FALSE(heads(*list)[1].after_meeting);
  // The last place of the cache is one that the position may mean.
  attention.attention.v = kTo + 3 * 10 * 16 - 2;
  list->clear();
  list->add(token_into_cache(int32), kBlocks);
  list->add(attention, kBlocks);
  EXPECT_TRUE(heads(*list)[1].after_meeting);
}

TEST(BatchMeetings, PositionAndWhatItMovesAreOneBlocks) {
  constexpr int kBlocks = 132;
  auto list = std::make_unique<BatchList>();
  list->add(attention_entry(bool_), kBlocks);
  list->add(add_one(kFrom + 0x40000, kFrom + 0x50000, int32, 1), kBlocks);
  list->add(add_one(kFrom + 0x60000, kTo + 0x1000, int32, 1), kBlocks);
  BatchEntry copy = token_into_cache(int32);
  copy.copy.to = kTo + 0x2000;
  copy.copy.position = kTo + 0x1000;
  list->add(copy, kBlocks);
  EXPECT_NE(heads(*list)[1].block, heads(*list)[2].block);
  EXPECT_EQ(heads(*list)[2].block, heads(*list)[3].block);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(heads(*list)[i].after_meeting);
  }
}

const BatchEntry* entries(BatchList& list) {
  return static_cast<Batch<kWideEntries>*>(list.entries())->entries;
}

/// The sum of kFrom and kFrom + 0x1000 in kTo, and its norm behind it.
BatchEntry sum(Dtype type, uint32_t size) {
  BatchEntry entry = add_one(kFrom, kTo, type, size);
  entry.immediates = 0;
  entry.elementwise.from[1] = reinterpret_cast<uint64_t>(kFrom + 0x1000);
  return entry;
}
BatchEntry norm(Dtype type, int32_t size) {
  BatchEntry entry{};
  entry.kind = BatchKind::rms_norm;
  entry.types[0] = batch_type(type);
  entry.norm.from = kTo;
  entry.norm.weight = kFrom + 0x2000;
  entry.norm.to = kTo + 0x1000;
  entry.norm.rows = 1;
  entry.norm.n = entry.norm.pitch = size;
  return entry;
}

TEST(BatchNarrow, NormOfASumIsOneEntry) {
  auto list = std::make_unique<BatchList>(true);
  for (Dtype type : {float32, float16, bfloat16}) {
    list->clear();
    list->add(sum(type, 70), 132);
    list->add(norm(type, 70), 132);
    ASSERT_EQ(list->count(), 1);
    const BatchEntry& entry = entries(*list)[0];
    EXPECT_EQ(entry.kind, BatchKind::rms_norm);
    EXPECT_EQ(entry.norm.from, kFrom);
    EXPECT_EQ(entry.norm.added, kFrom + 0x1000);
    EXPECT_EQ(entry.norm.sum, kTo);
    EXPECT_EQ(entry.norm.to, kTo + 0x1000);
  }
}

TEST(BatchNarrow, NormOfSomethingElseIsNot) {
  auto two_entries = [](BatchEntry first, BatchEntry second, bool narrow) {
    auto list = std::make_unique<BatchList>(narrow);
    list->add(first, 132);
    list->add(second, 132);
    return list->count() == 2;
  };
  EXPECT_TRUE(two_entries(sum(float32, 70), norm(float32, 70), false));
  EXPECT_TRUE(two_entries(sum(float32, 70), norm(float32, 69), true));
  EXPECT_TRUE(two_entries(sum(float32, 70), norm(float16, 70), true));
  EXPECT_TRUE(
      two_entries(add_one(kFrom, kTo, float32, 70), norm(float32, 70), true));
  BatchEntry other = norm(float32, 70);
  other.norm.from = kFrom;
  EXPECT_TRUE(two_entries(sum(float32, 70), other, true));
  other = norm(float32, 70);
  other.norm.weight = kTo;  // the sum itself
  EXPECT_TRUE(two_entries(sum(float32, 70), other, true));
  other = norm(float32, 35);
  other.norm.rows = 2;
  EXPECT_TRUE(two_entries(sum(float32, 70), other, true));
}

TEST(BatchNarrow, CopiesApartGoTogether) {
  auto list = std::make_unique<BatchList>(true);
  BatchEntry first = token_into_cache(int32);
  BatchEntry second = first;
  second.copy.to = kTo + 0x1000;
  for (const BatchEntry& entry : {first, second, first, first}) {
    list->add(entry, 132);
  }
  EXPECT_TRUE(entries(*list)[0].goes_with_next);
  EXPECT_FALSE(entries(*list)[1].goes_with_next);  // it goes with the first
  EXPECT_FALSE(entries(*list)[2].goes_with_next);  // the same place
  EXPECT_FALSE(entries(*list)[3].goes_with_next);
  second.copy.from = kTo;  // what the first may have written
  list->clear();
  list->add(first, 132);
  list->add(second, 132);
  EXPECT_FALSE(entries(*list)[0].goes_with_next);
}

TEST(BatchNarrow, ABlockHasThreadsForItsWidestEntry) {
  auto list = std::make_unique<BatchList>(true);
  list->add(add_one(kFrom, kTo, float32, 1), 132);
  EXPECT_EQ(list->threads(), kFewestThreads);
  list->add(norm(float32, 577), 132);
  EXPECT_EQ(list->threads(), 608);
  list->add(add_one(kFrom, kTo, float32, 8192), 132);
  EXPECT_EQ(list->threads(), kNarrowThreads);
}

TEST(BatchTypes, ListsKnow) {
  using enum ElementwiseOp;
  for (Dtype type : {int32, uint32, int64}) {
    EXPECT_TRUE(batches(add, type, type));
    EXPECT_TRUE(batches(less_equal, type, bool_));
    EXPECT_TRUE(batches(real, type, int32));
    EXPECT_TRUE(batches(real, type, float32));
    EXPECT_FALSE(batches(real, type, float16));
    EXPECT_FALSE(batches(power, type, type));
    EXPECT_FALSE(batches(add, type, float32));
  }
  EXPECT_TRUE(batches(logical_and, bool_, bool_));
  EXPECT_FALSE(batches(add, bool_, bool_));
  for (Dtype type : {uint8, int8, uint16, int16, uint64, float64, complex64}) {
    EXPECT_FALSE(batches(add, type, type));
    EXPECT_FALSE(batches(equal, type, bool_));
  }
  for (Dtype type : {float16, bfloat16, float32}) {
    EXPECT_TRUE(batches(add, type, type));
    EXPECT_TRUE(batches(less, type, bool_));
    EXPECT_TRUE(batches(real, type, float32));
    EXPECT_FALSE(batches(real, type, int32));
  }
}

}  // namespace
}  // namespace mlx::core::cuda
