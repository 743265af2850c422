// How a kernel tells the host about data that it cannot work with: one record
// in the host's memory for each stream, seen by both. The first to come writes
// it; the kernel goes on without touching an address that is not its own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlx::core::cuda {

enum class Fault : uint32_t {
  outside,  // index, length of the axis, last position
  too_few,  // rows given, rows wanted
};

struct FaultRecord {
  enum State : uint32_t { empty, taken, written };

  uint32_t state;
  Fault kind;
  const char* op;
  uint64_t event;
  int64_t numbers[3];
};

/// What a launch hands to its kernel. Without a record nobody wants to know.
struct FaultSite {
  FaultRecord* record = nullptr;
  const char* op = nullptr;  // the host's address, handed back to it
  uint64_t event = 0;

#ifdef __CUDACC__
  __device__ __forceinline__ void report(
      Fault kind, int64_t a, int64_t b, int64_t c) const {
    if (record == nullptr) {
      return;
    }
    volatile FaultRecord* to = record;
    if (to->state != FaultRecord::empty ||
        atomicCAS(&record->state, FaultRecord::empty, FaultRecord::taken) !=
            FaultRecord::empty) {
      return;
    }
    to->kind = kind;
    to->op = op;
    to->event = event;
    to->numbers[0] = a;
    to->numbers[1] = b;
    to->numbers[2] = c;
    __threadfence_system();
    to->state = FaultRecord::written;
  }
#endif
};

}  // namespace mlx::core::cuda
