// Small public helpers: stream arguments, printing, numeric limits, shapes.
#pragma once

#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/device.h"
#include "mlx/dtype.h"
#include "mlx/stream.h"

namespace mlx::core {

/// The last argument of every operation: nothing (the default stream of the
/// default device), a stream, or a device (its default stream).
using StreamOrDevice = std::variant<
    std::monostate,
    Stream,
    ThreadLocalStream,
    Device,
    Device::DeviceType>;

MLX_API Stream to_stream(StreamOrDevice s);
MLX_API Stream to_stream(StreamOrDevice s, Device default_);

/// Sets default device and stream for its lifetime.
struct MLX_API StreamContext {
  explicit StreamContext(StreamOrDevice s);
  ~StreamContext();
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

 private:
  Device previous_device_;
  Stream previous_stream_;
};

struct MLX_API PrintOptions {
  /// Digits after the point; -1 for six significant digits.
  int precision{-1};
};

struct MLX_API PrintFormatter {
  void print(std::ostream& os, bool val);
  void print(std::ostream& os, int16_t val) { os << val; }
  void print(std::ostream& os, uint16_t val) { os << val; }
  void print(std::ostream& os, int32_t val) { os << val; }
  void print(std::ostream& os, uint32_t val) { os << val; }
  void print(std::ostream& os, int64_t val) { os << val; }
  void print(std::ostream& os, uint64_t val) { os << val; }
  void print(std::ostream& os, int8_t val) { os << static_cast<int>(val); }
  void print(std::ostream& os, uint8_t val) { os << static_cast<int>(val); }
  void print(std::ostream& os, float16_t val) { print(os, float(val)); }
  void print(std::ostream& os, bfloat16_t val) { print(os, float(val)); }
  void print(std::ostream& os, float val) { print(os, double(val)); }
  void print(std::ostream& os, double val);
  void print(std::ostream& os, complex64_t val);

  bool capitalize_bool{false};
  PrintOptions format_options;
};

MLX_API void set_printoptions(PrintOptions options);
MLX_API PrintFormatter& get_global_formatter();

/// Whether the caller is the thread that loaded the library.
MLX_API bool is_main_thread();

/// Limits of an inexact type; complex64 reports as float32.
struct MLX_API finfo {
  explicit finfo(Dtype dtype);
  Dtype dtype;
  int bits;
  double min;
  double max;
  double eps;
  double smallest_normal;
};

/// Limits of an integer type.
struct MLX_API iinfo {
  explicit iinfo(Dtype dtype);
  Dtype dtype;
  int64_t min;
  uint64_t max;
};

inline Dtype result_type(const array& a, const array& b) {
  return promote_types(a.dtype(), b.dtype());
}
inline Dtype result_type(const array& a, const array& b, const array& c) {
  return promote_types(result_type(a, b), c.dtype());
}
MLX_API Dtype result_type(const std::vector<array>& arrays);

/// NumPy's rule. Raises std::invalid_argument naming both shapes.
MLX_API Shape broadcast_shapes(const Shape& s1, const Shape& s2);

/// `dim` as a dimension. Raises std::overflow_error past 2^31 - 1.
template <typename T>
inline ShapeElem safe_cast(T dim, std::string_view op = "") {
  constexpr auto kMax = std::numeric_limits<ShapeElem>::max();
  constexpr auto kMin = std::numeric_limits<ShapeElem>::min();
  bool high = std::is_unsigned_v<T> ? static_cast<uint64_t>(dim) > kMax
                                    : static_cast<int64_t>(dim) > kMax;
  if (high || (!std::is_unsigned_v<T> && static_cast<int64_t>(dim) < kMin)) {
    throw std::overflow_error(
        "[" + std::string(op) + "] dimension too large: " +
        std::to_string(dim) + ". A dimension is at most 2147483647.");
  }
  return static_cast<ShapeElem>(dim);
}

/// `axis` counted from 0. Raises AxisError when it is not in [-ndim, ndim).
MLX_API int normalize_axis_index(
    int axis, int ndim, const std::string& msg_prefix = "");

MLX_API std::ostream& operator<<(std::ostream& os, const Device& d);
MLX_API std::ostream& operator<<(std::ostream& os, const Stream& s);
MLX_API std::ostream& operator<<(std::ostream& os, const Dtype& d);
MLX_API std::ostream& operator<<(std::ostream& os, const Dtype::Kind& k);
MLX_API std::ostream& operator<<(std::ostream& os, array a);
inline std::ostream& operator<<(std::ostream& os, const complex64_t& v) {
  return os << v.real() << (v.imag() >= 0 ? "+" : "") << v.imag() << "j";
}
inline std::ostream& operator<<(std::ostream& os, const float16_t& v) {
  return os << static_cast<float>(v);
}
inline std::ostream& operator<<(std::ostream& os, const bfloat16_t& v) {
  return os << static_cast<float>(v);
}
template <typename Vec, typename = std::enable_if_t<is_vector_v<Vec>>>
inline std::ostream& operator<<(std::ostream& os, const Vec& v) {
  os << "(";
  const char* separator = "";
  for (const auto& e : v) {
    os << separator << e;
    separator = ",";
  }
  return os << ")";
}

inline bool is_power_of_2(int n) {
  return n > 0 && (n & (n - 1)) == 0;
}
inline int next_power_of_2(int n) {
  int p = 1;
  while (p < n) {
    p *= 2;
  }
  return p;
}

namespace env {

/// The environment variable as a number or text, or the default.
MLX_API int get_var(const char* name, int default_value);
MLX_API std::string get_var(const char* name, const char* default_value);

inline int bfs_max_width() {
  return get_var("MLX_BFS_MAX_WIDTH", 20);
}
inline int max_ops_per_buffer(int default_value) {
  return get_var("MLX_MAX_OPS_PER_BUFFER", default_value);
}
inline int max_mb_per_buffer(int default_value) {
  return get_var("MLX_MAX_MB_PER_BUFFER", default_value);
}
inline bool enable_tf32() {
  return get_var("MLX_ENABLE_TF32", 0) != 0;
}
inline int nccl_timeout(int default_value) {
  return get_var("MLX_NCCL_TIMEOUT", default_value);
}

}  // namespace env

}  // namespace mlx::core
