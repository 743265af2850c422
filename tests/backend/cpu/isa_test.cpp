// The choice of the instruction-set level.
#include "backend/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/cpu/isa_testing.h"
#include "backend/cpu/kernels/elementwise.h"

namespace mlx::core {
namespace {

TEST(Isa, LevelIsBuiltAndRuns) {
  int level = cpu::isa_level();
  EXPECT_GE(level, 2);
  EXPECT_LE(level, 4);
  EXPECT_TRUE(testing::machine_has_level(level));
  EXPECT_NE(cpu::elementwise_block.get(), nullptr);
  if (cpu::has_bf16()) {
    EXPECT_EQ(level, 4);
  }
}

// The level is chosen once per process, so the bad value needs a process of
// its own.
TEST(IsaDeathTest, UnknownLevelIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("MLX_CPU_ISA", "v9", 1);
  EXPECT_EXIT(
      {
        try {
          cpu::isa_level();
        } catch (const std::invalid_argument& e) {
          fputs(e.what(), stderr);
          std::exit(3);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(3),
      "unknown instruction set: MLX_CPU_ISA=v9. Expected v2, v3 or v4.");
  unsetenv("MLX_CPU_ISA");
}

}  // namespace
}  // namespace mlx::core
