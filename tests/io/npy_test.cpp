// src/io/npy_format.cpp: round trip, the forms NumPy writes, damage.
#include <gtest/gtest.h>

#include <random>

#include "fuzz/mutate.h"
#include "io/format_testing.h"
#include "io/npy_format.h"

namespace mlx::core::io {
namespace {

std::string make_file(
    const std::string& dict, size_t data_bytes, int major = 1) {
  std::string length = major == 1
                           ? as_bytes(static_cast<uint16_t>(dict.size()))
                           : as_bytes(static_cast<uint32_t>(dict.size()));
  std::string version{static_cast<char>(major), '\0'};
  return "\x93NUMPY" + version + length + dict + std::string(data_bytes, 'x');
}
NpyHeader parse(const std::string& bytes) {
  MemoryReader reader(bytes);
  return read_npy(reader);
}
void expect_refused(
    const std::string& dict, const std::string& part, size_t data = 0) {
  std::string message = error_of([&] { parse(make_file(dict, data)); });
  expect_error(message, "[load] ");
  expect_error(message, part);
}
std::string dict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
         shape + "), }\n";
}

TEST(Npy, RoundTrip) {
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
        float64,
        complex64}) {
    for (std::vector<int32_t> shape :
         {std::vector<int32_t>{}, {5}, {0}, {3, 4}, {1, 2, 3}}) {
      NpyHeader header{dtype, false, shape.size() == 2, shape};
      std::string bytes = npy_header(header);
      EXPECT_EQ(bytes.size() % 64, 0u);
      EXPECT_EQ(bytes.back(), '\n');
      size_t begin = bytes.size();
      NpyHeader back = parse(bytes + std::string(8 * 12 + 9, 'x'));
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.fortran_order, shape.size() == 2);
      EXPECT_FALSE(back.swapped);
      EXPECT_EQ(back.data_offset, begin);
    }
  }
}

TEST(Npy, WritesWhatNumPyWrites) {
  NpyHeader header{float32, false, false, {3, 4}};
  EXPECT_NE(
      npy_header(header).find(
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  "),
      std::string::npos);
  header.shape = {3};
  EXPECT_NE(npy_header(header).find("'shape': (3,), }"), std::string::npos);
  header.shape = {};
  EXPECT_NE(npy_header(header).find("'shape': (), }"), std::string::npos);
}

TEST(Npy, UsesVersion2ForLongShapes) {
  NpyHeader header{bool_, false, false, std::vector<int32_t>(30000, 1)};
  std::string bytes = npy_header(header);
  EXPECT_EQ(bytes[6], 2);
  EXPECT_EQ(bytes.size() % 64, 0u);
  EXPECT_EQ(parse(bytes + "x").shape, header.shape);
}

TEST(Npy, ReadsOtherForms) {
  NpyHeader header = parse(make_file(dict(">f4", "2, 3"), 24, 2));
  EXPECT_TRUE(header.swapped);
  EXPECT_EQ(header.byte_size, 24u);
  EXPECT_FALSE(parse(make_file(dict("|u1", "2,"), 2, 3)).swapped);
  EXPECT_FALSE(parse(make_file(dict(">i1", "2,"), 2)).swapped);
  EXPECT_EQ(parse(make_file(dict("|V2", ""), 2)).dtype, bfloat16);
  EXPECT_EQ(parse(make_file(dict("=i8", "2L,"), 16)).dtype, int64);
  header = parse(make_file(
      "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"c8\"}", 48));
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.dtype, complex64);
}

TEST(Npy, StartsAtTheReadersPosition) {
  std::string bytes = make_file(dict("|u1", "2,"), 2);
  MemoryReader reader("before" + bytes + bytes);
  reader.seek(6, std::ios_base::beg);
  NpyHeader header = read_npy(reader);
  EXPECT_EQ(header.data_offset, 6 + bytes.size() - 2);
}

TEST(Npy, RefusesBadFiles) {
  for (std::string bytes :
       {std::string(),
        std::string("\x93NUMP"),
        std::string("PK\3\4 a zip file")}) {
    expect_error(error_of([&] { parse(bytes); }), "not a .npy file");
  }
  expect_error(error_of([&] { parse(make_file("{}", 0, 4)); }), "version: 4.0");
  std::string longer = make_file("{}", 0, 2);
  longer.replace(8, 4, as_bytes(uint32_t{0xffffffff}));
  expect_error(error_of([&] { parse(longer); }), "at most");
  longer.replace(8, 4, as_bytes(uint32_t{1000}));
  expect_error(error_of([&] { parse(longer); }), "bytes left");
}

TEST(Npy, RefusesBadDicts) {
  expect_refused("", "no '{'");
  expect_refused("{}", "missing");
  expect_refused("{'descr': '<f4'", "no '}'");
  expect_refused("{'descr': '<f4}", "open string");
  expect_refused(dict("<f4", "") + "x", "after the dict");
  expect_refused("{'a': 1}", "unknown or repeated key 'a'");
  expect_refused("{'descr': '<f4', 'descr': '<f4'}", "repeated");
  expect_refused("{'fortran_order': 1}", "neither True nor False");
  expect_refused("{'descr': [('a', '<f4')]}", "structured");
  expect_refused(dict("<c16", "1,"), "unsupported type: '<c16'", 16);
  expect_refused(dict("<f3", "1,"), "unsupported type", 16);
  expect_refused(dict("", "1,"), "unsupported type", 16);
  expect_refused(dict("|O", "1,"), "unsupported type", 16);
  expect_refused(dict("<f4", "-1,"), "no number in shape");
  expect_refused(dict("<f4", "1 2"), "no ')'");
  expect_refused(dict("<f4", "2147483648,"), "2^31 - 1");
  expect_refused(
      dict("<f4", "2147483647, 2147483647, 2147483647"), "too short");
  expect_refused(dict("<f4", "2, 3"), "needs 24", 23);
}

TEST(Npy, TruncatedAnywhereRaises) {
  std::string bytes = npy_header({float32, false, true, {3, 2}});
  bytes.resize(bytes.size() + 24);
  EXPECT_EQ(parse(bytes).byte_size, 24u);
  for (size_t n = 0; n < bytes.size(); ++n) {
    expect_error(error_of([&] { parse(bytes.substr(0, n)); }), "[load] ");
  }
}

TEST(Npy, CorruptedBytesParseOrRaise) {
  std::string bytes = npy_header({float32, false, true, {3, 2}});
  bytes.resize(bytes.size() + 24);
  std::mt19937_64 rng(3);
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = mutate(bytes, rng);
    try {
      NpyHeader header = parse(damaged);
      ASSERT_LE(header.data_offset + header.byte_size, damaged.size());
    } catch (const std::runtime_error& error) {
      ++refused;
      expect_error(error.what(), "[load] ");
    }
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace mlx::core::io
