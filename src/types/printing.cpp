// Text forms of types, devices and streams; number formatting.
#include <iomanip>

#include "mlx/dtype_utils.h"
#include "mlx/utils.h"
#include "mlx/version.h"

namespace mlx::core {

const char* version() {
#define MLX_TEXT_OF(x) #x
#define MLX_TEXT(x) MLX_TEXT_OF(x)
  return MLX_TEXT(MLX_VERSION_MAJOR) "." MLX_TEXT(
      MLX_VERSION_MINOR) "." MLX_TEXT(MLX_VERSION_PATCH);
#undef MLX_TEXT
#undef MLX_TEXT_OF
}

const char* dtype_to_string(Dtype arg) {
  static constexpr const char* kNames[kNumDtypes] = {
      "bool",
      "uint8",
      "uint16",
      "uint32",
      "uint64",
      "int8",
      "int16",
      "int32",
      "int64",
      "float16",
      "float32",
      "float64",
      "bfloat16",
      "complex64"};
  return kNames[static_cast<int>(arg.val())];
}

std::ostream& operator<<(std::ostream& os, const Dtype& d) {
  return os << dtype_to_string(d);
}

std::ostream& operator<<(std::ostream& os, const Dtype::Kind& k) {
  static constexpr char kLetters[] = {'b', 'u', 'i', 'f', 'c', 'V'};
  return os << kLetters[static_cast<int>(k)];
}

std::ostream& operator<<(std::ostream& os, const Device& d) {
  return os << "Device(" << (d.type == Device::cpu ? "cpu" : "gpu") << ", "
            << d.index << ")";
}

std::ostream& operator<<(std::ostream& os, const Stream& s) {
  return os << "Stream(" << s.device << ", " << s.index << ")";
}

void PrintFormatter::print(std::ostream& os, bool val) {
  if (capitalize_bool) {
    os << (val ? "True" : "False");
  } else {
    os << (val ? "true" : "false");
  }
}

void PrintFormatter::print(std::ostream& os, double val) {
  if (format_options.precision < 0) {
    os << val;
    return;
  }
  auto flags = os.flags();
  auto precision = os.precision();
  os << std::fixed << std::setprecision(format_options.precision) << val;
  os.flags(flags);
  os.precision(precision);
}

void PrintFormatter::print(std::ostream& os, complex64_t val) {
  print(os, val.real());
  if (val.imag() >= 0 || std::isnan(val.imag())) {
    os << "+";
  }
  print(os, val.imag());
  os << "j";
}

PrintFormatter& get_global_formatter() {
  static PrintFormatter formatter;
  return formatter;
}

void set_printoptions(PrintOptions options) {
  get_global_formatter().format_options = options;
}

}  // namespace mlx::core
