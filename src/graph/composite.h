// A node that stands for a graph of others: eval has one node to order and
// claim where there would be hundreds, and what it stands for can be submitted
// as one piece. Its results are nodes of their own that read it, because
// siblings, which all know each other, are slow where there are many.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "mlx/api.h"
#include "mlx/primitives.h"

namespace mlx::core::detail {

class MLX_API CompositeWork {
 public:
  virtual ~CompositeWork() = default;
  /// Submits what computes the results. Nobody but the caller's graph holds
  /// `inputs`; they are let go where they are used last.
  virtual std::vector<array> submit(
      std::vector<array> inputs,
      const std::shared_ptr<EvalContext>& context) = 0;
  /// The same on a thread that executes the stream: results are there when it
  /// returns.
  virtual std::vector<array> compute(std::vector<array> inputs) = 0;
};

/// Nodes for the results of `work` on `inputs`, whose streams are all `s`; made
/// outside of transforms, they have no derivatives and no batch rules.
std::vector<array> composite_results(
    Stream s,
    std::shared_ptr<CompositeWork> work,
    const std::vector<Shape>& shapes,
    const std::vector<Dtype>& dtypes,
    const std::vector<array>& inputs);

bool is_composite(const Primitive& op);

/// Submits such a node; false if it is of another kind.
bool submit_composite(array& node, const std::shared_ptr<EvalContext>& context);

/// Runs such a node on the thread that executes its stream; false if it is of
/// another kind. One that fails has used its inputs up: it fails the same way
/// when it is run again.
bool run_composite(array& node);

}  // namespace mlx::core::detail
