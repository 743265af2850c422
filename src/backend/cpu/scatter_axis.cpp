// Writing single elements along an axis. Elements beside the axis are
// independent, so threads share those out; along the axis values are taken in
// order.
#include <algorithm>

#include "backend/cpu/axis_plan.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/in_place.h"
#include "backend/cpu/index_reader.h"
#include "backend/cpu/scatter.h"
#include "backend/cpu/threads.h"

namespace mlx::core::cpu {

namespace {

constexpr int64_t kGrain = 4096;

class AxisScatter {
 public:
  AxisScatter(
      const Combine& combine,
      const array& indices,
      const array& values,
      array& out,
      int axis)
      : combine_(combine),
        to_(out.data<char>()),
        from_(values.data<char>()),
        index_base_(indices.data<char>()),
        index_type_(indices.dtype()),
        item_(static_cast<int64_t>(out.itemsize())),
        count_(indices.shape(axis)),
        index_step_(indices.strides(axis)),
        value_step_(values.strides(axis)),
        axis_{
            "put_along_axis",
            out.shape(axis),
            out.shape(axis) - 1,
            out.strides(axis)},
        check_(check_indices()),
        plan_(
            indices.shape(),
            {out.strides(), indices.strides(), values.strides()},
            axis) {}

  /// Whether the inner axes are one loop, as run() needs.
  bool is_simple() const { return plan_.inner_shape.size() <= 1; }

  void run() const {
    int64_t inner = plan_.inner_size;
    int64_t work = count_ * inner;
    // Where there are few outer positions, inner ones are shared out too.
    int64_t pieces = 1;
    if (plan_.outer_size < 4 * num_threads()) {
      pieces = std::max<int64_t>(1, std::min(work / kGrain, inner / 16));
    }
    int64_t piece = (inner + pieces - 1) / pieces;
    parallel_for(
        plan_.outer_size * pieces,
        std::max<int64_t>(1, kGrain / std::max<int64_t>(1, count_ * piece)),
        [&](size_t begin, size_t end) {
          for (int64_t i = begin; i < static_cast<int64_t>(end); ++i) {
            int64_t at = i % pieces * piece;
            block(i / pieces, at, std::min(at + piece, inner));
          }
        });
  }

 private:
  int64_t outer_loc(int64_t outer, size_t operand) const {
    return elem_to_loc(outer, plan_.outer_shape, plan_.outer[operand]);
  }
  int64_t stride(size_t operand) const {
    return plan_.inner_shape.empty() ? 0 : plan_.inner[operand][0];
  }

  // Inner elements begin to end of one outer position.
  void block(int64_t outer, int64_t begin, int64_t end) const {
    int64_t to = outer_loc(outer, 0) + begin * stride(0);
    int64_t index = outer_loc(outer, 1) + begin * stride(1);
    int64_t from = outer_loc(outer, 2) + begin * stride(2);
    int64_t n = end - begin;
    if (plan_.inner_size == 1) {
      elements(to, 0, index, index_step_, from, value_step_, count_);
      return;
    }
    for (int64_t j = 0; j < count_; ++j) {
      if (stride(1) == 0) {
        row(to, index, from, n);
      } else {
        elements(to, stride(0), index, stride(1), from, stride(2), n);
      }
      index += index_step_;
      from += value_step_;
    }
  }

  void read(int64_t index, int64_t step, int64_t n, int64_t* offsets) const {
    std::fill_n(offsets, n, 0);
    add_offsets(
        index_base_ + index * index_type_.size(),
        index_type_,
        step,
        n,
        axis_,
        Outside::leave_out,
        check_,
        offsets);
  }

  // n neighbours with one index.
  void row(int64_t to, int64_t index, int64_t from, int64_t n) const {
    int64_t offset;
    read(index, 0, 1, &offset);
    if (offset != kLeftOut) {
      combine_.row(
          to_ + (to + offset) * item_,
          stride(0),
          from_ + from * item_,
          stride(2),
          n);
    }
  }

  // n elements with an index each, a step apart in each operand.
  void elements(
      int64_t to,
      int64_t to_step,
      int64_t index,
      int64_t index_step,
      int64_t from,
      int64_t from_step,
      int64_t n) const {
    int64_t targets[kIndexBlock];
    int64_t sources[kIndexBlock];
    for (int64_t begin = 0; begin < n; begin += kIndexBlock) {
      int64_t count = std::min(kIndexBlock, n - begin);
      read(index + begin * index_step, index_step, count, targets);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        bool keep = targets[i] != kLeftOut;
        int64_t offset = keep ? targets[i] : 0;
        targets[kept] = to + (begin + i) * to_step + offset;
        sources[kept] = from + (begin + i) * from_step;
        kept += keep;
      }
      combine_.at(to_, targets, from_, sources, kept);
    }
  }

  const Combine& combine_;
  char* to_;
  const char* from_;
  const char* index_base_;
  Dtype index_type_;
  int64_t item_;
  int64_t count_;
  int64_t index_step_;
  int64_t value_step_;
  IndexedAxis axis_;
  bool check_;
  AxisPlan plan_;
};

}  // namespace

void scatter_axis(
    const ScatterAxis& op,
    const array& src,
    const array& indices,
    const array& values,
    array& out) {
  const auto& [mode, axis] = op.params();
  start_from(src, out);
  if (indices.size() == 0) {
    return;
  }
  Combine combine = find_combine(mode, out.dtype());
  AxisScatter work(combine, indices, values, out, axis);
  if (work.is_simple()) {
    work.run();
    return;
  }
  // Mixed layouts: bring all three into row-major order.
  if (!out.flags().row_contiguous) {
    array whole = row_contiguous(out);
    out.copy_shared_buffer(whole);
  }
  array dense_indices = row_contiguous(indices);
  array dense_values = row_contiguous(values);
  AxisScatter(combine, dense_indices, dense_values, out, axis).run();
}

}  // namespace mlx::core::cpu
