// Files by POSIX calls: positioned reads need no lock and no shared position,
// so one open file serves all arrays that are loaded from it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "io/bytes.h"
#include "mlx/io/load.h"

namespace mlx::core::io {

namespace {

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr size_t kCallBytes = size_t{1} << 30;
// A share of a split read: long enough (over 1 ms from the page cache) that
// handing it over costs nothing.
constexpr size_t kShareBytes = size_t{8} << 20;

thread_local bool in_pool = false;

[[noreturn]] void fail_call(const char* op, const std::string& label) {
  int error = errno;
  fail(op, label, " failed: ", std::strerror(error), ".");
}

int whence(std::ios_base::seekdir way) {
  if (way == std::ios_base::beg) {
    return SEEK_SET;
  }
  return way == std::ios_base::end ? SEEK_END : SEEK_CUR;
}

size_t move_to(int fd, int64_t off, int way, const std::string& label) {
  off_t at = lseek(fd, off, way);
  if (at < 0) {
    fail_call("seek", label);
  }
  return static_cast<size_t>(at);
}

void read_share(
    int fd, char* data, size_t n, size_t offset, const std::string& label) {
  while (n > 0) {
    ssize_t got =
        pread(fd, data, std::min(n, kCallBytes), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_call("read", label);
    }
    if (got == 0) {
      fail("read", label, " ends ", n, " bytes too early, at ", offset, ".");
    }
    data += got;
    offset += static_cast<size_t>(got);
    n -= static_cast<size_t>(got);
  }
}

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

ParallelFileReader::ParallelFileReader(std::string file_path)
    : path_(std::move(file_path)),
      fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

ParallelFileReader::~ParallelFileReader() {
  if (is_open()) {
    close(fd_);
  }
}

size_t ParallelFileReader::tell() {
  return move_to(fd_, 0, SEEK_CUR, label());
}

void ParallelFileReader::seek(int64_t off, std::ios_base::seekdir way) {
  move_to(fd_, off, whence(way), label());
}

void ParallelFileReader::read(char* data, size_t n) {
  size_t at = tell();
  read(data, n, at);
  seek(static_cast<int64_t>(at + n));
}

void ParallelFileReader::read(char* data, size_t n, size_t offset) {
  constexpr size_t kMax = std::numeric_limits<int64_t>::max();
  if (offset > kMax || n > kMax - offset) {
    fail("read", label(), " has no ", n, " bytes at ", offset, ".");
  }
  if (n < 2 * kShareBytes || in_pool) {
    read_share(fd_, data, n, offset, label());
    return;
  }
  ThreadPool& pool = thread_pool();
  size_t shares = std::min(pool.size() + 1, n / kShareBytes);
  size_t share = n / shares;
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < shares; ++i) {
    size_t begin = i * share;
    size_t length = i + 1 == shares ? n - begin : share;
    others.push_back(pool.enqueue([=, this] {
      read_share(fd_, data + begin, length, offset + begin, label());
    }));
  }
  // All shares end before an error leaves: they write to the caller's memory.
  std::exception_ptr error;
  try {
    read_share(fd_, data, share, offset, label());
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& other : others) {
    other.wait();
  }
  if (error) {
    std::rethrow_exception(error);
  }
  for (auto& other : others) {
    other.get();
  }
}

FileWriter::FileWriter(std::string file_path)
    : path_(std::move(file_path)),
      fd_(open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666)) {
}

FileWriter::FileWriter(FileWriter&& other)
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (is_open()) {
    close(fd_);
  }
}

size_t FileWriter::tell() {
  return move_to(fd_, 0, SEEK_CUR, label());
}

void FileWriter::seek(int64_t off, std::ios_base::seekdir way) {
  move_to(fd_, off, whence(way), label());
}

void FileWriter::write(const char* data, size_t n) {
  while (n > 0) {
    ssize_t done = ::write(fd_, data, std::min(n, kCallBytes));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done < 0) {
      fail_call("write", label());
    }
    data += done;
    n -= static_cast<size_t>(done);
  }
}

}  // namespace mlx::core::io
