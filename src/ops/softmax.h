// Softmax and log-sum-exp of the last axis, each one operation: one reading of
// the input instead of four passes.
#pragma once

#include "ops/row_wise.h"
#include "ops/rules.h"
#include "ops/structured.h"

namespace mlx::core {

/// Real floating types.
class Softmax final : public Structured<Softmax>, public RowWise {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Softmax";
  array compose(const std::vector<array>& inputs) const override;
  MLX_ALL_RULES()
};

/// Keeps the last axis, with length 1. Real floating types.
class LogSumExp final : public Structured<LogSumExp> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "LogSumExp";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
