// Forward-mode derivatives.
#include <unordered_map>

#include "graph/tracing.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "transforms/node_rules.h"
#include "transforms/trace.h"
#include "types/error.h"

namespace mlx::core {

namespace {

using Tangents = std::unordered_map<std::uintptr_t, array>;

void push_forward(const detail::Trace& trace, Tangents& tangents) {
  for (const array& node : trace.tape) {
    std::vector<int> argnums;
    std::vector<array> incoming;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      auto it = tangents.find(node.inputs()[i].id());
      if (it != tangents.end()) {
        argnums.push_back(static_cast<int>(i));
        incoming.push_back(it->second);
      }
    }
    if (argnums.empty()) {
      continue;
    }
    std::vector<array> outgoing = detail::node_jvp(node, incoming, argnums);
    std::vector<array> outputs = node.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      tangents.insert_or_assign(outputs[i].id(), outgoing[i]);
    }
  }
}

void check_tangents(
    const std::vector<array>& primals, const std::vector<array>& tangents) {
  if (primals.size() != tangents.size()) {
    invalid(
        "jvp",
        primals.size(),
        " primals and ",
        tangents.size(),
        " tangents. Expected as many of each.");
  }
  for (size_t i = 0; i < primals.size(); ++i) {
    if (primals[i].shape() != tangents[i].shape()) {
      invalid(
          "jvp",
          "a tangent has another shape than its primal: ",
          tangents[i].shape(),
          " and ",
          primals[i].shape(),
          ".");
    }
  }
}

}  // namespace

std::pair<std::vector<array>, std::vector<array>> jvp(
    const ArrayFn& fun,
    const std::vector<array>& primals,
    const std::vector<array>& tangents) {
  check_tangents(primals, tangents);
  detail::InTracing scope(detail::Tracing::grad);
  std::vector<array> sources = detail::as_tracers(primals);
  std::vector<array> outputs = fun(sources);
  detail::Trace trace = detail::make_trace(sources, outputs, false);
  Tangents known;
  for (size_t i = 0; i < sources.size(); ++i) {
    known.emplace(sources[i].id(), astype(tangents[i], sources[i].dtype()));
  }
  push_forward(trace, known);
  std::vector<array> result;
  for (const array& out : outputs) {
    auto it = known.find(out.id());
    result.push_back(it == known.end() ? zeros_like(out) : it->second);
  }
  return {std::move(outputs), std::move(result)};
}

std::pair<array, array> jvp(
    const std::function<array(const array&)>& fun,
    const array& primal,
    const array& tangent) {
  ArrayFn wrapped = [&](const std::vector<array>& in) {
    return std::vector<array>{fun(in[0])};
  };
  auto [outputs, tangents] =
      jvp(wrapped, std::vector<array>{primal}, std::vector<array>{tangent});
  return {outputs[0], tangents[0]};
}

}  // namespace mlx::core
