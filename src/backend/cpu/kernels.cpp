// The contents page of the CPU backend: one line an operation.
#include "backend/cpu/backend.h"
#include "backend/cpu/elementwise.h"
#include "backend/cpu/join.h"
#include "backend/cpu/random.h"
#include "backend/cpu/views.h"

namespace mlx::core::cpu {

namespace {

void add_elementwise_and_views(KernelTable<>& table) {
  table.add<Elementwise, elementwise>();
  table.add<AsType, as_type>();
  table.add<AsStrided, as_strided>();
  table.add<Broadcast, broadcast>();
  table.add<ExpandDims, expand_dims>();
  table.add<Squeeze, squeeze>();
  table.add<Transpose, transpose>();
  table.add<Slice, slice>();
  table.add<Reshape, reshape>();
  table.add<Flatten, flatten>();
  table.add<Unflatten, unflatten>();
  table.add<Contiguous, contiguous>();
  table.add<Copy, copy>();
  table.add<StopGradient, stop_gradient>();
  table.add<View, view>();
}

void add_joins(KernelTable<>& table) {
  table.add<Concatenate, concatenate>();
  table.add<Split, split>();
  table.add<Pad, pad>();
  table.add<Full, full>();
  table.add<Arange, arange>();
  table.add<NumberOfElements, number_of_elements>();
  table.add<Depends, depends>();
  table.add<RandomBits, random_bits>();
}

}  // namespace

const KernelTable<>& kernels() {
  static const auto* table = [] {
    auto* all = new KernelTable<>;
    add_elementwise_and_views(*all);
    add_joins(*all);
    return all;
  }();
  return *table;
}

}  // namespace mlx::core::cpu
