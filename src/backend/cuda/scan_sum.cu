// Running sums.
#include "backend/cuda/device/scan.cuh"

namespace mlx::core::cuda {

void scan_sum_pass(const ScanPass& pass, Dtype dtype, Encoder& e) {
  launch_unsigned_scan<Sum>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
