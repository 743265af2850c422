// What this process may use of the machine: CPUs by its affinity mask and the
// CPU quota of its control group, memory by what is installed and the group's
// memory limit. A container of two CPUs on a machine of 64 has two.
#pragma once

#include <cstddef>
#include <string>

namespace mlx::core::cpu {

// At least 1. Reads the system each time; callers keep the answer.
int available_cpus();

// Bytes; 8 GiB if the system does not tell.
size_t available_memory();

namespace detail {

// CPUs in the affinity mask of the calling thread.
int affinity_cpus();

// The tightest limit from the process's group up to the root, or 0 when there
// is none: whole CPUs, rounded up, and bytes. `membership` has the form of
// /proc/self/cgroup and `root` is where the control groups are mounted; both
// versions of the interface are understood.
int quota_cpus(const std::string& membership, const std::string& root);
size_t memory_limit(const std::string& membership, const std::string& root);

}  // namespace detail
}  // namespace mlx::core::cpu
