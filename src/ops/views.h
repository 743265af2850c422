// Operations whose result is, where strides allow, another view of the
// input's memory. All are linear with one input.
#pragma once

#include "ops/structured.h"

namespace mlx::core {

/// Base of linear operations with one input: the tangent takes the same
/// operation.
template <typename Op, typename Params = NoParams>
class LinearUnary : public Structured<Op, Params> {
 public:
  using Structured<Op, Params>::Structured;

  /// This operation on another array.
  array apply(const array& x) {
    return array(
        this->output_shapes({x})[0],
        this->output_dtype(x),
        std::make_shared<Op>(this->stream(), this->params()),
        {x});
  }

  std::vector<array> jvp(
      const std::vector<array>&,
      const std::vector<array>& tangents,
      const std::vector<int>&) override {
    return {apply(tangents[0])};
  }

  std::vector<Shape> output_shapes(const std::vector<array>& inputs) override {
    return {inputs[0].shape()};
  }

 protected:
  virtual Dtype output_dtype(const array& x) const { return x.dtype(); }
};

#define MLX_VIEW_RULES()                                              \
  std::vector<array> vjp(                                             \
      const std::vector<array>& primals,                              \
      const std::vector<array>& cotangents,                           \
      const std::vector<int>& argnums,                                \
      const std::vector<array>& outputs) override;                    \
  std::pair<std::vector<array>, std::vector<int>> vmap(               \
      const std::vector<array>& inputs, const std::vector<int>& axes) \
      override;

struct DtypeParams {
  Dtype dtype;
  bool operator==(const DtypeParams& o) const { return dtype == o.dtype; }
};

class AsType final : public LinearUnary<AsType, DtypeParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "AsType";
  MLX_VIEW_RULES()
 protected:
  Dtype output_dtype(const array&) const override { return params().dtype; }
};

class View final : public LinearUnary<View, DtypeParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "View";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
 protected:
  Dtype output_dtype(const array&) const override { return params().dtype; }
};

struct AsStridedParams {
  Shape shape;
  Strides strides;
  size_t offset;
  bool operator==(const AsStridedParams&) const = default;
};

class AsStrided final : public LinearUnary<AsStrided, AsStridedParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "AsStrided";
  std::vector<Shape> output_shapes(const std::vector<array>&) override {
    return {params().shape};
  }
  MLX_VIEW_RULES()
};

struct ShapeParams {
  Shape shape;
  bool operator==(const ShapeParams&) const = default;
};

class Broadcast final : public LinearUnary<Broadcast, ShapeParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Broadcast";
  std::vector<Shape> output_shapes(const std::vector<array>&) override {
    return {params().shape};
  }
  MLX_VIEW_RULES()
};

class Reshape final : public LinearUnary<Reshape, ShapeParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Reshape";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

/// Merges the axes first to last.
struct FlattenParams {
  int first;
  int last;
  bool operator==(const FlattenParams&) const = default;
};

class Flatten final : public LinearUnary<Flatten, FlattenParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Flatten";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

/// Splits an axis into `shape`, one entry of which may be -1.
struct UnflattenParams {
  int axis;
  Shape shape;
  bool operator==(const UnflattenParams&) const = default;
};

class Unflatten final : public LinearUnary<Unflatten, UnflattenParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Unflatten";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

/// Axes counted from 0 and sorted, of the longer shape.
struct AxesParams {
  std::vector<int> axes;
  bool operator==(const AxesParams&) const = default;
};

class ExpandDims final : public LinearUnary<ExpandDims, AxesParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "ExpandDims";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

class Squeeze final : public LinearUnary<Squeeze, AxesParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Squeeze";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

class Transpose final : public LinearUnary<Transpose, AxesParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Transpose";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

/// Bounds as normalised by `slice`: within the array, in the order of the
/// strides.
struct SliceParams {
  Shape start;
  Shape stop;
  Shape strides;
  bool operator==(const SliceParams&) const = default;
};

class Slice final : public LinearUnary<Slice, SliceParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Slice";
  std::vector<Shape> output_shapes(const std::vector<array>& in) override;
  MLX_VIEW_RULES()
};

class Copy final : public LinearUnary<Copy> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Copy";
  MLX_VIEW_RULES()
};

struct ContiguousParams {
  bool allow_col_major;
  bool operator==(const ContiguousParams&) const = default;
};

class Contiguous final : public LinearUnary<Contiguous, ContiguousParams> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "Contiguous";
  MLX_VIEW_RULES()
};

class StopGradient final : public LinearUnary<StopGradient> {
 public:
  using LinearUnary::LinearUnary;
  static constexpr const char* kName = "StopGradient";
  std::vector<array> jvp(
      const std::vector<array>& primals,
      const std::vector<array>& tangents,
      const std::vector<int>& argnums) override;
  MLX_VIEW_RULES()
};

/// Bounds as the user gives them for an array of `shape`, by NumPy's rule:
/// negative ones wrap, then all are clipped to what the stride can reach.
SliceParams normalized_slice(
    const char* op, const Shape& shape, Shape start, Shape stop, Shape strides);

/// Whether a normalised slice is the whole array, in order.
bool is_whole(const SliceParams& slice, const Shape& shape);

/// The number of entries of each axis of a normalised slice.
Shape slice_shape(const SliceParams& slice);

/// The axes of an array of `ndim` axes that remain without `axes`.
std::vector<int> remaining_axes(int ndim, const std::vector<int>& axes);

/// `x` summed down to `shape`, which broadcasts to x's shape.
array sum_to_shape(const array& x, const Shape& shape, Stream s);

/// The same with the shape of `like`.
array sum_like(const array& x, const array& like, Stream s);

/// `x` with its batch axis moved to the front; without one, as it is.
array batch_to_front(const array& x, int axis, Stream s);

/// The same with axes of length 1 put after the batch axis, so that x has
/// `ndim` axes beside it; without batch axis, x as it is.
array batch_to_front(const array& x, int axis, int ndim, Stream s);

}  // namespace mlx::core
