// Running nodes on the CPU; workers of streams; events.
#include "backend/cpu/backend.h"

#include <climits>
#include <fstream>
#include <mutex>

#include "backend/buffer.h"
#include "backend/cpu/stream_worker.h"
#include "backend/cpu/thread_tools.h"
#include "graph/composite.h"
#include "types/error.h"

namespace mlx::core::cpu {

namespace {

thread_local int executing_stream = -1;

// One word, and no lock that a fork could find taken.
class CpuEvent final : public detail::EventState,
                       public std::enable_shared_from_this<CpuEvent> {
 public:
  void wait() override {
    auto done = [this] { return is_signaled(); };
    check_not_lost();
    if (spin(done)) {
      return;
    }
    uint32_t pending = kPending;
    state_.compare_exchange_strong(pending, kAwaited);
    while (!done()) {
      futex_wait(state_, kAwaited);
    }
  }
  void wait(Stream s) override {
    if (is_executing(s)) {
      wait();
    } else {
      enqueue(s, [self = shared_from_this()] { self->wait(); });
    }
  }
  void signal(Stream s) override {
    if (is_executing(s)) {
      set();
    } else {
      enqueue(s, [self = shared_from_this()] { self->set(); });
    }
  }
  bool is_signaled() const override {
    return state_.load(std::memory_order_acquire) == kSignaled;
  }
  void set() {
    if (state_.exchange(kSignaled) == kAwaited) {
      futex_wake(state_, INT_MAX);
    }
  }

 private:
  static constexpr uint32_t kPending = 0;
  static constexpr uint32_t kAwaited = 1;
  static constexpr uint32_t kSignaled = 2;

  std::atomic<uint32_t> state_{kPending};
};

StreamWorker& worker(Stream s) {
  static std::mutex mutex;
  static auto* workers =
      new std::unordered_map<int, std::unique_ptr<StreamWorker>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<StreamWorker>& slot = (*workers)[s.index];
  if (!slot) {
    slot = std::make_unique<StreamWorker>();
  }
  return *slot;
}

// Brings what a device has computed here, before a kernel takes it for memory
// that it may write to.
void fetch_inputs(const array& node) {
  if (device_memory() != nullptr) {
    for (const array& in : node.inputs()) {
      allocator::Buffer(in.buffer()).raw_ptr();
    }
  }
}

void run_kernel_of(array& node, std::vector<array>& outputs) {
  Primitive& op = node.primitive();
  if (auto kernel = kernels().find(typeid(op))) {
    kernel(op, node.inputs(), outputs);
  } else {
    op.eval_cpu(node.inputs(), outputs);
  }
}

// The siblings hold the inputs too, and kernels take over only memory that
// nobody else holds: they let go, but for a node that fails.
void run_alone(array& node, std::vector<array>& outputs) {
  for (array& other : node.siblings()) {
    other.inputs().clear();
  }
  try {
    run_kernel_of(node, outputs);
  } catch (...) {
    for (array& other : node.siblings()) {
      other.inputs() = node.inputs();
    }
    throw;
  }
}

// Derivatives will read the inputs again when the graph is kept: they are held,
// so that no kernel takes their memory over.
void run_node(array& node, bool keep_graph) {
  if (mlx::core::detail::run_composite(node)) {
    return;
  }
  std::vector<array> outputs = node.outputs();
  std::vector<array> held;
  fetch_inputs(node);
  if (keep_graph) {
    held = node.inputs();
    run_kernel_of(node, outputs);
  } else {
    run_alone(node, outputs);
  }
  for (array& out : outputs) {
    out.set_status(array::available);
  }
  if (!keep_graph) {
    node.detach();
  }
}

void fail(EvalContext& context, const char* what) {
  context.error.set_message(std::make_shared<std::string>(what));
}

class CpuBackend final : public Backend {
 public:
  const char* name() const override { return "cpu"; }
  int device_count() const override { return 1; }
  const DeviceInfo& device_info(int) const override;

  bool has_kernel(std::type_index op) const override {
    return kernels().find(op) != nullptr;
  }

  void run_kernel(
      Primitive& op,
      const std::vector<array>& inputs,
      std::vector<array>& outputs) override {
    auto kernel = kernels().find(typeid(op));
    if (!kernel) {
      throw std::runtime_error(message(op.name(), "has no cpu kernel."));
    }
    kernel(op, inputs, outputs);
  }

  // A pass over memory is what costs here, and a fused part saves one.
  bool keeps_whole(const Primitive&, const Shape&) const override {
    return false;
  }

  void run_inline(array& node) override {
    Executing scope(node.primitive().stream());
    run_node(node, node.is_tracer());
  }

  void submit(array node, std::shared_ptr<EvalContext> context) override {
    Stream s = node.primitive().stream();
    Primitive& op = node.primitive();
    if (!kernels().find(typeid(op)) && !mlx::core::detail::is_composite(op)) {
      submit_foreign(std::move(node), *context);
      return;
    }
    bool keep = node.is_tracer();  // a matter of this thread
    enqueue(s, [s, node = std::move(node), keep, context]() mutable {
      if (context->error.valid()) {
        return;
      }
      try {
        Executing scope(s);
        run_node(node, keep);
      } catch (const std::exception& e) {
        fail(*context, e.what());
      }
    });
  }

  bool runs_inline(Stream s) const override {
    return s == default_stream(s.device) || is_executing(s);
  }

  std::shared_ptr<detail::EventState> make_event(Stream) override {
    return std::make_shared<CpuEvent>();
  }

  void signal(
      Stream s, Event event, std::shared_ptr<EvalContext> context) override {
    enqueue(s, [event, context]() mutable {
      event.set_error(context->error);
      event.cast<CpuEvent>().set();
    });
  }

  void wait(
      Stream s, Event event, std::shared_ptr<EvalContext> context) override {
    auto await = [event, context]() mutable {
      try {
        event.cast<detail::EventState>().wait();
      } catch (const std::exception& e) {
        fail(*context, e.what());  // lost in a fork, or found now
      }
      context->error.store_if_valid(event.load_error());
    };
    if (!event.is_signaled()) {
      enqueue(s, std::move(await));
    } else if (event.stream().device == Device::gpu) {
      await();  // what went wrong there is found by who waits
    }
  }

  void flush(Stream) override {}

  void synchronize(Stream s) override { worker(s).synchronize(); }

 private:
  // An extension's eval_cpu runs on the thread that called eval; what it
  // dispatches runs on the worker. Its inputs must be there by then.
  void submit_foreign(array node, EvalContext& context) {
    Stream s = node.primitive().stream();
    try {
      worker(s).synchronize();
      if (context.error.valid()) {
        return;
      }
      for (array& in : node.inputs()) {
        in.wait();
      }
      fetch_inputs(node);
      std::vector<array> outputs = node.outputs();
      node.primitive().eval_cpu(node.inputs(), outputs);
    } catch (const std::exception& e) {
      fail(context, e.what());
      return;
    }
    enqueue(s, [node, keep = node.is_tracer()]() mutable {
      for (array& out : node.outputs()) {
        out.set_status(array::available);
      }
      if (!keep) {
        node.detach();
      }
    });
  }
};

const DeviceInfo& CpuBackend::device_info(int) const {
  static const auto* info = [] {
    auto* facts = new DeviceInfo;
    std::string model = "CPU";
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
      if (line.rfind("model name", 0) == 0) {
        model = line.substr(line.find(':') + 2);
        break;
      }
    }
    (*facts)["device_name"] = model;
    (*facts)["architecture"] = "x86_64";
    return facts;
  }();
  return *info;
}

}  // namespace

Backend& backend() {
  static auto* instance = new CpuBackend;
  return *instance;
}

Executing::Executing(Stream s) : outer_(executing_stream) {
  executing_stream = s.index;
}
Executing::~Executing() {
  executing_stream = outer_;
}

bool is_executing(Stream s) {
  return executing_stream == s.index;
}

void enqueue(Stream s, std::function<void()> task) {
  worker(s).enqueue(std::move(task));
}

}  // namespace mlx::core::cpu
