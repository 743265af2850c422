// The traces of one function, by what they were made for.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "mlx/api.h"
#include "transforms/compile/recorded_trace.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

struct MLX_API CompiledTrace {
  CompiledTrace() = default;
  explicit CompiledTrace(TracedGraph traced);

  /// New arrays for the outputs from new inputs.
  std::vector<array> call(const std::vector<array>& inputs) const;

  std::shared_ptr<const TracedGraph> graph;
  /// Null where calls are not recorded.
  std::shared_ptr<RecordedTrace> recorded;
  /// What the caller wants to know about the trace besides.
  std::shared_ptr<const void> extra;
};

/// Safe from several threads. Look-up takes constant time; the trace that was
/// not used for longest makes room for a new one.
class MLX_API TraceCache {
 public:
  static constexpr size_t kMostTraces = 256;

  struct Info {
    size_t hits = 0;
    size_t misses = 0;
    size_t evictions = 0;
    size_t size = 0;
  };

  std::shared_ptr<const CompiledTrace> find(const std::string& key);
  void insert(const std::string& key, std::shared_ptr<const CompiledTrace> t);
  void clear();
  Info info() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const CompiledTrace> trace;
  };

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last used one first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
  Info info_;
};

/// Adds what a trace depends on to a key: an array's type and shape (only the
/// number of dimensions when shapeless), the default streams, the mode.
MLX_API void add_array(std::string& key, const array& a, bool shapeless);
MLX_API void add_surroundings(std::string& key, bool shapeless);

template <typename T>
void add_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Traces a function and does what the mode says.
MLX_API TracedGraph compile_trace(
    const ArrayFn& fun, const std::vector<array>& inputs, bool shapeless);

/// Whether the thread is inside of another transform: then a compiled function
/// runs as it is. That none of its arguments is traced does not tell what else
/// it reads: as constants of a trace of its own, values would have no
/// derivative.
MLX_API bool is_transformed();

}  // namespace mlx::core::detail
