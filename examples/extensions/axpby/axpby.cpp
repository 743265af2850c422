#include "axpby/axpby.h"

#include <stdexcept>
#include <type_traits>

#include "mlx/allocator.h"
#include "mlx/backend/common/utils.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/backend/cpu/parallel.h"
#include "mlx/utils.h"

#ifdef MY_EXT_CUDA
#include "axpby/axpby_kernel.h"
#include "mlx/backend/cuda/encoder.h"
#endif

namespace my_ext {

// ---- the operations ------------------------------------------------------

mx::array simple_axpby(
    const mx::array& x,
    const mx::array& y,
    const float alpha,
    const float beta,
    mx::StreamOrDevice s) {
  mx::array ax = mx::multiply(mx::array(alpha), x, s);
  mx::array by = mx::multiply(mx::array(beta), y, s);
  return mx::add(ax, by, s);
}

mx::array axpby(
    const mx::array& x,
    const mx::array& y,
    const float alpha,
    const float beta,
    mx::StreamOrDevice s) {
  mx::Dtype dtype = mx::promote_types(x.dtype(), y.dtype());
  if (!mx::issubdtype(dtype, mx::inexact)) {
    dtype = mx::promote_types(dtype, mx::float32);
  }
  // Nodes of their own, so that Axpby need not know about types and shapes,
  // nor its derivatives.
  std::vector<mx::array> inputs = mx::broadcast_arrays(
      {mx::astype(x, dtype, s), mx::astype(y, dtype, s)}, s);
  return mx::array(
      inputs[0].shape(),
      dtype,
      std::make_shared<Axpby>(mx::to_stream(s), alpha, beta),
      inputs);
}

// ---- on the CPU ----------------------------------------------------------

namespace {

// Halves are computed in float32 and rounded once.
template <typename T>
using compute_t = std::conditional_t<
    std::is_same_v<T, mx::float16_t> || std::is_same_v<T, mx::bfloat16_t>,
    float,
    T>;

// Without gaps and in one order: such arrays can be walked as memory lies.
bool same_layout(const mx::array& x, const mx::array& y) {
  return x.flags().contiguous && y.flags().contiguous &&
         x.data_size() == x.size() && y.data_size() == y.size() &&
         x.strides() == y.strides();
}

template <typename T>
void axpby_impl(
    const mx::array& x,
    const mx::array& y,
    mx::array& out,
    float alpha,
    float beta,
    mx::Stream stream) {
  bool in_order = same_layout(x, y);
  if (in_order) {
    out.set_data(
        mx::allocator::malloc(out.nbytes()),
        x.data_size(),
        x.strides(),
        x.flags());
  } else {
    out.set_data(mx::allocator::malloc(out.nbytes()));
  }

  auto& encoder = mx::cpu::get_command_encoder(stream);
  encoder.set_input_array(x);
  encoder.set_input_array(y);
  encoder.set_output_array(out);
  // What runs later must not refer to this frame: pointers, shapes and strides
  // go in by value.
  encoder.dispatch([x_ptr = x.data<T>(),
                    y_ptr = y.data<T>(),
                    out_ptr = out.data<T>(),
                    size = out.size(),
                    shape = out.shape(),
                    x_strides = x.strides(),
                    y_strides = y.strides(),
                    a = static_cast<compute_t<T>>(alpha),
                    b = static_cast<compute_t<T>>(beta),
                    in_order]() {
    using C = compute_t<T>;
    auto at = [=](T x, T y) {
      return static_cast<T>(a * static_cast<C>(x) + b * static_cast<C>(y));
    };
    if (in_order) {
      mx::cpu::parallel_fill(
          out_ptr, size, [&](size_t begin, size_t count, T* to) {
            for (size_t i = 0; i < count; ++i) {
              to[i] = at(x_ptr[begin + i], y_ptr[begin + i]);
            }
          });
    } else {
      mx::cpu::parallel_fill(
          out_ptr, size, [&](size_t begin, size_t count, T* to) {
            for (size_t i = 0; i < count; ++i) {
              auto x_at = mx::elem_to_loc(begin + i, shape, x_strides);
              auto y_at = mx::elem_to_loc(begin + i, shape, y_strides);
              to[i] = at(x_ptr[x_at], y_ptr[y_at]);
            }
          });
    }
  });
}

}  // namespace

void Axpby::eval_cpu(
    const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  const mx::array& x = inputs[0];
  const mx::array& y = inputs[1];
  mx::array& out = outputs[0];
  switch (out.dtype().val()) {
    case mx::Dtype::Val::float32:
      return axpby_impl<float>(x, y, out, alpha_, beta_, stream());
    case mx::Dtype::Val::float16:
      return axpby_impl<mx::float16_t>(x, y, out, alpha_, beta_, stream());
    case mx::Dtype::Val::bfloat16:
      return axpby_impl<mx::bfloat16_t>(x, y, out, alpha_, beta_, stream());
    case mx::Dtype::Val::float64:
      return axpby_impl<double>(x, y, out, alpha_, beta_, stream());
    case mx::Dtype::Val::complex64:
      return axpby_impl<mx::complex64_t>(x, y, out, alpha_, beta_, stream());
    default:
      throw std::runtime_error(
          "[Axpby] computes floating point and complex types only.");
  }
}

// ---- on the GPU ----------------------------------------------------------

#ifdef MY_EXT_CUDA

void Axpby::eval_gpu(
    const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  mx::array& out = outputs[0];
  auto& encoder = mx::cu::get_command_encoder(stream());
  mx::array x = encoder.row_contiguous(inputs[0]);
  mx::array y = encoder.row_contiguous(inputs[1]);
  encoder.allocate(out);

  AxpbyArguments arguments{
      encoder.input<void>(x),
      encoder.input<void>(y),
      encoder.output<void>(out),
      out.size(),
      alpha_,
      beta_};
  switch (out.dtype().val()) {
    case mx::Dtype::Val::float32:
      return launch_float32(arguments, encoder.stream());
    case mx::Dtype::Val::float16:
      return launch_float16(arguments, encoder.stream());
    case mx::Dtype::Val::bfloat16:
      return launch_bfloat16(arguments, encoder.stream());
    case mx::Dtype::Val::float64:
      return launch_float64(arguments, encoder.stream());
    case mx::Dtype::Val::complex64:
      return launch_complex64(arguments, encoder.stream());
    default:
      throw std::runtime_error(
          "[Axpby] computes floating point and complex types only.");
  }
}

#else

void Axpby::eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) {
  throw std::runtime_error(
      "[Axpby] was built without its GPU kernel. Build it where nvcc is, or "
      "pass stream=mx.cpu.");
}

#endif

// ---- transforms ----------------------------------------------------------

std::vector<mx::array> Axpby::jvp(
    const std::vector<mx::array>&,
    const std::vector<mx::array>& tangents,
    const std::vector<int>& argnums) {
  // The operation is linear: the tangent of one input is scaled, those of both
  // go through the operation itself.
  if (argnums.size() == 1) {
    float scale = argnums[0] == 0 ? alpha_ : beta_;
    return {mx::multiply(
        mx::array(scale, tangents[0].dtype()), tangents[0], stream())};
  }
  size_t of_x = argnums[0] == 0 ? 0 : 1;
  return {axpby(tangents[of_x], tangents[1 - of_x], alpha_, beta_, stream())};
}

std::vector<mx::array> Axpby::vjp(
    const std::vector<mx::array>&,
    const std::vector<mx::array>& cotangents,
    const std::vector<int>& argnums,
    const std::vector<mx::array>&) {
  std::vector<mx::array> vjps;
  for (int arg : argnums) {
    float scale = arg == 0 ? alpha_ : beta_;
    vjps.push_back(mx::multiply(
        mx::array(scale, cotangents[0].dtype()), cotangents[0], stream()));
  }
  return vjps;
}

std::pair<std::vector<mx::array>, std::vector<int>> Axpby::vmap(
    const std::vector<mx::array>& inputs, const std::vector<int>& axes) {
  mx::array x = inputs[0];
  mx::array y = inputs[1];
  int axis = axes[0] >= 0 ? axes[0] : axes[1];
  // An input without a batch gets an axis of length 1, which axpby() repeats.
  if (axes[0] < 0) {
    x = mx::expand_dims(x, axis, stream());
  } else if (axes[1] < 0) {
    y = mx::expand_dims(y, axis, stream());
  } else {
    y = mx::moveaxis(y, axes[1], axis, stream());
  }
  return {{axpby(x, y, alpha_, beta_, stream())}, {axis}};
}

bool Axpby::is_equivalent(const mx::Primitive& other) const {
  const auto& one = static_cast<const Axpby&>(other);
  return alpha_ == one.alpha_ && beta_ == one.beta_;
}

std::vector<mx::Shape> Axpby::output_shapes(
    const std::vector<mx::array>& inputs) {
  return {inputs[0].shape()};
}

}  // namespace my_ext
