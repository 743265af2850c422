// Several threads, one graph: an eval claims every node that it is going to
// compute, all in one step, before it computes the first. An eval that meets
// nodes of another one waits for them before its own work, so waits go from
// later claims to earlier ones and never in a circle. The lock is held while
// nodes are ordered and claimed, not while they are computed.
#pragma once

#include <mutex>
#include <typeinfo>

#include "mlx/api.h"
#include "mlx/array.h"

namespace mlx::core::detail {

/// Held while the inputs, siblings or primitives of nodes that may be shared
/// are read. Nodes with the status unscheduled do not change meanwhile.
class GraphLock {
 public:
  GraphLock();

 private:
  std::unique_lock<std::mutex> lock_;
};

/// The claim of one eval on the calling thread.
class Claimant {
 public:
  Claimant();
  ~Claimant();
  Claimant(const Claimant&) = delete;
  Claimant& operator=(const Claimant&) = delete;

  /// Claims a node with its siblings, or lets go of what is still running. Both
  /// under the lock.
  void take(const array& node);
  static void give_back(const array& node);

  /// Whether the node is running for this claim; under the lock.
  bool owns(const array& node) const { return node.claim().number == number_; }
  /// Whether this claim or one of the thread's outer evals took the node.
  static bool thread_owns(const array& node);

 private:
  Claimant* outer_;
  uint32_t number_ = 0;
};

/// Waits until a node that another eval claimed is computed, or scheduled with
/// an event that is on its way, or given back (unscheduled). Raises
/// std::runtime_error when that would never happen.
void wait_until_settled(const array& node);

/// Whether wait_until_settled would return at once.
bool is_settled(const array& node);

/// To be called after nodes were computed; cheap when nobody waits.
void wake_waiters();

/// The stream of an array's primitive, or `otherwise` if it has none any more.
Stream stream_of(const array& a, Stream otherwise);

/// Whether the array waits to be computed by a primitive of this class.
bool has_primitive_of(const array& a, const std::type_info& type);

}  // namespace mlx::core::detail
