// Element types: identity, categories, promotion.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include "mlx/api.h"
#include "mlx/types/complex.h"
#include "mlx/types/half_types.h"

namespace mlx::core {

/// An element type. `Val` order is the order used in pickles and hashes.
struct MLX_API Dtype {
  enum class Val {
    bool_,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    float32,
    float64,
    bfloat16,
    complex64,
  };

  /// NumPy's kind letters; V stands for bfloat16, which NumPy lacks.
  enum class Kind { b, u, i, f, c, V };

  enum class Category {
    complexfloating,
    floating,
    inexact,
    signedinteger,
    unsignedinteger,
    integer,
    number,
    generic,
  };

  constexpr explicit Dtype(Val val, uint8_t size) : val_(val), size_(size) {}
  constexpr operator Val() const { return val_; }
  constexpr Val val() const { return val_; }
  /// Bytes of one element.
  constexpr uint8_t size() const { return size_; }

 private:
  Val val_;
  uint8_t size_;
};

inline constexpr Dtype bool_{Dtype::Val::bool_, sizeof(bool)};
inline constexpr Dtype uint8{Dtype::Val::uint8, sizeof(uint8_t)};
inline constexpr Dtype uint16{Dtype::Val::uint16, sizeof(uint16_t)};
inline constexpr Dtype uint32{Dtype::Val::uint32, sizeof(uint32_t)};
inline constexpr Dtype uint64{Dtype::Val::uint64, sizeof(uint64_t)};
inline constexpr Dtype int8{Dtype::Val::int8, sizeof(int8_t)};
inline constexpr Dtype int16{Dtype::Val::int16, sizeof(int16_t)};
inline constexpr Dtype int32{Dtype::Val::int32, sizeof(int32_t)};
inline constexpr Dtype int64{Dtype::Val::int64, sizeof(int64_t)};
inline constexpr Dtype float16{Dtype::Val::float16, sizeof(uint16_t)};
inline constexpr Dtype float32{Dtype::Val::float32, sizeof(float)};
inline constexpr Dtype float64{Dtype::Val::float64, sizeof(double)};
inline constexpr Dtype bfloat16{Dtype::Val::bfloat16, sizeof(uint16_t)};
inline constexpr Dtype complex64{Dtype::Val::complex64, sizeof(complex64_t)};
inline constexpr int kNumDtypes = 14;

inline constexpr Dtype::Category complexfloating =
    Dtype::Category::complexfloating;
inline constexpr Dtype::Category floating = Dtype::Category::floating;
inline constexpr Dtype::Category inexact = Dtype::Category::inexact;
inline constexpr Dtype::Category signedinteger = Dtype::Category::signedinteger;
inline constexpr Dtype::Category unsignedinteger =
    Dtype::Category::unsignedinteger;
inline constexpr Dtype::Category integer = Dtype::Category::integer;
inline constexpr Dtype::Category number = Dtype::Category::number;
inline constexpr Dtype::Category generic = Dtype::Category::generic;

/// Whether `a` lies within `b`: a type within a type only when equal, a type
/// within a category, a category within a category.
MLX_API bool issubdtype(const Dtype& a, const Dtype& b);
MLX_API bool issubdtype(const Dtype::Category& a, const Dtype& b);
MLX_API bool issubdtype(const Dtype& a, const Dtype::Category& b);
MLX_API bool issubdtype(const Dtype::Category& a, const Dtype::Category& b);

/// The smallest type that both types are promoted to; symmetric.
MLX_API Dtype promote_types(const Dtype& t1, const Dtype& t2);

inline uint8_t size_of(const Dtype& t) {
  return t.size();
}

MLX_API Dtype::Kind kindof(const Dtype& t);

/// The element type of a C++ type. double maps to float32, as in Python.
template <typename T>
struct TypeToDtype {
  operator Dtype();
};

#define MLX_TYPE_TO_DTYPE(type, value)         \
  template <>                                  \
  inline TypeToDtype<type>::operator Dtype() { \
    return value;                              \
  }
MLX_TYPE_TO_DTYPE(bool, bool_)
MLX_TYPE_TO_DTYPE(uint8_t, uint8)
MLX_TYPE_TO_DTYPE(uint16_t, uint16)
MLX_TYPE_TO_DTYPE(uint32_t, uint32)
MLX_TYPE_TO_DTYPE(uint64_t, uint64)
MLX_TYPE_TO_DTYPE(int8_t, int8)
MLX_TYPE_TO_DTYPE(int16_t, int16)
MLX_TYPE_TO_DTYPE(int32_t, int32)
MLX_TYPE_TO_DTYPE(int64_t, int64)
MLX_TYPE_TO_DTYPE(float16_t, float16)
MLX_TYPE_TO_DTYPE(float, float32)
MLX_TYPE_TO_DTYPE(double, float32)
MLX_TYPE_TO_DTYPE(bfloat16_t, bfloat16)
MLX_TYPE_TO_DTYPE(complex64_t, complex64)
MLX_TYPE_TO_DTYPE(std::complex<float>, complex64)
#undef MLX_TYPE_TO_DTYPE

}  // namespace mlx::core
