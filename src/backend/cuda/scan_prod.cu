// Running products.
#include "backend/cuda/device/scan.cuh"

namespace mlx::core::cuda {

void scan_prod_pass(const ScanPass& pass, Dtype dtype, Encoder& e) {
  launch_unsigned_scan<Prod>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
