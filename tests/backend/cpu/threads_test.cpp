// The thread pool: coverage of the range, exceptions, nesting, several callers,
// changing sizes and forked children.
#include "backend/cpu/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/host.h"

namespace mlx::core::cpu {
namespace {

// ThreadSanitizer cannot follow threads that a forked child starts (it still
// lists the parent's), so there the child only takes the pool over.
#ifdef __SANITIZE_THREAD__
constexpr int child_threads = 1;
#else
constexpr int child_threads = 3;
#endif

class ThreadsTest : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};

// Marks every index that a loop visits; true if each was visited once.
bool covers(size_t n, size_t grain) {
  std::vector<unsigned char> seen(n, 0);
  parallel_for(n, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      ++seen[i];
    }
  });
  for (auto count : seen) {
    if (count != 1) {
      return false;
    }
  }
  return true;
}

TEST_F(ThreadsTest, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8, 33}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (size_t n : {0, 1, 2, 7, 64, 1000, 65537}) {
      for (size_t grain : {0, 1, 3, 64, 100000}) {
        EXPECT_TRUE(covers(n, grain)) << threads << " " << n << " " << grain;
      }
    }
  }
}

TEST_F(ThreadsTest, ChunksStartAtMultiplesOfGrain) {
  set_num_threads(4);
  const size_t n = 100003;
  const size_t grain = 7;
  std::atomic<int> bad{0};
  parallel_for(n, grain, [&](size_t begin, size_t end) {
    bool long_enough = end - begin >= grain || end == n;
    bad += begin % grain != 0 || end <= begin || !long_enough;
  });
  EXPECT_EQ(bad, 0);
}

TEST_F(ThreadsTest, SmallLoopsStayOnTheCaller) {
  set_num_threads(4);
  int calls = 0;
  parallel_for(100, 100, [&](size_t begin, size_t end) {
    ++calls;
    EXPECT_EQ(begin, 0u);
    EXPECT_EQ(end, 100u);
    EXPECT_FALSE(in_parallel());
  });
  EXPECT_EQ(calls, 1);
  parallel_for(0, 1, [&](size_t, size_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

// Two chunks that wait for each other end only if two threads run them.
TEST_F(ThreadsTest, ChunksRunAtTheSameTime) {
  set_num_threads(2);
  std::atomic<int> arrived{0};
  bool met = true;
  parallel_for(2, 1, [&](size_t, size_t) {
    ++arrived;
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived < 2) {
      if (std::chrono::steady_clock::now() > limit) {
        met = false;
        return;
      }
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(met);
}

TEST_F(ThreadsTest, SleepingHelpersWake) {
  set_num_threads(9);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::mutex mutex;
    std::set<std::thread::id> ids;
    parallel_for(9, 1, [&](size_t, size_t) {
      {
        std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    EXPECT_GT(ids.size(), 4u);
  }
}

// The helper holds its chunk for longer than the caller spins.
TEST_F(ThreadsTest, CallerWaitsForASlowHelper) {
  set_num_threads(2);
  auto caller = std::this_thread::get_id();
  for (int round = 0; round < 10; ++round) {
    std::atomic<bool> helper_came{false};
    std::vector<int> done(2, 0);
    parallel_for(2, 1, [&](size_t begin, size_t) {
      if (std::this_thread::get_id() == caller) {
        while (!helper_came) {
          std::this_thread::yield();
        }
      } else {
        helper_came = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
      done[begin] = 1;
    });
    EXPECT_EQ(done, std::vector<int>({1, 1}));
  }
}

TEST_F(ThreadsTest, FirstExceptionReachesTheCaller) {
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int round = 0; round < 50; ++round) {
      try {
        parallel_for(1000, 1, [&](size_t begin, size_t end) {
          if (begin <= 500 && 500 < end) {
            throw std::out_of_range("index 500");
          }
        });
        FAIL() << "no exception";
      } catch (const std::out_of_range& error) {
        EXPECT_STREQ(error.what(), "index 500");
      }
      EXPECT_FALSE(in_parallel());
      EXPECT_TRUE(covers(1000, 1));
    }
  }
}

TEST_F(ThreadsTest, AllChunksThrow) {
  set_num_threads(4);
  EXPECT_THROW(
      parallel_for(
          64, 1, [](size_t, size_t) { throw std::runtime_error("all"); }),
      std::runtime_error);
  EXPECT_TRUE(covers(64, 1));
}

TEST_F(ThreadsTest, NestedLoopsRunSerially) {
  set_num_threads(4);
  std::atomic<size_t> sum{0};
  std::atomic<int> split{0};
  parallel_for(64, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](size_t inner_begin, size_t inner_end) {
        split += inner_begin != 0 || inner_end != 100;
        EXPECT_TRUE(in_parallel());
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 6400u);
  EXPECT_EQ(split, 0);
  EXPECT_FALSE(in_parallel());
}

TEST_F(ThreadsTest, SizeCannotChangeInsideALoop) {
  set_num_threads(2);
  EXPECT_THROW(
      parallel_for(8, 1, [](size_t, size_t) { set_num_threads(3); }),
      std::runtime_error);
  EXPECT_THROW(set_num_threads(-1), std::invalid_argument);
  EXPECT_EQ(num_threads(), 2);
}

TEST_F(ThreadsTest, ManyCallersAtOnce) {
  set_num_threads(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 2000; ++round) {
        wrong += !covers(100 + 37 * caller + round, 1 + round % 5);
      }
    });
  }
  callers.emplace_back([] {
    for (int round = 0; round < 50; ++round) {
      set_num_threads(1 + round % 5);
      std::this_thread::yield();
    }
  });
  for (auto& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(wrong, 0);
}

// What one loop wrote is read by the next without any other synchronization.
TEST_F(ThreadsTest, LoopsSeeWhatEarlierLoopsWrote) {
  set_num_threads(4);
  const size_t n = 512;
  std::vector<size_t> values(n, 0);
  for (size_t round = 0; round < 500; ++round) {
    parallel_for(n, 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        values[i] = values[i] + i;
      }
    });
  }
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(values[i], 500 * i);
  }
}

int child_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

// What a child does: 0 if loops work at once and after a change of size.
int use_pool_in_child() {
  alarm(60);  // a child that hangs is ended
  bool good = child_threads == 1 || covers(1000, 1);
  set_num_threads(child_threads);
  for (int round = 0; round < 20; ++round) {
    good = good && covers(1000, 1);
  }
  return good ? 0 : 1;
}

TEST_F(ThreadsTest, ForkedChildMakesItsOwnPool) {
  set_num_threads(3);
  ASSERT_TRUE(covers(1000, 1));
  pid_t child = fork();
  if (child == 0) {
    std::_Exit(use_pool_in_child());
  }
  EXPECT_EQ(child_status(child), 0);
  EXPECT_TRUE(covers(1000, 1));
}

TEST_F(ThreadsTest, ForkWhileAnotherThreadIsInALoop) {
  set_num_threads(3);
  std::atomic<int> inside{0};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    parallel_for(3, 1, [&](size_t, size_t) {
      ++inside;
      while (!stop) {
        std::this_thread::yield();
      }
    });
  });
  // All of them: AddressSanitizer holds a lock while a thread starts, which a
  // child would find taken.
  while (inside < 3) {
    std::this_thread::yield();
  }
  pid_t child = fork();
  if (child == 0) {
    std::_Exit(use_pool_in_child());
  }
  EXPECT_EQ(child_status(child), 0);
  stop = true;
  other.join();
}

// A process that used the pool ends by exit() with its helpers joined.
TEST_F(ThreadsTest, ProcessEndsCleanly) {
  auto use_and_exit = [] {
    set_num_threads(4);
    std::exit(covers(1000, 1) ? 0 : 1);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(use_and_exit(), testing::ExitedWithCode(0), "");
}

TEST_F(ThreadsTest, EnvironmentSetsTheSize) {
  setenv("MLX_CPU_THREADS", "7", 1);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), 7);
  for (const char* odd : {"", "0", "-3", "two", "3x"}) {
    setenv("MLX_CPU_THREADS", odd, 1);
    set_num_threads(0);
    EXPECT_EQ(num_threads(), available_cpus()) << odd;
  }
  unsetenv("MLX_CPU_THREADS");
}

}  // namespace
}  // namespace mlx::core::cpu
