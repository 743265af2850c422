// Tables of positions, and slices in wide elements.
#include "backend/cuda/copy.h"
#include "backend/cuda/positions.h"
#include "mlx/backend/common/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

void check_sizes(const char* op, size_t arrays, size_t axes) {
  if (arrays > Positions::most_arrays || axes > Positions::most_axes) {
    invalid(
        op,
        "too many index arrays or axes of them: ",
        arrays,
        " arrays with ",
        axes,
        " axes that memory does not join. The gpu takes up to ",
        Positions::most_arrays,
        " of each.");
  }
}

}  // namespace

void IndexedBy::add(
    const array& indices,
    const array& indexed,
    int axis,
    int64_t slice,
    Encoder& e) {
  entries.push_back(
      {e.in(indices),
       indices.dtype(),
       broadcast_strides(indices, shape),
       indexed.shape(axis),
       slice,
       indexed.strides(axis)});
}

Positions IndexedBy::positions() const {
  Shape sizes = shape;
  Strides target = target_strides;
  Strides update = update_strides;
  std::vector<Strides> of_arrays;
  of_arrays.reserve(entries.size());
  SmallVector<Strides*> operands = {&target, &update};
  for (const Entry& entry : entries) {
    of_arrays.push_back(entry.strides);
    operands.push_back(&of_arrays.back());
  }
  merge_axes(sizes, operands);
  check_sizes(op, entries.size(), sizes.size());
  Positions made{};
  made.arrays = static_cast<int>(entries.size());
  made.ndim = static_cast<int>(sizes.size());
  made.clamps = clamps;
  made.fault = fault;
  for (size_t i = 0; i < sizes.size(); ++i) {
    made.count *= sizes[i];
    made.sizes[i] = FastDivisor(static_cast<uint32_t>(sizes[i]));
    made.target_strides[i] = target[i];
    made.update_strides[i] = update[i];
    for (size_t k = 0; k < entries.size(); ++k) {
      made.index_strides[k][i] = of_arrays[k][i];
    }
  }
  for (size_t k = 0; k < entries.size(); ++k) {
    const Entry& entry = entries[k];
    if (entry.slice > entry.length || entry.length == 0) {
      throw std::out_of_range(message(
          op,
          "no position is in range: a slice of size ",
          entry.slice,
          " along an axis of length ",
          entry.length,
          "."));
    }
    made.index[k] = {
        entry.data,
        entry.type.val(),
        entry.length,
        entry.length - entry.slice,
        entry.stride};
  }
  return made;
}

IndexedBy indexed_by(
    const char* op,
    const array* first,
    size_t count,
    const std::vector<int>& axes,
    const array& indexed,
    const Shape& slice_sizes,
    Encoder& e) {
  IndexedBy made{op};
  made.fault = e.faults().index_site(op);
  for (size_t i = 0; i < count; ++i) {
    made.shape = broadcast_shapes(made.shape, first[i].shape());
  }
  made.target_strides = Strides(made.shape.size(), 0);
  made.update_strides = made.target_strides;
  for (size_t i = 0; i < count; ++i) {
    made.add(first[i], indexed, axes[i], slice_sizes[axes[i]], e);
  }
  return made;
}

AlongAxis along_axis(
    const char* op,
    const array& indexed,
    const array* updates,
    const array& indices,
    int axis,
    Encoder& e) {
  const Shape& shape = indices.shape();
  size_t cut = shape.size();
  while (cut > static_cast<size_t>(axis) + 1 &&
         (indices.strides()[cut - 1] == 0 || shape[cut - 1] == 1)) {
    --cut;
  }
  auto split = static_cast<std::ptrdiff_t>(cut);
  auto outer = [&](const Strides& s) {
    return Strides(s.begin(), s.begin() + split);
  };
  auto inner = [&](const Strides& s) {
    return Strides(s.begin() + split, s.end());
  };
  IndexedBy by{op, Shape(shape.begin(), shape.begin() + split)};
  by.fault = e.faults().index_site(op);
  by.target_strides = outer(indexed.strides());
  by.target_strides[axis] = 0;
  by.update_strides = updates ? outer(updates->strides()) : Strides(cut, 0);
  by.entries.push_back(
      {e.in(indices),
       indices.dtype(),
       outer(indices.strides()),
       indexed.shape(axis),
       1,
       indexed.strides(axis)});
  Shape sizes(shape.begin() + split, shape.end());
  Strides read = inner(indexed.strides());
  return {
      std::move(by),
      updates ? SlicePlan(sizes, read, inner(updates->strides()))
              : SlicePlan(sizes, read)};
}

SlicePlan::SlicePlan(Shape shape, Strides indexed)
    : sizes(std::move(shape)), strides{std::move(indexed), {}} {
  merge_axes(sizes, {&strides[0]});
  if (sizes.empty()) {
    sizes.push_back(1);
    strides[0].push_back(0);
  }
}

SlicePlan::SlicePlan(Shape shape, Strides indexed, Strides updates)
    : sizes(std::move(shape)), strides{std::move(indexed), std::move(updates)} {
  merge_axes(sizes, {&strides[0], &strides[1]});
  if (sizes.empty()) {
    sizes.push_back(1);
    strides[0].push_back(0);
    strides[1].push_back(0);
  }
}

size_t SlicePlan::size() const {
  size_t n = 1;
  for (ShapeElem length : sizes) {
    n *= static_cast<size_t>(length);
  }
  return n;
}

size_t SlicePlan::widen(
    size_t itemsize,
    Positions& positions,
    std::initializer_list<const void*> addresses) {
  size_t last = sizes.size() - 1;
  for (const Strides& s : strides) {
    if (!s.empty() && (s[last] != 1 || sizes[last] == 1)) {
      return itemsize;
    }
  }
  // The lowest bit set anywhere limits the width.
  auto elements = static_cast<uint64_t>(sizes[last]);
  for (const Strides& s : strides) {
    for (size_t i = 0; i < last && !s.empty(); ++i) {
      elements |= static_cast<uint64_t>(s[i]);
    }
  }
  for (int i = 0; i < positions.ndim; ++i) {
    elements |= static_cast<uint64_t>(positions.target_strides[i]);
    elements |= static_cast<uint64_t>(positions.update_strides[i]);
  }
  for (int k = 0; k < positions.arrays; ++k) {
    elements |= static_cast<uint64_t>(positions.index[k].stride);
  }
  uint64_t bytes = elements * itemsize;
  for (const void* address : addresses) {
    bytes |= reinterpret_cast<uintptr_t>(address);
  }
  size_t width = 16;
  while (width > itemsize && bytes % width != 0) {
    width /= 2;
  }
  auto factor = static_cast<int64_t>(width / itemsize);
  sizes[last] = static_cast<ShapeElem>(sizes[last] / factor);
  for (Strides& s : strides) {
    for (size_t i = 0; i < last && !s.empty(); ++i) {
      s[i] /= factor;
    }
  }
  for (int i = 0; i < positions.ndim; ++i) {
    positions.target_strides[i] /= factor;
    positions.update_strides[i] /= factor;
  }
  for (int k = 0; k < positions.arrays; ++k) {
    positions.index[k].stride /= factor;
  }
  return width;
}

namespace {

bool fits_32_bits_signed(int64_t x) {
  return x == static_cast<int32_t>(x);
}

// The only index that can move a slice; null if several can, or if what is
// wrong with an index is to be told.
const IndexArray* moving_index(const Positions& positions) {
  if (positions.count != 1 || positions.arrays == 0 || !positions.clamps ||
      positions.fault.record != nullptr) {
    return nullptr;
  }
  const IndexArray* found = &positions.index[0];
  for (int k = 1; k < positions.arrays; ++k) {
    const IndexArray& index = positions.index[k];
    if (index.last != 0 && found->last != 0) {
      return nullptr;
    }
    found = found->last == 0 ? &index : found;
  }
  bool fits = fits_32_bits_signed(found->length) &&
              fits_32_bits_signed(found->stride) && batches_whole(found->type);
  return fits ? found : nullptr;
}

}  // namespace

bool note_slice(
    const void* from,
    void* to,
    const Positions& positions,
    const SlicePlan& slice,
    size_t width,
    Encoder& e) {
  const IndexArray* index = moving_index(positions);
  size_t ndim = slice.sizes.size();
  if (index == nullptr || slice.size() > BatchEntry::most_elements ||
      ndim > 3 || !e.can_batch()) {
    return false;
  }
  bool reads = slice.strides[1].empty();
  BatchEntry entry{};
  entry.kind = BatchKind::copy;
  entry.width = static_cast<uint8_t>(width);
  entry.types[0] = static_cast<uint8_t>(index->type);
  entry.size = static_cast<uint32_t>(slice.size());
  BatchEntry::Copy& copy = entry.copy;
  copy.from = from;
  copy.to = to;
  copy.sizes[0] = copy.sizes[1] = 1;
  copy.position = index->data;
  copy.length = static_cast<int32_t>(index->length);
  copy.last = static_cast<int32_t>(index->last);
  copy.stride = static_cast<int32_t>(index->stride);
  copy.moves_from = reads;
  int32_t dense = 1;
  for (size_t i = ndim; i-- > 0;) {
    size_t at = i + 3 - ndim;
    int64_t indexed = slice.strides[0][i];
    int64_t other = reads ? dense : slice.strides[1][i];
    if (!fits_32_bits_signed(indexed) || !fits_32_bits_signed(other)) {
      return false;
    }
    copy.from_strides[at] = static_cast<int32_t>(reads ? indexed : other);
    copy.to_strides[at] = static_cast<int32_t>(reads ? other : indexed);
    if (at > 0) {
      copy.sizes[at - 1] = static_cast<uint32_t>(slice.sizes[i]);
    }
    dense *= static_cast<int32_t>(slice.sizes[i]);
  }
  e.batch(entry);
  return true;
}

void start_from(const array& src, array& out, Encoder& e) {
  bool dense = src.flags().contiguous && src.data_size() == src.size();
  for (int64_t s : src.strides()) {
    dense = dense && s >= 0;
  }
  if (!(dense && e.donate(src, out))) {
    copy_into_new(src, out, e);
  }
}

}  // namespace mlx::core::cuda
