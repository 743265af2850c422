// src/io/safetensors_format.cpp: round trip, each kind of damage.
#include <gtest/gtest.h>

#include <random>

#include "fuzz/mutate.h"
#include "io/format_testing.h"
#include "io/safetensors_format.h"

namespace mlx::core::io {
namespace {

std::string make_file(const std::string& header, size_t data_bytes) {
  return as_bytes<uint64_t>(header.size()) + header +
         std::string(data_bytes, 'x');
}
SafetensorsFile parse(const std::string& bytes) {
  MemoryReader reader(bytes);
  return read_safetensors(reader);
}
void expect_refused(
    const std::string& header, const std::string& part, size_t data = 0) {
  std::string message = error_of([&] { parse(make_file(header, data)); });
  expect_error(message, "[load_safetensors] ");
  expect_error(message, part);
}
std::string entry(
    const std::string& type, const std::string& shape, const std::string& at) {
  return R"({"dtype":")" + type + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + at + "]}";
}

SafetensorsFile sample() {
  SafetensorsFile file;
  file.metadata = {{"format", "mlx"}, {"quote\"", "\n\xc3\xa9"}};
  for (Dtype dtype :
       {bool_,
        uint8,
        uint16,
        uint32,
        uint64,
        int8,
        int16,
        int32,
        int64,
        float16,
        bfloat16,
        float32,
        complex64}) {
    std::string name = "tensor " + std::to_string(file.tensors.size());
    file.tensors.push_back({name, dtype, {3, 2}});
  }
  file.tensors.push_back({"scalar", float32, {}});
  file.tensors.push_back({"empty", float32, {0, 7}});
  return file;
}

std::string sample_bytes() {
  SafetensorsFile file = sample();
  std::string bytes = safetensors_header(file);
  bytes.resize(bytes.size() + file.tensors.back().end);
  return bytes;
}

TEST(Safetensors, RoundTrip) {
  SafetensorsFile file = sample();
  std::string header = safetensors_header(file);
  EXPECT_EQ(header.size() % 8, 0u);
  SafetensorsFile back = parse(sample_bytes());
  EXPECT_EQ(back.metadata, file.metadata);
  EXPECT_EQ(back.data_offset, header.size());
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& tensor : back.tensors) {
    bool found = false;
    for (const auto& other : file.tensors) {
      found =
          found || (other.name == tensor.name && other.dtype == tensor.dtype &&
                    other.shape == tensor.shape &&
                    other.begin == tensor.begin && other.end == tensor.end);
    }
    EXPECT_TRUE(found) << tensor.name;
  }
}

TEST(Safetensors, ReadsEightBitFloatsAsBytesAndDoubles) {
  SafetensorsFile file = parse(make_file(
      R"({"a":)" + entry("F8_E4M3", "2", "0,2") + R"(,"b":)" +
          entry("F8_E8M0", "1", "2,3") + R"(,"c":)" +
          entry("F64", "1", "3,11") + "}",
      11));
  EXPECT_EQ(file.tensors[0].dtype, uint8);
  EXPECT_EQ(file.tensors[1].dtype, uint8);
  EXPECT_EQ(file.tensors[2].dtype, float64);
}

TEST(Safetensors, EmptyAndPadded) {
  EXPECT_TRUE(parse(make_file("{}", 0)).tensors.empty());
  EXPECT_TRUE(parse(make_file("{}      ", 0)).tensors.empty());
}

TEST(Safetensors, RefusesWritingDoublesAndBadNames) {
  SafetensorsFile file;
  file.tensors = {{"x", float64, {1}}};
  expect_error(
      error_of([&] { safetensors_header(file); }),
      "[save_safetensors] unsupported type: float64");
  file.tensors = {{"__metadata__", float32, {1}}};
  expect_error(error_of([&] { safetensors_header(file); }), "__metadata__");
  file.tensors = {{"\xff", float32, {1}}};
  expect_error(error_of([&] { safetensors_header(file); }), "UTF-8");
}

TEST(Safetensors, RefusesBadHeaderLengths) {
  for (std::string bytes :
       {std::string(),
        std::string("1234567"),
        as_bytes(uint64_t{3}) + "{}",
        as_bytes(~uint64_t{0}) + "{}"}) {
    expect_error(error_of([&] { parse(bytes); }), "too short");
  }
  std::string huge = as_bytes(uint64_t{100'000'001});
  huge.resize(100'000'009, ' ');
  expect_error(error_of([&] { parse(huge); }), "at most 100000000");
  expect_refused("", "start with '{'");
  expect_refused(" {}", "start with '{'");
  expect_refused("[]", "start with '{'");
}

TEST(Safetensors, RefusesBadJson) {
  expect_refused("{", "not JSON");
  expect_refused("{}}", "not JSON");
  expect_refused("{\"a\xff\":1}", "not JSON");
  expect_refused(R"({"a":1})", "a number as value of 'a'");
  expect_refused(R"({"a":null})", "null");
  expect_refused(R"({"a":[]})", "an array");
  expect_refused(R"({"a":"b"})", "a string");
  expect_refused(R"({"__metadata__":{"a":1}})", "a number");
  expect_refused(R"({"__metadata__":{"a":{}}})", "an object");
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", "occurs twice");
  expect_refused("{\"a\":" + std::string(100'000, '['), "an array");
}

TEST(Safetensors, RefusesBadEntries) {
  std::string good = entry("U8", "2", "0,2");
  expect_refused(R"({"a":{}})", "missing");
  expect_refused(R"({"a":{"dtype":"U8","shape":[2]}})", "missing");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8"}})", "occurs twice");
  expect_refused(R"({"a":{"other":1}})", "unknown key 'other'");
  expect_refused(R"({"a":{"dtype":5}})", "a number");
  expect_refused(R"({"a":)" + good + R"(,"a":)" + good + "}", "twice", 2);
  expect_refused(R"({"a":)" + entry("F4", "2", "0,2") + "}", "'F4'", 2);
  expect_refused(R"({"a":)" + entry("U8", "-2", "0,2") + "}", "negative", 2);
  expect_refused(R"({"a":)" + entry("U8", "2.0", "0,2") + "}", "fraction", 2);
  expect_refused(R"({"a":)" + entry("U8", "[2]", "0,2") + "}", "an array", 2);
  expect_refused(
      R"({"a":)" + entry("U8", "2147483648", "0,2") + "}", "too large", 2);
  expect_refused(R"({"a":)" + entry("U8", "2", "0") + "}", "missing", 2);
  expect_refused(R"({"a":)" + entry("U8", "2", "0,1,2") + "}", "more than", 2);
  std::string big = "2147483647,2147483647,2147483647";
  expect_refused(R"({"a":)" + entry("U8", big, "0,2") + "}", "2^64", 2);
}

TEST(Safetensors, RefusesBadLayouts) {
  auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":)" + entry("U8", "2", first) + R"(,"b":)" +
           entry("U8", "2", second) + "}";
  };
  EXPECT_EQ(parse(make_file(two("2,4", "0,2"), 4)).tensors.size(), 2u);
  expect_refused(two("0,2", "2,4"), "bytes of data", 3);
  expect_refused(two("0,2", "2,4"), "bytes of data", 5);
  expect_refused(two("0,2", "1,3"), "overlap or hole", 4);
  expect_refused(two("0,2", "0,2"), "overlap or hole", 4);
  expect_refused(two("0,2", "3,5"), "overlap or hole", 5);
  expect_refused(two("2,0", "0,2"), "do not match", 4);
  expect_refused(two("0,3", "3,4"), "do not match", 4);
  expect_refused(
      two("0,2", "18446744073709551614,18446744073709551616"), "fraction", 4);
}

TEST(Safetensors, TruncatedAnywhereRaises) {
  std::string bytes = sample_bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    expect_error(
        error_of([&] { parse(bytes.substr(0, n)); }), "[load_safetensors] ");
  }
}

TEST(Safetensors, CorruptedBytesParseOrRaise) {
  std::string bytes = sample_bytes();
  std::mt19937_64 rng(2);
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = mutate(bytes, rng);
    try {
      SafetensorsFile file = parse(damaged);
      for (const auto& tensor : file.tensors) {
        ASSERT_LE(file.data_offset + tensor.end, damaged.size());
      }
    } catch (const std::runtime_error& error) {
      ++refused;
      expect_error(error.what(), "[load_safetensors] ");
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace mlx::core::io
