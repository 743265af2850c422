// Taking over memory, and the strided loop around the combining kernels.
#include "backend/cpu/in_place.h"

#include <algorithm>
#include <tuple>

#include "backend/cpu/copy.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

bool is_dense(const array& a) {
  bool positive = true;
  for (int64_t s : a.strides()) {
    positive = positive && s >= 0;
  }
  return positive && a.flags().contiguous && a.data_size() == a.size();
}

}  // namespace

void start_from(const array& src, array& out) {
  if (is_dense(src) && is_donatable(src, out)) {
    out.copy_shared_buffer(src);
  } else {
    copy_into_new(src, out);
  }
}

void combine_strided(
    const Combine& combine,
    const void* src,
    const Strides& src_strides,
    void* dst,
    const Strides& dst_strides,
    const Shape& shape,
    size_t itemsize) {
  auto [merged, strides] = collapse_contiguous_dims(
      shape,
      std::vector<Strides>{src_strides, dst_strides},
      std::numeric_limits<int32_t>::max());
  if (merged.empty()) {
    merged = {1};
    strides = {{0}, {0}};
  }
  int last = static_cast<int>(merged.size()) - 1;
  int64_t inner = merged[last];
  int64_t ss = strides[0][last];
  int64_t ds = strides[1][last];
  Shape rows(merged.begin(), merged.begin() + last);
  const Strides& row_ss = strides[0];
  const Strides& row_ds = strides[1];
  int64_t outer = 1;
  for (ShapeElem n : rows) {
    outer *= n;
  }
  auto item = static_cast<int64_t>(itemsize);
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  constexpr int64_t kGrain = 8192;
  // Several threads share a row when rows are long.
  int64_t pieces = std::max<int64_t>(1, inner / kGrain);
  int64_t piece = (inner + pieces - 1) / pieces;
  parallel_for(
      outer * pieces,
      std::max<int64_t>(1, kGrain / piece),
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          int64_t row = static_cast<int64_t>(i) / pieces;
          int64_t at = static_cast<int64_t>(i) % pieces * piece;
          int64_t source = elem_to_loc(row, rows, row_ss) + at * ss;
          int64_t target = elem_to_loc(row, rows, row_ds) + at * ds;
          combine.row(
              to + target * item,
              ds,
              from + source * item,
              ss,
              std::min(piece, inner - at));
        }
      });
}

}  // namespace mlx::core::cpu
