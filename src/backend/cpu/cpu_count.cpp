// Affinity by sched_getaffinity(2), quota by the files cpu.max (cgroup v2,
// "quota period" or "max period") and cpu.cfs_quota_us, cpu.cfs_period_us
// (cgroup v1, quota -1 for none). A quota holds for the whole subtree, so every
// ancestor counts. Inside a container the path in /proc may lie outside of what
// is mounted; then the mounted root is the group itself.
#include "backend/cpu/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

namespace mlx::core::cpu {
namespace detail {

int affinity_cpus() {
  // The kernel refuses masks shorter than its own; grow until it is content.
  for (int bits = 1024; bits <= (1 << 20); bits *= 2) {
    std::vector<cpu_set_t> mask(bits / CPU_SETSIZE);
    size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, mask.data()));
    }
    if (errno != EINVAL) {
      break;
    }
  }
  return 1;
}

namespace {

int whole_cpus(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) {
    return 0;
  }
  double cpus = quota / period;
  return cpus > 1e6 ? 0 : static_cast<int>(cpus + 0.999);
}

// The quota that is set at one directory, 0 for none.
int quota_at(const std::string& directory) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(directory + "/cpu.max"); v2 >> quota >> period) {
    return quota == "max" ? 0 : whole_cpus(std::atof(quota.c_str()), period);
  }
  double micros = 0;
  std::ifstream v1_quota(directory + "/cpu.cfs_quota_us");
  std::ifstream v1_period(directory + "/cpu.cfs_period_us");
  if (v1_quota >> micros && v1_period >> period) {
    return whole_cpus(micros, period);
  }
  return 0;
}

int tighter(int a, int b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") {
      return true;
    }
  }
  return false;
}

}  // namespace

int quota_cpus(const std::string& membership, const std::string& root) {
  int best = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // number:controllers:path, with no controllers for version 2
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists_cpu(controllers)) {
      continue;
    }
    std::string mount = controllers.empty() ? root : root + "/" + controllers;
    std::string path = line.substr(second + 1);
    while (path.size() > 1) {
      best = tighter(best, quota_at(mount + path));
      path.resize(path.rfind('/'));
    }
    best = tighter(best, quota_at(mount));
    if (!controllers.empty()) {
      best = tighter(best, quota_at(root + "/cpu"));
    }
  }
  return best;
}

}  // namespace detail

int available_cpus() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream membership;
  membership << file.rdbuf();
  int quota = detail::quota_cpus(membership.str(), "/sys/fs/cgroup");
  int cpus = detail::affinity_cpus();
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

}  // namespace mlx::core::cpu
