// Arrays in files: .npy, .safetensors and .gguf. Loading opens the file and
// checks its directory; the elements are read when the arrays are evaluated.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/io/load.h"
#include "mlx/primitives.h"
#include "mlx/stream.h"
#include "mlx/utils.h"

namespace mlx::core {

/// A metadata value: nothing, numbers (rank 0 or 1), a text or several.
using GGUFMetaData =
    std::variant<std::monostate, array, std::string, std::vector<std::string>>;
using GGUFLoad = std::pair<
    std::unordered_map<std::string, array>,
    std::unordered_map<std::string, GGUFMetaData>>;
using SafetensorsLoad = std::pair<
    std::unordered_map<std::string, array>,
    std::unordered_map<std::string, std::string>>;

/// Writes `a` as .npy, in row-major or column-major order as it is stored;
/// bfloat16 goes as type V2. A path gets the suffix when it lacks it.
MLX_API void save(std::shared_ptr<io::Writer> out_stream, array a);
MLX_API void save(std::string file, array a);

/// Reads .npy (versions 1 to 3, either byte order). Raises std::runtime_error
/// for a file that is missing, damaged or of an unsupported type.
MLX_API array
load(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s = {});
MLX_API array load(std::string file, StreamOrDevice s = {});

/// Reads .safetensors: arrays by name, and the metadata. The eight-bit floats
/// F8_E4M3 and F8_E8M0 come as uint8. Raises std::runtime_error when header
/// and data do not agree in every byte.
MLX_API SafetensorsLoad
load_safetensors(std::shared_ptr<io::Reader> in_stream, StreamOrDevice s = {});
MLX_API SafetensorsLoad
load_safetensors(const std::string& file, StreamOrDevice s = {});

/// Writes .safetensors. Raises std::runtime_error for float64.
MLX_API void save_safetensors(
    std::shared_ptr<io::Writer> in_stream,
    std::unordered_map<std::string, array>,
    std::unordered_map<std::string, std::string> metadata = {});
MLX_API void save_safetensors(
    std::string file,
    std::unordered_map<std::string, array>,
    std::unordered_map<std::string, std::string> metadata = {});

/// Reads .gguf. Tensors of the types Q4_0, Q4_1 and Q8_0 stay quantized: `x`
/// or `x.weight` holds the codes (uint32), `x.scales` and `x.biases` (float16)
/// belong to groups of 32, as in affine quantization. The other types are
/// plain; any other block type raises std::runtime_error that names it.
MLX_API GGUFLoad load_gguf(const std::string& file, StreamOrDevice s = {});

/// Writes .gguf. Raises std::runtime_error for types other than float32,
/// float16, int8, int16 and int32, and for metadata arrays that are empty or
/// have more than one dimension.
MLX_API void save_gguf(
    std::string file,
    std::unordered_map<std::string, array> array_map,
    std::unordered_map<std::string, GGUFMetaData> meta_data = {});

/// Reads row-major elements from `offset` of a reader when evaluated.
class MLX_API Load : public UnaryPrimitive {
 public:
  explicit Load(
      Stream stream,
      std::shared_ptr<io::Reader> reader,
      size_t offset,
      bool swap_endianness = false)
      : UnaryPrimitive(stream),
        reader_(std::move(reader)),
        offset_(offset),
        swap_endianness_(swap_endianness) {}

  using UnaryPrimitive::eval_cpu;
  using UnaryPrimitive::eval_gpu;
  void eval_cpu(const std::vector<array>& inputs, array& out) override;
  void eval_gpu(const std::vector<array>& inputs, array& out) override;
  DEFINE_NAME(Load)

 private:
  std::shared_ptr<io::Reader> reader_;
  size_t offset_;
  bool swap_endianness_;
};

}  // namespace mlx::core
