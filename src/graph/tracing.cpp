// The calling thread's stack of running transforms.
#include "graph/tracing.h"

#include <atomic>
#include <vector>

namespace mlx::core::detail {

namespace {
std::atomic<uint32_t> traces{0};
thread_local std::vector<Tracing> stack;
thread_local uint32_t trace = 0;
// Asked for by nearly every function that builds nodes, so kept at hand.
thread_local bool shapeless = false;

bool is_shapeless() {
  for (auto kind = stack.rbegin(); kind != stack.rend(); ++kind) {
    if (*kind == Tracing::shapeless || *kind == Tracing::certain_shapes) {
      return *kind == Tracing::shapeless;
    }
  }
  return false;
}
}  // namespace

InTracing::InTracing(Tracing kind, uint32_t resumed) {
  stack.push_back(kind);
  shapeless = is_shapeless();
  trace = trace == 0 ? resumed : trace;
  while (trace == 0) {
    trace = traces.fetch_add(1, std::memory_order_relaxed) + 1;
  }
}
InTracing::~InTracing() {
  stack.pop_back();
  shapeless = is_shapeless();
  if (stack.empty()) {
    trace = 0;
  }
}

bool in_tracing() {
  return !stack.empty();
}
uint32_t current_trace() {
  return trace;
}
bool in_grad_tracing() {
  return !stack.empty() && stack.back() == Tracing::grad;
}
bool in_shapeless_tracing() {
  return shapeless;
}

}  // namespace mlx::core::detail
