// The contents page of the CUDA backend: one line an operation.
#include "backend/common/views.h"
#include "backend/cuda/attention.h"
#include "backend/cuda/backend.h"
#include "backend/cuda/compiled.h"
#include "backend/cuda/create.h"
#include "backend/cuda/custom_kernel.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/gather.h"
#include "backend/cuda/join.h"
#include "backend/cuda/matmul.h"
#include "backend/cuda/norms.h"
#include "backend/cuda/quantized.h"
#include "backend/cuda/random.h"
#include "backend/cuda/reduce.h"
#include "backend/cuda/rope.h"
#include "backend/cuda/scan.h"
#include "backend/cuda/scatter.h"
#include "backend/cuda/slice_update.h"
#include "backend/cuda/softmax.h"
#include "backend/cuda/sort.h"
#include "backend/cuda/views.h"

namespace mlx::core::cuda {

namespace {

using Table = KernelTable<Encoder&>;

void add_views(Table& table) {
  common::add_views(table);
  table.add<AsStrided, as_strided>();
  table.add<Reshape, reshape>();
  table.add<Flatten, flatten>();
  table.add<Unflatten, unflatten>();
  table.add<Contiguous, contiguous>();
  table.add<View, view>();
}

void add_elementwise(Table& table) {
  table.add<Elementwise, elementwise>();
  table.add<AsType, as_type>();
}

void add_fused(Table& table) {
  table.add<Compiled, compiled>();
}

void add_joins(Table& table) {
  table.add<Concatenate, concatenate>();
  table.add<Pad, pad>();
}

void add_creation(Table& table) {
  table.add<Full, full>();
  table.add<Arange, arange>();
  table.add<NumberOfElements, number_of_elements>();
}

void add_random(Table& table) {
  table.add<RandomBits, random_bits>();
}

void add_products(Table& table) {
  table.add<Matmul, matmul>();
  table.add<AddMM, addmm>();
  table.add<Quantize, quantize>();
  table.add<Dequantize, dequantize>();
  table.add<QuantizedMatmul, quantized_matmul>();
}

void add_attention(Table& table) {
  table.add<fast::ScaledDotProductAttention, attention>();
}

void add_indexing(Table& table) {
  table.add<SliceUpdate, slice_update>();
  table.add<DynamicSlice, dynamic_slice>();
  table.add<DynamicSliceUpdate, dynamic_slice_update>();
  table.add<Gather, gather>();
  table.add<GatherAxis, gather_axis>();
  table.add<Scatter, scatter>();
  table.add<ScatterAxis, scatter_axis>();
  table.add<MaskedScatter, masked_scatter>();
}

void add_sort(Table& table) {
  table.add<Sort, sort>();
  table.add<ArgSort, arg_sort>();
  table.add<SearchSorted, search_sorted>();
}

void add_norms(Table& table) {
  table.add<Softmax, softmax>();
  table.add<LogSumExp, logsumexp>();
  table.add<fast::RMSNorm, rms_norm>();
  table.add<fast::LayerNorm, layer_norm>();
  table.add<fast::RoPE, rope>();
}

void add_custom(Table& table) {
  table.add<fast::CustomKernel, custom_kernel>();
  table.add<fast::PrecompiledKernel, precompiled_kernel>();
}

void add_reductions(Table& table) {
  table.add<Reduce, reduce>();
  table.add<ArgReduce, arg_reduce>();
  table.add<Scan, scan>();
}

}  // namespace

const Table& kernels() {
  static const auto* table = [] {
    auto* all = new Table;
    add_views(*all);
    add_elementwise(*all);
    add_fused(*all);
    add_joins(*all);
    add_creation(*all);
    add_random(*all);
    add_products(*all);
    add_attention(*all);
    add_indexing(*all);
    add_sort(*all);
    add_norms(*all);
    add_reductions(*all);
    add_custom(*all);
    return all;
  }();
  return *table;
}

}  // namespace mlx::core::cuda
