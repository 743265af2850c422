// Queues are guarded by a mutex; waiting is a bounded spin and then a futex on
// one of two counters of tasks, `posted` and `finished`. Counters are compared
// by difference, so they may wrap.
#include "backend/cpu/stream_worker.h"

#include <pthread.h>

#include <climits>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/thread_tools.h"

namespace mlx::core::cpu {

struct StreamWorker::Queue {
  explicit Queue(bool with_thread);

  void enqueue(Task task);
  void run_task(Task& task);
  void run();
  bool work_posted();
  void wait_for(uint32_t target);
  void stop();
  bool on_own_thread() const { return own_queue == this; }
  void raise_error();

  // The queue that the calling thread serves.
  static thread_local const Queue* own_queue;

  std::mutex mutex;
  std::vector<Task> tasks;
  std::exception_ptr error;
  bool has_thread = false;
  std::thread thread;
  alignas(64) std::atomic<uint32_t> posted{0};
  std::atomic<bool> worker_sleeps{false};
  std::atomic<bool> stopping{false};
  alignas(64) std::atomic<uint32_t> finished{0};
  std::atomic<int> waiters{0};
};

// All workers of the process, for its end and for forks.
struct Workers {
  std::mutex mutex;
  StreamWorker* first = nullptr;
  bool closed = false;  // the process ends: no more threads

  void add(StreamWorker* worker);
  void remove(StreamWorker* worker);
  void close();
  void drain();
  void forget_threads();
};

namespace {

// Never destroyed; `at_exit` ends the threads.
Workers& workers() {
  static Workers* const the_workers = new Workers;
  return *the_workers;
}

struct AtExit {
  ~AtExit() { workers().close(); }
};

void in_forked_child() {
  workers().forget_threads();
  workers().mutex.unlock();
}

[[maybe_unused]] const int registered = pthread_atfork(
    [] { workers().mutex.lock(); },
    [] { workers().mutex.unlock(); },
    in_forked_child);

}  // namespace

thread_local const StreamWorker::Queue* StreamWorker::Queue::own_queue =
    nullptr;

StreamWorker::Queue::Queue(bool with_thread) : has_thread(with_thread) {
  if (with_thread) {
    thread = start_thread("mlx-stream", [this] { run(); });
  }
}

void StreamWorker::Queue::enqueue(Task task) {
  bool on_caller;
  {
    std::lock_guard guard(mutex);
    on_caller = !has_thread;
    if (!on_caller) {
      tasks.push_back(std::move(task));
      // Sequentially consistent with worker_sleeps: either this is seen by a
      // worker that is about to sleep, or the worker is seen here.
      posted.fetch_add(1, std::memory_order_seq_cst);
    }
  }
  if (on_caller) {
    run_task(task);
  } else if (worker_sleeps.load(std::memory_order_seq_cst)) {
    futex_wake(posted, 1);
  }
}

// The task is gone, with all that it holds, before it counts as finished.
void StreamWorker::Queue::run_task(Task& task) {
  try {
    task();
  } catch (...) {
    std::lock_guard guard(mutex);
    if (!error) {
      error = std::current_exception();
    }
  }
  task = nullptr;
}

bool StreamWorker::Queue::work_posted() {
  return posted.load(std::memory_order_acquire) !=
             finished.load(std::memory_order_relaxed) ||
         stopping.load(std::memory_order_acquire);
}

void StreamWorker::Queue::run() {
  own_queue = this;
  std::vector<Task> batch;
  while (true) {
    if (!spin([this] { return work_posted(); })) {
      worker_sleeps.store(true, std::memory_order_seq_cst);
      uint32_t seen = posted.load(std::memory_order_seq_cst);
      if (seen == finished.load(std::memory_order_relaxed)) {
        futex_wait(posted, seen);
      }
      worker_sleeps.store(false, std::memory_order_relaxed);
    }
    {
      std::lock_guard guard(mutex);
      if (tasks.empty() && stopping.load(std::memory_order_relaxed)) {
        has_thread = false;  // later tasks run on their callers
        return;
      }
      batch.swap(tasks);
    }
    for (Task& task : batch) {
      run_task(task);
      finished.fetch_add(1, std::memory_order_seq_cst);
      if (waiters.load(std::memory_order_seq_cst) > 0) {
        futex_wake(finished, INT_MAX);
      }
    }
    batch.clear();
  }
}

// Waits until `target` tasks are finished.
void StreamWorker::Queue::wait_for(uint32_t target) {
  auto done = [&] {
    auto left = target - finished.load(std::memory_order_acquire);
    return static_cast<int32_t>(left) <= 0;
  };
  if (on_own_thread() || spin(done)) {
    return;
  }
  waiters.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    uint32_t seen = finished.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(target - seen) <= 0) {
      break;
    }
    futex_wait(finished, seen);
  }
  waiters.fetch_sub(1, std::memory_order_relaxed);
}

// Runs what is queued, then ends the thread.
void StreamWorker::Queue::stop() {
  if (!thread.joinable()) {
    return;
  }
  stopping.store(true, std::memory_order_release);
  enqueue([] {});  // so that a sleep ends
  if (on_own_thread()) {
    thread.detach();  // a task ends the process
  } else {
    thread.join();
  }
}

void StreamWorker::Queue::raise_error() {
  std::exception_ptr first;
  {
    std::lock_guard guard(mutex);
    first = std::exchange(error, nullptr);
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

void Workers::add(StreamWorker* worker) {
  std::lock_guard guard(mutex);
  worker->next_ = first;
  first = worker;
}

void Workers::remove(StreamWorker* worker) {
  std::lock_guard guard(mutex);
  StreamWorker** link = &first;
  while (*link != worker) {
    link = &(*link)->next_;
  }
  *link = worker->next_;
}

// All begin to stop before the first is waited for: a task of one may wait for
// a task of another.
void Workers::close() {
  std::vector<StreamWorker::Queue*> queues;
  {
    std::lock_guard guard(mutex);
    closed = true;
    for (StreamWorker* worker = first; worker; worker = worker->next_) {
      if (auto* queue = worker->queue_.load()) {
        queues.push_back(queue);
      }
    }
  }
  for (auto* queue : queues) {
    queue->stop();
  }
}

void Workers::drain() {
  std::vector<std::pair<StreamWorker::Queue*, uint32_t>> targets;
  {
    std::lock_guard guard(mutex);
    for (StreamWorker* worker = first; worker; worker = worker->next_) {
      if (auto* queue = worker->queue_.load()) {
        targets.emplace_back(queue, queue->posted.load());
      }
    }
  }
  for (auto& [queue, target] : targets) {
    queue->wait_for(target);
  }
}

// In a forked child. The queues, with a mutex that may be locked and a thread
// that is not here, are left alone for good.
void Workers::forget_threads() {
  for (StreamWorker* worker = first; worker; worker = worker->next_) {
    if (auto* queue = worker->queue_.exchange(nullptr)) {
      if (queue->posted.load() != queue->finished.load()) {
        worker->lost_in_fork_ = true;
      }
    }
  }
}

StreamWorker::StreamWorker() {
  // Made with the first worker, so that the queues are drained before the
  // static objects that were made earlier, and that tasks may use, end.
  static AtExit at_exit;
  workers().add(this);
}

StreamWorker::~StreamWorker() {
  workers().remove(this);
  if (Queue* queue = queue_.load()) {
    queue->stop();
    delete queue;
  }
}

// The thread starts with the first task.
StreamWorker::Queue& StreamWorker::queue() {
  Queue* queue = queue_.load(std::memory_order_acquire);
  if (queue == nullptr) {
    std::lock_guard guard(workers().mutex);
    queue = queue_.load(std::memory_order_relaxed);
    if (queue == nullptr) {
      queue = new Queue(!workers().closed);
      queue_.store(queue, std::memory_order_release);
    }
  }
  return *queue;
}

void StreamWorker::enqueue(Task task) {
  queue().enqueue(std::move(task));
}

void StreamWorker::synchronize() {
  Queue* queue = queue_.load(std::memory_order_acquire);
  if (queue != nullptr && queue->on_own_thread()) {
    return;
  }
  if (lost_in_fork_.exchange(false)) {
    throw std::runtime_error(
        "[synchronize] the process was forked while the stream had work to do; "
        "that work is done in the parent only. Evaluate before the fork.");
  }
  if (queue != nullptr) {
    queue->wait_for(queue->posted.load(std::memory_order_acquire));
    queue->raise_error();
  }
}

void StreamWorker::drain_all() {
  workers().drain();
}

}  // namespace mlx::core::cpu
