// Rows are spread over the threads. Each element moves in and out once.
#include "backend/cpu/norms.h"

#include <algorithm>

#include "backend/cpu/copy.h"
#include "backend/cpu/kernels/norms.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

// Elements that a thread takes at least.
constexpr size_t kGrain = 16384;

template <typename Kernel>
void norm(
    const fast::NormParams& params,
    const std::vector<array>& inputs,
    array& out,
    const Kernel& kernel) {
  const array& x = inputs[0];
  bool in_place = x.flags().row_contiguous && is_donatable(x, out);
  array in = row_contiguous(x);
  if (in_place) {
    out.copy_shared_buffer(x);
  } else {
    allocate_output(out);
  }
  if (out.size() == 0) {
    return;
  }
  std::vector<array> parameters;
  for (size_t i = 1; i < inputs.size(); ++i) {
    parameters.push_back(row_contiguous(inputs[i]));
  }
  const char* weight =
      params.has_weight ? parameters.front().data<char>() : nullptr;
  const char* bias = params.has_bias ? parameters.back().data<char>() : nullptr;
  size_t n = x.shape(-1);
  size_t row_bytes = n * x.itemsize();
  const char* from = in.data<char>();
  char* to = out.data<char>();
  bool streaming = !in_place && should_stream_rows(out.nbytes(), row_bytes);
  parallel_rows(
      from,
      to,
      out.size() / n,
      row_bytes,
      std::max<size_t>(1, kGrain / n),
      streaming,
      [&](const char* x_rows, char* y_rows, size_t rows) {
        kernel(
            NormRows{x_rows, weight, bias, y_rows, rows, n, params.eps},
            out.dtype());
      });
}

}  // namespace

void rms_norm(
    const fast::RMSNorm& op, const std::vector<array>& inputs, array& out) {
  norm(op.params(), inputs, out, rms_norm_rows);
}

void layer_norm(
    const fast::LayerNorm& op, const std::vector<array>& inputs, array& out) {
  norm(op.params(), inputs, out, layer_norm_rows);
}

}  // namespace mlx::core::cpu
