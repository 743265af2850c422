// compile: the modes, what is done with a trace, and the C++ face.
#include "mlx/compile.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "transforms/compile/cache.h"

namespace mlx::core {

namespace {

std::atomic<CompileMode>& mode() {
  static std::atomic<CompileMode> mode{
      std::getenv("MLX_DISABLE_COMPILE") ? CompileMode::disabled
                                         : CompileMode::enabled};
  return mode;
}

using Caches =
    std::unordered_map<std::uintptr_t, std::shared_ptr<detail::TraceCache>>;

// Functions that were given an identity.
struct Registry {
  std::mutex mutex;
  Caches caches;
};

Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

std::shared_ptr<detail::TraceCache> cache_of(std::uintptr_t fun_id) {
  std::lock_guard lock(registry().mutex);
  auto& cache = registry().caches[fun_id];
  if (!cache) {
    cache = std::make_shared<detail::TraceCache>();
  }
  return cache;
}

std::vector<array> call_compiled(
    const ArrayFn& fun,
    detail::TraceCache& cache,
    const std::vector<array>& inputs,
    const std::vector<uint64_t>& constants,
    bool shapeless) {
  if (detail::compile_mode() == CompileMode::disabled ||
      detail::is_transformed()) {
    return fun(inputs);
  }
  std::string key;
  detail::add_surroundings(key, shapeless);
  for (uint64_t constant : constants) {
    detail::add_bytes(key, constant);
  }
  for (const array& in : inputs) {
    detail::add_array(key, in, shapeless);
  }
  auto trace = cache.find(key);
  if (!trace) {
    trace = std::make_shared<detail::CompiledTrace>(
        detail::compile_trace(fun, inputs, shapeless));
    cache.insert(key, trace);
  }
  return trace->call(inputs);
}

ArrayFn compiled_with(
    ArrayFn fun,
    std::shared_ptr<detail::TraceCache> cache,
    bool shapeless,
    std::vector<uint64_t> constants) {
  return [fun = std::move(fun),
          cache = std::move(cache),
          shapeless,
          constants = std::move(constants)](const std::vector<array>& inputs) {
    return call_compiled(fun, *cache, inputs, constants, shapeless);
  };
}

}  // namespace

ArrayFn compile(ArrayFn fun, bool shapeless) {
  return compiled_with(
      std::move(fun), std::make_shared<detail::TraceCache>(), shapeless, {});
}

ArrayFn compile(
    std::vector<array> (*fun)(const std::vector<array>&), bool shapeless) {
  auto id = reinterpret_cast<std::uintptr_t>(fun);
  return compiled_with(fun, cache_of(id), shapeless, {});
}

void disable_compile() {
  mode() = CompileMode::disabled;
}
void enable_compile() {
  mode() = CompileMode::enabled;
}
void set_compile_mode(CompileMode m) {
  mode() = m;
}

namespace detail {

CompileMode compile_mode() {
  return mode().load(std::memory_order_relaxed);
}

ArrayFn compile(
    ArrayFn fun,
    std::uintptr_t fun_id,
    bool shapeless,
    std::vector<uint64_t> constants) {
  return compiled_with(
      std::move(fun), cache_of(fun_id), shapeless, std::move(constants));
}

void compile_erase(std::uintptr_t fun_id) {
  std::shared_ptr<TraceCache> gone;  // freed without the lock
  std::lock_guard lock(registry().mutex);
  auto found = registry().caches.find(fun_id);
  if (found != registry().caches.end()) {
    gone = std::move(found->second);
    registry().caches.erase(found);
  }
}

void compile_clear_cache() {
  Caches gone;
  std::lock_guard lock(registry().mutex);
  gone.swap(registry().caches);
}

TracedGraph compile_trace(
    const ArrayFn& fun, const std::vector<array>& inputs, bool shapeless) {
  CompileMode mode = compile_mode();
  TracedGraph graph = trace_function(fun, inputs, shapeless);
  graph.remove_unused();
  size_t traced = graph.nodes.size();
  if (mode != CompileMode::no_simplify) {
    simplify(graph);
  }
  size_t simplified = graph.nodes.size();
  bool verbose = std::getenv("MLX_COMPILE_VERBOSE") != nullptr;
  std::string report;
  if (mode != CompileMode::no_fuse) {
    expand(graph);
    if (mode != CompileMode::no_simplify) {
      simplify(graph);
    }
    fuse(graph, verbose ? &report : nullptr);
  }
  if (verbose) {
    std::fprintf(
        stderr,
        "[compile] %zu operations, %zu simplified, %zu fused\n%s",
        traced,
        simplified,
        graph.nodes.size(),
        report.c_str());
  }
  return graph;
}

}  // namespace detail

}  // namespace mlx::core
