// Reverse-mode derivatives: vjp and value_and_grad.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graph/claims.h"
#include "graph/tracing.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "transforms/node_rules.h"
#include "transforms/trace.h"
#include "types/error.h"

namespace mlx::core {

namespace {

// Cotangents by node, summed where several arrive.
class Cotangents {
 public:
  void add_to(const array& a, const array& cotangent, Stream s) {
    auto [it, is_new] = sums_.try_emplace(a.id(), cotangent);
    if (!is_new) {
      it->second = add(it->second, cotangent, s);
    }
  }

  bool has(const array& a) const { return sums_.contains(a.id()); }

  // Removes it: each node is asked for once, and memory can go early.
  array take_or_zeros(const array& a, Stream s) {
    auto it = sums_.find(a.id());
    if (it == sums_.end()) {
      return zeros_like(a, s);
    }
    array found = it->second;
    sums_.erase(it);
    return found;
  }

 private:
  std::unordered_map<std::uintptr_t, array> sums_;
};

Stream stream_of(const array& a) {
  return detail::stream_of(a, default_stream(default_device()));
}

void seed(
    Cotangents& sums,
    const std::vector<array>& outputs,
    const std::vector<array>& cotangents) {
  size_t used = 0;
  for (const array& out : outputs) {
    if (detail::is_stopped(out)) {
      continue;
    }
    if (used == cotangents.size()) {
      invalid(
          "vjp",
          "too few cotangents: ",
          cotangents.size(),
          " for ",
          outputs.size(),
          " outputs.");
    }
    const array& cotangent = cotangents[used++];
    if (cotangent.shape() != out.shape()) {
      invalid(
          "vjp",
          "a cotangent has another shape than its output: ",
          cotangent.shape(),
          " and ",
          out.shape(),
          ".");
    }
    sums.add_to(
        out, astype(cotangent, out.dtype(), stream_of(out)), stream_of(out));
  }
  if (used != cotangents.size()) {
    invalid(
        "vjp",
        "too many cotangents: ",
        cotangents.size(),
        " for ",
        used,
        " outputs that take one.");
  }
}

void pull_back(const detail::Trace& trace, Cotangents& sums) {
  for (auto node = trace.tape.rbegin(); node != trace.tape.rend(); ++node) {
    std::vector<array> outputs = node->outputs();
    bool arrived =
        std::any_of(outputs.begin(), outputs.end(), [&](const array& o) {
          return sums.has(o);
        });
    if (!arrived) {
      continue;
    }
    Primitive& op = node->primitive();
    std::vector<int> argnums;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      if (trace.depends(node->inputs()[i])) {
        argnums.push_back(static_cast<int>(i));
      }
    }
    std::vector<array> cotangents;
    for (const array& out : outputs) {
      cotangents.push_back(sums.take_or_zeros(out, op.stream()));
    }
    std::vector<array> grads =
        detail::node_vjp(*node, cotangents, argnums, outputs);
    for (size_t i = 0; i < argnums.size(); ++i) {
      sums.add_to(node->inputs()[argnums[i]], grads[i], op.stream());
    }
  }
}

using MakeCotangents =
    std::function<std::vector<array>(const std::vector<array>&)>;

// Outputs, and the cotangents of the arguments `argnums`.
std::pair<std::vector<array>, std::vector<array>> vjp_of(
    const ArrayFn& fun,
    const std::vector<array>& inputs,
    const std::vector<int>& argnums,
    const MakeCotangents& make_cotangents) {
  detail::InTracing scope(detail::Tracing::grad);
  std::vector<array> sources;
  std::vector<array> arguments = inputs;
  for (int argnum : argnums) {
    sources.push_back(detail::as_tracers({inputs[argnum]})[0]);
    arguments[argnum] = sources.back();
  }
  std::vector<array> outputs = fun(arguments);
  std::vector<array> cotangents = make_cotangents(outputs);
  detail::Trace trace = detail::make_trace(sources, outputs, false);
  Cotangents sums;
  seed(sums, outputs, cotangents);
  pull_back(trace, sums);
  std::vector<array> grads;
  for (const array& source : sources) {
    grads.push_back(sums.take_or_zeros(source, stream_of(source)));
  }
  return {std::move(outputs), std::move(grads)};
}

std::vector<int> checked_argnums(const std::vector<int>& argnums) {
  if (argnums.empty()) {
    invalid("grad", "no argument named. Expected at least one.");
  }
  std::vector<int> sorted = argnums;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    invalid("grad", "an argument is named twice: ", argnums, ".");
  }
  if (sorted.front() < 0) {
    invalid("grad", "negative argument number: ", argnums, ".");
  }
  return argnums;
}

// One for the first output, a scalar; nothing for the others.
std::vector<array> scalar_cotangents(const std::vector<array>& outputs) {
  if (outputs.empty() || outputs[0].ndim() != 0) {
    invalid(
        "grad",
        "the first output is not a scalar: shape ",
        outputs.empty() ? Shape{} : outputs[0].shape(),
        ". Expected shape ().");
  }
  std::vector<array> cotangents;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!detail::is_stopped(outputs[i])) {
      cotangents.push_back(
          i == 0 ? ones_like(outputs[0]) : zeros_like(outputs[i]));
    }
  }
  return cotangents;
}

}  // namespace

std::pair<std::vector<array>, std::vector<array>> vjp(
    const ArrayFn& fun,
    const std::vector<array>& primals,
    const std::vector<array>& cotangents) {
  std::vector<int> argnums(primals.size());
  std::iota(argnums.begin(), argnums.end(), 0);
  return vjp_of(fun, primals, argnums, [&](const std::vector<array>&) {
    return cotangents;
  });
}

std::pair<array, array> vjp(
    const std::function<array(const array&)>& fun,
    const array& primal,
    const array& cotangent) {
  ArrayFn wrapped = [&](const std::vector<array>& in) {
    return std::vector<array>{fun(in[0])};
  };
  auto [outputs, grads] =
      vjp(wrapped, std::vector<array>{primal}, std::vector<array>{cotangent});
  return {outputs[0], grads[0]};
}

ValueAndGradFn value_and_grad(
    const ArrayFn& fun, const std::vector<int>& argnums) {
  return [fun, checked = checked_argnums(argnums)](
             const std::vector<array>& inputs) {
    for (int argnum : checked) {
      if (argnum >= static_cast<int>(inputs.size())) {
        invalid(
            "grad", "argument ", argnum, " of ", inputs.size(), " arguments.");
      }
    }
    return vjp_of(fun, inputs, checked, scalar_cotangents);
  };
}

}  // namespace mlx::core
