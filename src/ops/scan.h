// Running reductions along an axis.
#pragma once

#include "ops/rules.h"
#include "ops/scan_type.h"
#include "ops/structured.h"

namespace mlx::core {

struct ScanParams {
  ScanType type;
  int axis;
  bool reverse;
  bool inclusive;
  bool operator==(const ScanParams&) const = default;
};

/// Shape and type of the input.
class Scan final : public Structured<Scan, ScanParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Scan";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
