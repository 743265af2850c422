// The header is read as a stream of JSON events: a document tree would take
// many times the header's size, and would keep only one of two equal keys.
#include "io/safetensors_format.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "io/bytes.h"

namespace mlx::core::io {

namespace {

using json = nlohmann::json;

constexpr std::string_view kOp = "load_safetensors";
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  const char* name;
  Dtype dtype;
};
// The eight-bit floats come last: they are read as their bytes, and uint8 is
// written as U8.
const TypeName kTypes[] = {
    {"BOOL", bool_},
    {"U8", uint8},
    {"U16", uint16},
    {"U32", uint32},
    {"U64", uint64},
    {"I8", int8},
    {"I16", int16},
    {"I32", int32},
    {"I64", int64},
    {"F16", float16},
    {"BF16", bfloat16},
    {"F32", float32},
    {"F64", float64},
    {"C64", complex64},
    {"F8_E4M3", uint8},
    {"F8_E8M0", uint8},
};

Dtype dtype_named(const std::string& name, const std::string& tensor) {
  for (const auto& type : kTypes) {
    if (name == type.name) {
      return type.dtype;
    }
  }
  fail(
      kOp,
      "unsupported type: ",
      in_quotes(name),
      " of tensor ",
      in_quotes(tensor),
      ". Expected BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64, C64, "
      "F8_E4M3 or F8_E8M0.");
}

/// Accepts exactly {name: {"dtype": text, "shape": [sizes], "data_offsets":
/// [begin, end]}, ..., "__metadata__": {text: text}}.
class HeaderEvents : public nlohmann::json_sax<json> {
 public:
  explicit HeaderEvents(SafetensorsFile& file) : file_(file) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override {
    return unexpected("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a fraction");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      constexpr uint64_t kMaxDim = std::numeric_limits<int32_t>::max();
      if (value > kMaxDim) {
        fail(kOp, "dimension too large: ", value, where(), ".");
      }
      entry_.shape.push_back(static_cast<int32_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      offsets_.push_back(value);
      if (offsets_.size() > 2) {
        fail(kOp, "more than two data_offsets", where(), ".");
      }
      return true;
    }
    return unexpected("a number");
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      file_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      entry_.dtype = dtype_named(value, entry_.name);
      return true;
    }
    return unexpected("a string");
  }

  bool start_object(size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) {
      return unexpected("an object");
    }
    if (key_ == kMetadata) {
      place_ = Place::metadata;
    } else {
      place_ = Place::tensor;
      entry_ = {};
      entry_.name = key_;
      offsets_.clear();
      seen_.clear();
    }
    return true;
  }

  bool key(string_t& value) override {
    bool fresh = true;
    if (place_ == Place::top) {
      fresh = names_.insert(value).second;
    } else if (place_ == Place::metadata) {
      fresh = !file_.metadata.contains(value);
    } else {
      fresh = std::find(seen_.begin(), seen_.end(), value) == seen_.end();
      if (value != "dtype" && value != "shape" && value != "data_offsets") {
        fail(kOp, "unknown key ", in_quotes(value), where(), ".");
      }
      seen_.push_back(value);
    }
    if (!fresh) {
      fail(kOp, "key ", in_quotes(value), " occurs twice", where(), ".");
    }
    key_ = std::move(value);
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      finish_tensor();
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
      return true;
    }
    return unexpected("an array");
  }
  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(
      size_t position,
      const std::string&,
      const nlohmann::detail::exception&) override {
    fail(kOp, "the header is not JSON: error at its byte ", position, ".");
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };

  std::string where() const {
    bool in_tensor = place_ == Place::tensor || place_ == Place::shape ||
                     place_ == Place::offsets;
    return in_tensor ? " in tensor " + in_quotes(entry_.name)
                     : " in the header";
  }

  bool unexpected(std::string_view what) const {
    fail(
        kOp,
        "the header has ",
        what,
        " as value of ",
        in_quotes(key_),
        where(),
        ". Expected dtype, shape and data_offsets of each tensor.");
  }

  void finish_tensor() {
    if (seen_.size() != 3 || offsets_.size() != 2) {
      fail(kOp, "dtype, shape or data_offsets missing", where(), ".");
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    file_.tensors.push_back(std::move(entry_));
  }

  SafetensorsFile& file_;
  Place place_ = Place::outside;
  std::string key_;
  std::unordered_set<std::string> names_;
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::vector<std::string> seen_;
};

uint64_t byte_size(const SafetensorsEntry& tensor) {
  std::optional<uint64_t> size = tensor.dtype.size();
  for (int32_t dim : tensor.shape) {
    size = size ? checked_mul(*size, static_cast<uint64_t>(dim)) : size;
  }
  if (!size) {
    fail(kOp, "tensor ", in_quotes(tensor.name), " is larger than 2^64 bytes.");
  }
  return *size;
}

/// Offsets must tile the data: sorted by them, each starts where the one
/// before ended, and the last ends with the file.
void check_layout(const SafetensorsFile& file, uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> order;
  for (const auto& tensor : file.tensors) {
    uint64_t expected = byte_size(tensor);
    if (tensor.begin > tensor.end || tensor.end - tensor.begin != expected) {
      fail(
          kOp,
          "data_offsets of tensor ",
          in_quotes(tensor.name),
          " do not match its shape: ",
          tensor.begin,
          " to ",
          tensor.end,
          ". Expected ",
          expected,
          " bytes.");
    }
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t next = 0;
  for (const auto* tensor : order) {
    if (tensor->begin != next) {
      fail(
          kOp,
          "overlap or hole before tensor ",
          in_quotes(tensor->name),
          ": it begins at ",
          tensor->begin,
          ". Expected ",
          next,
          ".");
    }
    next = tensor->end;
  }
  if (next != data_bytes) {
    fail(
        kOp,
        "the tensors end at ",
        next,
        ", but there are ",
        data_bytes,
        " bytes of data.");
  }
}

}  // namespace

SafetensorsFile read_safetensors(Reader& reader) {
  uint64_t start = reader.tell();
  uint64_t size = remaining_bytes(reader);
  uint64_t length = 0;
  if (size >= sizeof(length)) {
    reader.read(reinterpret_cast<char*>(&length), sizeof(length));
  }
  if (size < sizeof(length) || length > size - sizeof(length)) {
    fail(
        kOp,
        reader.label(),
        " is too short: it has ",
        size,
        " bytes, and its header should have ",
        length,
        ".");
  }
  if (length > kMaxHeader) {
    fail(
        kOp,
        "header of ",
        length,
        " bytes in ",
        reader.label(),
        ". Expected at most ",
        kMaxHeader,
        ".");
  }
  std::string header(length, '\0');
  reader.read(header.data(), length);
  if (header.empty() || header[0] != '{') {
    fail(kOp, "the header of ", reader.label(), " does not start with '{'.");
  }
  SafetensorsFile file;
  HeaderEvents events(file);
  json::sax_parse(header, &events);
  file.data_offset = start + sizeof(length) + length;
  check_layout(file, size - sizeof(length) - length);
  return file;
}

std::string safetensors_header(SafetensorsFile& file) {
  json header = json::object();
  if (!file.metadata.empty()) {
    header[kMetadata] = file.metadata;
  }
  uint64_t offset = 0;
  for (auto& tensor : file.tensors) {
    const auto* type = std::find_if(
        std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) {
          return t.dtype == tensor.dtype;
        });
    if (type == std::end(kTypes) || tensor.dtype == float64) {
      fail(
          "save_safetensors",
          "unsupported type: float64 of ",
          in_quotes(tensor.name),
          ". Expected any other type; use npz for float64.");
    }
    if (tensor.name == kMetadata) {
      fail("save_safetensors", "a tensor cannot be called __metadata__.");
    }
    tensor.begin = offset;
    offset += byte_size(tensor);
    tensor.end = offset;
    header[tensor.name] = {
        {"dtype", type->name},
        {"shape", tensor.shape},
        {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    fail("save_safetensors", "a name or metadata text is not valid UTF-8.");
  }
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data
  uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char*>(&length), sizeof(length));
  return text;
}

}  // namespace mlx::core::io
