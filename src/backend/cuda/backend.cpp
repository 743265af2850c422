// Submitting nodes to the device, and events; the entrance of the library.
#include "backend/cuda/backend.h"

#include <atomic>

#include "backend/cuda/compiled.h"
#include "backend/cuda/extension.h"
#include "backend/cuda/recording.h"
#include "backend/extension_encoder.h"
#include "mlx/version.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

// Events of CUDA are made once and used again.
class EventPool {
 public:
  cudaEvent_t take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    check(
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
        "creating an event");
    return event;
  }
  void give_back(cudaEvent_t event) {
    std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

EventPool& event_pool() {
  static auto* pool = new EventPool;
  return *pool;
}

// Raises what a kernel has found wrong with its data, or has done wrong. The
// device is lost then: every later call finds the same.
void check_work(cudaError_t status, Encoder& e) {
  if (status == cudaSuccess) {
    e.forget_ops();
    e.faults().raise();
    return;
  }
  throw std::runtime_error(
      std::string("[cuda] a kernel failed: ") + cudaGetErrorString(status) +
      ". Operations under way: " + e.recent_ops() +
      ". With MLX_CUDA_SYNC=1 each is waited for and the one is named.");
}

class CudaEvent final : public detail::EventState {
 public:
  explicit CudaEvent(Stream s) : stream_(s), event_(event_pool().take()) {}
  ~CudaEvent() override { event_pool().give_back(event_); }

  void wait() override {
    check_not_lost();
    await_recorded();
    if (done_.load(std::memory_order_acquire)) {
      return;
    }
    cudaError_t status = cudaEventSynchronize(event_);
    if (status != cudaSuccess) {
      Encoder& e = encoder(stream_);
      std::lock_guard lock(e.mutex());
      check_work(status, e);
    }
    check_data();
    done_.store(true, std::memory_order_release);
  }

  void wait(Stream s) override {
    if (s.device == Device::gpu) {
      wait_on(encoder(s));
    } else {
      wait();
    }
  }

  void signal(Stream s) override { record_on(encoder(s)); }

  bool is_signaled() const override {
    return done_.load(std::memory_order_acquire) ||
           (recorded_.load(std::memory_order_acquire) &&
            cudaEventQuery(event_) == cudaSuccess);
  }

  // Raises nothing: an event that is never recorded would be waited for
  // for ever. Its waiters get the error.
  void record_on(Encoder& e) {
    std::lock_guard lock(e.mutex());
    faults_ = &e.faults();
    number_ = faults_->next_event();
    try {
      check(cudaEventRecord(event_, e.stream()), "recording an event");
    } catch (const std::exception& found) {
      error.set_message(std::make_shared<std::string>(found.what()));
      done_.store(true, std::memory_order_release);
    }
    recorded_.store(true, std::memory_order_release);
    recorded_.notify_all();
  }
  void wait_on(Encoder& e) {
    await_recorded();
    std::lock_guard lock(e.mutex());
    check(cudaStreamWaitEvent(e.stream(), event_, 0), "waiting for an event");
    e.faults().follow(*faults_, number_);
  }

 private:
  // By the thread that launched the work, perhaps another one.
  void await_recorded() {
    while (!recorded_.load(std::memory_order_acquire)) {
      recorded_.wait(false, std::memory_order_acquire);
    }
  }
  // Later waits find the same error.
  void check_data() {
    try {
      faults_->raise(number_);
    } catch (const std::exception& found) {
      error.set_message(std::make_shared<std::string>(found.what()));
      throw;
    }
  }

  Stream stream_;
  cudaEvent_t event_;
  Faults* faults_ = nullptr;  // of the stream it was recorded on
  uint64_t number_ = 0;
  std::atomic<bool> recorded_{false};
  std::atomic<bool> done_{false};
};

bool waits_after_each() {
  static const bool yes = std::getenv("MLX_CUDA_SYNC") != nullptr;
  return yes;
}

void run_node(array& node, bool keep_graph, Encoder& e) {
  Primitive& op = node.primitive();
  std::vector<array> outputs = node.outputs();
  std::vector<array> held;
  if (keep_graph) {
    held = node.inputs();  // so that no kernel takes their memory over
  }
  if (auto kernel = kernels().find(typeid(op))) {
    std::lock_guard lock(e.mutex());
    e.set_op(op.name());
    kernel(op, node.inputs(), outputs, e);
  } else {
    {
      std::lock_guard lock(e.mutex());
      e.set_op(op.name());
    }
    op.eval_gpu(node.inputs(), outputs);  // an extension's: it takes the lock
  }
  if (waits_after_each()) {
    std::lock_guard lock(e.mutex());
    check_work(cudaStreamSynchronize(e.stream()), e);
  }
  if (!keep_graph) {
    node.detach();
  }
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const cudaDeviceProp& found) {
    info_["device_name"] = std::string(found.name);
    info_["architecture"] =
        "sm_" + std::to_string(found.major) + std::to_string(found.minor);
    info_["memory_size"] = found.totalGlobalMem;
    info_["max_recommended_working_set_size"] = found.totalGlobalMem / 20 * 19;
    info_["max_buffer_length"] = found.totalGlobalMem / 20 * 19;
    memory();
  }

  const char* name() const override { return "cuda"; }
  // One device a process, the first that the driver shows it
  // (CUDA_VISIBLE_DEVICES chooses).
  int device_count() const override { return 1; }
  const DeviceInfo& device_info(int) const override { return info_; }

  bool has_kernel(std::type_index op) const override {
    return kernels().find(op) != nullptr;
  }

  void run_kernel(
      Primitive& op,
      const std::vector<array>& inputs,
      std::vector<array>& outputs) override {
    auto kernel = kernels().find(typeid(op));
    if (!kernel) {
      throw std::runtime_error(message(op.name(), "has no cuda kernel."));
    }
    Encoder& e = encoder(op.stream());
    std::lock_guard lock(e.mutex());
    e.set_op(op.name());
    kernel(op, inputs, outputs, e);
  }

  bool keeps_whole(const Primitive& op, const Shape& shape) const override {
    return better_alone(op, shape);
  }

  void run_inline(array& node) override {
    Stream s = node.primitive().stream();
    run_node(node, node.is_tracer(), encoder(s));
    wait_for_stream(s);
  }

  // Launched by the caller, also when it goes on without waiting: a worker
  // thread that launches takes longer, and slows down who builds the next
  // graph, by passing memory and counts between cores. Launches stay in the
  // stream's order; what goes wrong in a kernel is found by who waits.
  void submit(array node, std::shared_ptr<EvalContext> context) override {
    if (!context->error.valid()) {
      bool keep = node.is_tracer();
      run_node(node, keep, encoder(node.primitive().stream()));
    }
  }

  bool runs_inline(Stream) const override { return false; }

  std::shared_ptr<detail::EventState> make_event(Stream s) override {
    check_not_forked();
    return std::make_shared<CudaEvent>(s);
  }

  void signal(
      Stream s, Event event, std::shared_ptr<EvalContext> context) override {
    event.set_error(context->error);
    event.cast<CudaEvent>().signal(s);
  }

  // Another backend's event is waited for by who launches: its result has to
  // be copied to the device by the same thread.
  void wait(
      Stream s, Event event, std::shared_ptr<EvalContext> context) override {
    if (event.stream().device != Device::gpu) {
      event.cast<detail::EventState>().wait();
    } else if (event.stream() != s) {  // else the order is enough
      event.cast<CudaEvent>().wait_on(encoder(s));
    }
    context->error.store_if_valid(event.load_error());
  }

  void flush(Stream) override {}

  void synchronize(Stream s) override { wait_for_stream(s); }

  // With MLX_CUDA_SYNC operations are waited for one by one.
  bool records(Stream) const override { return !waits_after_each(); }

  Recorded record(
      Stream s,
      std::vector<array> inputs,
      const std::vector<bool>& stays,
      const SubmitWork& work) override {
    return CudaRecording::record(s, std::move(inputs), stays, work);
  }

 private:
  static void wait_for_stream(Stream s) {
    Encoder& e = encoder(s);
    cudaStream_t stream;
    {
      std::lock_guard lock(e.mutex());
      stream = e.stream();
    }
    cudaError_t status = cudaStreamSynchronize(stream);
    std::lock_guard lock(e.mutex());
    check_work(status, e);
  }

  DeviceInfo info_;
};

}  // namespace

}  // namespace mlx::core::cuda

/// The entrance: the backend, or null and a reason.
extern "C" __attribute__((visibility("default"))) mlx::core::Backend*
mlx_cuda_backend(int version, const char** why) {
  if (version != MLX_VERSION_NUMERIC) {
    *why = "the CUDA library is of another version";
    return nullptr;
  }
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  cudaDeviceProp found{};
  if (status == cudaSuccess && count > 0) {
    status = cudaGetDeviceProperties(&found, 0);
  }
  if (status != cudaSuccess || count == 0) {
    *why = status == cudaSuccess ? "the driver shows no device"
                                 : cudaGetErrorString(status);
    return nullptr;
  }
  try {
    static auto* backend = new mlx::core::cuda::CudaBackend(found);
    mlx::core::set_extension_encoders(mlx::core::cuda::extension_encoder);
    return backend;
  } catch (const std::exception& e) {
    static std::string text;
    text = e.what();
    *why = text.c_str();
    return nullptr;
  }
}
