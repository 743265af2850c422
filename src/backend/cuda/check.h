// From CUDA's status codes to exceptions.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace mlx::core::cuda {

[[noreturn]] inline void fail(cudaError_t status, const char* what) {
  cudaGetLastError();  // so that it is not found again by the next call
  throw std::runtime_error(
      std::string("[cuda] ") + what + " failed: " + cudaGetErrorString(status) +
      ".");
}

/// Raises std::runtime_error naming `what` unless all went well.
inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) [[unlikely]] {
    fail(status, what);
  }
}

/// Raises std::runtime_error in a child forked after the driver was opened.
void check_not_forked();

}  // namespace mlx::core::cuda
