// Strided copies: collapse axes, then copy runs, gather short rows, or
// transpose in tiles, whichever the two innermost strides ask for.
#include "backend/cpu/copy.h"

#include <cstring>

#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

constexpr size_t kGrainBytes = 64 << 10;

// One row of n elements.
template <typename T>
void copy_row(const T* src, int64_t ss, T* dst, int64_t ds, int64_t n) {
  if (ss == 1 && ds == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (ss == 0 && ds == 1) {
    std::fill_n(dst, n, *src);
  } else if (ds == 1) {
    for (int64_t i = 0; i < n; ++i) {
      dst[i] = src[i * ss];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      dst[i * ds] = src[i * ss];
    }
  }
}

// rows x cols where the source runs along rows and the target along columns:
// tiles that fit the first cache, so that every line is used whole.
template <typename T>
void copy_transposed(
    const T* src,
    int64_t src_col,
    T* dst,
    int64_t dst_row,
    int64_t row_begin,
    int64_t row_end,
    int64_t cols) {
  constexpr int64_t kTile = 64 / static_cast<int64_t>(sizeof(T)) * 2;
  for (int64_t r0 = row_begin; r0 < row_end; r0 += kTile) {
    int64_t r1 = std::min(r0 + kTile, row_end);
    for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
      int64_t c1 = std::min(c0 + kTile, cols);
      for (int64_t r = r0; r < r1; ++r) {
        T* to = dst + r * dst_row;
        const T* from = src + r;
        for (int64_t c = c0; c < c1; ++c) {
          to[c] = from[c * src_col];
        }
      }
    }
  }
}

struct Plan {
  Shape shape;
  Strides src;
  Strides dst;
};

Plan make_plan(const Shape& shape, const Strides& src, const Strides& dst) {
  auto [merged, strides] = collapse_contiguous_dims(
      shape, {src, dst}, std::numeric_limits<int32_t>::max());
  Plan plan{merged, strides[0], strides[1]};
  if (plan.shape.empty()) {
    plan = {Shape{1}, Strides{0}, Strides{0}};
  }
  return plan;
}

template <typename T>
void run_plan(const Plan& plan, const T* src, T* dst) {
  size_t last = plan.shape.size() - 1;
  int64_t cols = plan.shape[last];
  int64_t ss = plan.src[last];
  int64_t ds = plan.dst[last];
  size_t outer = 1;
  for (size_t i = 0; i < last; ++i) {
    outer *= plan.shape[i];
  }
  // The transposed case: source contiguous along the second last axis.
  if (last >= 1 && ds == 1 && ss != 1 && ss != 0 && plan.src[last - 1] == 1 &&
      plan.shape[last - 1] >= 16 && cols >= 8) {
    int64_t rows = plan.shape[last - 1];
    size_t planes = outer / rows;
    constexpr int64_t kRowBlock = 128 / static_cast<int64_t>(sizeof(T));
    size_t blocks = (rows + kRowBlock - 1) / kRowBlock;
    size_t block_bytes = kRowBlock * cols * sizeof(T);
    parallel_for(
        planes * blocks,
        std::max<size_t>(1, kGrainBytes / block_bytes),
        [&](size_t begin, size_t end) {
          ContiguousIterator from(
              plan.shape, plan.src, static_cast<int>(last) - 1);
          ContiguousIterator to(
              plan.shape, plan.dst, static_cast<int>(last) - 1);
          for (size_t i = begin; i < end; ++i) {
            from.seek(static_cast<int64_t>(i / blocks));
            to.seek(static_cast<int64_t>(i / blocks));
            int64_t r0 = static_cast<int64_t>(i % blocks) * kRowBlock;
            copy_transposed(
                src + from.loc,
                ss,
                dst + to.loc,
                plan.dst[last - 1],
                r0,
                std::min(r0 + kRowBlock, rows),
                cols);
          }
        });
    return;
  }
  if (outer == 1) {
    parallel_for(
        static_cast<size_t>(cols),
        kGrainBytes / sizeof(T),
        [&](size_t begin, size_t end) {
          int64_t i = static_cast<int64_t>(begin);
          copy_row(
              src + i * ss,
              ss,
              dst + i * ds,
              ds,
              static_cast<int64_t>(end - begin));
        });
    return;
  }
  size_t row_bytes = cols * sizeof(T);
  parallel_for(
      outer,
      std::max<size_t>(1, kGrainBytes / row_bytes),
      [&](size_t begin, size_t end) {
        ContiguousIterator from(plan.shape, plan.src, static_cast<int>(last));
        ContiguousIterator to(plan.shape, plan.dst, static_cast<int>(last));
        from.seek(static_cast<int64_t>(begin));
        to.seek(static_cast<int64_t>(begin));
        for (size_t i = begin; i < end; ++i) {
          copy_row(src + from.loc, ss, dst + to.loc, ds, cols);
          from.step();
          to.step();
        }
      });
}

}  // namespace

void copy_bytes(const void* src, void* dst, size_t nbytes) {
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  parallel_for(nbytes, kGrainBytes * 4, [&](size_t begin, size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

void copy_strided(
    const void* src,
    const Strides& src_strides,
    void* dst,
    const Strides& dst_strides,
    const Shape& shape,
    size_t itemsize) {
  for (ShapeElem n : shape) {
    if (n == 0) {
      return;
    }
  }
  Plan plan = make_plan(shape, src_strides, dst_strides);
  switch (itemsize) {
    case 1:
      return run_plan(
          plan, static_cast<const uint8_t*>(src), static_cast<uint8_t*>(dst));
    case 2:
      return run_plan(
          plan, static_cast<const uint16_t*>(src), static_cast<uint16_t*>(dst));
    case 4:
      return run_plan(
          plan, static_cast<const uint32_t*>(src), static_cast<uint32_t*>(dst));
    default:
      return run_plan(
          plan, static_cast<const uint64_t*>(src), static_cast<uint64_t*>(dst));
  }
}

void copy_into_new(const array& in, array& out) {
  char* to = allocate_output(out);
  if (in.flags().row_contiguous) {
    copy_bytes(in.data<char>(), to, in.nbytes());
  } else {
    copy_strided(
        in.data<char>(),
        in.strides(),
        to,
        out.strides(),
        in.shape(),
        in.itemsize());
  }
}

array row_contiguous(const array& in) {
  if (in.flags().row_contiguous) {
    return in;
  }
  array out(in.shape(), in.dtype(), nullptr, {});
  copy_into_new(in, out);
  out.set_status(array::available);
  return out;
}

}  // namespace mlx::core::cpu
