// Stream arguments, numeric limits, shape rules.
#include "mlx/utils.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "graph/stream_scope.h"
#include "types/error.h"

namespace mlx::core {

Stream to_stream(StreamOrDevice s) {
  if (std::holds_alternative<std::monostate>(s)) {
    const Stream* scoped = detail::StreamScope::current();
    return scoped ? *scoped : default_stream(default_device());
  }
  return to_stream(s, default_device());
}

Stream to_stream(StreamOrDevice s, Device default_) {
  struct Visitor {
    Device default_;
    Stream operator()(std::monostate) { return default_stream(default_); }
    Stream operator()(Stream s) { return s; }
    Stream operator()(ThreadLocalStream s) {
      return stream_from_thread_local_stream(s);
    }
    Stream operator()(Device d) { return default_stream(d); }
    Stream operator()(Device::DeviceType type) {
      return default_stream(Device(type));
    }
  };
  return std::visit(Visitor{default_}, s);
}

StreamContext::StreamContext(StreamOrDevice s)
    : previous_device_(default_device()),
      previous_stream_(default_stream(default_device())) {
  if (std::holds_alternative<std::monostate>(s)) {
    throw std::runtime_error(
        "[StreamContext] no stream or device given. Expected one of them.");
  }
  Stream stream = to_stream(s);
  previous_stream_ = default_stream(stream.device);
  set_default_device(stream.device);
  set_default_stream(stream);
}

StreamContext::~StreamContext() {
  set_default_stream(previous_stream_);
  set_default_device(previous_device_);
}

bool is_main_thread() {
  static const std::thread::id loader = std::this_thread::get_id();
  return std::this_thread::get_id() == loader;
}

finfo::finfo(Dtype dtype_) : dtype(dtype_ == complex64 ? float32 : dtype_) {
  auto set = [this](int bits_, double max_, double eps_, double normal) {
    bits = bits_;
    max = max_;
    min = -max_;
    eps = eps_;
    smallest_normal = normal;
  };
  switch (dtype.val()) {
    case Dtype::Val::float16:
      set(16, 65504, 0x1p-10, 0x1p-14);
      break;
    case Dtype::Val::bfloat16:
      set(16, 0x1.fep127, 0x1p-7, 0x1p-126);
      break;
    case Dtype::Val::float32:
      set(32, std::numeric_limits<float>::max(), 0x1p-23, 0x1p-126);
      break;
    case Dtype::Val::float64:
      set(64, std::numeric_limits<double>::max(), 0x1p-52, 0x1p-1022);
      break;
    default:
      invalid(
          "finfo",
          "not a floating type: ",
          dtype_,
          ". Expected float16, bfloat16, float32, float64 or complex64.");
  }
}

iinfo::iinfo(Dtype dtype_) : dtype(dtype_) {
  if (!issubdtype(dtype, integer)) {
    invalid("iinfo", "not an integer type: ", dtype, ". Expected one.");
  }
  int bits = 8 * dtype.size();
  bool is_signed = issubdtype(dtype, signedinteger);
  uint64_t all = ~uint64_t{0} >> (64 - bits);
  max = is_signed ? all >> 1 : all;
  min = is_signed ? -static_cast<int64_t>(max) - 1 : 0;
}

Dtype result_type(const std::vector<array>& arrays) {
  Dtype type = bool_;
  for (const array& a : arrays) {
    type = promote_types(type, a.dtype());
  }
  return type;
}

Shape broadcast_shapes(const Shape& s1, const Shape& s2) {
  const Shape& longer = s1.size() >= s2.size() ? s1 : s2;
  const Shape& shorter = s1.size() >= s2.size() ? s2 : s1;
  Shape out = longer;
  size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    ShapeElem a = longer[i + shift];
    ShapeElem b = shorter[i];
    if (a != b && a != 1 && b != 1) {
      invalid(
          "broadcast_shapes",
          "shapes do not broadcast: ",
          s1,
          " and ",
          s2,
          ". Each axis must be equal or 1.");
    }
    out[i + shift] = a == 1 ? b : a;
  }
  return out;
}

int normalize_axis_index(int axis, int ndim, const std::string& msg_prefix) {
  if (axis < -ndim || axis >= ndim) {
    std::ostringstream os;
    os << msg_prefix << "Axis " << axis << " is out of bounds for array with "
       << ndim << " dimensions.";
    throw AxisError(os.str());
  }
  return axis < 0 ? axis + ndim : axis;
}

namespace env {

int get_var(const char* name, int default_value) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : default_value;
}

std::string get_var(const char* name, const char* default_value) {
  const char* text = std::getenv(name);
  return text ? text : default_value;
}

}  // namespace env

}  // namespace mlx::core
