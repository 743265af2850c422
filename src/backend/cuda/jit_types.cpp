// The prelude's text. A program that needs nothing else compiles in about 30
// ms; the toolkit's headers of halves add 10 ms, cooperative_groups.h and
// cuda/std most of a second.
#include "backend/cuda/jit_types.h"

#include <initializer_list>
#include <string_view>

namespace mlx::core::cuda::jit {

namespace {

constexpr char kBasics[] = R"cuda(
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned int uint;

#define WARP_SIZE 32
#define inf __int_as_float(0x7f800000)
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

// Shapes and strides of inputs; as many as there are axes count.
template <typename T>
struct PerAxis {
  T values[12];
  __device__ const T* data() const { return values; }
  __device__ T operator[](int axis) const { return values[axis]; }
};
typedef PerAxis<int32_t> KernelShape;
typedef PerAxis<int64_t> KernelStrides;

// Offset in elements of the element number `elem` in row-major order.
template <typename I>
__device__ inline int64_t elem_to_loc(
    I elem, const int32_t* shape, const int64_t* strides, int ndim) {
  int64_t loc = 0;
  uint64_t rest = static_cast<uint64_t>(elem);
  for (int i = ndim - 1; i >= 0; --i) {
    uint64_t size = static_cast<uint64_t>(shape[i]);
    loc += static_cast<int64_t>(rest % size) * strides[i];
    rest /= size;
  }
  return loc;
}
)cuda";

constexpr char kComplex[] = R"cuda(
struct alignas(8) complex64_t {
  float re;
  float im;

  complex64_t() = default;
  __device__ constexpr complex64_t(float re, float im = 0.0f)
      : re(re), im(im) {}
  __device__ constexpr float real() const { return re; }
  __device__ constexpr float imag() const { return im; }
  __device__ constexpr complex64_t operator-() const { return {-re, -im}; }
  __device__ constexpr complex64_t& operator+=(complex64_t b) {
    return *this = {re + b.re, im + b.im};
  }
  __device__ constexpr complex64_t& operator-=(complex64_t b) {
    return *this = {re - b.re, im - b.im};
  }
  __device__ constexpr complex64_t& operator*=(complex64_t b) {
    return *this = {re * b.re - im * b.im, re * b.im + im * b.re};
  }
  __device__ constexpr complex64_t& operator/=(complex64_t b) {
    float d = b.re * b.re + b.im * b.im;
    return *this = {(re * b.re + im * b.im) / d, (im * b.re - re * b.im) / d};
  }
  friend __device__ constexpr complex64_t operator+(
      complex64_t a, complex64_t b) { return a += b; }
  friend __device__ constexpr complex64_t operator-(
      complex64_t a, complex64_t b) { return a -= b; }
  friend __device__ constexpr complex64_t operator*(
      complex64_t a, complex64_t b) { return a *= b; }
  friend __device__ constexpr complex64_t operator/(
      complex64_t a, complex64_t b) { return a /= b; }
  friend __device__ constexpr bool operator==(complex64_t a, complex64_t b) {
    return a.re == b.re && a.im == b.im;
  }
  friend __device__ constexpr bool operator!=(complex64_t a, complex64_t b) {
    return !(a == b);
  }
};
)cuda";

// Numbers of 16 bits that are computed in float. The conversions are those of
// the hardware, rounding to nearest even.
constexpr char kHalves[] = R"cuda(
__device__ inline float half_to_float(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ inline uint16_t float_to_half(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline float bhalf_to_float(uint16_t bits) {
  return __int_as_float(static_cast<int>(bits) << 16);
}
__device__ inline uint16_t float_to_bhalf(float x) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

#define LYNX_HALF_TYPE(NAME, FROM_FLOAT, TO_FLOAT)                       \
  struct alignas(2) NAME {                                               \
    uint16_t bits;                                                       \
    NAME() = default;                                                    \
    template <typename N>                                                \
    __device__ NAME(N x) : bits(FROM_FLOAT(static_cast<float>(x))) {}    \
    __device__ operator float() const { return TO_FLOAT(bits); }         \
    template <typename N>                                                \
    __device__ NAME& operator+=(N x) {                                   \
      return *this = static_cast<float>(*this) + static_cast<float>(x);  \
    }                                                                    \
    template <typename N>                                                \
    __device__ NAME& operator-=(N x) {                                   \
      return *this = static_cast<float>(*this) - static_cast<float>(x);  \
    }                                                                    \
    template <typename N>                                                \
    __device__ NAME& operator*=(N x) {                                   \
      return *this = static_cast<float>(*this) * static_cast<float>(x);  \
    }                                                                    \
    template <typename N>                                                \
    __device__ NAME& operator/=(N x) {                                   \
      return *this = static_cast<float>(*this) / static_cast<float>(x);  \
    }                                                                    \
  };
LYNX_HALF_TYPE(float16_t, float_to_half, half_to_float)
LYNX_HALF_TYPE(bfloat16_t, float_to_bhalf, bhalf_to_float)
#undef LYNX_HALF_TYPE
typedef float16_t half;
)cuda";

constexpr char kToolkitHalves[] = R"cuda(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef __half float16_t;
typedef __nv_bfloat16 bfloat16_t;
)cuda";

constexpr char kGroups[] = R"cuda(
namespace cooperative_groups {
struct thread_block {
  __device__ static void sync() { __syncthreads(); }
  __device__ static unsigned size() {
    return blockDim.x * blockDim.y * blockDim.z;
  }
  __device__ static unsigned num_threads() { return size(); }
  __device__ static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ static dim3 group_index() { return blockIdx; }
  __device__ static dim3 thread_index() { return threadIdx; }
  __device__ static dim3 dim_threads() { return blockDim; }
  __device__ static dim3 group_dim() { return blockDim; }
};
struct grid_group {
  typedef unsigned long long Number;
  __device__ static Number num_blocks() {
    return Number(gridDim.x) * gridDim.y * gridDim.z;
  }
  __device__ static Number block_rank() {
    return (Number(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
        blockIdx.x;
  }
  __device__ static Number size() { return num_blocks() * thread_block::size(); }
  __device__ static Number num_threads() { return size(); }
  __device__ static Number thread_rank() {
    return block_rank() * thread_block::size() + thread_block::thread_rank();
  }
  __device__ static dim3 block_index() { return blockIdx; }
  __device__ static dim3 dim_blocks() { return gridDim; }
  __device__ static dim3 group_dim() { return gridDim; }
};
__device__ inline thread_block this_thread_block() { return thread_block(); }
__device__ inline grid_group this_grid() { return grid_group(); }
__device__ inline void sync(const thread_block&) { __syncthreads(); }
}  // namespace cooperative_groups
namespace cg = cooperative_groups;
)cuda";

constexpr char kToolkitGroups[] = R"cuda(
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
)cuda";

constexpr char kStandard[] = R"cuda(
#include <cuda/std/array>
#include <cuda/std/cmath>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
)cuda";

bool says(
    const std::string& program, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (program.find(word) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string prelude(const std::string& program) {
  bool toolkit_halves = says(
      program,
      {"__h",
       "__nv_",
       "__float2",
       "half2",
       "bfloat162",
       "_fp16.h",
       "_bf16.h",
       "mma.h",
       "cub/",
       "thrust/",
       "cutlass/"});
  bool toolkit_groups = says(
      program,
      {"cooperative_groups.h",
       "cooperative_groups/",
       "tiled_partition",
       "thread_block_tile",
       "coalesced_",
       "cluster_group",
       "this_cluster",
       "this_multi_grid"});
  std::string text;
  // Headers first: they bring their own types.
  if (says(program, {"cuda::std"})) {
    text += kStandard;
  }
  text += toolkit_halves ? kToolkitHalves : "";
  text += toolkit_groups ? kToolkitGroups : "";
  text += kBasics;
  text += kComplex;
  text += toolkit_halves ? "" : kHalves;
  text += toolkit_groups ? "" : kGroups;
  return text;
}

const char* type_name(Dtype dtype) {
  switch (dtype.val()) {
    case Dtype::Val::bool_:
      return "bool";
    case Dtype::Val::uint8:
      return "uint8_t";
    case Dtype::Val::uint16:
      return "uint16_t";
    case Dtype::Val::uint32:
      return "uint32_t";
    case Dtype::Val::uint64:
      return "uint64_t";
    case Dtype::Val::int8:
      return "int8_t";
    case Dtype::Val::int16:
      return "int16_t";
    case Dtype::Val::int32:
      return "int32_t";
    case Dtype::Val::int64:
      return "int64_t";
    case Dtype::Val::float16:
      return "float16_t";
    case Dtype::Val::float32:
      return "float";
    case Dtype::Val::float64:
      return "double";
    case Dtype::Val::bfloat16:
      return "bfloat16_t";
    case Dtype::Val::complex64:
      return "complex64_t";
  }
  return "";
}

}  // namespace mlx::core::cuda::jit
