// Ordering of traced nodes.
#include "transforms/trace.h"

#include "graph/claims.h"
#include "mlx/ops.h"
#include "ops/views.h"

namespace mlx::core::detail {

bool is_stopped(const array& a) {
  return has_primitive_of(a, typeid(StopGradient));
}

std::vector<array> as_tracers(const std::vector<array>& inputs) {
  std::vector<array> tracers;
  for (const array& in : inputs) {
    array tracer = copy(in);
    tracer.set_tracer(true);
    tracers.push_back(std::move(tracer));
  }
  return tracers;
}

Trace make_trace(
    const std::vector<array>& sources,
    const std::vector<array>& outputs,
    bool through_stops) {
  Trace trace;
  std::unordered_set<std::uintptr_t> seen;
  for (const array& source : sources) {
    trace.reached.insert(source.id());
    seen.insert(source.id());
  }
  struct Frame {
    array node;
    size_t next;
  };
  std::vector<Frame> stack;
  auto visit = [&](const array& a) {
    // Only tracers are this thread's own: others may be computed meanwhile.
    bool ends = !a.is_tracer() || !a.has_primitive() ||
                (!through_stops && is_stopped(a));
    if (ends || !seen.insert(a.id()).second) {
      return;
    }
    for (const array& sibling : a.siblings()) {
      seen.insert(sibling.id());
    }
    stack.push_back({a, 0});
  };
  auto finish = [&](array node) {
    for (const array& in : node.inputs()) {
      if (trace.depends(in)) {
        trace.reached.insert(node.id());
        for (const array& sibling : node.siblings()) {
          trace.reached.insert(sibling.id());
        }
        trace.tape.push_back(std::move(node));
        return;
      }
    }
  };
  for (const array& output : outputs) {
    visit(output);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.node.inputs().size()) {
        array in = top.node.inputs()[top.next++];
        visit(in);
      } else {
        array node = std::move(top.node);
        stack.pop_back();
        finish(std::move(node));
      }
    }
  }
  return trace;
}

}  // namespace mlx::core::detail
