// A call of a fused part: what the kernel is told, and the kernels that were
// made for the program.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/encoder.h"
#include "backend/cuda/fused_layouts.h"
#include "backend/cuda/fused_text.h"

namespace mlx::core::cuda {

inline bool is_aligned(uint64_t address, size_t bytes) {
  return address % bytes == 0;
}

/// An output takes over the memory of an input that lies like it, or gets its
/// own: row-major, or like `layout`.
void allocate_outputs(
    const std::vector<array>& inputs,
    const Shape& shape,
    const array* layout,
    std::vector<array>& outputs,
    Encoder& e);

/// Kernels of one program. A call differs from the one before in its form only
/// when its arrays lie differently.
class FusedKernels final : public FusedPlan {
 public:
  static std::shared_ptr<const FusedKernels> of(const Compiled& op);
  cudaKernel_t find(const FusedProgram& program, const FusedForm& form) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<FusedForm, cudaKernel_t>> kernels_;
};

/// Addresses, numbers and the form of the kernel.
struct FusedCall {
  FusedForm form;
  std::vector<uint64_t> head;  // sizes, the first words of the argument
  std::vector<uint64_t> from;
  std::vector<uint64_t> to;

  FusedCall(
      const FusedProgram& program,
      const std::vector<array>& inputs,
      std::vector<array>& outputs,
      Encoder& e);

  /// Whether the addresses fit into a kernel's argument.
  static bool fits(const FusedProgram& program);
  /// The kernel's argument.
  std::vector<uint64_t> words(const FusedLayouts& layouts) const;
  void launch(
      const Compiled& op,
      const FusedLayouts& layouts,
      dim3 grid,
      dim3 block,
      Encoder& e) const;
};

}  // namespace mlx::core::cuda
