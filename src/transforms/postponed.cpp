// Postponed operations: making them, and their rules.
#include "graph/postponed.h"

#include <algorithm>

#include "mlx/transforms.h"
#include "types/error.h"

namespace mlx::core::detail {

namespace {

[[noreturn]] void refuse(const Postponed& op) {
  invalid(
      op.name(),
      "evaluated inside of a shapeless compile, where lengths are open. Return "
      "the array, or compile without shapeless.");
}

// The primals that are differentiated, and the operation as a function of them
// alone.
std::pair<std::vector<array>, BuildFn> split_primals(
    const Postponed& op,
    const std::vector<array>& primals,
    const std::vector<int>& argnums) {
  std::vector<array> some;
  for (int argnum : argnums) {
    some.push_back(primals[argnum]);
  }
  BuildFn all = [&op, &primals, &argnums](const std::vector<array>& given) {
    std::vector<array> inputs = primals;
    for (size_t i = 0; i < argnums.size(); ++i) {
      inputs[argnums[i]] = given[i];
    }
    return op.build(inputs);
  };
  return {std::move(some), std::move(all)};
}

}  // namespace

bool lengths_open(const std::vector<array>& arrays) {
  return in_shapeless_tracing() &&
         std::any_of(arrays.begin(), arrays.end(), [](const array& a) {
           return a.is_tracer();
         });
}

std::vector<array> postponed_like(
    const std::vector<array>& outputs,
    std::string name,
    const std::vector<array>& inputs,
    Stream s,
    BuildFn build) {
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (const array& out : outputs) {
    shapes.push_back(out.shape());
    dtypes.push_back(out.dtype());
  }
  return array::make_arrays(
      std::move(shapes),
      dtypes,
      std::make_shared<Postponed>(s, std::move(name), std::move(build)),
      inputs);
}

std::vector<array> postpone(
    std::string name,
    const std::vector<array>& inputs,
    Stream s,
    BuildFn build) {
  std::vector<array> outputs;
  {
    InTracing scope(Tracing::certain_shapes);
    outputs = build(inputs);
  }
  return outputs.empty()
             ? outputs
             : postponed_like(
                   outputs, std::move(name), inputs, s, std::move(build));
}

std::vector<array> Postponed::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  auto [some, all] = split_primals(*this, primals, argnums);
  return mlx::core::jvp(all, some, tangents).second;
}

std::vector<array> Postponed::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>&) {
  auto [some, all] = split_primals(*this, primals, argnums);
  return mlx::core::vjp(all, some, cotangents).second;
}

std::pair<std::vector<array>, std::vector<int>> Postponed::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  BuildFn all = [this](const std::vector<array>& in) { return build(in); };
  std::vector<array> outputs = mlx::core::vmap(all, axes)(inputs);
  std::vector<int> out_axes(outputs.size(), 0);
  return {std::move(outputs), std::move(out_axes)};
}

std::vector<Shape> Postponed::output_shapes(const std::vector<array>& inputs) {
  InTracing scope(Tracing::certain_shapes);
  std::vector<Shape> shapes;
  for (const array& out : build(inputs)) {
    shapes.push_back(out.shape());
  }
  return shapes;
}

void Postponed::eval_cpu(const std::vector<array>&, std::vector<array>&) {
  refuse(*this);
}
void Postponed::eval_gpu(const std::vector<array>&, std::vector<array>&) {
  refuse(*this);
}

}  // namespace mlx::core::detail
