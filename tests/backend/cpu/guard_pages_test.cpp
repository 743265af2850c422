// What the preset "guard" is for: touching memory beyond a block, or a block
// that was freed, ends the process. Other builds have no such pages.
#ifdef MLX_GUARD_PAGES

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "mlx/allocator.h"

namespace mlx::core {
namespace {

// Ends the process unless it crashes.
void touch(const volatile char* at) {
  char seen = *at;
  std::_Exit(seen == 1 ? 1 : 0);
}

class GuardPages : public testing::TestWithParam<size_t> {};

TEST_P(GuardPages, EndBlocks) {
  size_t size = GetParam();
  allocator::Buffer buffer = allocator::malloc(size);
  auto* data = static_cast<char*>(buffer.raw_ptr());
  data[0] = 2;
  data[size - 1] = 3;
  auto crashed = testing::KilledBySignal(SIGSEGV);
  // Blocks end where a double or complex number may begin.
  size_t end = (size + 7) / 8 * 8;
  EXPECT_EXIT(touch(data + end), crashed, "");
  EXPECT_EXIT(data[end] = 1; std::_Exit(0), crashed, "");
  allocator::free(buffer);
  EXPECT_EXIT(touch(data), crashed, "");
}

TEST_P(GuardPages, BlocksBeginUnwritten) {
  allocator::Buffer buffer = allocator::malloc(GetParam());
  auto* data = static_cast<unsigned char*>(buffer.raw_ptr());
  EXPECT_EQ(data[0], 0xa5);
  EXPECT_EQ(data[GetParam() - 1], 0xa5);
  data[0] = 1;
  allocator::free(buffer);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, GuardPages, testing::Values(1, 4, 8, 60, 4096, 5000, 3 << 20));

}  // namespace
}  // namespace mlx::core

#endif
