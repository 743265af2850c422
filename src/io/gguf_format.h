// The GGUF container, versions 2 and 3, little endian: header, metadata and
// the directory of tensors, without arrays. Layout as in the GGUF
// specification of ggml: magic, version, counts, key-value pairs, tensor
// infos, padding, tensor data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mlx/io/load.h"

namespace mlx::core::io {

/// Types of metadata values, numbered as in the file.
enum class GgufValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  bool_ = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

/// The tensor types that can be read, numbered as in the file.
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q8_0 = 8,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
};

/// One number (rank 0) or a list of numbers (rank 1).
struct GgufNumbers {
  GgufValueType type;
  bool scalar;
  uint64_t count;
  std::vector<uint8_t> bytes;
};

using GgufValue =
    std::variant<GgufNumbers, std::string, std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  /// As in the file: the fastest-running axis first.
  std::vector<uint64_t> dims;
  GgufType type;
  /// From the start of the file.
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

struct GgufFile {
  uint32_t version = 3;
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
};

/// Bytes of one metadata number; 0 for strings, arrays and unknown types.
size_t gguf_value_bytes(GgufValueType type);

/// Elements and bytes of one block; plain types have blocks of one element.
struct GgufBlock {
  uint64_t elements;
  uint64_t bytes;
};
GgufBlock gguf_block(GgufType type);

/// Reads the directory. Every count, length and offset is compared with the
/// size of the file before it is used; tensors neither overlap nor reach past
/// the end. Raises std::runtime_error `[load_gguf] ...`.
GgufFile read_gguf(Reader& reader);

/// The bytes before the tensor data. Sets the offsets and sizes of
/// `file.tensors`, which are to be written in order, each padded to
/// kGgufAlignment.
inline constexpr uint64_t kGgufAlignment = 32;
std::vector<char> gguf_header(GgufFile& file);

}  // namespace mlx::core::io
