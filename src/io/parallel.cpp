// The io threads: few, started when first needed, and apart from the compute
// threads because they spend their time waiting for files.
#include "io/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "mlx/io/load.h"

namespace mlx::core::io {

namespace {

thread_local bool in_pool = false;

}  // namespace

ThreadPool::ThreadPool(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::push(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::work() {
  in_pool = true;
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

ThreadPool& thread_pool() {
  // A forked child has the object but not the threads, so it makes another.
  // Never destroyed: arrays may still be loading when statics go.
  static std::mutex mutex;
  static ThreadPool* pool = nullptr;
  static pid_t owner = 0;
  std::lock_guard lock(mutex);
  if (!pool || owner != getpid()) {
    size_t cores = std::max(1u, std::thread::hardware_concurrency());
    pool = new ThreadPool(std::min<size_t>(cores, 4));
    owner = getpid();
  }
  return *pool;
}

void split_over_threads(
    size_t n,
    size_t unit,
    size_t min_part,
    const std::function<void(size_t, size_t)>& f) {
  if (in_pool || n < 2 * min_part) {
    f(0, n);
    return;
  }
  ThreadPool& pool = thread_pool();
  size_t parts = std::min(pool.size(), n / min_part);
  size_t part = (n / parts + unit - 1) / unit * unit;
  std::vector<std::future<void>> others;
  for (size_t begin = part; begin < n; begin += part) {
    others.push_back(pool.enqueue(
        [&f, begin, end = std::min(n, begin + part)] { f(begin, end); }));
  }
  // Nothing leaves before all parts have ended: they write to the caller's
  // memory.
  std::exception_ptr error;
  auto note = [&](auto&& step) {
    try {
      step();
    } catch (...) {
      error = error ? error : std::current_exception();
    }
  };
  note([&] { f(0, std::min(n, part)); });
  for (auto& other : others) {
    note([&] { other.get(); });
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace mlx::core::io
