// Running maxima.
#include "backend/cuda/device/scan.cuh"

namespace mlx::core::cuda {

void scan_max_pass(const ScanPass& pass, Dtype dtype, Encoder& e) {
  launch_ordered_scan<Max>(pass, dtype, e);
}

}  // namespace mlx::core::cuda
