// The header of a .npy file: magic, version, and a Python dict as text that
// gives type, order and shape. Layout as in NumPy's format description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlx/dtype.h"
#include "mlx/io/load.h"

namespace mlx::core::io {

struct NpyHeader {
  Dtype dtype = float32;
  /// Whether the elements have the other byte order.
  bool swapped = false;
  bool fortran_order = false;
  std::vector<int32_t> shape;
  /// Where the data starts in the reader, and its length.
  uint64_t data_offset = 0;
  uint64_t byte_size = 0;
};

/// Reads the header at the reader's position (versions 1 to 3) and checks
/// that the data is there. Raises std::runtime_error `[load] ...`. With
/// `missing` a reader that ends too early is no error yet: it is described
/// there.
NpyHeader read_npy(Reader& reader, std::string* missing = nullptr);

/// Version 1, or 2 when the shape is too long for it.
std::string npy_header(const NpyHeader& header);

}  // namespace mlx::core::io
