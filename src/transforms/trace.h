// What every transform does first: run the function on marked inputs and put
// the nodes it made in order.
#pragma once

#include <unordered_set>
#include <vector>

#include "mlx/array.h"

namespace mlx::core::detail {

/// Nodes made from marked arrays.
struct Trace {
  /// In an order in which inputs come first; of siblings only one.
  std::vector<array> tape;
  /// Ids of the marked arrays and of all outputs of the tape's nodes.
  std::unordered_set<std::uintptr_t> reached;

  bool depends(const array& a) const { return reached.contains(a.id()); }
};

/// The nodes between `sources` and `outputs`. With `through_stops` also
/// behind stop_gradient.
Trace make_trace(
    const std::vector<array>& sources,
    const std::vector<array>& outputs,
    bool through_stops);

bool is_stopped(const array& a);

/// New nodes equal to `inputs`, marked as tracers.
std::vector<array> as_tracers(const std::vector<array>& inputs);

}  // namespace mlx::core::detail
