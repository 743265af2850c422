// Rotary encoding: a table of cosines and sines a token, shared by its heads.
#include "backend/cpu/kernels/rope.h"

#include <cmath>
#include <vector>

#include "backend/cpu/copy.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

std::vector<float> powers_of_base(int dims, float base) {
  std::vector<float> inverse(dims / 2);
  for (size_t i = 0; i < inverse.size(); ++i) {
    inverse[i] = static_cast<float>(std::pow(
        static_cast<double>(base), -2.0 * static_cast<double>(i) / dims));
  }
  return inverse;
}

// Kept from call to call: the layers of a network ask for the same, and powers
// cost more than turning the heads of one token.
std::vector<float> inverse_frequencies(
    const fast::RoPEParams& p, const std::vector<array>& inputs) {
  if (inputs.size() == 3) {
    const array& freqs = inputs[2];
    std::vector<float> inverse(p.dims / 2);
    for (size_t i = 0; i < inverse.size(); ++i) {
      inverse[i] =
          1.0f /
          freqs.data<float>()[static_cast<int64_t>(i) * freqs.strides(0)];
    }
    return inverse;
  }
  struct Last {
    int dims = 0;
    float base = 0.0f;
    std::vector<float> inverse;
  };
  static thread_local Last last;
  if (last.dims != p.dims || last.base != p.base) {
    last = {p.dims, p.base, powers_of_base(p.dims, p.base)};
  }
  return last.inverse;
}

// The cosines, then the sines, of one token's angles.
void fill_angles(
    const fast::RoPEParams& p,
    float position,
    const std::vector<float>& inverse,
    float* angles) {
  size_t half = inverse.size();
  std::vector<float> theta(half);
  for (size_t i = 0; i < half; ++i) {
    theta[i] = position * p.scale * inverse[i];
    theta[i] = p.forward ? theta[i] : -theta[i];
  }
  const void* in[] = {theta.data()};
  elementwise_block(ElementwiseOp::cos, float32, 0)(in, angles, half);
  elementwise_block(ElementwiseOp::sin, float32, 0)(in, angles + half, half);
}

}  // namespace

void rope(const fast::RoPE& op, const std::vector<array>& inputs, array& out) {
  const fast::RoPEParams& p = op.params();
  array x = inputs[0].strides(-1) == 1 || inputs[0].shape(-1) == 1
                ? inputs[0]
                : row_contiguous(inputs[0]);
  // Heads of a token lie one stride apart only if the axes between batch and
  // token are one; else they are made so.
  if (x.ndim() > 4) {
    x = row_contiguous(x);
  }
  allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  const array& offset = inputs[1];
  std::vector<float> inverse = inverse_frequencies(p, inputs);
  size_t batch = x.shape(0);
  size_t tokens = x.shape(-2);
  size_t features = x.shape(-1);
  size_t heads = x.size() / (batch * tokens * features);
  int64_t head_stride = x.ndim() == 3 ? 0
                        : x.ndim() == 4
                            ? x.strides(1)
                            : static_cast<int64_t>(tokens * features);
  size_t grain = std::max<size_t>(1, 8192 / (heads * features));
  parallel_for(batch * tokens, grain, [&](size_t begin, size_t end) {
    std::vector<float> angles(2 * inverse.size());
    for (size_t i = begin; i < end; ++i) {
      size_t b = i / tokens;
      size_t t = i % tokens;
      int64_t at =
          offset.ndim() ? static_cast<int64_t>(b) * offset.strides(0) : 0;
      float position = static_cast<float>(
          offset.data<int32_t>()[at] + static_cast<int64_t>(t));
      fill_angles(p, position, inverse, angles.data());
      int64_t from = static_cast<int64_t>(b) * x.strides(0) +
                     static_cast<int64_t>(t) * x.strides(-2);
      size_t to = (b * heads * tokens + t) * features;
      size_t item = x.itemsize();
      rope_rows(RopeRows{
          x.data<char>() + from * static_cast<int64_t>(item),
          out.data<char>() + to * item,
          head_stride,
          static_cast<int64_t>(tokens * features),
          heads,
          features,
          inverse.size(),
          p.traditional,
          angles.data(),
          angles.data() + inverse.size(),
          x.dtype()});
    }
  });
}

}  // namespace mlx::core::cpu
