// Reading at positions: whole rows by memcpy where memory allows, else element
// by element. Moves 2 x the bytes of the result and the indices once.
#include "backend/cpu/gather.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/axis_plan.h"
#include "backend/cpu/copy.h"
#include "backend/cpu/index_reader.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

constexpr int64_t kGrainBytes = 32 << 10;
/// Slices from this size on are copied by several threads each.
constexpr int64_t kLargeSlice = 1 << 20;

template <typename F>
void visit_itemsize(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

struct SlicePlan {
  Shape shape;
  Strides strides;
  int64_t size = 1;

  SlicePlan(const Shape& sizes, const Strides& all) {
    std::tie(shape, strides) = collapse_contiguous_dims(sizes, all);
    if (shape.empty()) {
      shape = {1};
      strides = {0};
    }
    for (ShapeElem n : shape) {
      size *= n;
    }
  }
  bool is_run() const { return shape.size() == 1 && strides[0] == 1; }
};

// One slice to dense memory.
template <typename T>
void copy_slice(const T* from, const SlicePlan& plan, T* to) {
  int last = static_cast<int>(plan.shape.size()) - 1;
  int64_t inner = plan.shape[last];
  int64_t stride = plan.strides[last];
  ContiguousIterator rows(plan.shape, plan.strides, last);
  for (int64_t done = 0; done < plan.size; done += inner, rows.step()) {
    const T* row = from + rows.loc;
    if (stride == 1) {
      std::memcpy(to + done, row, inner * sizeof(T));
    } else {
      for (int64_t i = 0; i < inner; ++i) {
        to[done + i] = row[i * stride];
      }
    }
  }
}

template <typename T>
void copy_slices(
    const T* from,
    const SlicePlan& plan,
    const int64_t* offsets,
    int64_t n,
    T* to) {
  if (plan.size == 1) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] = from[offsets[i]];
    }
  } else if (plan.is_run()) {
    size_t bytes = plan.size * sizeof(T);
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(to + i * plan.size, from + offsets[i], bytes);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      copy_slice(from + offsets[i], plan, to + i * plan.size);
    }
  }
}

template <typename T>
void gather_typed(
    const T* from, const SlicePlan& plan, const IndexReader& reader, T* to) {
  int64_t bytes = plan.size * static_cast<int64_t>(sizeof(T));
  if (bytes >= kLargeSlice) {
    for (int64_t i = 0; i < reader.size(); ++i) {
      int64_t offset;
      reader.read(i, 1, &offset);
      copy_strided(
          from + offset,
          plan.strides,
          to + i * plan.size,
          make_contiguous_strides(plan.shape),
          plan.shape,
          sizeof(T));
    }
    return;
  }
  parallel_for(
      reader.size(),
      std::max<int64_t>(1, kGrainBytes / bytes),
      [&](size_t begin, size_t end) {
        int64_t offsets[kIndexBlock];
        for (int64_t i = begin; i < static_cast<int64_t>(end);) {
          int64_t n = std::min<int64_t>(end - i, kIndexBlock);
          reader.read(i, n, offsets);
          copy_slices(from, plan, offsets, n, to + i * plan.size);
          i += n;
        }
      });
}

}  // namespace

void gather(const Gather& op, const std::vector<array>& inputs, array& out) {
  char* to = allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  const array& a = inputs[0];
  const auto& [axes, slice_sizes] = op.params();
  IndexReader reader(
      "gather",
      inputs.data() + 1,
      inputs.size() - 1,
      axes,
      a.shape(),
      a.strides(),
      slice_sizes,
      Outside::clamp);
  SlicePlan plan(slice_sizes, a.strides());
  visit_itemsize(a.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    gather_typed(a.data<T>(), plan, reader, reinterpret_cast<T*>(to));
  });
}

namespace {

template <typename T>
class AxisGather {
 public:
  AxisGather(const array& a, const array& indices, array& out, int axis)
      : from_(a.data<T>()),
        to_(out.data<T>()),
        index_base_(indices.data<char>()),
        index_type_(indices.dtype()),
        index_step_(indices.strides(axis)),
        count_(indices.shape(axis)),
        axis_{
            "take_along_axis",
            a.shape(axis),
            a.shape(axis) - 1,
            a.strides(axis)},
        check_(check_indices()),
        plan_(indices.shape(), {a.strides(), indices.strides()}, axis) {
    inner_shared_ = plan_.is_shared(1);
    slice_ = {plan_.inner_shape, plan_.inner[0]};
    // Indices that are the same for all rows are read once.
    bool same = inner_shared_;
    for (int64_t s : plan_.outer[1]) {
      same = same && s == 0;
    }
    if (same && plan_.outer_size > 1) {
      offsets_.resize(count_);
      for (int64_t i = 0; i < count_; i += kIndexBlock) {
        int64_t n = std::min(count_ - i, kIndexBlock);
        read(i * index_step_, index_step_, n, offsets_.data() + i);
      }
    }
  }

  // Rows begin to end of the result's (outer x count) rows of inner elements.
  void run(int64_t begin, int64_t end) const {
    int64_t offsets[kIndexBlock];
    for (int64_t row = begin; row < end;) {
      int64_t outer = row / count_;
      int64_t at = row % count_;
      const T* from =
          from_ + elem_to_loc(outer, plan_.outer_shape, plan_.outer[0]);
      int64_t indices = elem_to_loc(outer, plan_.outer_shape, plan_.outer[1]) +
                        at * index_step_;
      int64_t n = std::min(end - row, count_ - at);
      T* to = to_ + row * plan_.inner_size;
      if (!offsets_.empty()) {
        copy_slices(from, slice_, offsets_.data() + at, n, to);
        row += n;
      } else if (inner_shared_) {
        n = std::min(n, kIndexBlock);
        read(indices, index_step_, n, offsets);
        copy_slices(from, slice_, offsets, n, to);
        row += n;
      } else {
        copy_elements(from, indices, to, offsets);
        ++row;
      }
    }
  }

  int64_t rows() const { return plan_.outer_size * count_; }
  int64_t row_bytes() const {
    return plan_.inner_size * static_cast<int64_t>(sizeof(T));
  }

 private:
  void read(int64_t loc, int64_t step, int64_t n, int64_t* offsets) const {
    std::fill_n(offsets, n, 0);
    add_offsets(
        index_base_ + loc * index_type_.size(),
        index_type_,
        step,
        n,
        axis_,
        Outside::clamp,
        check_,
        offsets);
  }

  // One row whose elements have an index each.
  void copy_elements(
      const T* from, int64_t indices, T* to, int64_t* offsets) const {
    int last = static_cast<int>(plan_.inner_shape.size()) - 1;
    int64_t inner = plan_.inner_shape[last];
    int64_t stride = plan_.inner[0][last];
    int64_t step = plan_.inner[1][last];
    ContiguousIterator source(plan_.inner_shape, plan_.inner[0], last);
    ContiguousIterator index(plan_.inner_shape, plan_.inner[1], last);
    for (int64_t done = 0; done < plan_.inner_size; done += inner) {
      const T* row = from + source.loc;
      for (int64_t i = 0; i < inner; i += kIndexBlock) {
        int64_t n = std::min(inner - i, kIndexBlock);
        read(indices + index.loc + i * step, step, n, offsets);
        for (int64_t j = 0; j < n; ++j) {
          to[done + i + j] = row[offsets[j] + (i + j) * stride];
        }
      }
      source.step();
      index.step();
    }
  }

  const T* from_;
  T* to_;
  const char* index_base_;
  Dtype index_type_;
  int64_t index_step_;
  int64_t count_;
  IndexedAxis axis_;
  bool check_;
  AxisPlan plan_;
  bool inner_shared_;
  SlicePlan slice_{{}, {}};
  std::vector<int64_t> offsets_;
};

}  // namespace

void gather_axis(
    const GatherAxis& op, const array& a, const array& indices, array& out) {
  allocate_output(out);
  if (out.size() == 0) {
    return;
  }
  visit_itemsize(a.itemsize(), [&](auto tag) {
    AxisGather<decltype(tag)> work(a, indices, out, op.params().axis);
    parallel_for(
        work.rows(),
        std::max<int64_t>(1, kGrainBytes / work.row_bytes()),
        [&](size_t begin, size_t end) { work.run(begin, end); });
  });
}

}  // namespace mlx::core::cpu
