// Errors that tasks carry to the thread that waits for them, and the class
// of errors about an axis out of range.
#pragma once

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "mlx/api.h"

namespace mlx::core {

/// An axis out of range. Python sees AxisError, both ValueError and
/// IndexError, as in NumPy.
class MLX_API AxisError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The same for the reductions, moveaxis, swapaxes, diagonal and trace, whose
/// documented C++ type is std::out_of_range.
class MLX_API AxisRangeError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

/// The first message of a failed task; safe from several threads.
class MLX_API Error {
 public:
  using Message = std::shared_ptr<std::string>;

  void set_message(Message msg) {
    std::lock_guard lock(mutex_);
    if (!message_) {
      message_ = std::move(msg);
    }
  }
  bool valid() const { return message() != nullptr; }
  /// Takes over the message of `ptr` if there is one; says whether.
  bool store_if_valid(const Error* ptr) {
    Message msg = ptr ? ptr->message() : nullptr;
    if (!msg) {
      return false;
    }
    set_message(std::move(msg));
    return true;
  }
  /// Raises std::runtime_error with the message if there is one.
  void check() {
    if (Message msg = message()) {
      throw std::runtime_error(*msg);
    }
  }
  Message message() const {
    std::lock_guard lock(mutex_);
    return message_;
  }

 private:
  mutable std::mutex mutex_;
  Message message_;
};

}  // namespace mlx::core
