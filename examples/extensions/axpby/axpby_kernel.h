// Between axpby.cpp, which knows MLX, and axpby.cu, which knows CUDA.
#pragma once

#include <cstddef>

struct CUstream_st;

namespace my_ext {

/// Addresses on the device of `size` elements that lie one after the other.
struct AxpbyArguments {
  const void* x;
  const void* y;
  void* out;
  size_t size;
  float alpha;
  float beta;
};

void launch_float32(const AxpbyArguments& arguments, CUstream_st* stream);
void launch_float16(const AxpbyArguments& arguments, CUstream_st* stream);
void launch_bfloat16(const AxpbyArguments& arguments, CUstream_st* stream);
void launch_float64(const AxpbyArguments& arguments, CUstream_st* stream);
void launch_complex64(const AxpbyArguments& arguments, CUstream_st* stream);

}  // namespace my_ext
