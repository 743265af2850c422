// Functions with rules of their own, and checkpoint, which is one of them.
#include "transforms/custom.h"

#include "mlx/ops.h"
#include "types/error.h"

namespace mlx::core {

std::vector<array> CustomTransforms::arguments(
    const std::vector<array>& inputs) const {
  return {inputs.begin(), inputs.end() - num_outputs_};
}

std::vector<array> CustomTransforms::vjp(
    const std::vector<array>& primals,
    const std::vector<array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<array>& outputs) {
  std::vector<array> args = arguments(primals);
  std::vector<array> all = vjp_ ? (*vjp_)(args, cotangents, outputs)
                                : mlx::core::vjp(fun_, args, cotangents).second;
  if (all.size() != args.size()) {
    invalid(
        "custom_function",
        "the vjp rule gave ",
        all.size(),
        " cotangents for ",
        args.size(),
        " arguments.");
  }
  std::vector<array> grads;
  for (int argnum : argnums) {
    bool is_argument = argnum < static_cast<int>(args.size());
    // What the function captured counts as constant.
    grads.push_back(
        is_argument ? all[argnum] : zeros_like(primals[argnum], stream()));
  }
  return grads;
}

std::vector<array> CustomTransforms::jvp(
    const std::vector<array>& primals,
    const std::vector<array>& tangents,
    const std::vector<int>& argnums) {
  std::vector<array> args = arguments(primals);
  std::vector<array> known;
  std::vector<int> known_argnums;
  std::vector<array> filled;
  for (const array& arg : args) {
    filled.push_back(zeros_like(arg, stream()));
  }
  for (size_t i = 0; i < argnums.size(); ++i) {
    if (argnums[i] < static_cast<int>(args.size())) {
      known.push_back(tangents[i]);
      known_argnums.push_back(argnums[i]);
      filled[argnums[i]] = tangents[i];
    }
  }
  return jvp_ ? (*jvp_)(args, known, known_argnums)
              : mlx::core::jvp(fun_, args, filled).second;
}

std::pair<std::vector<array>, std::vector<int>> CustomTransforms::vmap(
    const std::vector<array>& inputs, const std::vector<int>& axes) {
  std::vector<array> args = arguments(inputs);
  std::vector<int> arg_axes(axes.begin(), axes.end() - num_outputs_);
  if (vmap_) {
    return (*vmap_)(args, arg_axes);
  }
  // The outputs were batched already, by the rules of fun's own operations.
  return {
      {inputs.end() - num_outputs_, inputs.end()},
      {axes.end() - num_outputs_, axes.end()}};
}

void CustomTransforms::pass_through(
    const std::vector<array>& inputs, std::vector<array>& outputs) {
  size_t first = inputs.size() - outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].copy_shared_buffer(inputs[first + i]);
  }
}

std::vector<Shape> CustomTransforms::output_shapes(
    const std::vector<array>& inputs) {
  std::vector<Shape> shapes;
  for (auto it = inputs.end() - num_outputs_; it != inputs.end(); ++it) {
    shapes.push_back(it->shape());
  }
  return shapes;
}

ArrayFn custom_function(
    ArrayFn fun,
    std::optional<VjpFn> fun_vjp,
    std::optional<JvpFn> fun_jvp,
    std::optional<VmapFn> fun_vmap) {
  if (!fun_vjp && !fun_jvp && !fun_vmap) {
    return fun;
  }
  return [fun = std::move(fun),
          fun_vjp = std::move(fun_vjp),
          fun_jvp = std::move(fun_jvp),
          fun_vmap = std::move(fun_vmap)](const std::vector<array>& args) {
    // Derivatives must not find a way around the rules through the outputs.
    std::vector<array> stopped;
    for (const array& arg : args) {
      stopped.push_back(stop_gradient(arg));
    }
    std::vector<array> outputs = fun(stopped);
    std::vector<array> inputs = args;
    inputs.insert(inputs.end(), outputs.begin(), outputs.end());
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    for (const array& out : outputs) {
      shapes.push_back(out.shape());
      dtypes.push_back(out.dtype());
    }
    auto op = std::make_shared<CustomTransforms>(
        to_stream({}),
        static_cast<int>(outputs.size()),
        fun,
        fun_vjp,
        fun_jvp,
        fun_vmap);
    return array::make_arrays(std::move(shapes), dtypes, op, inputs);
  };
}

ArrayFn custom_vjp(ArrayFn fun, VjpFn fun_vjp) {
  return custom_function(std::move(fun), std::move(fun_vjp));
}

ArrayFn checkpoint(ArrayFn fun) {
  auto again = [fun](
                   const std::vector<array>& primals,
                   const std::vector<array>& cotangents,
                   const std::vector<array>&) {
    // Recomputing only starts once the cotangents are there.
    std::vector<array> later = depends(primals, cotangents);
    return vjp(fun, later, cotangents).second;
  };
  return custom_function(fun, again);
}

}  // namespace mlx::core
