// The calling thread's stack of running transforms.
#include "graph/tracing.h"

#include <vector>

namespace mlx::core::detail {

namespace {
thread_local std::vector<Tracing> stack;
}

InTracing::InTracing(Tracing kind) {
  stack.push_back(kind);
}
InTracing::~InTracing() {
  stack.pop_back();
}

bool in_tracing() {
  return !stack.empty();
}
bool in_grad_tracing() {
  return !stack.empty() && stack.back() == Tracing::grad;
}
bool in_shapeless_tracing() {
  return !stack.empty() && stack.back() == Tracing::shapeless;
}

}  // namespace mlx::core::detail
