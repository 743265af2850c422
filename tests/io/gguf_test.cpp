// src/io/gguf_format.cpp and gguf_blocks.cpp: valid files, each kind of
// damage, and the values of repacked blocks against ggml's own.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "fuzz/mutate.h"
#include "io/format_testing.h"
#include "io/gguf_blocks.h"
#include "io/gguf_format.h"
#include "mlx/types/half_types.h"

namespace mlx::core::io {
namespace {

std::string text_bytes(const std::string& text) {
  return as_bytes<uint64_t>(text.size()) + text;
}

/// A version 3 file from its parts; data starts at the alignment.
std::string make_file(
    uint64_t tensors,
    uint64_t pairs,
    const std::string& body,
    const std::string& data,
    uint32_t version = 3) {
  std::string file =
      "GGUF" + as_bytes(version) + as_bytes(tensors) + as_bytes(pairs) + body;
  file.resize((file.size() + 31) / 32 * 32);
  return file + data;
}

std::string tensor_info(
    const std::string& name,
    const std::vector<uint64_t>& dims,
    uint32_t type,
    uint64_t offset) {
  std::string info =
      text_bytes(name) + as_bytes(static_cast<uint32_t>(dims.size()));
  for (uint64_t dim : dims) {
    info += as_bytes(dim);
  }
  return info + as_bytes(type) + as_bytes(offset);
}

std::string one_tensor(
    const std::vector<uint64_t>& dims,
    uint32_t type,
    uint64_t offset,
    size_t data_bytes) {
  return make_file(
      1, 0, tensor_info("w", dims, type, offset), std::string(data_bytes, 'x'));
}

GgufFile parse(const std::string& bytes) {
  MemoryReader reader(bytes);
  return read_gguf(reader);
}
void expect_refused(const std::string& bytes, const std::string& part) {
  std::string message = error_of([&] { parse(bytes); });
  expect_error(message, "[load_gguf] ");
  expect_error(message, part);
}

std::string sample() {
  return slurp(std::filesystem::path(MLX_TEST_DIR) / "io/data/blocks.gguf");
}

const GgufTensor& find(const GgufFile& file, const std::string& name) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  throw std::logic_error("no tensor " + name);
}

TEST(Gguf, ReadsAFileWrittenByGgml) {
  GgufFile file = parse(sample());
  EXPECT_EQ(file.version, 3u);
  EXPECT_EQ(file.tensors.size(), 6u);
  std::map<std::string, GgufValue> metadata(
      file.metadata.begin(), file.metadata.end());
  EXPECT_EQ(std::get<std::string>(metadata["general.architecture"]), "blocks");
  EXPECT_EQ(
      std::get<std::vector<std::string>>(metadata["test.words"]),
      (std::vector<std::string>{"one", "", "drei"}));
  const auto& numbers = std::get<GgufNumbers>(metadata["test.numbers"]);
  EXPECT_FALSE(numbers.scalar);
  EXPECT_EQ(numbers.count, 3u);
  EXPECT_EQ(numbers.type, GgufValueType::int32);
  const auto& real = std::get<GgufNumbers>(metadata["test.float64"]);
  EXPECT_TRUE(real.scalar);
  double value;
  std::memcpy(&value, real.bytes.data(), sizeof(value));
  EXPECT_EQ(value, 1.5);
}

TEST(Gguf, RepackedBlocksHaveGgmlsValues) {
  std::string bytes = sample();
  GgufFile file = parse(bytes);
  for (std::string name : {"Q4_0", "Q4_1", "Q8_0"}) {
    const GgufTensor& packed = find(file, name + ".weight");
    const GgufTensor& want = find(file, name + ".want");
    int bits = gguf_bits(packed.type);
    size_t elements = want.byte_size / sizeof(float);
    size_t groups = elements / kGgufGroup;
    std::vector<uint32_t> words(elements * bits / 32);
    std::vector<uint16_t> scales(groups), biases(groups);
    ASSERT_TRUE(repack_blocks(
        packed.type,
        reinterpret_cast<const uint8_t*>(bytes.data()) + packed.offset,
        groups,
        words.data(),
        scales.data(),
        biases.data()));
    for (size_t i = 0; i < elements; ++i) {
      size_t per_word = 32 / bits;
      uint32_t code =
          words[i / per_word] >> (bits * (i % per_word)) & ((1u << bits) - 1);
      float scale = detail::half_bits_to_float(scales[i / kGgufGroup]);
      float bias = detail::half_bits_to_float(biases[i / kGgufGroup]);
      float expected;
      std::memcpy(
          &expected, bytes.data() + want.offset + 4 * i, sizeof(expected));
      ASSERT_EQ(static_cast<float>(code) * scale + bias, expected)
          << name << " element " << i;
    }
  }
}

TEST(Gguf, SaysWhenABiasDoesNotFit) {
  uint32_t words[8];
  uint16_t scale, bias;
  for (auto [type, limit] :
       {std::pair{GgufType::q4_0, 8192.f}, {GgufType::q8_0, 512.f}}) {
    std::string block(gguf_block(type).bytes, '\1');
    auto* data = reinterpret_cast<uint8_t*>(block.data());
    auto repack = [&](float d) {
      uint16_t bits = detail::float_to_half_bits(d);
      std::memcpy(data, &bits, sizeof(bits));
      return repack_blocks(type, data, 1, words, &scale, &bias);
    };
    EXPECT_TRUE(repack(limit * 0.99f));
    EXPECT_TRUE(repack(-limit * 0.99f));
    EXPECT_FALSE(repack(limit));
    EXPECT_FALSE(repack(-limit));
    EXPECT_TRUE(repack(std::numeric_limits<float>::infinity()));
  }
}

TEST(Gguf, HeaderRoundTrip) {
  GgufFile file;
  std::vector<uint8_t> pair(8, 3);
  file.metadata = {
      {"text", std::string("some words")},
      {"list", std::vector<std::string>{"a", ""}},
      {"one", GgufNumbers{GgufValueType::int16, true, 1, {1, 2}}},
      {"two", GgufNumbers{GgufValueType::float32, false, 2, pair}}};
  file.tensors = {
      {"scalar", {}, GgufType::f32},
      {"matrix", {3, 5}, GgufType::i16},
      {"empty", {0, 2}, GgufType::f16},
      {"last", {7}, GgufType::i8}};
  std::vector<char> header = gguf_header(file);
  std::string bytes(header.begin(), header.end());
  const GgufTensor& last = file.tensors.back();
  bytes.resize(last.offset + last.byte_size);
  GgufFile back = parse(bytes);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (size_t i = 0; i < back.tensors.size(); ++i) {
    EXPECT_EQ(back.tensors[i].name, file.tensors[i].name);
    EXPECT_EQ(back.tensors[i].dims, file.tensors[i].dims);
    EXPECT_EQ(back.tensors[i].type, file.tensors[i].type);
    EXPECT_EQ(back.tensors[i].offset, file.tensors[i].offset);
    EXPECT_EQ(back.tensors[i].byte_size, file.tensors[i].byte_size);
  }
  ASSERT_EQ(back.metadata.size(), 4u);
  EXPECT_EQ(std::get<std::string>(back.metadata[0].second), "some words");
  EXPECT_EQ(std::get<GgufNumbers>(back.metadata[3].second).bytes, pair);
}

TEST(Gguf, RefusesBadPreambles) {
  expect_refused("", "does not start with 'GGUF'");
  expect_refused("GGU", "does not start with 'GGUF'");
  expect_refused("GGML0000000000000000000000000000", "not GGUF");
  expect_refused(make_file(0, 0, "", "", 1), "version: 1");
  expect_refused(make_file(0, 0, "", "", 0x03000000), "version");
  expect_refused(make_file(0, uint64_t{1} << 62, "", ""), "metadata pairs");
  expect_refused(make_file(uint64_t{1} << 62, 0, "", ""), "tensor infos");
}

TEST(Gguf, RefusesBadMetadata) {
  auto with = [](const std::string& pair, uint64_t count = 1) {
    return make_file(0, count, pair, "");
  };
  auto number = [](uint32_t n) { return as_bytes(n); };
  expect_refused(with(as_bytes(~uint64_t{0}) + "abcdefgh"), "metadata keys");
  expect_refused(with(text_bytes("k") + number(13)), "type: 13");
  expect_refused(
      with(text_bytes("k") + number(9) + number(9) + as_bytes(uint64_t{1})),
      "nested array");
  expect_refused(
      with(text_bytes("k") + number(9) + number(6) + as_bytes(~uint64_t{0})),
      "metadata values");
  expect_refused(
      with(text_bytes("k") + number(9) + number(8) + as_bytes(~uint64_t{0})),
      "metadata strings");
  expect_refused(with(text_bytes("k") + number(7) + "\2"), "bad bool");
  std::string flag = text_bytes("k") + number(7) + "\1";
  expect_refused(with(flag + flag, 2), "occurs twice");
  for (uint32_t alignment : {0u, 3u, 1u << 31}) {
    expect_refused(
        with(text_bytes("general.alignment") + number(4) + number(alignment)),
        "bad general.alignment");
  }
  expect_refused(
      with(text_bytes("general.alignment") + number(7) + "\1"), "not a uint32");
}

TEST(Gguf, RefusesBadTensors) {
  EXPECT_EQ(parse(one_tensor({2, 3}, 0, 0, 24)).tensors[0].byte_size, 24u);
  expect_refused(one_tensor({2, 3}, 0, 0, 23), "past the end");
  expect_refused(one_tensor({2, 3}, 0, 32, 24), "past the end");
  expect_refused(one_tensor({2, 3}, 0, 0xffffffffffffffe0, 24), "past the end");
  expect_refused(one_tensor({2, 3}, 0, 4, 64), "multiple of the alignment");
  expect_refused(one_tensor({1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0, 4), "at most 8");
  expect_refused(one_tensor({uint64_t{1} << 31}, 0, 0, 4), "a dimension of");
  uint64_t big = (uint64_t{1} << 31) - 1;
  expect_refused(one_tensor({big, big, big}, 0, 0, 4), "2^64");
  expect_refused(one_tensor({33}, 2, 0, 64), "block size 32");
  expect_refused(one_tensor({}, 8, 0, 64), "block size 32");
}

TEST(Gguf, RefusesTensorsThatShareNamesOrBytes) {
  auto two = [](const std::string& name, uint64_t offset) {
    return make_file(
        2,
        0,
        tensor_info("a", {16}, 0, 0) + tensor_info(name, {16}, 0, offset),
        std::string(128, 'x'));
  };
  EXPECT_EQ(parse(two("b", 64)).tensors.size(), 2u);
  expect_refused(two("a", 64), "'a' occurs twice");
  expect_refused(two("b", 32), "overlap");
  expect_refused(two("b", 0), "overlap");
}

TEST(Gguf, NamesAllUnsupportedTypesAtOnce) {
  std::string file = make_file(
      4,
      0,
      tensor_info("a", {256}, 12, 0) + tensor_info("b", {256}, 14, 0) +
          tensor_info("c", {256}, 12, 0) + tensor_info("d", {32}, 99, 0),
      "");
  expect_refused(
      file,
      "Q4_K (2 tensors), Q6_K (1 tensors), number 99 (1 tensors), first in "
      "'a'");
}

TEST(Gguf, TruncatedAnywhereRaises) {
  std::string bytes = sample();
  uint64_t end = 0;
  for (const auto& tensor : parse(bytes).tensors) {
    end = std::max(end, tensor.offset + tensor.byte_size);
  }
  for (size_t n = 0; n < end; ++n) {
    expect_error(error_of([&] { parse(bytes.substr(0, n)); }), "[load_gguf] ");
  }
}

TEST(Gguf, CorruptedBytesParseOrRaise) {
  std::string bytes = sample();
  std::mt19937_64 rng(1);
  constexpr uint64_t kMaxPadding = 1 << 20;
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = mutate(bytes, rng);
    try {
      for (const auto& tensor : parse(damaged).tensors) {
        uint64_t padding = tensor.byte_size > 0 ? 0 : kMaxPadding;
        ASSERT_LE(tensor.offset + tensor.byte_size, damaged.size() + padding);
      }
    } catch (const std::runtime_error& error) {
      ++refused;
      expect_error(error.what(), "[load_gguf] ");
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace mlx::core::io
