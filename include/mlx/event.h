// Events: a point in a stream's work that hosts and other streams wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "mlx/api.h"
#include "mlx/error.h"
#include "mlx/stream.h"

namespace mlx::core {

namespace detail {

/// What a backend provides behind an Event.
class MLX_API EventState {
 public:
  EventState();
  virtual ~EventState() = default;
  /// Blocks the calling thread until the event is signaled.
  virtual void wait() = 0;
  /// Makes later work of `s` wait.
  virtual void wait(Stream s) = 0;
  /// Signals once the work of `s` so far is done.
  virtual void signal(Stream s) = 0;
  virtual bool is_signaled() const = 0;

  /// Raises std::runtime_error when the event was left pending in the parent
  /// of this forked process.
  void check_not_lost() const;

  Error error;
  /// Whether the stream has been told to signal. Before that no stream may
  /// be made to wait: what comes first may be behind the wait.
  std::atomic<bool> posted{false};

 private:
  const int forks_;
};

}  // namespace detail

/// Copies share one state. A default-made event is not valid.
class MLX_API Event {
 public:
  Event() = default;
  explicit Event(Stream stream);

  /// Blocks until signaled, then raises the error of the work, if any.
  void wait();
  void wait(Stream stream);
  void signal(Stream stream);
  bool is_signaled() const;
  bool is_posted() const { return state_->posted.load(); }
  void set_posted() { state_->posted.store(true); }

  void set_error(Error& err) { state_->error.store_if_valid(&err); }
  Error* load_error() const { return state_ ? &state_->error : nullptr; }
  void check_error() {
    if (state_) {
      state_->error.check();
    }
  }

  bool valid() const { return state_ != nullptr; }
  uint64_t value() const { return value_; }
  void set_value(uint64_t v) { value_ = v; }
  const Stream& stream() const { return stream_; }

  template <typename T>
  auto& cast() const {
    return static_cast<T&>(*state_);
  }

 private:
  Stream stream_{0, Device::cpu};
  std::shared_ptr<detail::EventState> state_;
  uint64_t value_ = 0;
};

}  // namespace mlx::core
