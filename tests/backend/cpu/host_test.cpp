// Limits of control groups from made-up files, the affinity mask from the
// system.
#include "backend/cpu/host.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mlx::core::cpu {
namespace {

TEST(HostTest, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(detail::affinity_cpus(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(detail::affinity_cpus(), 1);
  EXPECT_EQ(available_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

class ControlGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/quota_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    auto file = std::filesystem::path(root_ + "/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(ControlGroupTest, NoneWithoutFiles) {
  EXPECT_EQ(detail::quota_cpus("0::/\n", root_), 0);
  EXPECT_EQ(detail::quota_cpus("", root_), 0);
  EXPECT_EQ(detail::quota_cpus("nonsense\n", root_), 0);
}

TEST_F(ControlGroupTest, VersionTwoTakesTheTightestAncestor) {
  put("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(detail::quota_cpus("0::/a/b\n", root_), 0);
  put("a/cpu.max", "250000 100000\n");
  EXPECT_EQ(detail::quota_cpus("0::/a/b\n", root_), 3);
  put("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(detail::quota_cpus("0::/a/b\n", root_), 3);
  put("cpu.max", "10000 100000\n");
  EXPECT_EQ(detail::quota_cpus("0::/a/b\n", root_), 1);
  EXPECT_EQ(detail::quota_cpus("0::/elsewhere\n", root_), 1);
}

TEST_F(ControlGroupTest, VersionOneReadsQuotaAndPeriod) {
  const std::string membership = "3:cpuset:/x\n2:cpu,cpuacct:/job\n0::/\n";
  put("cpuset/x/cpu.cfs_quota_us", "100000");
  put("cpuset/x/cpu.cfs_period_us", "100000");
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(detail::quota_cpus(membership, root_), 0);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(detail::quota_cpus(membership, root_), 2);
}

TEST_F(ControlGroupTest, MemoryTakesTheTightestAncestor) {
  EXPECT_EQ(detail::memory_limit("0::/a\n", root_), 0u);
  put("a/memory.max", "max\n");
  EXPECT_EQ(detail::memory_limit("0::/a\n", root_), 0u);
  put("memory.max", "3000000000\n");
  EXPECT_EQ(detail::memory_limit("0::/a\n", root_), 3000000000u);
  put("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/memory.limit_in_bytes", "500000000\n");
  EXPECT_EQ(detail::memory_limit("4:memory:/job\n0::/\n", root_), 500000000u);
}

TEST(HostTest, MemoryIsPlausible) {
  EXPECT_GT(available_memory(), size_t(16) << 20);
  EXPECT_LT(available_memory(), size_t(1) << 50);
}

}  // namespace
}  // namespace mlx::core::cpu
