// The contents page of the CPU backend: one line an operation.
#include "backend/common/views.h"
#include "backend/cpu/backend.h"
#include "backend/cpu/compiled.h"
#include "backend/cpu/elementwise.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/gather.h"
#include "backend/cpu/join.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/norms.h"
#include "backend/cpu/quantized.h"
#include "backend/cpu/random.h"
#include "backend/cpu/reduce.h"
#include "backend/cpu/scan.h"
#include "backend/cpu/scatter.h"
#include "backend/cpu/slice_update.h"
#include "backend/cpu/softmax.h"
#include "backend/cpu/sort.h"
#include "backend/cpu/views.h"

namespace mlx::core::cpu {

namespace {

void add_elementwise_and_views(KernelTable<>& table) {
  table.add<Elementwise, elementwise>();
  table.add<AsType, as_type>();
  table.add<Compiled, compiled>();
  table.add<AsStrided, as_strided>();
  table.add<Reshape, reshape>();
  table.add<Flatten, flatten>();
  table.add<Unflatten, unflatten>();
  table.add<Contiguous, contiguous>();
  table.add<View, view>();
}

void add_joins(KernelTable<>& table) {
  table.add<Concatenate, concatenate>();
  table.add<Pad, pad>();
  table.add<Full, full>();
  table.add<Arange, arange>();
  table.add<NumberOfElements, number_of_elements>();
}

void add_random(KernelTable<>& table) {
  table.add<RandomBits, random_bits>();
}

void add_sort(KernelTable<>& table) {
  table.add<Sort, sort>();
  table.add<ArgSort, arg_sort>();
  table.add<SearchSorted, search_sorted>();
}

void add_fast(KernelTable<>& table) {
  table.add<fast::RoPE, rope>();
  table.add<fast::ScaledDotProductAttention, attention>();
}

void add_indexing(KernelTable<>& table) {
  table.add<SliceUpdate, slice_update>();
  table.add<DynamicSlice, dynamic_slice>();
  table.add<DynamicSliceUpdate, dynamic_slice_update>();
  table.add<Gather, gather>();
  table.add<GatherAxis, gather_axis>();
  table.add<Scatter, scatter>();
  table.add<ScatterAxis, scatter_axis>();
  table.add<MaskedScatter, masked_scatter>();
}

void add_products(KernelTable<>& table) {
  table.add<Matmul, matmul>();
  table.add<AddMM, addmm>();
  table.add<Quantize, quantize>();
  table.add<Dequantize, dequantize>();
  table.add<QuantizedMatmul, quantized_matmul>();
}

void add_reductions(KernelTable<>& table) {
  table.add<Reduce, reduce>();
  table.add<ArgReduce, arg_reduce>();
  table.add<Softmax, softmax>();
  table.add<LogSumExp, logsumexp>();
  table.add<Scan, scan>();
  table.add<fast::RMSNorm, rms_norm>();
  table.add<fast::LayerNorm, layer_norm>();
}

}  // namespace

const KernelTable<>& kernels() {
  static const auto* table = [] {
    auto* all = new KernelTable<>;
    common::add_views(*all);
    add_elementwise_and_views(*all);
    add_joins(*all);
    add_random(*all);
    add_sort(*all);
    add_fast(*all);
    add_indexing(*all);
    add_products(*all);
    add_reductions(*all);
    return all;
  }();
  return *table;
}

}  // namespace mlx::core::cpu
