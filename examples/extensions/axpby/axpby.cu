// One pass over x and y. Each thread moves 16 bytes at a time where addresses
// allow it: what bounds the kernel is memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "axpby/axpby_kernel.h"

namespace my_ext {

namespace {

__device__ float axpby(float a, float x, float b, float y) {
  return a * x + b * y;
}
__device__ double axpby(float a, double x, float b, double y) {
  return a * x + b * y;
}
__device__ float2 axpby(float a, float2 x, float b, float2 y) {
  return make_float2(axpby(a, x.x, b, y.x), axpby(a, x.y, b, y.y));
}
__device__ __half axpby(float a, __half x, float b, __half y) {
  return __float2half(axpby(a, __half2float(x), b, __half2float(y)));
}
__device__ __nv_bfloat16
axpby(float a, __nv_bfloat16 x, float b, __nv_bfloat16 y) {
  return __float2bfloat16(
      axpby(a, __bfloat162float(x), b, __bfloat162float(y)));
}

template <typename T, int count>
struct alignas(sizeof(T) * count) Pack {
  T values[count];
};

template <typename T, int count>
__global__ void axpby_packs(
    const Pack<T, count>* x,
    const Pack<T, count>* y,
    Pack<T, count>* out,
    size_t packs,
    float alpha,
    float beta) {
  size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < packs) {
    Pack<T, count> a = x[i];
    Pack<T, count> b = y[i];
#pragma unroll
    for (int k = 0; k < count; ++k) {
      a.values[k] = axpby(alpha, a.values[k], beta, b.values[k]);
    }
    out[i] = a;
  }
}

template <typename T, int count>
void launch_packs(
    const AxpbyArguments& given, size_t first, size_t packs, cudaStream_t s) {
  constexpr int threads = 256;
  if (packs == 0) {
    return;
  }
  using P = Pack<T, count>;
  axpby_packs<T, count><<<(packs + threads - 1) / threads, threads, 0, s>>>(
      reinterpret_cast<const P*>(static_cast<const T*>(given.x) + first),
      reinterpret_cast<const P*>(static_cast<const T*>(given.y) + first),
      reinterpret_cast<P*>(static_cast<T*>(given.out) + first),
      packs,
      given.alpha,
      given.beta);
  cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) {
    throw std::runtime_error(
        std::string("[Axpby] a launch failed: ") + cudaGetErrorString(status) +
        ".");
  }
}

template <typename T>
void launch(const AxpbyArguments& given, cudaStream_t stream) {
  constexpr int count = 16 / sizeof(T);
  auto bits = reinterpret_cast<uintptr_t>(given.x) |
              reinterpret_cast<uintptr_t>(given.y) |
              reinterpret_cast<uintptr_t>(given.out);
  size_t packs = bits % 16 == 0 ? given.size / count : 0;
  launch_packs<T, count>(given, 0, packs, stream);
  launch_packs<T, 1>(given, packs * count, given.size - packs * count, stream);
}

}  // namespace

void launch_float32(const AxpbyArguments& arguments, CUstream_st* stream) {
  launch<float>(arguments, stream);
}
void launch_float16(const AxpbyArguments& arguments, CUstream_st* stream) {
  launch<__half>(arguments, stream);
}
void launch_bfloat16(const AxpbyArguments& arguments, CUstream_st* stream) {
  launch<__nv_bfloat16>(arguments, stream);
}
void launch_float64(const AxpbyArguments& arguments, CUstream_st* stream) {
  launch<double>(arguments, stream);
}
void launch_complex64(const AxpbyArguments& arguments, CUstream_st* stream) {
  launch<float2>(arguments, stream);
}

}  // namespace my_ext
