// A trace whose calls are one node each: a CPU runs its parts one by one,
// backends that gain by it record what a call submits, and submit later calls
// as one piece.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "graph/composite.h"
#include "transforms/compile/traced_graph.h"

namespace mlx::core::detail {

/// Safe from several threads, which take turns.
class RecordedTrace final : public CompositeWork,
                            public std::enable_shared_from_this<RecordedTrace> {
 public:
  /// Null where the graph's operations have to be nodes each: another mode of
  /// compile is on, shapes are not final, it is short or its values are large,
  /// or a node is of another stream or has no kernel of the stream's backend.
  static std::shared_ptr<RecordedTrace> make(
      std::shared_ptr<const TracedGraph> graph);

  /// Whether all constants have been computed; call() wants it.
  bool is_ready() const;
  /// New arrays for the graph's outputs, computed together.
  std::vector<array> call(const std::vector<array>& inputs);

  std::vector<array> submit(
      std::vector<array> inputs,
      const std::shared_ptr<EvalContext>& context) override;
  std::vector<array> compute(std::vector<array> inputs) override;

 private:
  // Where an input lies.
  struct Place {
    const void* block = nullptr;
    int64_t offset = 0;
    bool operator==(const Place&) const = default;
  };
  using Made = std::vector<std::optional<array>>;
  using RunNode = std::function<void(array&)>;

  RecordedTrace(std::shared_ptr<const TracedGraph> graph, Stream stream);
  void find_last_uses();
  std::vector<bool> compare_places(const std::vector<array>& inputs);
  std::vector<array> run(
      std::vector<array> inputs, const RunNode& run_node) const;
  void make_node(size_t node, Made& made, const RunNode& run_node) const;

  std::shared_ptr<const TracedGraph> graph_;
  Stream stream_;
  // Values that are computed and given out.
  std::vector<int> results_;
  std::vector<Shape> shapes_;
  std::vector<Dtype> dtypes_;
  // By node and operand: whether the value is read for the last time.
  std::vector<std::vector<char>> last_;
  std::vector<char> is_wanted_;  // by value: read by a node, or a result
  mutable std::atomic<bool> is_ready_{false};

  std::mutex mutex_;
  std::vector<Place> places_;  // of the inputs when last submitted node by node
  int runs_ = 0;               // node by node since the last attempt to record
  int attempts_ = 0;
  std::shared_ptr<Recording> recording_;
};

}  // namespace mlx::core::detail
