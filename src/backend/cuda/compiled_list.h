// Calls of one fused program that wait for each other: an optimizer's step does
// the same for hundreds of arrays, and a launch for each would leave the device
// half empty at its beginning and end. Calls that do not touch what others
// write become one launch.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "backend/cuda/compiled_plan.h"

namespace mlx::core::cuda {

class FusedList final : public Encoder::Waiting {
 public:
  /// Whether a call that waits is to write one of the arrays.
  bool will_write(const std::vector<array>& arrays) const;

  /// Launches the call, at once or later. `blocks` of kFusedThreads.
  void add(
      const Compiled& op,
      const FusedCall& call,
      const FusedLayouts& layouts,
      uint32_t blocks,
      const std::vector<array>& inputs,
      const std::vector<array>& outputs,
      Encoder& e);

  void launch(Encoder& e) override;

 private:
  // Calls of one form.
  struct Calls {
    std::shared_ptr<const FusedKernels> kernels;
    FusedProgram program;
    FusedForm form;
    std::vector<uint64_t> words;   // of all arguments
    std::vector<uint32_t> begins;  // their first blocks
    uint32_t blocks = 0;
    size_t bytes = 0;
    /// Blocks of memory.
    std::unordered_set<const void*> read, written;
    /// Kept, so that nobody else gets their memory.
    std::vector<array> inputs;
  };

  bool is_apart(
      const std::vector<array>& inputs,
      const std::vector<array>& outputs) const;

  Calls calls_;
};

}  // namespace mlx::core::cuda
