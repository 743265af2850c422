// Kernels whose text is made at run time: compiled by NVRTC into machine code
// for the device, kept in memory and, for later processes, on disk.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "backend/cuda/encoder.h"

namespace mlx::core::cuda::jit {

/// Whose text it is: ours uses nothing but the language and what it brings.
enum class Origin { users, ours };

/// The kernel `kernel_name` of a program in CUDA C++20, where it is declared
/// `extern "C" __global__`. Functions without `__device__` are the device's
/// too. A cudaKernel_t goes wherever CUDA wants a kernel, cast to a pointer;
/// the driver's own calls take it as a CUkernel.
///
/// The same text is compiled once, by whichever thread comes first; what it
/// was compiled to stays loaded as long as the process lives, because graphs
/// that were recorded name it. So numbers that vary freely belong into the
/// arguments, not into the text.
///
/// No headers are needed, and each costs time: about 30 ms without any, 10 ms
/// more for cuda_fp16.h, most of a second for cooperative_groups.h. Those of
/// the toolkit are found where there is one.
///
/// Raises std::runtime_error `[cuda_kernel] ...` with the compiler's log.
cudaKernel_t function(
    const std::string& source,
    const std::string& kernel_name,
    Origin origin = Origin::users);

/// The same of a program that is compiled already: a cubin, or PTX as text.
cudaKernel_t precompiled_function(
    const std::string& program, const std::string& kernel_name);

/// kernel<<<grid, block, shared>>>(...) on the encoder's stream, after what it
/// has noted; `arguments` are the addresses of the kernel's arguments, whose
/// types must be exact. A grid with no blocks is fine.
void launch(
    cudaKernel_t kernel,
    dim3 grid,
    dim3 block,
    size_t shared,
    void** arguments,
    Encoder& e);

/// The same for a kernel whose text waits for earlier work, as
/// device/overlap.cuh asks.
void launch_overlapped(
    cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, Encoder& e);

/// Folders with the toolkit's headers; empty where there is none.
const std::vector<std::string>& header_folders();

}  // namespace mlx::core::cuda::jit
