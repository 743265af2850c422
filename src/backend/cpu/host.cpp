// Affinity by sched_getaffinity(2), limits by the files of control groups:
// cpu.max ("quota period" or "max period") and memory.max (bytes or "max") in
// version 2, cpu.cfs_quota_us (-1 for none), cpu.cfs_period_us and
// memory.limit_in_bytes in version 1. A limit holds for the whole subtree, so
// every ancestor counts. Inside a container the path in /proc may lie outside
// of what is mounted; then the mounted root is the group itself.
#include "backend/cpu/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace mlx::core::cpu {
namespace {

bool lists(const std::string& controllers, const std::string& wanted) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == wanted) {
      return true;
    }
  }
  return false;
}

// Directories whose limits hold for this process.
std::vector<std::string> groups(
    const std::string& membership,
    const std::string& root,
    const std::string& controller) {
  std::vector<std::string> found;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // number:controllers:path, with no controllers for version 2
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    std::string names = line.substr(first + 1, second - first - 1);
    if (!names.empty() && !lists(names, controller)) {
      continue;
    }
    std::string mount = names.empty() ? root : root + "/" + names;
    for (std::string path = line.substr(second + 1); path.size() > 1;) {
      found.push_back(mount + path);
      path.resize(path.rfind('/'));
    }
    found.push_back(mount);
    if (!names.empty()) {
      found.push_back(root + "/" + controller);
    }
  }
  return found;
}

// The tightest of the limits at the groups; 0 stands for none.
template <typename Read>
auto tightest(const std::vector<std::string>& directories, Read limit_at) {
  decltype(limit_at(directories[0])) best = 0;
  for (const auto& directory : directories) {
    auto limit = limit_at(directory);
    if (limit > 0 && (best == 0 || limit < best)) {
      best = limit;
    }
  }
  return best;
}

int whole_cpus(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) {
    return 0;
  }
  double cpus = quota / period;
  return cpus > 1e6 ? 0 : static_cast<int>(cpus + 0.999);
}

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

size_t memory_at(const std::string& directory) {
  size_t bytes = 0;
  if (std::ifstream v2(directory + "/memory.max"); v2 >> bytes) {
    return bytes;
  }
  if (std::ifstream v1(directory + "/memory.limit_in_bytes"); v1 >> bytes) {
    return bytes;
  }
  return 0;
}

std::string own_membership() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* mounted_at = "/sys/fs/cgroup";

}  // namespace

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

int quota_cpus(const std::string& membership, const std::string& root) {
  return tightest(groups(membership, root, "cpu"), quota_at);
}

size_t memory_limit(const std::string& membership, const std::string& root) {
  return tightest(groups(membership, root, "memory"), memory_at);
}

}  // namespace detail

int available_cpus() {
  int quota = detail::quota_cpus(own_membership(), mounted_at);
  int cpus = detail::affinity_cpus();
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

size_t available_memory() {
  long pages = sysconf(_SC_PHYS_PAGES);
  long page = sysconf(_SC_PAGE_SIZE);
  size_t installed =
      pages > 0 && page > 0 ? size_t(pages) * size_t(page) : size_t(8) << 30;
  size_t limit = detail::memory_limit(own_membership(), mounted_at);
  return limit > 0 ? std::min(installed, limit) : installed;
}

}  // namespace mlx::core::cpu
