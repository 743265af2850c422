// From what kernels have reported to exceptions.
#include "backend/cuda/faults.h"

#include <algorithm>

#include "backend/cuda/check.h"
#include "mlx/utils.h"
#include "types/error.h"

namespace mlx::core::cuda {

namespace {

// More of them become one for each stream.
constexpr size_t kFollowedApart = 256;

[[noreturn]] void raise_as_exception(const FaultRecord& fault) {
  const auto& [a, b, c] = fault.numbers;
  if (fault.kind == Fault::too_few) {
    throw std::runtime_error(message(
        fault.op,
        "too few values: ",
        a,
        " rows for ",
        b,
        " true entries of the mask."));
  }
  throw std::out_of_range(message(
      fault.op,
      "index out of range: ",
      a,
      " for an axis of length ",
      b,
      " and a last position of ",
      c,
      "."));
}

FaultRecord* make_record() {
  void* made = nullptr;
  check(
      cudaHostAlloc(&made, sizeof(FaultRecord), cudaHostAllocMapped),
      "allocating pinned memory");
  // The device knows it by the same address. It lives as long as the stream.
  return new (made) FaultRecord{};
}

}  // namespace

FaultSite Faults::site(const char* op) {
  FaultRecord* record = record_.load(std::memory_order_acquire);
  if (record == nullptr) {
    std::lock_guard lock(mutex_);
    record = record_.load(std::memory_order_relaxed);
    if (record == nullptr) {
      record = make_record();
      record_.store(record, std::memory_order_release);
    }
  }
  return {record, op, events_.load() + 1};
}

FaultSite Faults::index_site(const char* op) {
  return env::get_var("MLX_CHECK_INDICES", 0) != 0 ? site(op) : FaultSite{};
}

void Faults::follow(Faults& other, uint64_t event) {
  if (&other == this) {
    return;
  }
  Followed made{&other, event, events_.load() + 1};
  std::lock_guard lock(mutex_);
  auto same =
      std::find_if(followed_.begin(), followed_.end(), [&](const Followed& f) {
        return f.other == &other &&
               (f.event == made.event || followed_.size() >= kFollowedApart);
      });
  if (same == followed_.end()) {
    followed_.push_back(made);
  } else {
    same->others_event = std::max(same->others_event, event);
    same->event = made.event;
  }
  has_followed_.store(true, std::memory_order_release);
}

void Faults::raise_own(FaultRecord* record, uint64_t event) {
  FaultRecord found;
  {
    std::lock_guard lock(mutex_);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!is_written(record) || record->event > event) {
      return;
    }
    found = *record;
    std::atomic_ref(record->state).store(FaultRecord::empty);
  }
  raise_as_exception(found);
}

void Faults::raise_followed(uint64_t event) {
  std::vector<Followed> due;
  {
    std::lock_guard lock(mutex_);
    auto first_due = std::stable_partition(
        followed_.begin(), followed_.end(), [&](const Followed& f) {
          return f.event > event;
        });
    due.assign(first_due, followed_.end());
    followed_.erase(first_due, followed_.end());
    has_followed_.store(!followed_.empty(), std::memory_order_release);
  }
  for (const Followed& f : due) {
    f.other->raise(f.others_event);
  }
}

}  // namespace mlx::core::cuda
