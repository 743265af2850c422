// The safetensors container without arrays: eight bytes of header length, a
// JSON header, tensor data. Layout as in the format's own description.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mlx/dtype.h"
#include "mlx/io/load.h"

namespace mlx::core::io {

/// One tensor; `begin` and `end` count from the start of the data.
struct SafetensorsEntry {
  std::string name;
  Dtype dtype = float32;
  std::vector<int32_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsFile {
  std::vector<SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
  /// Where the data starts in the reader.
  uint64_t data_offset = 0;
};

/// Reads the header at the reader's position. The data of all tensors must
/// fill the rest exactly, without overlap or holes, and each length must be
/// that of its shape. Raises std::runtime_error `[load_safetensors] ...`.
SafetensorsFile read_safetensors(Reader& reader);

/// Length and header of a file; tensors are to be written in order. Sets
/// their `begin` and `end`. Raises std::runtime_error `[save_safetensors] ...`
/// for a type that the format lacks.
std::string safetensors_header(SafetensorsFile& file);

}  // namespace mlx::core::io
