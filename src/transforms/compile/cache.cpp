// Keys and traces.
#include "transforms/compile/cache.h"

#include <utility>

#include "graph/tracing.h"
#include "mlx/compile.h"
#include "mlx/device.h"
#include "mlx/stream.h"
#include "mlx/utils.h"

namespace mlx::core::detail {

CompiledTrace::CompiledTrace(TracedGraph traced)
    : graph(std::make_shared<const TracedGraph>(std::move(traced))),
      recorded(RecordedTrace::make(graph)) {}

std::vector<array> CompiledTrace::call(const std::vector<array>& inputs) const {
  if (recorded && inputs.size() == graph->inputs.size() &&
      recorded->is_ready()) {
    return recorded->call(inputs);
  }
  return graph->replay(inputs);
}

std::shared_ptr<const CompiledTrace> TraceCache::find(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = places_.find(key);
  if (found == places_.end()) {
    ++info_.misses;
    return nullptr;
  }
  ++info_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->trace;
}

void TraceCache::insert(
    const std::string& key, std::shared_ptr<const CompiledTrace> trace) {
  std::shared_ptr<const CompiledTrace> gone;  // freed without the lock
  std::lock_guard lock(mutex_);
  auto found = places_.find(key);
  if (found != places_.end()) {
    // Another thread has traced the same meanwhile.
    gone = std::exchange(found->second->trace, std::move(trace));
    return;
  }
  entries_.push_front({key, std::move(trace)});
  places_.emplace(entries_.front().key, entries_.begin());
  if (entries_.size() > kMostTraces) {
    gone = std::move(entries_.back().trace);
    places_.erase(entries_.back().key);
    entries_.pop_back();
    ++info_.evictions;
  }
}

void TraceCache::clear() {
  std::list<Entry> gone;
  std::lock_guard lock(mutex_);
  places_.clear();
  gone.swap(entries_);
}

TraceCache::Info TraceCache::info() const {
  std::lock_guard lock(mutex_);
  Info info = info_;
  info.size = entries_.size();
  return info;
}

void add_array(std::string& key, const array& a, bool shapeless) {
  add_bytes(key, a.dtype().val());
  add_bytes(key, static_cast<int>(a.ndim()));
  if (!shapeless) {
    key.append(
        reinterpret_cast<const char*>(a.shape().data()),
        a.ndim() * sizeof(ShapeElem));
  }
}

void add_surroundings(std::string& key, bool shapeless) {
  Stream s = to_stream({});
  add_bytes(key, s.device.type);
  add_bytes(key, s.index);
  add_bytes(key, compile_mode());
  add_bytes(key, shapeless);
}

bool is_transformed() {
  return in_tracing();
}

}  // namespace mlx::core::detail
