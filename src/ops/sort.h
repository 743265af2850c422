// Sorting along an axis and searching in sorted sequences.
#pragma once

#include "ops/join.h"
#include "ops/structured.h"

namespace mlx::core {

class Sort final : public Structured<Sort, AxisParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "Sort";
  MLX_ALL_RULES()
};

/// Indices (uint32) that sort, stable.
class ArgSort final : public Structured<ArgSort, AxisParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "ArgSort";
  MLX_ALL_RULES()
};

/// Inputs: a sorted 1-d sequence, values of the same type.
struct SearchSortedParams {
  bool right;
  bool operator==(const SearchSortedParams&) const = default;
};

class SearchSorted final : public Structured<SearchSorted, SearchSortedParams> {
 public:
  using Structured::Structured;
  static constexpr const char* kName = "SearchSorted";
  MLX_ALL_RULES()
};

}  // namespace mlx::core
