// Calling a node's rules, now or when lengths are certain.
#include "transforms/node_rules.h"

#include <string>
#include <typeinfo>

#include "graph/postponed.h"
#include "ops/elementwise_primitive.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "transforms/custom.h"

namespace mlx::core::detail {

namespace {

using Arrays = std::vector<array>;

bool is_sum(const Primitive& op) {
  return typeid(op) == typeid(Reduce) &&
         static_cast<const Reduce&>(op).params().type == ReduceType::sum;
}

// Those whose rules hold no lengths: what they build can be fused. A user's
// rules may be Python, which runs while tracing only.
bool holds_no_lengths(const Primitive& op) {
  const std::type_info& type = typeid(op);
  return type == typeid(Elementwise) || type == typeid(AsType) ||
         type == typeid(Copy) || type == typeid(StopGradient) ||
         type == typeid(Transpose) || type == typeid(ExpandDims) ||
         type == typeid(Squeeze) || type == typeid(CustomTransforms) ||
         is_sum(op);
}

bool is_postponed(const array& node) {
  return in_shapeless_tracing() && !holds_no_lengths(node.primitive());
}

std::string name_of(const char* rule, const array& node) {
  return std::string(rule) + " of " + node.primitive().name();
}

Arrays joined(Arrays first, const Arrays& second, const Arrays& third = {}) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

Arrays part(const Arrays& all, size_t begin, size_t end) {
  return {all.begin() + begin, all.begin() + end};
}

}  // namespace

Arrays node_jvp(
    const array& node,
    const Arrays& tangents,
    const std::vector<int>& argnums) {
  if (!is_postponed(node)) {
    return node.primitive().jvp(node.inputs(), tangents, argnums);
  }
  size_t n = node.inputs().size();
  return postpone(
      name_of("jvp", node),
      joined(node.inputs(), tangents),
      node.primitive().stream(),
      [op = node.primitive_ptr(), n, argnums](const Arrays& in) {
        return op->jvp(part(in, 0, n), part(in, n, in.size()), argnums);
      });
}

Arrays node_vjp(
    const array& node,
    const Arrays& cotangents,
    const std::vector<int>& argnums,
    const Arrays& outputs) {
  if (!is_postponed(node)) {
    return node.primitive().vjp(node.inputs(), cotangents, argnums, outputs);
  }
  size_t n = node.inputs().size();
  size_t m = n + cotangents.size();
  return postpone(
      name_of("vjp", node),
      joined(node.inputs(), cotangents, outputs),
      node.primitive().stream(),
      [op = node.primitive_ptr(), n, m, argnums](const Arrays& in) {
        return op->vjp(
            part(in, 0, n), part(in, n, m), argnums, part(in, m, in.size()));
      });
}

std::pair<Arrays, std::vector<int>> node_vmap(
    const array& node, const Arrays& inputs, const std::vector<int>& axes) {
  if (!is_postponed(node)) {
    return node.primitive().vmap(inputs, axes);
  }
  std::pair<Arrays, std::vector<int>> present;
  {
    InTracing scope(Tracing::certain_shapes);
    present = node.primitive().vmap(inputs, axes);
  }
  Arrays outputs = postponed_like(
      present.first,
      name_of("vmap", node),
      inputs,
      node.primitive().stream(),
      [op = node.primitive_ptr(), axes](const Arrays& in) {
        return op->vmap(in, axes).first;
      });
  return {std::move(outputs), std::move(present.second)};
}

}  // namespace mlx::core::detail
