// src/io/{load,npy,safetensors,gguf}.cpp: arrays to files and back.
#include <gtest/gtest.h>

#include <cstring>

#include "io/format_testing.h"
#include "mlx/array.h"
#include "mlx/io.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "mlx/types/half_types.h"

namespace mlx::core {
namespace {

using io::error_of;
using io::expect_error;
using io::TemporaryFile;

std::string bytes_of(array a) {
  a.eval();
  a = contiguous(a);
  a.eval();
  return std::string(a.data<char>(), a.nbytes());
}

void expect_same(const array& a, const array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(bytes_of(a) == bytes_of(b));
}

/// Values 0 to 5 (bool: 0, 1, 1 ...) as (2, 3).
array sample(Dtype dtype) {
  return array({0, 1, 2, 3, 4, 5}, {2, 3}, dtype);
}

const Dtype kAll[] = {
    bool_,
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
    complex64};

TEST(LoadNpy, RoundTripOfAllTypesAndLayouts) {
  for (Dtype dtype : kAll) {
    array a = sample(dtype);
    std::vector<array> layouts = {
        a,
        transpose(a),
        slice(a, {0, 0}, {2, 3}, {1, 2}),
        broadcast_to(slice(a, {0, 0}, {1, 3}), {4, 3}),
        slice(a, {0, 0}, {0, 3}),
        reshape(slice(a, {1, 1}, {2, 2}), {})};
    for (const array& layout : layouts) {
      TemporaryFile file("layout.npy");
      save(file.path(), layout);
      expect_same(load(file.path()), layout);
    }
  }
}

TEST(LoadNpy, ColumnMajorIsStoredAsItLies) {
  TemporaryFile file("columns.npy");
  save(file.path(), transpose(sample(int32)));
  std::string bytes = io::slurp(file.path());
  EXPECT_NE(bytes.find("'fortran_order': True"), std::string::npos);
  EXPECT_EQ(bytes.substr(bytes.size() - 24), bytes_of(sample(int32)));
}

TEST(LoadNpy, SwapsBytes) {
  std::string dict =
      "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }\n";
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += io::as_bytes(static_cast<uint16_t>(dict.size())) + dict;
  bytes += std::string("\x3f\x80\0\0\xc0\0\0\0", 8);
  TemporaryFile file("swapped.npy", bytes);
  expect_same(load(file.path()), array({complex64_t(1, -2)}));
  for (std::string descr : {">i2", ">u4", ">f8"}) {
    std::string other = bytes;
    size_t at = other.find(">c8");
    other.replace(at, 3, descr);
    size_t width = descr[2] - '0';
    std::string data(width, '\0');
    data.back() = 1;
    other.replace(other.size() - 8, 8, data);
    TemporaryFile swapped("swapped2.npy", other);
    array a = load(swapped.path());
    std::string want = bytes_of(a);
    EXPECT_EQ(want, std::string("\1") + std::string(width - 1, '\0'));
  }
}

TEST(LoadNpy, BoolsAreNormalized) {
  TemporaryFile file("bools.npy");
  save(file.path(), array({true, false, true}, bool_));
  std::string bytes = io::slurp(file.path());
  bytes[bytes.size() - 3] = '\x42';
  TemporaryFile odd("odd.npy", bytes);
  expect_same(load(odd.path()), array({true, false, true}, bool_));
}

TEST(LoadNpy, SeveralArraysInOneReader) {
  TemporaryFile file("several.npy");
  auto writer = std::make_shared<io::FileWriter>(file.path());
  save(writer, sample(float32));
  save(writer, transpose(sample(uint8)));
  auto reader = std::make_shared<io::ParallelFileReader>(file.path());
  array first = load(reader), second = load(reader);
  expect_same(first, sample(float32));
  expect_same(second, transpose(sample(uint8)));
}

TEST(LoadNpy, IsLazyAndReportsAFileThatShrank) {
  TemporaryFile file("shrinks.npy");
  save(file.path(), sample(float32));
  array a = load(file.path());
  EXPECT_FALSE(a.is_available());
  std::filesystem::resize_file(file.path(), 100);
  expect_error(error_of([&] { a.eval(); }), "too early");
}

TEST(LoadNpy, ReportsMissingFiles) {
  expect_error(
      error_of([] { load("/no such folder/x.npy"); }),
      "[load] Failed to open file /no such folder/x.npy");
  expect_error(
      error_of([] { save("/no such folder/x", array(1)); }),
      "[save] Failed to open file /no such folder/x.npy");
  expect_error(
      error_of([] { load_safetensors("/no such folder/x"); }),
      "[load_safetensors] Failed to open");
  expect_error(
      error_of([] { save_safetensors("/no such folder/x", {}); }),
      "[save_safetensors] Failed to open");
  expect_error(
      error_of([] { load_gguf("/no such folder/x"); }),
      "[load_gguf] Failed to open");
  expect_error(
      error_of([] { save_gguf("/no such folder/x", {}); }),
      "[save_gguf] Failed to open");
}

TEST(LoadSafetensors, RoundTrip) {
  std::unordered_map<std::string, array> arrays;
  for (Dtype dtype : kAll) {
    if (dtype != float64) {
      int number = static_cast<int>(dtype.val());
      arrays.emplace("a" + std::to_string(number), sample(dtype));
      arrays.emplace("t" + std::to_string(number), transpose(sample(dtype)));
    }
  }
  arrays.emplace("scalar", array(7));
  arrays.emplace("empty", slice(sample(int8), {0, 0}, {0, 3}));
  TemporaryFile file("all.safetensors");
  save_safetensors(file.path(), arrays, {{"key", "value"}});
  auto [back, metadata] = load_safetensors(file.path());
  EXPECT_EQ(metadata.at("key"), "value");
  ASSERT_EQ(back.size(), arrays.size());
  for (const auto& [name, a] : arrays) {
    expect_same(back.at(name), a);
  }
}

TEST(LoadSafetensors, AFailedSaveKeepsTheOldFile) {
  TemporaryFile file("kept.safetensors");
  save_safetensors(file.path(), {{"a", sample(int32)}});
  expect_error(
      error_of([&] {
        save_safetensors(file.path(), {{"a", sample(float64)}});
      }),
      "float64");
  expect_same(load_safetensors(file.path()).first.at("a"), sample(int32));
}

TEST(LoadSafetensors, MayReplaceTheFileThatItReads) {
  TemporaryFile file("self.safetensors");
  save_safetensors(file.path(), {{"a", sample(int32)}});
  auto arrays = load_safetensors(file.path()).first;
  arrays.insert_or_assign("b", transpose(arrays.at("a")));
  save_safetensors(file.path(), arrays);
  auto back = load_safetensors(file.path()).first;
  expect_same(back.at("a"), sample(int32));
  expect_same(back.at("b"), transpose(sample(int32)));
}

TEST(LoadGguf, RoundTrip) {
  std::unordered_map<std::string, array> arrays;
  for (Dtype dtype : {float32, float16, int8, int16, int32}) {
    int number = static_cast<int>(dtype.val());
    arrays.emplace("a" + std::to_string(number), sample(dtype));
    arrays.emplace("t" + std::to_string(number), transpose(sample(dtype)));
  }
  std::unordered_map<std::string, GGUFMetaData> metadata;
  metadata["text"] = std::string("words");
  metadata["list"] = std::vector<std::string>{"a", "b"};
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
        float32,
        float64}) {
    metadata["n" + std::to_string(static_cast<int>(dtype.val()))] =
        array({1, 0, 1}, dtype);
  }
  metadata["scalar"] = array(1.5f);
  TemporaryFile file("all.gguf");
  save_gguf(file.path(), arrays, metadata);
  auto [back, back_metadata] = load_gguf(file.path());
  ASSERT_EQ(back.size(), arrays.size());
  for (const auto& [name, a] : arrays) {
    expect_same(back.at(name), a);
  }
  ASSERT_EQ(back_metadata.size(), metadata.size());
  for (const auto& [key, value] : metadata) {
    if (const auto* a = std::get_if<array>(&value)) {
      expect_same(std::get<array>(back_metadata.at(key)), *a);
    }
  }
  EXPECT_EQ(std::get<std::string>(back_metadata.at("text")), "words");
  EXPECT_EQ(
      std::get<std::vector<std::string>>(back_metadata.at("list")).size(), 2u);
}

TEST(LoadGguf, RefusesWhatTheFormatOrInterfaceLacks) {
  TemporaryFile file("bad.gguf");
  for (Dtype dtype : {bool_, uint8, int64, bfloat16, float64, complex64}) {
    expect_error(
        error_of([&] {
          save_gguf(file.path(), {{"a", sample(dtype)}});
        }),
        "[save_gguf] dtype");
  }
  auto with = [&](GGUFMetaData value) -> std::string {
    try {
      save_gguf(file.path(), {}, {{"k", value}});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  expect_error(with(sample(int32)), "2 dimensions");
  expect_error(with(slice(array({1, 2}), {0}, {0})), "0 elements");
  expect_error(with(array({1, 2}, float16)), "unsupported dtype");
  expect_error(with(std::vector<std::string>{}), "empty");
  expect_error(with(std::monostate{}), "empty");
}

TEST(LoadGguf, QuantizedTensorsKeepTheirValues) {
  auto arrays =
      load_gguf((std::filesystem::path(MLX_TEST_DIR) / "io/data/blocks.gguf")
                    .string())
          .first;
  EXPECT_EQ(arrays.size(), 12u);
  for (auto [name, bits] :
       {std::pair{std::string("Q4_0"), 4}, {"Q4_1", 4}, {"Q8_0", 8}}) {
    array weight = arrays.at(name + ".weight");
    array scales = arrays.at(name + ".scales");
    array biases = arrays.at(name + ".biases");
    array want = arrays.at(name + ".want");
    eval(weight, scales, biases, want);
    EXPECT_EQ(weight.shape(), (Shape{3, 64 * bits / 32}));
    EXPECT_EQ(weight.dtype(), uint32);
    EXPECT_EQ(scales.shape(), (Shape{3, 2}));
    EXPECT_EQ(scales.dtype(), float16);
    EXPECT_EQ(biases.shape(), (Shape{3, 2}));
    for (size_t i = 0; i < want.size(); ++i) {
      size_t per_word = 32 / bits;
      uint32_t word = weight.data<uint32_t>()[i / per_word];
      float code = static_cast<float>(
          word >> (bits * (i % per_word)) & ((1u << bits) - 1));
      float value = code * float(scales.data<float16_t>()[i / 32]) +
                    float(biases.data<float16_t>()[i / 32]);
      ASSERT_EQ(value, want.data<float>()[i]) << name << " element " << i;
    }
  }
}

}  // namespace
}  // namespace mlx::core
