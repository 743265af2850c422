// Writing slices at positions. Every element of the result belongs to one
// thread, which takes the updates in order, so results do not depend on the
// number of threads: long slices are split among threads, otherwise threads
// share out the result and each picks its updates.
#include "backend/cpu/scatter.h"

#include <algorithm>

#include "backend/cpu/in_place.h"
#include "backend/cpu/index_reader.h"
#include "backend/cpu/threads.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cpu {

namespace {

/// Below this many elements one thread does all.
constexpr int64_t kSerialElements = 16384;
/// Pieces of long slices have at least this many elements.
constexpr int64_t kPiece = 256;
/// Slices of several axes from this size on are worth several threads each.
constexpr int64_t kLargeSlice = 65536;

// Offsets of updates in their array, by number.
class UpdateReader {
 public:
  UpdateReader(const array& updates, int leading) {
    std::tie(shape_, strides_) = collapse_contiguous_dims(
        Shape(updates.shape().begin(), updates.shape().begin() + leading),
        Strides(
            updates.strides().begin(), updates.strides().begin() + leading));
  }

  void read(int64_t begin, int64_t n, int64_t* offsets) const {
    if (shape_.empty()) {
      std::fill_n(offsets, n, 0);
      return;
    }
    int64_t inner = shape_.back();
    for (int64_t i = 0; i < n;) {
      int64_t at = begin + i;
      int64_t end = std::min(n, i + inner - at % inner);
      int64_t loc = elem_to_loc(at, shape_, strides_);
      for (; i < end; ++i, loc += strides_.back()) {
        offsets[i] = loc;
      }
    }
  }

 private:
  Shape shape_;
  Strides strides_;
};

class ScatterWork {
 public:
  ScatterWork(
      const Combine& combine,
      const IndexReader& reader,
      const array& updates,
      array& out)
      : combine_(combine),
        reader_(reader),
        update_reader_(updates, static_cast<int>(updates.ndim() - out.ndim())),
        item_(static_cast<int64_t>(out.itemsize())),
        from_(updates.data<char>()),
        to_(out.data<char>()),
        out_size_(static_cast<int64_t>(out.size())) {
    size_t leading = updates.ndim() - out.ndim();
    std::vector<Strides> strides = {
        Strides(updates.strides().begin() + leading, updates.strides().end()),
        out.strides()};
    std::tie(shape_, strides) = collapse_contiguous_dims(
        Shape(updates.shape().begin() + leading, updates.shape().end()),
        strides,
        std::numeric_limits<int32_t>::max());
    if (shape_.empty()) {
      shape_ = {1};
      strides = {{0}, {0}};
    }
    from_strides_ = strides[0];
    to_strides_ = strides[1];
    for (ShapeElem n : shape_) {
      slice_size_ *= n;
    }
  }

  void run() {
    int64_t elements = reader_.size() * slice_size_;
    bool splits = shape_.size() == 1 && slice_size_ >= 2 * kPiece;
    if (elements < kSerialElements || num_threads() == 1) {
      run_range(0, out_size_);
    } else if (splits && !reader_.may_overlap()) {
      int64_t threads = num_threads();
      int64_t piece = std::max(kPiece, (slice_size_ + threads - 1) / threads);
      int64_t pieces = (slice_size_ + piece - 1) / piece;
      parallel_for(pieces, 1, [&](size_t begin, size_t end) {
        run_columns(
            begin * piece,
            std::min<int64_t>(static_cast<int64_t>(end) * piece, slice_size_));
      });
    } else if (!reader_.may_overlap() && slice_size_ < kLargeSlice) {
      int64_t parts = num_threads();
      int64_t part = (out_size_ + parts - 1) / parts;
      parallel_for(parts, 1, [&](size_t begin, size_t end) {
        run_range(begin * part, static_cast<int64_t>(end) * part);
      });
    } else {
      run_slices();
    }
  }

 private:
  // Calls f(to, from, n) with blocks of pairs of offsets, those of slices
  // that begin in [low, high) of the result.
  template <typename F>
  void for_blocks(int64_t low, int64_t high, F&& f) const {
    int64_t to[kIndexBlock];
    int64_t from[kIndexBlock];
    for (int64_t begin = 0; begin < reader_.size(); begin += kIndexBlock) {
      int64_t n = std::min(kIndexBlock, reader_.size() - begin);
      reader_.read(begin, n, to);
      update_reader_.read(begin, n, from);
      int64_t kept = 0;
      for (int64_t i = 0; i < n; ++i) {
        int64_t target = to[i];
        to[kept] = target;
        from[kept] = from[i];
        kept += target >= low && target < high;
      }
      f(to, from, kept);
    }
  }

  // kLeftOut lies below every range.
  void run_range(int64_t low, int64_t high) const {
    for_blocks(low, high, [&](int64_t* to, int64_t* from, int64_t n) {
      if (slice_size_ == 1) {
        combine_.at(to_, to, from_, from, n);
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        one_slice(to[i], from[i]);
      }
    });
  }

  // Columns begin to end of slices that have one (merged) axis.
  void run_columns(int64_t begin, int64_t end) const {
    int64_t ds = to_strides_[0];
    int64_t ss = from_strides_[0];
    for_blocks(0, out_size_, [&](int64_t* to, int64_t* from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        row(to[i] + begin * ds, from[i] + begin * ss, end - begin);
      }
    });
  }

  // One slice after the other, each on all threads.
  void run_slices() const {
    for_blocks(0, out_size_, [&](int64_t* to, int64_t* from, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        combine_strided(
            combine_,
            from_ + from[i] * item_,
            from_strides_,
            to_ + to[i] * item_,
            to_strides_,
            shape_,
            item_);
      }
    });
  }

  void row(int64_t to, int64_t from, int64_t n) const {
    combine_.row(
        to_ + to * item_,
        to_strides_.back(),
        from_ + from * item_,
        from_strides_.back(),
        n);
  }

  void one_slice(int64_t to, int64_t from) const {
    int last = static_cast<int>(shape_.size()) - 1;
    if (last == 0) {
      row(to, from, slice_size_);
      return;
    }
    int64_t inner = shape_[last];
    ContiguousIterator target(shape_, to_strides_, last);
    ContiguousIterator source(shape_, from_strides_, last);
    for (int64_t done = 0; done < slice_size_; done += inner) {
      row(to + target.loc, from + source.loc, inner);
      target.step();
      source.step();
    }
  }

  const Combine& combine_;
  const IndexReader& reader_;
  UpdateReader update_reader_;
  int64_t item_;
  const char* from_;
  char* to_;
  int64_t out_size_;
  Shape shape_;
  Strides from_strides_;
  Strides to_strides_;
  int64_t slice_size_ = 1;
};

}  // namespace

void scatter(const Scatter& op, const std::vector<array>& inputs, array& out) {
  const array& updates = inputs.back();
  start_from(inputs[0], out);
  if (updates.size() == 0) {
    return;
  }
  const auto& [mode, axes] = op.params();
  IndexReader reader(
      "scatter",
      inputs.data() + 1,
      inputs.size() - 2,
      axes,
      out.shape(),
      out.strides(),
      Shape(updates.shape().end() - out.ndim(), updates.shape().end()),
      Outside::leave_out);
  Combine combine = find_combine(mode, out.dtype());
  ScatterWork(combine, reader, updates, out).run();
}

}  // namespace mlx::core::cpu
