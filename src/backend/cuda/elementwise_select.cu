// select moves bits: one kernel for each size of element.
#include "backend/cuda/device/math.cuh"
#include "backend/cuda/dispatch.h"
#include "backend/cuda/elementwise_find.h"
#include "backend/cuda/elementwise_flat.cuh"

namespace mlx::core::cuda {

namespace {

template <typename T>
struct SelectRow {
  static constexpr int arity = 3;
  using First = bool;
  using Other = T;
  using Result = T;
  static constexpr int pack = pack_size_v<T>;
  static constexpr int group = 4;
  static constexpr int flat_packs =
      detail::flat_packs_of(arity, pack, sizeof(T), detail::Weight::light);
  static constexpr int flat_blocks =
      detail::flat_blocks_of(pack, detail::Weight::light);

  static __device__ __forceinline__ T of(bool a, T b, T c) {
    return math::select(a, b, c);
  }
};

}  // namespace

ElementwiseKernel<3> find_select(size_t itemsize) {
  return visit_width(itemsize, [](auto tag) {
    using T = typename decltype(tag)::type;
    return elementwise_kernel_of<SelectRow<T>>();
  });
}

}  // namespace mlx::core::cuda
