// A default stream for the calling thread alone, while rules build graphs.
#pragma once

#include "mlx/stream.h"

namespace mlx::core::detail {

/// Operations that name no stream use `s` during its lifetime, so that
/// derivative rules can be plain formulas.
class StreamScope {
 public:
  explicit StreamScope(Stream s) : stream_(s), outer_(current()) {
    current() = &stream_;
  }
  ~StreamScope() { current() = outer_; }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

  static const Stream*& current() {
    thread_local const Stream* scoped = nullptr;
    return scoped;
  }

 private:
  Stream stream_;
  const Stream* outer_;
};

}  // namespace mlx::core::detail
