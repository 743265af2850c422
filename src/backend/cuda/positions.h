// The host's part of reading and writing at positions (device/positions.cuh):
// from arrays to tables, and the widest elements in which slices can be moved.
#pragma once

#include "backend/cuda/device/positions.cuh"
#include "backend/cuda/encoder.h"
#include "ops/accumulate.h"

namespace mlx::core::cuda {

/// What the index arrays of an operation have in common.
struct IndexedBy {
  const char* op;
  /// The positions' shape; strides below have an entry for each of its axes.
  Shape shape;
  Strides target_strides;
  Strides update_strides;
  bool clamps = true;
  FaultSite fault = {};

  struct Entry {
    const void* data;
    Dtype type;
    Strides strides;
    int64_t length;
    int64_t slice;  // the slice's size along the axis
    int64_t stride;
  };
  std::vector<Entry> entries;

  /// Adds an array that positions slices along `axis` of `indexed`.
  void add(
      const array& indices,
      const array& indexed,
      int axis,
      int64_t slice,
      Encoder& e);
  Positions positions() const;
};

/// The positions of several index arrays that broadcast together.
IndexedBy indexed_by(
    const char* op,
    const array* first,
    size_t count,
    const std::vector<int>& axes,
    const array& indexed,
    const Shape& slice_sizes,
    Encoder& e);

/// Slices: axes merged, strides in the indexed array at [0], in the updates
/// (which reading has none of) at [1].
struct SlicePlan {
  Shape sizes;
  Strides strides[2];

  SlicePlan(Shape shape, Strides indexed);
  SlicePlan(Shape shape, Strides indexed, Strides updates);
  size_t size() const;
  StridedAxes<1> reading() const {
    return axes_table<1>("gather", sizes, {&strides[0]});
  }
  StridedAxes<2> writing() const {
    return axes_table<2>("scatter", sizes, {&strides[0], &strides[1]});
  }

  /// Makes elements of `itemsize` bytes up to 16 bytes wide, here and in
  /// `positions`, where strides and the addresses allow it; the new width.
  size_t widen(
      size_t itemsize,
      Positions& positions,
      std::initializer_list<const void*> addresses);
};

/// Positions along one axis, as indices with the rank of `indexed` give them.
/// The inner axes along which they stay the same make up the slices.
struct AlongAxis {
  IndexedBy by;
  SlicePlan slice;
};

AlongAxis along_axis(
    const char* op,
    const array& indexed,
    const array* updates,
    const array& indices,
    int axis,
    Encoder& e);

/// Gives `out` the elements of `src`: in src's memory when it is dense and
/// nobody else needs it, with its strides; else in new row-major memory.
void start_from(const array& src, array& out, Encoder& e);

/// Notes the copy of a single position's slice in the encoder's list: from the
/// indexed array to dense memory, or with strides in the updates to it.
/// Elements of `width` bytes, as widen() has left them. False where the list
/// does not take it.
bool note_slice(
    const void* from,
    void* to,
    const Positions& positions,
    const SlicePlan& slice,
    size_t width,
    Encoder& e);

/// Copies the slice of every position to dense memory (gather.cu).
void read_slices(
    const void* from,
    void* to,
    Positions positions,
    SlicePlan slice,
    size_t itemsize,
    Encoder& e);

/// Which positions begin equal slices: equal numbers below `count`.
struct Slots {
  Positions positions;
  size_t count;
};

/// Copies updates over the slices of all positions; of several updates of one
/// slice the last one stays (scatter.cu). Different slices do not overlap.
void write_slices(
    const void* from,
    void* to,
    Positions positions,
    SlicePlan slice,
    const Slots& slots,
    size_t itemsize,
    Encoder& e);

/// Brings updates together with what is in the slices of all positions
/// (scatter_accumulate.cu).
void accumulate_slices(
    Accumulate mode,
    Dtype dtype,
    const void* from,
    void* to,
    const Positions& positions,
    const SlicePlan& slice,
    Encoder& e);

}  // namespace mlx::core::cuda
