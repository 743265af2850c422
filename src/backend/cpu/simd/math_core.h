// What the vector functions are built from: Horner polynomials, a way through
// double, and the double-precision kernels exp, log and log1p.
//
// Coefficients in the math_*.h files are minimax fits (Remez exchange) made for
// this code and rounded to the working type; the error of the fit stands beside
// each. Float functions aim at 1 ulp. The rarer ones compute in double with
// fits of 2^-34 to 2^-50, so that only the last rounding counts (0.51 ulp).
#pragma once

#include "backend/cpu/simd/vec_convert.h"

namespace mlx::core::cpu::MLX_ISA::math {

using F = Vec<float>;
using D = Vec<double>;
using I = Vec<int32_t>;

inline constexpr float kInfinity = __builtin_inff();

/// c0 + x * (c1 + x * (…)).
template <typename V>
MLX_INLINE V poly(V, typename V::Element c) {
  return V(c);
}
template <typename V, typename... Rest>
MLX_INLINE V poly(V x, typename V::Element c, Rest... rest) {
  return fma(poly(x, typename V::Element(rest)...), x, V(c));
}

/// Numbers that are the same for all lanes, each as a full vector in memory.
template <int N>
struct Constants {
  alignas(kVecBytes) float rows[N][F::size];

  constexpr explicit Constants(const float (&numbers)[N]) : rows() {
    for (int i = 0; i < N; ++i) {
      for (float& lane : rows[i]) {
        lane = numbers[i];
      }
    }
  }
};

/// a * b + c, where the instruction reads c from memory. Compilers load
/// constants into registers long before their use; where a chain holds four
/// vectors, too few are left, and a store to the stack costs as much as two
/// multiplications (Zen 3).
MLX_INLINE F fma(F a, F b, const float (&c)[F::size]) {
#if MLX_ISA_LEVEL >= 3
  asm("vfmadd213ps %2, %1, %0" : "+v"(a.v) : "v"(b.v), "m"(c));
  return a;
#else
  return a * b + F::load(c);
#endif
}

/// x as rounded so far: keeps the compiler from fusing the multiplication or
/// addition it came from with what follows.
MLX_INLINE F rounded(F x) {
  asm("" : "+v"(x.v));
  return x;
}

template <typename Fn>
MLX_INLINE F via_double(F x, Fn fn) {
  return narrow(fn(widen_low(x)), fn(widen_high(x)));
}
template <typename Fn>
MLX_INLINE F via_double(F a, F b, Fn fn) {
  return narrow(
      fn(widen_low(a), widen_low(b)), fn(widen_high(a), widen_high(b)));
}

/// A libm function per lane: float64 is accurate before it is fast.
template <typename Fn>
MLX_INLINE D per_lane(D x, Fn fn) {
  double lanes[D::size];
  x.store(lanes);
  for (double& lane : lanes) {
    lane = fn(lane);
  }
  return D::load(lanes);
}
template <typename Fn>
MLX_INLINE D per_lane(D a, D b, Fn fn) {
  double x[D::size], y[D::size];
  a.store(x);
  b.store(y);
  for (int i = 0; i < D::size; ++i) {
    x[i] = fn(x[i], y[i]);
  }
  return D::load(x);
}

#define MLX_DOUBLE_BY_LIBM(name, function)                    \
  MLX_INLINE D name(D x) {                                    \
    return per_lane(x, [](double v) { return function(v); }); \
  }

namespace detail {

/// exp(x) = scale * (1 + t) with t = expm1(r), |r| <= log(2) / 2.
struct ExpParts {
  D scale, t;
};

// x is clamped to ±200, far beyond float's range. Adding 1.5 * 2^52 rounds to
// an integer and leaves it in the lowest bits. Fit of t: 2^-39.
MLX_INLINE ExpParts exp_parts(D x) {
  x = min_native(D(200.0), max_native(D(-200.0), x));
  D shifted = x * D(0x1.71547652b82fep+0) + D(0x1.8p52);
  D n = shifted - D(0x1.8p52);
  D r = x - n * D(0x1.62e42fefa39efp-1);
  D q = poly(
      r,
      0x1.ffffffffea744p-2,
      0x1.5555557ec8b3ap-3,
      0x1.5555558b438a0p-5,
      0x1.1110a0d86b384p-7,
      0x1.6c16215a8e257p-10,
      0x1.a1879e7f02649p-13,
      0x1.a18cccc793295p-16);
  auto exponent =
      (bitcast<uint64_t>(shifted) << 52) + Vec<uint64_t>(0x3ff0000000000000u);
  return {bitcast<double>(exponent), fma(r * r, q, r)};
}

/// log(m * 2^e) for m = 1 + f in [sqrt(1/2), sqrt(2)), by 2 atanh(f / (2 + f)).
/// Fit: 2^-52.
MLX_INLINE D log_sum(D f, D e) {
  D s = f / (D(2.0) + f);
  D z = s * s;
  D p = poly(
      z,
      0x1.5555555553935p-1,
      0x1.999999a2a0557p-2,
      0x1.2492416eddbb2p-2,
      0x1.c7227d52d1833p-3,
      0x1.732b72f916d91p-3,
      0x1.58804670e9286p-3);
  return fma(e, D(0x1.62e42fefa39efp-1), fma(s * z, p, s + s));
}

struct LogParts {
  D f, e;
};

/// Splits a positive normal number for log_sum.
MLX_INLINE LogParts log_parts(D x) {
  using U = Vec<uint64_t>;
  U bits = bitcast<uint64_t>(x);
  // Moves the border between exponents from 1 to sqrt(1/2).
  U e = (bits + U(0x3ff0000000000000u - 0x3fe6a09e667f3bcdu)) >> 52;
  D m = bitcast<double>(bits - (e << 52) + U(0x3ff0000000000000u));
  // Small integers become doubles in the fraction of 2^52.
  D count = bitcast<double>(e | U(0x4330000000000000u)) - D(0x1p52 + 1023.0);
  return {m - D(1.0), count};
}

/// The limits of log at zero, infinity and beyond its domain.
MLX_INLINE D log_limits(D x, D result) {
  result = select(x == D(__builtin_inf()), x, result);
  result = select(x == D(0.0), D(-__builtin_inf()), result);
  return select(!(x >= D(0.0)), D(__builtin_nan("")), result);
}

MLX_INLINE D exp(D x) {
  ExpParts p = exp_parts(x);
  return fma(p.scale, p.t, p.scale);
}
MLX_INLINE D expm1(D x) {
  ExpParts p = exp_parts(x);
  return fma(p.scale, p.t, p.scale - D(1.0));
}
/// For values that came from float (normal doubles).
MLX_INLINE D log(D x) {
  LogParts p = log_parts(x);
  return log_limits(x, log_sum(p.f, p.e));
}
/// Near zero the fraction is x itself, which keeps the relative precision.
MLX_INLINE D log1p(D x) {
  D w = D(1.0) + x;
  LogParts p = log_parts(w);
  auto near = abs(x) < D(0.29);
  return log_limits(
      w, log_sum(select(near, x, p.f), select(near, D(0.0), p.e)));
}

}  // namespace detail

}  // namespace mlx::core::cpu::MLX_ISA::math
