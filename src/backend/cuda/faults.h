// Errors that only a kernel can see, e.g. an index out of range: they are
// raised by who waits for the work, as the exception that the cpu raises.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "backend/cuda/device/fault.cuh"

namespace mlx::core::cuda {

/// One per stream. Launches between two events belong to the later one.
class Faults {
 public:
  Faults() = default;
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// For the next launch of `op`, a literal.
  FaultSite site(const char* op);
  /// The same where MLX_CHECK_INDICES is set, else a site that tells nobody.
  FaultSite index_site(const char* op);

  /// The number of an event that is recorded now.
  uint64_t next_event() { return ++events_; }
  /// Later work of this stream uses what another one has done until `event`.
  void follow(Faults& other, uint64_t event);

  /// Raises what went wrong until `event`, which has come to pass, and forgets
  /// it. Of several faults that nobody has waited for, the first one counts.
  void raise(uint64_t event = UINT64_MAX) {
    FaultRecord* record = record_.load(std::memory_order_acquire);
    if (record != nullptr && is_written(record)) [[unlikely]] {
      raise_own(record, event);
    }
    if (has_followed_.load(std::memory_order_acquire)) [[unlikely]] {
      raise_followed(event);
    }
  }

 private:
  struct Followed {
    Faults* other;
    uint64_t others_event;
    uint64_t event;  // that the work which uses it belongs to
  };

  static bool is_written(const volatile FaultRecord* record) {
    return record->state == FaultRecord::written;
  }
  void raise_own(FaultRecord* record, uint64_t event);
  void raise_followed(uint64_t event);

  std::mutex mutex_;
  std::atomic<FaultRecord*> record_{nullptr};
  std::atomic<uint64_t> events_{0};
  std::atomic<bool> has_followed_{false};
  std::vector<Followed> followed_;
};

}  // namespace mlx::core::cuda
