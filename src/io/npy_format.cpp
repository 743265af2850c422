// Reads and writes .npy headers. The dict is parsed by hand: it holds three
// known keys, and nothing in it is evaluated.
#include "io/npy_format.h"

#include <cctype>
#include <limits>

#include "io/bytes.h"
#include "types/error.h"

namespace mlx::core::io {

namespace {

constexpr std::string_view kOp = "load";
constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr uint64_t kMaxHeader = 1 << 24;
// Numpy's alignment of the data.
constexpr size_t kAlignment = 64;

struct TypeCode {
  std::string_view code;
  Dtype dtype;
};
// bfloat16 goes as V2, two bytes without meaning, which is how ml_dtypes'
// bfloat16 looks to NumPy too.
const TypeCode kTypes[] = {
    {"b1", bool_},
    {"u1", uint8},
    {"u2", uint16},
    {"u4", uint32},
    {"u8", uint64},
    {"i1", int8},
    {"i2", int16},
    {"i4", int32},
    {"i8", int64},
    {"f2", float16},
    {"f4", float32},
    {"f8", float64},
    {"V2", bfloat16},
    {"c8", complex64},
};

/// The text of the dict, taken apart token by token.
class DictParser {
 public:
  DictParser(const std::string& text, const std::string& label)
      : text_(text), label_(label) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = quoted_text();
      expect(':');
      if (key == "descr" && !have_descr) {
        have_descr = true;
        parse_descr(header);
      } else if (key == "fortran_order" && !have_order) {
        have_order = true;
        header.fortran_order = truth();
      } else if (key == "shape" && !have_shape) {
        have_shape = true;
        header.shape = parse_shape();
      } else {
        bad("unknown or repeated key " + in_quotes(key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) {
      bad("text after the dict");
    }
    if (!have_descr || !have_order || !have_shape) {
      bad("descr, fortran_order or shape missing");
    }
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail(
        kOp,
        "bad .npy header in ",
        label_,
        ": ",
        what,
        ". Expected a dict of descr, fortran_order and shape.");
  }

  void skip_space() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }
  bool accept(char c) {
    skip_space();
    bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) {
      bad(std::string("no '") + c + "' at byte " + std::to_string(at_));
    }
  }

  std::string quoted_text() {
    char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') {
      expect('"');
    }
    size_t end = text_.find(quote, at_);
    if (end == std::string::npos) {
      bad("open string");
    }
    std::string result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }

  bool truth() {
    skip_space();
    for (std::string_view word : {"True", "False"}) {
      if (text_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return word == "True";
      }
    }
    bad("fortran_order is neither True nor False");
  }

  void parse_descr(NpyHeader& header) {
    if (accept('[') || accept('(')) {
      fail(kOp, "structured types are not supported: ", label_, ".");
    }
    std::string descr = quoted_text();
    std::string_view code = descr;
    char order = '|';
    if (!code.empty() &&
        std::string_view("<>|=").find(code[0]) != std::string_view::npos) {
      order = code[0];
      code.remove_prefix(1);
    }
    for (const auto& type : kTypes) {
      if (code == type.code) {
        header.dtype = type.dtype;
        header.swapped = order == '>' && type.dtype.size() > 1;
        return;
      }
    }
    fail(
        kOp,
        "unsupported type: ",
        in_quotes(descr),
        " in ",
        label_,
        ". Expected bool, integers, float16 to float64, complex64 or V2 "
        "(bfloat16).");
  }

  int32_t dimension() {
    skip_space();
    constexpr uint64_t kMaxDim = std::numeric_limits<int32_t>::max();
    uint64_t value = 0;
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + static_cast<uint64_t>(text_[at_++] - '0');
      if (value > kMaxDim) {
        bad("dimension above 2^31 - 1");
      }
    }
    if (at_ == begin) {
      bad("no number in shape at byte " + std::to_string(at_));
    }
    if (at_ < text_.size() && text_[at_] == 'L') {
      ++at_;  // written by Python 2
    }
    return static_cast<int32_t>(value);
  }

  std::vector<int32_t> parse_shape() {
    std::vector<int32_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(dimension());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  const std::string& text_;
  std::string label_;
  size_t at_ = 0;
};

uint64_t header_length(ByteReader& in, const std::string& label) {
  if (in.left() < kMagic.size() + 2 ||
      in.text(kMagic.size(), "magic") != kMagic) {
    fail(kOp, label, " is not a .npy file: it does not start as one.");
  }
  auto major = in.number<uint8_t>("version");
  auto minor = in.number<uint8_t>("version");
  if (major < 1 || major > 3 || minor != 0) {
    fail(
        kOp,
        "unsupported .npy version: ",
        int(major),
        ".",
        int(minor),
        " in ",
        label,
        ". Expected 1.0, 2.0 or 3.0.");
  }
  uint64_t length = major == 1 ? in.number<uint16_t>("header length")
                               : in.number<uint32_t>("header length");
  if (length > kMaxHeader) {
    fail(
        kOp,
        ".npy header of ",
        length,
        " bytes in ",
        label,
        ". Expected at most ",
        kMaxHeader,
        ".");
  }
  return length;
}

}  // namespace

NpyHeader read_npy(Reader& reader, std::string* missing) {
  uint64_t start = reader.tell();
  uint64_t size = remaining_bytes(reader);
  ByteReader in(kOp, reader, size);
  std::string text = in.text(header_length(in, reader.label()), "header");
  NpyHeader header = DictParser(text, reader.label()).parse();
  header.data_offset = start + in.position();

  std::optional<uint64_t> bytes = header.dtype.size();
  for (int32_t dim : header.shape) {
    bytes = bytes ? checked_mul(*bytes, static_cast<uint64_t>(dim)) : bytes;
  }
  if (!bytes || *bytes > in.left()) {
    std::string what = mlx::core::message(
        kOp,
        reader.label(),
        " is too short for its shape: it has ",
        in.left(),
        " bytes of data",
        bytes ? ", and needs " + std::to_string(*bytes) : "",
        ".");
    if (!missing || !bytes) {
      throw std::runtime_error(what);
    }
    *missing = what;
  }
  header.byte_size = *bytes;
  return header;
}

std::string npy_header(const NpyHeader& header) {
  std::string code;
  for (const auto& type : kTypes) {
    if (type.dtype == header.dtype) {
      code = type.code;
    }
  }
  bool ordered = header.dtype.size() > 1;
  std::string dict =
      "{'descr': '" + std::string(ordered ? "<" : "|") + code +
      "', 'fortran_order': " + (header.fortran_order ? "True" : "False") +
      ", 'shape': (";
  for (size_t i = 0; i < header.shape.size(); ++i) {
    dict += (i == 0 ? "" : " ") + std::to_string(header.shape[i]) + ",";
  }
  if (header.shape.size() > 1) {
    dict.pop_back();
  }
  dict += "), }";

  // Padded with spaces and one newline so that the data is aligned.
  size_t prefix = kMagic.size() + 2 + 2;
  auto padded = [&] {
    size_t total = prefix + dict.size() + 1;
    return (total + kAlignment - 1) / kAlignment * kAlignment - prefix;
  };
  bool version2 = padded() > std::numeric_limits<uint16_t>::max();
  prefix += version2 ? 2 : 0;
  uint32_t length = static_cast<uint32_t>(padded());
  dict.append(length - dict.size() - 1, ' ');
  std::string result(kMagic);
  result += {version2 ? '\2' : '\1', '\0'};
  result.append(reinterpret_cast<const char*>(&length), version2 ? 4 : 2);
  return result + dict + "\n";
}

}  // namespace mlx::core::io
