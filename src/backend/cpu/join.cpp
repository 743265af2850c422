// Joining by strided copies into parts of the output; constants.
#include "backend/cpu/join.h"

#include "backend/common/layouts.h"
#include "backend/cpu/copy.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

// Copies x to the part of out that begins at `offset` elements.
void copy_to_part(const array& x, array& out, int64_t offset) {
  copy_strided(
      x.data<char>(),
      x.strides(),
      out.data<char>() + offset * static_cast<int64_t>(x.itemsize()),
      out.strides(),
      x.shape(),
      x.itemsize());
}

void fill(const array& value, array& out) {
  copy_strided(
      value.data<char>(),
      Strides(out.ndim(), 0),
      out.data<char>(),
      out.strides(),
      out.shape(),
      out.itemsize());
}

}  // namespace

void concatenate(
    const Concatenate& op, const std::vector<array>& inputs, array& out) {
  allocate_output(out);
  int64_t offset = 0;
  for (const array& in : inputs) {
    if (in.size()) {
      copy_to_part(in, out, offset);
    }
    offset += in.shape(op.params().axis) * out.strides(op.params().axis);
  }
}

void pad(const Pad& op, const array& x, const array& value, array& out) {
  allocate_output(out);
  fill(value, out);
  int64_t offset = 0;
  for (size_t i = 0; i < x.ndim(); ++i) {
    offset += op.params().low[i] * out.strides()[i];
  }
  if (x.size()) {
    copy_to_part(x, out, offset);
  }
}

void full(const Full&, const array& value, array& out) {
  allocate_output(out);
  copy_strided(
      value.data<char>(),
      broadcast_strides(value, out.shape()),
      out.data<char>(),
      out.strides(),
      out.shape(),
      out.itemsize());
}

void arange(const Arange& op, const std::vector<array>&, array& out) {
  const auto& [start, step, count] = op.params();
  allocate_output(out);
  detail::visit_dtype(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = out.data<T>();
    if constexpr (std::is_integral_v<T>) {
      // As if each were start and step rounded first.
      auto first = static_cast<int64_t>(start);
      // The step of a single element may be infinite.
      auto by = count > 1 ? static_cast<int64_t>(start + step) - first : 0;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(first + i * by);
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        // An infinite step has no multiple of 0.
        to[i] = T(i == 0 ? start : start + static_cast<double>(i) * step);
      }
    }
  });
}

void number_of_elements(
    const NumberOfElements& op, const array& x, array& out) {
  const auto& [axes, inverted, dtype] = op.params();
  double count = 1;
  for (int axis : axes) {
    count *= x.shape(axis);
  }
  allocate_output(out);
  detail::visit_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    *out.data<T>() = detail::convert<T>(inverted ? 1.0 / count : count);
  });
}

}  // namespace mlx::core::cpu
