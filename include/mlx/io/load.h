// Readers and writers: where the bytes of a file format come from and go to.
// Derive from Reader or Writer to load from and save to something that is
// not a file on disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "mlx/api.h"

namespace mlx::core::io {

/// A fixed number of threads that run what is enqueued, in order.
class MLX_API ThreadPool {
 public:
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The future holds what `f()` returns or throws.
  template <typename F>
  auto enqueue(F f) -> std::future<std::invoke_result_t<F>> {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<F>()>>(
        std::move(f));
    auto result = task->get_future();
    push([task] { (*task)(); });
    return result;
  }

  size_t size() const { return threads_.size(); }

 private:
  void push(std::function<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// The threads that large reads are split over.
MLX_API ThreadPool& thread_pool();

class MLX_API Reader {
 public:
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(
      int64_t off, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  /// Reads n bytes from the position and moves it. Raises std::runtime_error
  /// when there are fewer.
  virtual void read(char* data, size_t n) = 0;
  /// Reads n bytes from `offset`. Called from several threads at once.
  virtual void read(char* data, size_t n, size_t offset) = 0;
  /// What messages call this source.
  virtual std::string label() const = 0;
  virtual ~Reader() = default;
};

class MLX_API Writer {
 public:
  virtual bool is_open() const = 0;
  virtual bool good() const = 0;
  virtual size_t tell() = 0;
  virtual void seek(
      int64_t off, std::ios_base::seekdir way = std::ios_base::beg) = 0;
  /// Writes all n bytes or raises std::runtime_error.
  virtual void write(const char* data, size_t n) = 0;
  /// What messages call this target.
  virtual std::string label() const = 0;
  virtual ~Writer() = default;
};

/// Reads a file; large reads are shared among the threads of thread_pool().
/// The constructor does not raise: ask is_open().
class MLX_API ParallelFileReader : public Reader {
 public:
  explicit ParallelFileReader(std::string file_path);
  ~ParallelFileReader() override;
  ParallelFileReader(const ParallelFileReader&) = delete;
  ParallelFileReader& operator=(const ParallelFileReader&) = delete;

  bool is_open() const override { return fd_ >= 0; }
  bool good() const override { return is_open(); }
  size_t tell() override;
  void seek(
      int64_t off, std::ios_base::seekdir way = std::ios_base::beg) override;
  void read(char* data, size_t n) override;
  void read(char* data, size_t n, size_t offset) override;
  std::string label() const override { return "file " + path_; }

 private:
  std::string path_;
  int fd_;
};

/// Writes a new file or over an old one. The constructor does not raise: ask
/// is_open().
class MLX_API FileWriter : public Writer {
 public:
  /// A writer that is not open.
  explicit FileWriter() = default;
  explicit FileWriter(std::string file_path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  FileWriter(FileWriter&& other);
  ~FileWriter() override;

  bool is_open() const override { return fd_ >= 0; }
  bool good() const override { return is_open(); }
  size_t tell() override;
  void seek(
      int64_t off, std::ios_base::seekdir way = std::ios_base::beg) override;
  void write(const char* data, size_t n) override;
  std::string label() const override { return "file " + path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace mlx::core::io
