// Layouts of fused parts.
#include "backend/cuda/fused_layouts.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backend/common/layouts.h"
#include "mlx/backend/common/utils.h"

namespace mlx::core::cuda {

namespace {

// 1 along axes on which `out` has one element of several.
Strides guard_strides(const array& out, const Shape& shape) {
  Strides strides(shape.size(), 0);
  size_t extra = shape.size() - out.ndim();
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[i] = i < extra || out.shape()[i - extra] == 1 ? 1 : 0;
  }
  return strides;
}

// Axes merged where all operands allow it; the last one stays what it is where
// that is wanted.
void merge(Shape& sizes, std::vector<Strides>& strides, bool keeps_last) {
  Shape outer = sizes;
  std::vector<Strides> of_outer = strides;
  if (keeps_last) {
    outer.resize(sizes.size() - 1);
    for (Strides& s : of_outer) {
      s.resize(outer.size());
    }
  }
  auto [merged, merged_strides] = collapse_contiguous_dims(outer, of_outer);
  if (keeps_last) {
    merged.push_back(sizes.back());
    for (size_t k = 0; k < strides.size(); ++k) {
      merged_strides[k].push_back(strides[k].back());
    }
  }
  sizes = std::move(merged);
  strides = std::move(merged_strides);
}

}  // namespace

FusedLayouts::FusedLayouts(
    const Shape& shape,
    const std::vector<array>& inputs,
    const std::vector<array>& outputs,
    FusedForm& form,
    bool keeps_last) {
  size_t size = element_count(shape);
  std::vector<Strides> strides = {make_contiguous_strides(shape)};
  for (const array& in : inputs) {
    if (!is_number(in)) {
      strides.push_back(broadcast_strides(in, shape));
    }
  }
  for (const array& out : outputs) {
    if (out.size() != size) {
      Strides own = make_contiguous_strides(out.shape());
      for (size_t i = 0; i < out.ndim(); ++i) {
        own[i] = out.shape()[i] == 1 ? 0 : own[i];
      }
      Strides seen(shape.size(), 0);
      std::copy(own.begin(), own.end(), seen.end() - own.size());
      strides.push_back(seen);
      strides.push_back(guard_strides(out, shape));
    }
  }
  sizes_ = shape;
  merge(sizes_, strides, keeps_last);
  dense_ = make_contiguous_strides(sizes_);
  form.axes = static_cast<uint8_t>(sizes_.size() - (keeps_last ? 1 : 0));
  auto next = strides.begin() + 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    form.inputs[k].layout = is_number(inputs[k]) ? 0 : layout_of(*next++);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const array& out = outputs[k];
    if (out.size() != size) {
      form.outputs[k].layout = layout_of(*next++);
      form.outputs[k].guard = layout_of(*next++);
      form.outputs[k].is_row =
          keeps_last && (out.ndim() == 0 || out.shape().back() == 1);
    }
  }
  form.layouts = static_cast<uint16_t>(layouts_.size());
  form.wide = !is_narrow(size);
}

uint16_t FusedLayouts::layout_of(const Strides& strides) {
  if (strides == dense_) {
    return 0;
  }
  auto found = std::find(layouts_.begin(), layouts_.end(), strides);
  if (found == layouts_.end()) {
    layouts_.push_back(strides);
    return static_cast<uint16_t>(layouts_.size());
  }
  return static_cast<uint16_t>(found - layouts_.begin() + 1);
}

bool FusedLayouts::is_narrow(size_t size) const {
  bool narrow = size < kMostNarrow;
  for (const Strides& strides : layouts_) {
    int64_t reach = 0;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      reach += std::abs(strides[i]) * (sizes_[i] - 1);
    }
    narrow = narrow && reach < static_cast<int64_t>(kMostNarrow);
  }
  return narrow;
}

FusedRead FusedLayouts::read_of(int layout, int pack, bool is_aligned) const {
  const Strides& strides = layout == 0 ? dense_ : layouts_[layout - 1];
  if (strides.back() == 0) {
    return FusedRead::splat;
  }
  bool even = pack > 1 && is_aligned && strides.back() == 1;
  for (size_t i = 0; i + 1 < strides.size(); ++i) {
    even = even && strides[i] % pack == 0;
  }
  return even ? FusedRead::pack : FusedRead::pieces;
}

}  // namespace mlx::core::cuda
