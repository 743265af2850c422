// Fuzz entry (libFuzzer's convention): any bytes give a directory whose
// tensors lie inside the file, or std::runtime_error.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "io/memory_reader.h"
#include "io/npy_format.h"

using namespace mlx::core;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  io::MemoryReader reader(
      std::string(reinterpret_cast<const char*>(data), size));
  try {
    auto header = io::read_npy(reader);
    if (header.data_offset + header.byte_size > size) {
      std::abort();
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
