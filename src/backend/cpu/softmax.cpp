// Rows are spread over the threads. Moves each element in and out once; the
// exponentials hide behind memory for large arrays.
#include "backend/cpu/softmax.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/copy.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/softmax.h"
#include "backend/cpu/streaming.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

// Elements that a thread takes at least: about 10 us of exponentials.
constexpr size_t kGrain = 8192;
// Long rows are summed in parts of this length.
constexpr size_t kPart = 1 << 16;

}  // namespace

void softmax(const Softmax&, const array& x, array& out) {
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
  size_t n = x.shape(-1);
  const char* from = in.data<char>();
  char* to = out.data<char>();
  size_t row_bytes = n * x.itemsize();
  bool streaming = !in_place && should_stream_rows(out.nbytes(), row_bytes);
  parallel_rows(
      from,
      to,
      out.size() / n,
      row_bytes,
      std::max<size_t>(1, kGrain / n),
      streaming,
      [&](const char* x_rows, char* y_rows, size_t rows) {
        softmax_rows(x_rows, y_rows, rows, n, x.dtype());
      });
}

void logsumexp(const LogSumExp&, const array& x, array& out) {
  array in = row_contiguous(x);
  allocate_output(out);
  if (x.size() == 0) {
    return;
  }
  size_t n = x.shape(-1);
  size_t parts = (n + kPart - 1) / kPart;
  std::vector<double> maxima(out.size() * parts);
  std::vector<double> sums(out.size() * parts);
  parallel_for(
      out.size() * parts,
      std::max<size_t>(1, kGrain / std::min(n, kPart)),
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          size_t first = i % parts * kPart;
          logsumexp_row(
              in.data<char>() + (i / parts * n + first) * x.itemsize(),
              std::min(kPart, n - first),
              &maxima[i],
              &sums[i],
              x.dtype());
        }
      });
  std::vector<double> results(out.size());
  for (size_t r = 0; r < results.size(); ++r) {
    double* m = &maxima[r * parts];
    double top = *std::max_element(m, m + parts);
    double sum = 0;
    for (size_t k = 0; k < parts; ++k) {
      sum += m[k] == top ? sums[r * parts + k]
                         : sums[r * parts + k] * std::exp(m[k] - top);
    }
    results[r] = top + std::log(sum);
  }
  const void* wide[] = {results.data()};
  convert_block(float64, out.dtype())(wide, out.data<char>(), results.size());
}

}  // namespace mlx::core::cpu
