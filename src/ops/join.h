// Operations that put arrays together or take them apart, and constants.
#pragma once

#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

class Concatenate final : public Structured<Concatenate, AxisParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Concatenate";
  MLX_ALL_RULES()
};

/// Parts that begin at `indices` (the first part begins at 0).
struct SplitParams {
  Shape indices;
  int axis;
  bool operator==(const SplitParams&) const = default;
};

class Split final : public Structured<Split, SplitParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Split";
  MLX_ALL_RULES()
};

/// Input 0 surrounded by input 1, a 0-d array. One entry an axis.
struct PadParams {
  Shape low;
  Shape high;
  bool operator==(const PadParams&) const = default;
};

class Pad final : public Structured<Pad, PadParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Pad";
  MLX_ALL_RULES()
};

/// The input broadcast to a shape, in memory of its own.
struct FullParams {
  Shape shape;
  bool operator==(const FullParams&) const = default;
};

class Full final : public Structured<Full, FullParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Full";
  MLX_ALL_RULES()
};

struct ArangeParams {
  double start;
  double step;
  ShapeElem count;
  bool operator==(const ArangeParams&) const = default;
};

class Arange final : public Structured<Arange, ArangeParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Arange";
  MLX_ALL_RULES()
};

struct NumberOfElementsParams {
  std::vector<int> axes;
  bool inverted;
  Dtype dtype;
  bool operator==(const NumberOfElementsParams& o) const {
    return axes == o.axes && inverted == o.inverted && dtype == o.dtype;
  }
};

class NumberOfElements final
    : public Structured<NumberOfElements, NumberOfElementsParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "NumberOfElements";
  MLX_ALL_RULES()
};

/// The first `count` inputs; the others only have to be computed before.
struct DependsParams {
  int count;
  bool operator==(const DependsParams&) const = default;
};

class Depends final : public Structured<Depends, DependsParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Depends";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
