// The CPU behind backend.h: nodes run at once on the thread that waits for
// them, or in order on a worker thread of their stream.
#pragma once

#include "backend/backend.h"
#include "backend/kernel_table.h"

namespace mlx::core::cpu {

Backend& backend();

/// The contents page in kernels.cpp.
const KernelTable<>& kernels();

/// While one lives, the calling thread executes stream `s`: encoders of `s`
/// run their work at once.
class Executing {
 public:
  explicit Executing(Stream s);
  ~Executing();
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;

 private:
  int outer_;
};

bool is_executing(Stream s);

/// Runs `task` on the worker of `s`, after what was enqueued before.
void enqueue(Stream s, std::function<void()> task);

}  // namespace mlx::core::cpu
