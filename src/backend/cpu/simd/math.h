// All vector functions: namespace math of the level, for Vec<float> (bounds in
// ulp stated with each), Vec<double> (libm per lane), the integer vectors and
// bool where they make sense, and complex64_t one by one.
#pragma once

#include "backend/cpu/simd/math_arith.h"
#include "backend/cpu/simd/math_complex.h"
#include "backend/cpu/simd/math_erf.h"
#include "backend/cpu/simd/math_exp.h"
#include "backend/cpu/simd/math_log.h"
#include "backend/cpu/simd/math_trig.h"
