// erf of two vectors side by side, for loops that have four in registers: the
// bits of math::erf, which two calls would give too. What bounds such a loop is
// how far ahead the processor sees, some 128 results of vectors on Zen 3: steps
// of both vectors in turn, constants that take no registers and nothing that
// goes to the stack. Compilers see to none of that here; hence one statement of
// assembler, for AVX2, in 13 registers. In a loop that does a whole gelu a
// vector takes 13.5 cycles, with two calls 18.
#pragma once

#include "backend/cpu/simd/math_erf.h"

namespace mlx::core::cpu::MLX_ISA::math {

#if MLX_ISA_LEVEL == 3

namespace detail {

/// What erf is made of, row by row: below, above and the rest, in the order in
/// which the statement counts them.
struct ErfRows {
  decltype(kErfBelow) below = kErfBelow;
  decltype(kErfAbove) above = kErfAbove;
  Constants<5> rest{
      {-1.0f,
       kErfBorder,
       kErfSpan,
       __builtin_bit_cast(float, 0x7fffffff),
       -0.0f}};
};
inline constexpr ErfRows kErfRows;

}  // namespace detail

// Steps for both vectors, named by a letter: row n of the constants into a
// register; an instruction on registers, or with a row; a = a * by + row; the
// same for a = the leading coefficient.
#define MLX_ROW(row) "32*" #row "(%[rows])"
#define MLX_LOAD(row, to) "vmovaps " MLX_ROW(row) ", %[" #to "]\n\t"
#define MLX_BOTH(op, b, a, to)                                            \
#op " %[" #b "0], %[" #a "0], %[" #to "0]\n\t" #op " %[" #b "1], %[" #a \
      "1], %[" #to "1]\n\t"
#define MLX_WITH(op, row, a, to)                           \
#op " " MLX_ROW(row) ", %[" #a "0], %[" #to "0]\n\t" #op \
                       " " MLX_ROW(row) ", %[" #a "1], %[" #to "1]\n\t"
#define MLX_STEP(a, by, row) MLX_WITH(vfmadd213ps, row, by, a)
#define MLX_LEAD(a, by, lead, row) \
  MLX_LOAD(lead, a##0) MLX_LOAD(lead, a##1) MLX_STEP(a, by, row)

/// x and y become erf of them.
MLX_INLINE void erf_pair(F& x, F& y) {
  F p0, p1, w0, w1, t0, t1, e0, e1, o0, o1, spare;
  // p: the form below, w: x^2, then t^2, t: how far above the border, e and o:
  // even and odd powers of the form above.
  asm(MLX_BOTH(vmulps, x, x, w)          //
      MLX_LEAD(p, w, 6, 5)               //
      MLX_STEP(p, w, 4)                  //
      MLX_STEP(p, w, 3)                  //
      MLX_STEP(p, w, 2)                  //
      MLX_STEP(p, w, 1)                  //
      MLX_STEP(p, w, 0)                  //
      MLX_BOTH(vfmadd213ps, x, x, p)     // x p + x
      MLX_WITH(vandps, 18, x, t)         //
      MLX_WITH(vsubps, 16, t, t)         //
      MLX_LOAD(17, spare)                 // the span first: NaN stays
      "vminps %[t0], %[spare], %[t0]\n\t"
      "vminps %[t1], %[spare], %[t1]\n\t"  //
      MLX_WITH(vandnps, 19, x, x)        // the sign of -x
      MLX_BOTH(vmulps, t, t, w)          //
      MLX_LEAD(e, w, 13, 11)             //
      MLX_LEAD(o, w, 14, 12)             //
      MLX_STEP(e, w, 9)                  //
      MLX_STEP(o, w, 10)                 //
      MLX_STEP(e, w, 7)                  //
      MLX_STEP(o, w, 8)                  //
      MLX_BOTH(vfmadd213ps, e, t, o)     // q = o t + e
      MLX_BOTH(vmulps, o, o, o)          //
      MLX_LOAD(15, spare)                 // -erf(|x|) = q^4 - 1
      "vfmadd213ps %[spare], %[o0], %[o0]\n\t"
      "vfmadd213ps %[spare], %[o1], %[o1]\n\t"  //
      MLX_BOTH(vxorps, x, o, o)
      "vblendvps %[t0], %[p0], %[o0], %[x0]\n\t"
      "vblendvps %[t1], %[p1], %[o1], %[x1]"
      : [x0] "+&x"(x.v),
        [x1] "+&x"(y.v),
        [p0] "=&x"(p0.v),
        [p1] "=&x"(p1.v),
        [w0] "=&x"(w0.v),
        [w1] "=&x"(w1.v),
        [t0] "=&x"(t0.v),
        [t1] "=&x"(t1.v),
        [e0] "=&x"(e0.v),
        [e1] "=&x"(e1.v),
        [o0] "=&x"(o0.v),
        [o1] "=&x"(o1.v),
        [spare] "=&x"(spare.v)
      : [rows] "r"(&detail::kErfRows), "m"(detail::kErfRows));
}

#undef MLX_LEAD
#undef MLX_STEP
#undef MLX_WITH
#undef MLX_BOTH
#undef MLX_LOAD
#undef MLX_ROW

#else

MLX_INLINE void erf_pair(F& x, F& y) {
  x = erf(x);
  y = erf(y);
}

#endif

}  // namespace mlx::core::cpu::MLX_ISA::math
