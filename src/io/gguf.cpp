// Arrays and metadata as .gguf. GGUF names the fastest axis first; arrays have
// it last.
#include <algorithm>
#include <limits>

#include "io/arrays.h"
#include "io/bytes.h"
#include "io/gguf_blocks.h"
#include "io/gguf_format.h"
#include "io/parallel.h"
#include "mlx/allocator.h"
#include "mlx/transforms.h"
#include "types/error.h"

namespace mlx::core {

namespace {

using io::fail;
using io::GgufType;
using io::GgufValueType;

constexpr const char* kWeight = ".weight";

/// Reads quantized blocks piecewise through a small buffer, straight into
/// packed codes, scales and biases.
class LoadBlocks : public Primitive {
 public:
  LoadBlocks(
      Stream stream,
      std::shared_ptr<io::Reader> reader,
      const io::GgufTensor& tensor)
      : Primitive(stream), reader_(std::move(reader)), tensor_(tensor) {}

  void eval_cpu(
      const std::vector<array>&, std::vector<array>& outputs) override {
    for (auto& out : outputs) {
      out.set_data(allocator::malloc(out.nbytes()));
    }
    size_t blocks = tensor_.byte_size / io::gguf_block(tensor_.type).bytes;
    io::split_over_threads(
        blocks, kPieceBlocks, kPartBlocks, [&](size_t begin, size_t end) {
          read_blocks(begin, end, outputs);
        });
  }
  void eval_gpu(
      const std::vector<array>& inputs, std::vector<array>& outputs) override {
    eval_cpu(inputs, outputs);
  }
  DEFINE_NAME(LoadBlocks)

 private:
  // 72 to 136 KiB of the file: fits the second-level cache beside its result.
  static constexpr size_t kPieceBlocks = 4096;
  static constexpr size_t kPartBlocks = 32 * kPieceBlocks;

  void read_blocks(size_t begin, size_t end, std::vector<array>& outputs) {
    const size_t bytes = io::gguf_block(tensor_.type).bytes;
    const size_t words = static_cast<size_t>(io::gguf_bits(tensor_.type));
    auto buffer = std::make_unique<char[]>(kPieceBlocks * bytes);
    for (size_t at = begin; at < end; at += kPieceBlocks) {
      size_t count = std::min(kPieceBlocks, end - at);
      reader_->read(buffer.get(), count * bytes, tensor_.offset + at * bytes);
      bool fits = io::repack_blocks(
          tensor_.type,
          reinterpret_cast<const uint8_t*>(buffer.get()),
          count,
          outputs[0].data<uint32_t>() + at * words,
          outputs[1].data<uint16_t>() + at,
          outputs[2].data<uint16_t>() + at);
      if (!fits) {
        fail(
            "load_gguf",
            "a scale in tensor ",
            io::in_quotes(tensor_.name),
            " is too large: its bias does not fit float16.");
      }
    }
  }

  std::shared_ptr<io::Reader> reader_;
  io::GgufTensor tensor_;
};

struct PlainType {
  GgufType type;
  Dtype dtype;
};
const PlainType kPlainTypes[] = {
    {GgufType::f32, float32},
    {GgufType::f16, float16},
    {GgufType::bf16, bfloat16},
    {GgufType::f64, float64},
    {GgufType::i8, int8},
    {GgufType::i16, int16},
    {GgufType::i32, int32},
    {GgufType::i64, int64},
};

struct NumberType {
  GgufValueType type;
  Dtype dtype;
};
const NumberType kNumberTypes[] = {
    {GgufValueType::bool_, bool_},
    {GgufValueType::uint8, uint8},
    {GgufValueType::uint16, uint16},
    {GgufValueType::uint32, uint32},
    {GgufValueType::uint64, uint64},
    {GgufValueType::int8, int8},
    {GgufValueType::int16, int16},
    {GgufValueType::int32, int32},
    {GgufValueType::int64, int64},
    {GgufValueType::float32, float32},
    {GgufValueType::float64, float64},
};

Shape shape_of(const io::GgufTensor& tensor) {
  Shape shape;
  for (size_t i = tensor.dims.size(); i-- > 0;) {
    shape.push_back(static_cast<ShapeElem>(tensor.dims[i]));
  }
  return shape;
}

void insert(GGUFLoad& result, const std::string& name, array a) {
  if (!result.first.emplace(name, std::move(a)).second) {
    fail("load_gguf", "two arrays would be called ", io::in_quotes(name), ".");
  }
}

void insert_blocks(
    GGUFLoad& result,
    const io::GgufTensor& tensor,
    Stream stream,
    const std::shared_ptr<io::Reader>& reader) {
  Shape words = shape_of(tensor), groups = words;
  words.back() = static_cast<ShapeElem>(
      tensor.dims[0] / 32 * static_cast<uint64_t>(io::gguf_bits(tensor.type)));
  groups.back() = words.back() / io::gguf_bits(tensor.type);
  auto arrays = array::make_arrays(
      {words, groups, groups},
      {uint32, float16, float16},
      std::make_shared<LoadBlocks>(stream, reader, tensor),
      {});
  std::string stem = tensor.name;
  if (stem.ends_with(kWeight)) {
    stem.resize(stem.size() - std::string_view(kWeight).size());
  }
  insert(result, tensor.name, arrays[0]);
  insert(result, stem + ".scales", arrays[1]);
  insert(result, stem + ".biases", arrays[2]);
}

void insert_plain(
    GGUFLoad& result,
    const io::GgufTensor& tensor,
    Stream stream,
    const std::shared_ptr<io::Reader>& reader) {
  for (const auto& plain : kPlainTypes) {
    if (plain.type == tensor.type) {
      insert(
          result,
          tensor.name,
          io::lazy_array(
              shape_of(tensor), plain.dtype, stream, reader, tensor.offset));
    }
  }
}

array to_array(const std::string& key, const io::GgufNumbers& numbers) {
  if (numbers.count > std::numeric_limits<ShapeElem>::max()) {
    fail("load_gguf", "metadata ", io::in_quotes(key), " is too long.");
  }
  Shape shape;
  if (!numbers.scalar) {
    shape.push_back(static_cast<ShapeElem>(numbers.count));
  }
  for (const auto& type : kNumberTypes) {
    if (type.type == numbers.type) {
      allocator::Buffer buffer = allocator::malloc(numbers.bytes.size());
      std::copy(
          numbers.bytes.begin(),
          numbers.bytes.end(),
          static_cast<uint8_t*>(buffer.raw_ptr()));
      return array(buffer, std::move(shape), type.dtype);
    }
  }
  fail("load_gguf", "metadata ", io::in_quotes(key), " has no known type.");
}

io::GgufNumbers to_numbers(const std::string& key, const array& value) {
  array a = io::row_major(value);
  if (a.ndim() > 1 || a.size() == 0) {
    invalid(
        "save_gguf",
        "metadata ",
        io::in_quotes(key),
        " is an array of ",
        a.ndim(),
        " dimensions and ",
        a.size(),
        " elements. Expected at most one dimension, and an element.");
  }
  for (const auto& type : kNumberTypes) {
    if (type.dtype == a.dtype()) {
      const auto* data = a.data<uint8_t>();
      return {type.type, a.ndim() == 0, a.size(), {data, data + a.nbytes()}};
    }
  }
  invalid(
      "save_gguf",
      "metadata ",
      io::in_quotes(key),
      " has an unsupported dtype: ",
      a.dtype(),
      ". Expected bool, an integer, float32 or float64.");
}

io::GgufValue to_value(const std::string& key, const GGUFMetaData& value) {
  if (const auto* a = std::get_if<array>(&value)) {
    return to_numbers(key, *a);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text;
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    if (!list->empty()) {
      return *list;
    }
  }
  invalid("save_gguf", "metadata ", io::in_quotes(key), " is empty.");
}

io::GgufTensor to_tensor(const std::string& name, const array& a) {
  io::GgufTensor tensor{name, {}, GgufType::f32};
  tensor.dims.assign(a.shape().begin(), a.shape().end());
  std::reverse(tensor.dims.begin(), tensor.dims.end());
  for (const auto& plain : kPlainTypes) {
    if (plain.dtype == a.dtype() && plain.type != GgufType::bf16 &&
        plain.type != GgufType::f64 && plain.type != GgufType::i64) {
      tensor.type = plain.type;
      return tensor;
    }
  }
  fail(
      "save_gguf",
      "dtype ",
      a.dtype(),
      " is not supported: array ",
      io::in_quotes(name),
      ". Expected float32, float16, int8, int16 or int32.");
}

}  // namespace

GGUFLoad load_gguf(const std::string& file, StreamOrDevice s) {
  auto reader = io::open_reader("load_gguf", file);
  io::GgufFile directory = io::read_gguf(*reader);
  Stream stream = io::load_stream(s);
  GGUFLoad result;
  for (const auto& tensor : directory.tensors) {
    bool quantized = io::gguf_bits(tensor.type) != 0;
    (quantized ? insert_blocks : insert_plain)(result, tensor, stream, reader);
  }
  for (auto& [key, value] : directory.metadata) {
    if (const auto* numbers = std::get_if<io::GgufNumbers>(&value)) {
      result.second.emplace(key, to_array(key, *numbers));
    } else if (auto* text = std::get_if<std::string>(&value)) {
      result.second.emplace(key, std::move(*text));
    } else {
      result.second.emplace(
          key, std::move(std::get<std::vector<std::string>>(value)));
    }
  }
  return result;
}

void save_gguf(
    std::string file,
    std::unordered_map<std::string, array> array_map,
    std::unordered_map<std::string, GGUFMetaData> meta_data) {
  // Sorted, so that equal contents give equal files.
  std::vector<std::pair<std::string, array>> arrays(
      array_map.begin(), array_map.end());
  std::sort(arrays.begin(), arrays.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  io::GgufFile directory;
  std::vector<array> to_eval;
  for (const auto& [name, a] : arrays) {
    directory.tensors.push_back(to_tensor(name, a));
    to_eval.push_back(a);
  }
  for (const auto& [key, value] : meta_data) {
    directory.metadata.emplace_back(key, to_value(key, value));
  }
  std::sort(
      directory.metadata.begin(),
      directory.metadata.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  eval(std::move(to_eval));

  std::vector<char> header = io::gguf_header(directory);
  auto writer =
      io::open_writer("save_gguf", io::with_suffix(std::move(file), ".gguf"));
  writer->write(header.data(), header.size());
  const std::string zeros(io::kGgufAlignment, '\0');
  for (size_t i = 0; i < arrays.size(); ++i) {
    io::write_elements(*writer, io::row_major(arrays[i].second));
    size_t rest = directory.tensors[i].byte_size % io::kGgufAlignment;
    if (rest != 0) {
      writer->write(zeros.data(), io::kGgufAlignment - rest);
    }
  }
}

}  // namespace mlx::core
