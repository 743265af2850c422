// Writing rows where a mask is true: blocks of the mask are counted, then each
// block knows its first row.
#include <algorithm>
#include <numeric>

#include "backend/cpu/copy.h"
#include "backend/cpu/in_place.h"
#include "backend/cpu/scatter.h"
#include "backend/cpu/threads.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

constexpr size_t kBlock = 4096;

// For every block of the mask the number of its first row, and the count.
std::vector<size_t> first_rows(const bool* is_set, size_t n) {
  size_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<size_t> first(blocks + 1, 0);
  parallel_for(blocks, 8, [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      first[b + 1] = std::count(
          is_set + b * kBlock, is_set + std::min(n, (b + 1) * kBlock), true);
    }
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

// Rows of one element, without branches: what is not set is written back.
template <typename T>
void put_elements(
    T* to, const bool* is_set, size_t n, const T* from, size_t given) {
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    T value = from[std::min(next, given - 1)];
    to[i] = is_set[i] ? value : to[i];
    next += is_set[i];
  }
}

void put_elements(
    char* to,
    const bool* is_set,
    size_t n,
    const char* from,
    size_t given,
    size_t itemsize) {
  auto put = [&](auto tag) {
    using T = decltype(tag);
    put_elements(
        reinterpret_cast<T*>(to),
        is_set,
        n,
        reinterpret_cast<const T*>(from),
        given);
  };
  switch (itemsize) {
    case 1:
      return put(uint8_t{});
    case 2:
      return put(uint16_t{});
    case 4:
      return put(uint32_t{});
    default:
      return put(uint64_t{});
  }
}

}  // namespace

void masked_scatter(
    const MaskedScatter&,
    const array& src,
    const array& mask_in,
    const array& rows_in,
    array& out) {
  start_from(src, out);
  if (!out.flags().row_contiguous) {
    array whole = row_contiguous(out);
    out.copy_shared_buffer(whole);
  }
  array mask = row_contiguous(mask_in);
  array rows = row_contiguous(rows_in);
  size_t n = mask.size();
  if (n == 0) {
    return;
  }
  const bool* is_set = mask.data<bool>();
  std::vector<size_t> first = first_rows(is_set, n);
  size_t blocks = first.size() - 1;
  auto given = static_cast<size_t>(rows.shape(0));
  if (first.back() > given) {
    throw std::runtime_error(message(
        "masked_scatter",
        "too few values: ",
        given,
        " rows for ",
        first.back(),
        " true entries of the mask."));
  }
  size_t bytes = out.nbytes() / n;
  if (bytes == 0) {
    return;
  }
  Combine combine = find_combine(Accumulate::none, out.dtype());
  auto length = static_cast<int64_t>(bytes / out.itemsize());
  parallel_for(
      blocks,
      std::max<size_t>(1, 8 / (1 + bytes / 64)),
      [&](size_t begin, size_t end) {
        for (size_t b = begin; b < end; ++b) {
          const char* from = rows.data<char>() + first[b] * bytes;
          size_t count = std::min(n - b * kBlock, kBlock);
          if (length == 1 && first[b + 1] > first[b]) {
            put_elements(
                out.data<char>() + b * kBlock * bytes,
                is_set + b * kBlock,
                count,
                from,
                given - first[b],
                bytes);
            continue;
          }
          for (size_t i = b * kBlock; i < b * kBlock + count; ++i) {
            if (is_set[i]) {
              combine.row(out.data<char>() + i * bytes, 1, from, 1, length);
              from += bytes;
            }
          }
        }
      });
}

}  // namespace mlx::core::cpu
