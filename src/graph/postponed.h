// Operations of a shapeless trace that depend on lengths: the function that
// builds their nodes is kept, and called once lengths are certain. So each call
// of the compiled function checks and builds like the plain one, by the lengths
// that it is called with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/tracing.h"
#include "mlx/array.h"
#include "mlx/primitives.h"
#include "mlx/utils.h"

namespace mlx::core::detail {

/// Builds nodes from arrays. Numbers that it holds stay as they were traced.
using BuildFn = std::function<std::vector<array>(const std::vector<array>&)>;

/// Stands in a trace only; replay puts what it builds in its place. Its rules
/// transform what it builds.
class Postponed final : public Primitive {
 public:
  Postponed(Stream s, std::string name, BuildFn build)
      : Primitive(s), name_(std::move(name)), build_(std::move(build)) {}

  std::vector<array> build(const std::vector<array>& inputs) const {
    return build_(inputs);
  }

  const char* name() const override { return name_.c_str(); }
  bool is_equivalent(const Primitive& other) const override {
    return this == &other;
  }
  std::vector<array> jvp(
      const std::vector<array>& primals,
      const std::vector<array>& tangents,
      const std::vector<int>& argnums) override;
  std::vector<array> vjp(
      const std::vector<array>& primals,
      const std::vector<array>& cotangents,
      const std::vector<int>& argnums,
      const std::vector<array>& outputs) override;
  std::pair<std::vector<array>, std::vector<int>> vmap(
      const std::vector<array>& inputs, const std::vector<int>& axes) override;
  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override;
  void eval_cpu(const std::vector<array>&, std::vector<array>&) override;
  void eval_gpu(const std::vector<array>&, std::vector<array>&) override;

 private:
  std::string name_;
  BuildFn build_;
};

/// Whether lengths of one of the arrays are still open. Costs a look at the
/// thread's transforms outside of them.
inline bool lengths_open(const array& a) {
  return in_shapeless_tracing() && a.is_tracer();
}
MLX_API bool lengths_open(const std::vector<array>& arrays);
template <typename... More>
bool lengths_open(const array& a, const array& b, const More&... more) {
  return in_shapeless_tracing() &&
         (a.is_tracer() || b.is_tracer() || (more.is_tracer() || ...));
}

/// A node of a shapeless trace for what `build` makes of `inputs`.
MLX_API std::vector<array> postpone(
    std::string name,
    const std::vector<array>& inputs,
    Stream s,
    BuildFn build);

/// The same where the outputs for the inputs' present shapes are known.
std::vector<array> postponed_like(
    const std::vector<array>& outputs,
    std::string name,
    const std::vector<array>& inputs,
    Stream s,
    BuildFn build);

}  // namespace mlx::core::detail

// At the head of a function that reads lengths of the arrays `...` and has a
// stream argument `s`: in a shapeless trace it is postponed. `again` calls the
// function with in[0], in[1], ... in their places. _ALL is for functions that
// return several arrays, _LIST for those that take a vector of arrays too.
#define MLX_POSTPONE_ALL(name, again, ...)                  \
  if (detail::lengths_open(__VA_ARGS__)) {                  \
    return detail::postpone(                                \
        name,                                               \
        {__VA_ARGS__},                                      \
        to_stream(s),                                       \
        [=, s = to_stream(s)](const std::vector<array>& in) \
            -> std::vector<array> { return again; });       \
  }
#define MLX_POSTPONE_LIST(name, again, list)                \
  if (detail::lengths_open(list)) {                         \
    return detail::postpone(                                \
        name,                                               \
        list,                                               \
        to_stream(s),                                       \
        [=, s = to_stream(s)](const std::vector<array>& in) \
            -> std::vector<array> { return again; });       \
  }
#define MLX_POSTPONE(name, again, ...)                        \
  if (detail::lengths_open(__VA_ARGS__)) {                    \
    return detail::postpone(                                  \
        name,                                                 \
        {__VA_ARGS__},                                        \
        to_stream(s),                                         \
        [=, s = to_stream(s)](const std::vector<array>& in) { \
          return std::vector<array>{again};                   \
        })[0];                                                \
  }
