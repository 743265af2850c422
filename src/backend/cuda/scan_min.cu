// Running minima.
#include "backend/cuda/device/scan.cuh"

namespace mlx::core::cuda {

void scan_min_pass(const ScanPass& pass, Dtype dtype, Encoder& e) {
  launch_ordered_scan<Min>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
