// How many CPUs this process may use: its affinity mask, cut down to the
// CPU quota of its control group, so that a pool in a container of two CPUs on
// a machine of 64 has two threads.
#pragma once

#include <string>

namespace mlx::core::cpu {

// At least 1. Reads the system each time; callers keep the answer.
int available_cpus();

namespace detail {

// CPUs in the affinity mask of the calling thread.
int affinity_cpus();

// The tightest CPU quota from the process's group up to the root, rounded up
// to whole CPUs, or 0 when there is none. `membership` has the form of
// /proc/self/cgroup and `root` is where the control groups are mounted; both
// versions of the interface are understood.
int quota_cpus(const std::string& membership, const std::string& root);

}  // namespace detail
}  // namespace mlx::core::cpu
