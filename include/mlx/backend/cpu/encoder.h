// What an extension's eval_cpu uses to do its work in a stream's order.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/api.h"
#include "mlx/array.h"
#include "mlx/stream.h"

namespace mlx::core::cpu {

constexpr int DISPATCHES_PER_TASK = 10;

/// One per stream and thread. Work runs at once when the calling thread is
/// executing the stream, else in order on the stream's worker.
struct MLX_API CommandEncoder {
  explicit CommandEncoder(Stream stream) : stream_(stream) {}
  CommandEncoder(const CommandEncoder&) = delete;
  CommandEncoder& operator=(const CommandEncoder&) = delete;
  CommandEncoder(CommandEncoder&&) = delete;
  CommandEncoder& operator=(CommandEncoder&&) = delete;

  void set_input_array(const array&) {}
  void set_output_array(array&) {}
  /// Keeps `arr` alive until the work dispatched next is done.
  void add_temporary(array arr) { temporaries_.push_back(std::move(arr)); }
  void add_temporaries(std::vector<array> arrays) {
    temporaries_.insert(
        temporaries_.end(),
        std::make_move_iterator(arrays.begin()),
        std::make_move_iterator(arrays.end()));
  }
  std::vector<array>& temporaries() { return temporaries_; }

  template <class F, class... Args>
  void dispatch(F&& f, Args&&... args) {
    if (runs_here()) {
      std::forward<F>(f)(std::forward<Args>(args)...);
      temporaries_.clear();
    } else {
      enqueue(std::bind(std::forward<F>(f), std::forward<Args>(args)...));
    }
  }

 private:
  bool runs_here() const;
  void enqueue(std::function<void()> task);

  Stream stream_;
  std::vector<array> temporaries_;
};

/// The calling thread's encoder of a stream.
MLX_API CommandEncoder& get_command_encoder(Stream s);

}  // namespace mlx::core::cpu
