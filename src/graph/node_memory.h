// Memory for the nodes of graphs: a thread keeps what it has freed for the next
// nodes that it makes. A step of a model makes hundreds of nodes and frees them
// all; the C library keeps only seven pieces of a size at hand, and joins and
// splits the rest at every turn.
#pragma once

#include <cstddef>

namespace mlx::core::detail {

/// Any thread may give a block back.
void* take_node_memory(size_t bytes);
void give_node_memory(void* block, size_t bytes) noexcept;

/// For std::allocate_shared.
template <typename T>
struct NodeAllocator {
  using value_type = T;

  NodeAllocator() = default;
  template <typename U>
  NodeAllocator(const NodeAllocator<U>&) {}

  T* allocate(size_t n) {
    return static_cast<T*>(take_node_memory(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) noexcept {
    give_node_memory(p, n * sizeof(T));
  }
  bool operator==(const NodeAllocator&) const = default;
};

}  // namespace mlx::core::detail
