// Fuzz entry (libFuzzer's convention): any bytes give a directory whose
// tensors lie inside the file, or std::runtime_error.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "io/memory_reader.h"
#include "io/safetensors_format.h"

using namespace mlx::core;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  io::MemoryReader reader(
      std::string(reinterpret_cast<const char*>(data), size));
  try {
    auto file = io::read_safetensors(reader);
    for (const auto& tensor : file.tensors) {
      if (file.data_offset + tensor.end > size) {
        std::abort();
      }
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
