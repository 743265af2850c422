// Parses and writes the directory of a GGUF file. A file is hostile until
// checked: memory taken while parsing is bounded by the size of the file.
#include "io/gguf_format.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <unordered_set>

#include "io/bytes.h"

namespace mlx::core::io {

namespace {

constexpr std::string_view kOp = "load_gguf";
constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxDims = 8;
constexpr uint64_t kMaxAlignment = 1 << 20;
// The least that a key-value pair and a tensor info take in the file.
constexpr uint64_t kPairBytes = 8 + 4 + 1;
constexpr uint64_t kTensorBytes = 8 + 4 + 4 + 8;

/// Names of ggml's tensor types that are not read, for messages.
std::string type_name(uint32_t type) {
  static const std::map<uint32_t, const char*> names = {
      {6, "Q5_0"},      {7, "Q5_1"},     {9, "Q8_1"},      {10, "Q2_K"},
      {11, "Q3_K"},     {12, "Q4_K"},    {13, "Q5_K"},     {14, "Q6_K"},
      {15, "Q8_K"},     {16, "IQ2_XXS"}, {17, "IQ2_XS"},   {18, "IQ3_XXS"},
      {19, "IQ1_S"},    {20, "IQ4_NL"},  {21, "IQ3_S"},    {22, "IQ2_S"},
      {23, "IQ4_XS"},   {29, "IQ1_M"},   {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
      {33, "Q4_0_8_8"}, {34, "TQ1_0"},   {35, "TQ2_0"},    {39, "MXFP4"},
      {40, "NVFP4"}};
  auto it = names.find(type);
  return it == names.end() ? "number " + std::to_string(type) : it->second;
}

bool is_readable(uint32_t type) {
  return gguf_block(static_cast<GgufType>(type)).elements != 0;
}

/// Counts tensors that cannot be read, to name their types in one error.
class Unreadable {
 public:
  void add(uint32_t type, const std::string& name) {
    if (++counts_[type] == 1 && first_.empty()) {
      first_ = name;
    }
  }
  void check(const std::string& label) const {
    if (counts_.empty()) {
      return;
    }
    std::string types;
    for (const auto& [type, count] : counts_) {
      types += types.empty() ? "" : ", ";
      types += type_name(type) + " (" + std::to_string(count) + " tensors)";
    }
    fail(
        kOp,
        "unsupported tensor types in ",
        label,
        ": ",
        types,
        ", first in ",
        in_quotes(first_),
        ". Expected F32, F16, BF16, F64, I8, I16, I32, I64, Q4_0, Q4_1 or "
        "Q8_0.");
  }

 private:
  std::map<uint32_t, uint64_t> counts_;
  std::string first_;
};

std::string read_string(ByteReader& in, std::string_view what) {
  auto length = in.number<uint64_t>(what);
  return in.text(length, what);
}

GgufNumbers read_numbers(
    ByteReader& in, GgufValueType type, bool scalar, uint64_t count) {
  size_t width = gguf_value_bytes(type);
  in.expect(count, width, "metadata values");
  GgufNumbers result{type, scalar, count, {}};
  result.bytes.resize(count * width);
  in.bytes(result.bytes.data(), result.bytes.size(), "metadata values");
  if (type == GgufValueType::bool_) {
    for (uint8_t byte : result.bytes) {
      if (byte > 1) {
        fail(kOp, "bad bool in metadata: ", int(byte), ". Expected 0 or 1.");
      }
    }
  }
  return result;
}

GgufValue read_value(ByteReader& in, const std::string& key) {
  auto type = static_cast<GgufValueType>(in.number<uint32_t>("value types"));
  bool scalar = type != GgufValueType::array;
  uint64_t count = 1;
  if (!scalar) {
    type = static_cast<GgufValueType>(in.number<uint32_t>("element types"));
    count = in.number<uint64_t>("array lengths");
  }
  if (type == GgufValueType::array) {
    fail(
        kOp,
        "nested array in metadata: key ",
        in_quotes(key),
        ". Not supported.");
  }
  if (type == GgufValueType::string) {
    if (scalar) {
      return read_string(in, "metadata strings");
    }
    in.expect(count, sizeof(uint64_t), "metadata strings");
    std::vector<std::string> strings;
    strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      strings.push_back(read_string(in, "metadata strings"));
    }
    return strings;
  }
  if (gguf_value_bytes(type) == 0) {
    fail(
        kOp,
        "unknown metadata type: ",
        static_cast<uint32_t>(type),
        " of key ",
        in_quotes(key),
        ". Expected 0 to 12.");
  }
  return read_numbers(in, type, scalar, count);
}

/// The tensor's size in bytes from its dimensions.
uint64_t byte_size(const GgufTensor& tensor) {
  GgufBlock block = gguf_block(tensor.type);
  uint64_t row = tensor.dims.empty() ? 1 : tensor.dims[0];
  if (row % block.elements != 0) {
    fail(
        kOp,
        "tensor ",
        in_quotes(tensor.name),
        " has rows of ",
        row,
        " elements. Expected a multiple of the block size ",
        block.elements,
        ".");
  }
  std::optional<uint64_t> size = checked_mul(row / block.elements, block.bytes);
  for (size_t i = 1; i < tensor.dims.size() && size; ++i) {
    size = checked_mul(*size, tensor.dims[i]);
  }
  if (!size) {
    fail(kOp, "tensor ", in_quotes(tensor.name), " is larger than 2^64 bytes.");
  }
  return *size;
}

/// Reads one tensor info; its offset is relative to the data section.
GgufTensor read_tensor(ByteReader& in, Unreadable& unreadable) {
  constexpr uint64_t kMaxDim = std::numeric_limits<int32_t>::max();
  GgufTensor tensor;
  tensor.name = read_string(in, "tensor names");
  auto ndim = in.number<uint32_t>("dimension counts");
  if (ndim > kMaxDims) {
    fail(
        kOp,
        "tensor ",
        in_quotes(tensor.name),
        " has ",
        ndim,
        " dimensions. Expected at most ",
        kMaxDims,
        ".");
  }
  for (uint32_t i = 0; i < ndim; ++i) {
    tensor.dims.push_back(in.number<uint64_t>("dimensions"));
    if (tensor.dims.back() > kMaxDim) {
      fail(
          kOp,
          "tensor ",
          in_quotes(tensor.name),
          " has a dimension of ",
          tensor.dims.back(),
          ". Expected at most ",
          kMaxDim,
          ".");
    }
  }
  auto type = in.number<uint32_t>("tensor types");
  tensor.type = static_cast<GgufType>(type);
  tensor.offset = in.number<uint64_t>("tensor offsets");
  if (is_readable(type)) {
    tensor.byte_size = byte_size(tensor);
  } else {
    unreadable.add(type, tensor.name);
  }
  return tensor;
}

uint64_t find_alignment(const GgufFile& file) {
  for (const auto& [key, value] : file.metadata) {
    if (key != "general.alignment") {
      continue;
    }
    const auto* numbers = std::get_if<GgufNumbers>(&value);
    if (!numbers || !numbers->scalar ||
        numbers->type != GgufValueType::uint32) {
      fail(kOp, "general.alignment is not a uint32.");
    }
    uint32_t alignment;
    std::memcpy(&alignment, numbers->bytes.data(), sizeof(alignment));
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
      fail(
          kOp,
          "bad general.alignment: ",
          alignment,
          ". Expected a power of two up to ",
          kMaxAlignment,
          ".");
    }
    return alignment;
  }
  return kGgufAlignment;
}

/// Makes offsets absolute and checks that each tensor lies inside the file.
void place_tensors(
    GgufFile& file, uint64_t alignment, uint64_t header_end, uint64_t size) {
  uint64_t data = (header_end + alignment - 1) / alignment * alignment;
  for (auto& tensor : file.tensors) {
    if (tensor.offset % alignment != 0) {
      fail(
          kOp,
          "tensor ",
          in_quotes(tensor.name),
          " has offset ",
          tensor.offset,
          ". Expected a multiple of the alignment ",
          alignment,
          ".");
    }
    auto begin = checked_add(data, tensor.offset);
    auto end = begin ? checked_add(*begin, tensor.byte_size) : begin;
    // An empty tensor may follow the last one's padding, which a file may lack.
    uint64_t limit = tensor.byte_size > 0 ? size : size + alignment;
    if (!end || *end > limit) {
      fail(
          kOp,
          "tensor ",
          in_quotes(tensor.name),
          " reaches past the end of the file: ",
          tensor.byte_size,
          " bytes at offset ",
          tensor.offset,
          ". The file has ",
          size > data ? size - data : 0,
          " bytes of data.");
    }
    tensor.offset = *begin;
  }
}

// Tensors that share bytes would let a small file ask for unbounded memory.
void check_overlap(const GgufFile& file) {
  std::vector<const GgufTensor*> order;
  for (const auto& tensor : file.tensors) {
    if (tensor.byte_size > 0) {
      order.push_back(&tensor);
    }
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return a->offset < b->offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->byte_size > order[i]->offset) {
      fail(
          kOp,
          "tensors ",
          in_quotes(order[i - 1]->name),
          " and ",
          in_quotes(order[i]->name),
          " overlap in the file.");
    }
  }
}

void read_preamble(ByteReader& in, Reader& reader, GgufFile& file) {
  if (in.left() < 4 || in.number<uint32_t>("magic") != kMagic) {
    fail(kOp, reader.label(), " is not GGUF: it does not start with 'GGUF'.");
  }
  file.version = in.number<uint32_t>("version");
  if (file.version != 2 && file.version != 3) {
    fail(
        kOp,
        "unsupported GGUF version: ",
        file.version,
        ". Expected 2 or 3, little endian.");
  }
}

void append(std::vector<char>& out, const void* data, size_t n) {
  auto* bytes = static_cast<const char*>(data);
  out.insert(out.end(), bytes, bytes + n);
}
template <typename T>
void append_number(std::vector<char>& out, T value) {
  append(out, &value, sizeof(value));
}
void append_string(std::vector<char>& out, const std::string& text) {
  append_number<uint64_t>(out, text.size());
  append(out, text.data(), text.size());
}

void append_value(std::vector<char>& out, const GgufValue& value) {
  auto type = [&](GgufValueType t) {
    append_number(out, static_cast<uint32_t>(t));
  };
  if (const auto* numbers = std::get_if<GgufNumbers>(&value)) {
    if (!numbers->scalar) {
      type(GgufValueType::array);
    }
    type(numbers->type);
    if (!numbers->scalar) {
      append_number<uint64_t>(out, numbers->count);
    }
    append(out, numbers->bytes.data(), numbers->bytes.size());
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    type(GgufValueType::string);
    append_string(out, *text);
  } else {
    const auto& strings = std::get<std::vector<std::string>>(value);
    type(GgufValueType::array);
    type(GgufValueType::string);
    append_number<uint64_t>(out, strings.size());
    for (const auto& item : strings) {
      append_string(out, item);
    }
  }
}

}  // namespace

size_t gguf_value_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::bool_:
      return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16:
      return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32:
      return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
      return 8;
    default:
      return 0;
  }
}

GgufBlock gguf_block(GgufType type) {
  switch (type) {
    case GgufType::q4_0:
      return {32, 18};
    case GgufType::q4_1:
      return {32, 20};
    case GgufType::q8_0:
      return {32, 34};
    case GgufType::i8:
      return {1, 1};
    case GgufType::f16:
    case GgufType::bf16:
    case GgufType::i16:
      return {1, 2};
    case GgufType::f32:
    case GgufType::i32:
      return {1, 4};
    case GgufType::f64:
    case GgufType::i64:
      return {1, 8};
    default:
      return {0, 0};
  }
}

GgufFile read_gguf(Reader& reader) {
  reader.seek(0);
  uint64_t size = remaining_bytes(reader);
  ByteReader in(kOp, reader, size);
  GgufFile file;
  read_preamble(in, reader, file);
  auto tensor_count = in.number<uint64_t>("tensor count");
  auto pair_count = in.number<uint64_t>("metadata count");
  in.expect(pair_count, kPairBytes, "metadata pairs");

  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < pair_count; ++i) {
    std::string key = read_string(in, "metadata keys");
    if (!names.insert(key).second) {
      fail(kOp, "metadata key ", in_quotes(key), " occurs twice.");
    }
    GgufValue value = read_value(in, key);
    file.metadata.emplace_back(std::move(key), std::move(value));
  }
  names.clear();
  in.expect(tensor_count, kTensorBytes, "tensor infos");
  Unreadable unreadable;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    file.tensors.push_back(read_tensor(in, unreadable));
    if (!names.insert(file.tensors.back().name).second) {
      fail(
          kOp,
          "tensor ",
          in_quotes(file.tensors.back().name),
          " occurs twice.");
    }
  }
  unreadable.check(reader.label());
  place_tensors(file, find_alignment(file), in.position(), size);
  check_overlap(file);
  return file;
}

std::vector<char> gguf_header(GgufFile& file) {
  auto align = [](uint64_t n) {
    return (n + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  };
  std::vector<char> out;
  append_number(out, kMagic);
  append_number<uint32_t>(out, 3);
  append_number<uint64_t>(out, file.tensors.size());
  append_number<uint64_t>(out, file.metadata.size());
  for (const auto& [key, value] : file.metadata) {
    append_string(out, key);
    append_value(out, value);
  }
  uint64_t offset = 0;
  for (auto& tensor : file.tensors) {
    tensor.byte_size = byte_size(tensor);
    tensor.offset = offset;
    append_string(out, tensor.name);
    append_number(out, static_cast<uint32_t>(tensor.dims.size()));
    for (uint64_t dim : tensor.dims) {
      append_number(out, dim);
    }
    append_number(out, static_cast<uint32_t>(tensor.type));
    append_number(out, offset);
    offset += align(tensor.byte_size);
  }
  out.resize(align(out.size()));
  for (auto& tensor : file.tensors) {
    tensor.offset += out.size();
  }
  return out;
}

}  // namespace mlx::core::io
