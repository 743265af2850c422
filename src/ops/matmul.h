// The matrix product and the product added to a scaled array.
#pragma once

#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Inputs: a (..., m, k) and b (..., k, n) of one inexact type with equal
/// leading axes.
class Matmul final : public Structured<Matmul> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Matmul";
  MLX_ALL_RULES()
};

/// alpha * (a @ b) + beta * c.
struct AddMMParams {
  float alpha;
  float beta;
  bool operator==(const AddMMParams&) const = default;
};

/// Inputs: a and b as for Matmul, and c of the product's shape and type.
class AddMM final : public Structured<AddMM, AddMMParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "AddMM";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
