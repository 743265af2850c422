// Work as a CUDA graph with memory that its stream's recordings share. Inputs
// that stay where they are keep their addresses, others are copied into that
// memory before each launch; results that lie there are copied out after it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/encoder.h"

namespace mlx::core::cuda {

class CudaRecording final : public Recording {
 public:
  /// Records `work` and submits it once; keeps it unless that takes too much
  /// memory, or results lie where later ones could not be found.
  static Recorded record(
      Stream s,
      std::vector<array> inputs,
      const std::vector<bool>& stays,
      const SubmitWork& work);
  explicit CudaRecording(Encoder& home);
  ~CudaRecording() override;

  std::optional<std::vector<array>> replay(std::vector<array>& inputs) override;

 private:
  struct Input {
    /// In the recordings' memory. Without it the rest says where the input
    /// lies.
    std::optional<array> copy;
    Block* block = nullptr;
    int64_t offset = 0;
    Strides strides{};
    /// The work writes there: nobody else may have it.
    bool is_taken = false;
  };
  struct Result {
    array like;  // shape and type; in the recordings' memory also what it holds
    /// The input that it lies in instead, and how.
    int input = -1;
    Strides strides{};
    array::Flags flags{};
    size_t data_size = 0;
    int64_t from_input = 0;  // elements
  };

  std::vector<array> place_inputs(
      const std::vector<array>& inputs, const std::vector<bool>& stays);
  std::vector<array> capture(
      Stream s, std::vector<array> inputs, const SubmitWork& work);
  bool keep(const array& result);
  bool fits() const;
  bool is_where_it_was(const Input& input, const array& now) const;
  void copy_in(const array& from, array& to);
  array copy_out(const array& from);
  void launch();

  Encoder& home_;
  std::unique_ptr<Encoder> own_;
  cudaGraphExec_t graph_ = nullptr;
  std::vector<Input> inputs_;
  std::vector<Result> results_;
};

}  // namespace mlx::core::cuda
