// Whether all or any elements differ from zero. Only the size of an element
// matters, except that floats have a negative zero.
#include "backend/cuda/device/reduce.cuh"

namespace mlx::core::cuda {

namespace {

/// A 16-bit float of either kind.
struct HalfBits {
  uint16_t bits;
};

// All is the opposite of any element's being zero.
struct Logic {
  template <typename T>
  using Accumulator = uint8_t;
  bool is_all;

  explicit __device__ __forceinline__ Logic(bool is_all) : is_all(is_all) {}
  template <typename A>
  static __device__ __forceinline__ A neutral() {
    return 0;
  }
  template <typename T>
  __device__ __forceinline__ uint8_t take(T x) const {
    bool is_nonzero;
    if constexpr (std::is_same_v<T, HalfBits>) {
      is_nonzero = (x.bits & 0x7fff) != 0;
    } else {
      is_nonzero = convert<bool>(x);
    }
    return is_nonzero != is_all;
  }
  __device__ __forceinline__ uint8_t operator()(uint8_t a, uint8_t b) const {
    return a | b;
  }
  __device__ __forceinline__ uint8_t finish(uint8_t x) const {
    return (x != 0) != is_all;
  }
};

}  // namespace

void logic_pass(const ReducePass& pass, Dtype dtype, Encoder& e) {
  if (dtype.val() == Dtype::Val::complex64) {
    return launch_pass<Logic, complex64>(pass, e);
  }
  bool is_float = issubdtype(dtype, floating);
  switch (dtype.size()) {
    case 1:
      return launch_pass<Logic, uint8_t>(pass, e);
    case 2:
      return is_float ? launch_pass<Logic, HalfBits>(pass, e)
                      : launch_pass<Logic, uint16_t>(pass, e);
    case 4:
      return is_float ? launch_pass<Logic, float>(pass, e)
                      : launch_pass<Logic, uint32_t>(pass, e);
    default:
      return is_float ? launch_pass<Logic, double>(pass, e)
                      : launch_pass<Logic, uint64_t>(pass, e);
  }
}

}  // namespace mlx::core::cuda
