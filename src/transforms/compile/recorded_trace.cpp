#include "transforms/compile/recorded_trace.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "mlx/compile.h"

namespace mlx::core::detail {

namespace {

// A recording costs some microseconds a call itself.
constexpr size_t kFewestNodes = 12;
// Of a CPU, where a short graph costs little and can be looked at.
constexpr size_t kFewestAtOnce = 32;
// A recording has memory of its own; with more work than this between inputs
// and results launches are not what takes the time.
constexpr size_t kMostBytes = size_t(1) << 30;
// Kernels are made and memory finds its places before anything is recorded.
constexpr int kRunsBefore = 2;
// After so many recordings that did not last.
constexpr int kMostAttempts = 8;

bool is_empty(const TracedValue& value) {
  return std::find(value.shape.begin(), value.shape.end(), 0) !=
         value.shape.end();
}

// Of all values that are computed.
size_t bytes_of(const TracedGraph& graph) {
  size_t bytes = 0;
  for (const TracedNode& node : graph.nodes) {
    for (int out : node.outputs) {
      const TracedValue& value = graph.values[out];
      size_t size = value.dtype.size();
      for (ShapeElem n : value.shape) {
        size *= static_cast<size_t>(n);
      }
      bytes += size;
    }
  }
  return bytes;
}

bool can_be_recorded(const TracedGraph& graph) {
  // The other modes are there to look at graphs.
  if (compile_mode() != CompileMode::enabled || graph.shapeless ||
      graph.nodes.size() < kFewestNodes ||
      std::any_of(graph.values.begin(), graph.values.end(), is_empty) ||
      bytes_of(graph) > kMostBytes) {
    return false;
  }
  Stream s = graph.nodes[0].primitive->stream();
  Backend& backend = get_backend(s.device.type);
  if (s.device == Device::cpu ? graph.nodes.size() < kFewestAtOnce
                              : !backend.records(s)) {
    return false;
  }
  return std::all_of(
      graph.nodes.begin(), graph.nodes.end(), [&](const TracedNode& node) {
        Primitive& op = *node.primitive;
        return node.postponed == nullptr && !node.unfused && op.stream() == s &&
               backend.has_kernel(typeid(op));
      });
}

}  // namespace

std::shared_ptr<RecordedTrace> RecordedTrace::make(
    std::shared_ptr<const TracedGraph> graph) {
  if (!can_be_recorded(*graph)) {
    return nullptr;
  }
  Stream s = graph->nodes[0].primitive->stream();
  return std::shared_ptr<RecordedTrace>(new RecordedTrace(std::move(graph), s));
}

RecordedTrace::RecordedTrace(
    std::shared_ptr<const TracedGraph> graph, Stream stream)
    : graph_(std::move(graph)), stream_(stream) {
  std::vector<char> seen(graph_->values.size(), 0);
  for (int out : graph_->outputs) {
    if (graph_->values[out].node >= 0 && !graph_->is_constant(out) &&
        seen[out] == 0) {
      seen[out] = 1;
      results_.push_back(out);
      shapes_.push_back(graph_->values[out].shape);
      dtypes_.push_back(graph_->values[out].dtype);
    }
  }
  find_last_uses();
}

void RecordedTrace::find_last_uses() {
  is_wanted_ = graph_->output_marks();
  size_t count = graph_->nodes.size();
  last_.resize(count);
  for (size_t n = count; n-- > 0;) {
    const std::vector<int>& read = graph_->nodes[n].inputs;
    last_[n].resize(read.size());
    for (size_t k = read.size(); k-- > 0;) {
      last_[n][k] = is_wanted_[read[k]] == 0 ? 1 : 0;
      is_wanted_[read[k]] = 1;
    }
  }
}

bool RecordedTrace::is_ready() const {
  if (!is_ready_.load(std::memory_order_acquire)) {
    bool ready = std::all_of(
        graph_->values.begin(), graph_->values.end(), [](const auto& value) {
          return !value.constant || value.constant->is_available();
        });
    is_ready_.store(ready, std::memory_order_release);
  }
  return is_ready_.load(std::memory_order_relaxed);
}

std::vector<array> RecordedTrace::call(const std::vector<array>& inputs) {
  const std::vector<TracedValue>& values = graph_->values;
  Made made(values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    made[graph_->inputs[i]] = inputs[i];
  }
  std::vector<array> nodes =
      composite_results(stream_, shared_from_this(), shapes_, dtypes_, inputs);
  for (size_t i = 0; i < results_.size(); ++i) {
    made[results_[i]] = std::move(nodes[i]);
  }
  std::vector<array> outputs;
  outputs.reserve(graph_->outputs.size());
  for (int out : graph_->outputs) {
    outputs.push_back(
        values[out].constant ? *values[out].constant : *made[out]);
  }
  return outputs;
}

std::vector<array> RecordedTrace::submit(
    std::vector<array> inputs, const std::shared_ptr<EvalContext>& context) {
  std::lock_guard lock(mutex_);
  if (recording_) {
    if (auto results = recording_->replay(inputs)) {
      return std::move(*results);
    }
    recording_ = nullptr;
    runs_ = 0;
  }
  std::vector<bool> stays = compare_places(inputs);
  auto work = [&](std::vector<array> given) {
    return run(std::move(given), [&](array& node) {
      get_backend(stream_.device.type).submit(node, context);
    });
  };
  if (runs_ < kRunsBefore || attempts_ == kMostAttempts) {
    ++runs_;
    return work(std::move(inputs));
  }
  ++attempts_;
  runs_ = 0;
  Recorded recorded = get_backend(stream_.device.type)
                          .record(stream_, std::move(inputs), stays, work);
  recording_ = std::move(recorded.recording);
  if (!recording_) {
    attempts_ = kMostAttempts;
  }
  return std::move(recorded.results);
}

// By input, whether it lies where it lay; remembers where.
std::vector<bool> RecordedTrace::compare_places(
    const std::vector<array>& inputs) {
  places_.resize(inputs.size());
  std::vector<bool> stays(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Place now;
    if (inputs[i].data_shared_ptr()) {
      now = {inputs[i].buffer().ptr(), inputs[i].offset()};
    }
    stays[i] = now == places_[i];
    places_[i] = now;
  }
  return stays;
}

std::vector<array> RecordedTrace::compute(std::vector<array> inputs) {
  Backend& backend = get_backend(stream_.device.type);
  return run(std::move(inputs), [&](array& node) { backend.run_inline(node); });
}

// The nodes one by one. A value is let go with its last reader, which can take
// over its memory.
std::vector<array> RecordedTrace::run(
    std::vector<array> inputs, const RunNode& run_node) const {
  Made made(graph_->values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_wanted_[graph_->inputs[i]] != 0) {
      made[graph_->inputs[i]] = std::move(inputs[i]);
    }
  }
  inputs.clear();
  for (size_t n = 0; n < graph_->nodes.size(); ++n) {
    make_node(n, made, run_node);
  }
  std::vector<array> results;
  results.reserve(results_.size());
  for (int v : results_) {
    results.push_back(std::move(*made[v]));
  }
  return results;
}

void RecordedTrace::make_node(
    size_t n, Made& made, const RunNode& run_node) const {
  const TracedNode& node = graph_->nodes[n];
  const std::vector<TracedValue>& values = graph_->values;
  std::vector<array> read;
  read.reserve(node.inputs.size());
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    int v = node.inputs[k];
    if (values[v].constant) {
      read.push_back(*values[v].constant);
    } else if (last_[n][k] != 0) {
      read.push_back(std::move(*made[v]));
      made[v].reset();
    } else {
      read.push_back(*made[v]);
    }
  }
  if (node.outputs.size() == 1) {
    int v = node.outputs[0];
    array out(
        values[v].shape, values[v].dtype, node.primitive, std::move(read));
    run_node(out);
    made[v] = std::move(out);
    return;
  }
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  for (int v : node.outputs) {
    shapes.push_back(values[v].shape);
    dtypes.push_back(values[v].dtype);
  }
  std::vector<array> outs =
      array::make_arrays(std::move(shapes), dtypes, node.primitive, read);
  read.clear();
  run_node(outs[0]);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (is_wanted_[node.outputs[i]] != 0) {
      made[node.outputs[i]] = std::move(outs[i]);
    }
  }
}

}  // namespace mlx::core::detail
