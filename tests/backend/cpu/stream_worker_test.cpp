// Worker threads of streams: order, waiting, errors, the end of the process,
// forked children.
#include "backend/cpu/stream_worker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/threads.h"
#include "graph/fork.h"

namespace mlx::core::cpu {
namespace {

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST(StreamWorkerTest, RunsInOrderOnOneOtherThread) {
  StreamWorker worker;
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) {
    worker.enqueue([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  worker.synchronize();
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(order[i], i);
    ASSERT_EQ(threads[i], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(StreamWorkerTest, SynchronizeWithoutTasks) {
  StreamWorker worker;
  worker.synchronize();
  worker.enqueue([] {});
  worker.synchronize();
  worker.synchronize();
}

// Both sides sleep: the worker for its task, the caller for the end.
TEST(StreamWorkerTest, LongWaits) {
  StreamWorker worker;
  for (int round = 0; round < 5; ++round) {
    sleep_ms(2);
    int value = 0;
    worker.enqueue([&] {
      sleep_ms(2);
      value = 1;
    });
    worker.synchronize();
    EXPECT_EQ(value, 1);
  }
}

TEST(StreamWorkerTest, ManyShortRounds) {
  StreamWorker worker;
  int value = 0;
  for (int round = 0; round < 5000; ++round) {
    worker.enqueue([&] { ++value; });
    worker.synchronize();
    ASSERT_EQ(value, round + 1);
  }
}

TEST(StreamWorkerTest, WaitsOnlyForWhatWasEnqueuedBefore) {
  StreamWorker worker;
  std::atomic<bool> go{false};
  std::atomic<bool> later_done{false};
  worker.enqueue([] {});
  worker.synchronize();
  worker.enqueue([&] {
    while (!go) {
      std::this_thread::yield();
    }
  });
  std::thread waiter([&] { worker.synchronize(); });
  worker.enqueue([&] { later_done = true; });
  EXPECT_FALSE(later_done);
  go = true;
  waiter.join();
  worker.synchronize();
  EXPECT_TRUE(later_done);
}

TEST(StreamWorkerTest, FirstErrorIsRaisedOnceAndLaterTasksRun) {
  StreamWorker worker;
  int ran = 0;
  worker.enqueue([&] { throw std::out_of_range("first"); });
  worker.enqueue([&] { ++ran; });
  worker.enqueue([&] { throw std::runtime_error("second"); });
  worker.enqueue([&] { ++ran; });
  try {
    worker.synchronize();
    FAIL() << "no error";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(ran, 2);
  worker.synchronize();
  worker.enqueue([&] { throw std::runtime_error("third"); });
  EXPECT_THROW(worker.synchronize(), std::runtime_error);
}

TEST(StreamWorkerTest, ErrorsStayWithTheirWorker) {
  StreamWorker bad;
  StreamWorker good;
  bad.enqueue([] { throw std::runtime_error("bad"); });
  good.enqueue([] {});
  good.synchronize();
  StreamWorker::drain_all();
  EXPECT_THROW(bad.synchronize(), std::runtime_error);
}

TEST(StreamWorkerTest, TasksMayEnqueueAndSynchronize) {
  StreamWorker worker;
  std::vector<int> order;
  worker.enqueue([&] {
    order.push_back(1);
    worker.enqueue([&] { order.push_back(2); });
    worker.synchronize();  // its own worker: returns at once
    order.push_back(11);
  });
  worker.synchronize();
  worker.synchronize();  // now the inner task was enqueued before
  EXPECT_EQ(order, std::vector<int>({1, 11, 2}));
}

TEST(StreamWorkerTest, WhatATaskHoldsIsGoneAfterSynchronize) {
  StreamWorker worker;
  auto held = std::make_shared<int>(5);
  worker.enqueue([held] {});
  worker.synchronize();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(StreamWorkerTest, DestructorRunsWhatIsQueued) {
  int ran = 0;
  {
    StreamWorker worker;
    for (int i = 0; i < 10; ++i) {
      worker.enqueue([&] {
        sleep_ms(1);
        ++ran;
      });
    }
  }
  EXPECT_EQ(ran, 10);
}

TEST(StreamWorkerTest, ManyThreadsEnqueue) {
  StreamWorker worker;
  long sum = 0;  // only tasks touch it
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        worker.enqueue([&, i] { sum += i; });
        if (i % 100 == 0) {
          worker.synchronize();
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  worker.synchronize();
  EXPECT_EQ(sum, 4L * 999 * 1000 / 2);
}

TEST(StreamWorkerTest, WorkersUseThePool) {
  set_num_threads(3);
  std::vector<StreamWorker> workers(3);
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    for (auto& worker : workers) {
      worker.enqueue([&] {
        std::atomic<size_t> sum{0};
        parallel_for(
            1000, 10, [&](size_t begin, size_t end) { sum += end - begin; });
        wrong += sum != 1000;
      });
    }
  }
  StreamWorker::drain_all();
  EXPECT_EQ(wrong, 0);
  set_num_threads(0);
}

// The last task ends the process's output; its worker is never destroyed.
TEST(StreamWorkerTest, QueuesAreDrainedAtExit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto exit_with_work = [] {
    auto* first = new StreamWorker;
    auto* second = new StreamWorker;
    auto* ready = new std::atomic<bool>(false);
    first->enqueue([=] {
      while (!*ready) {
        std::this_thread::yield();
      }
      std::fputs("first done;", stderr);
    });
    second->enqueue([=] {
      sleep_ms(20);
      std::fputs("second done;", stderr);
      *ready = true;
    });
    std::exit(0);
  };
  EXPECT_EXIT(
      exit_with_work(), testing::ExitedWithCode(0), "second done;first done;");
}

TEST(StreamWorkerTest, ATaskMayEndTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto exit_in_task = [] {
    auto* worker = new StreamWorker;
    worker->enqueue([] { std::exit(3); });
    sleep_ms(20000);
  };
  EXPECT_EXIT(exit_in_task(), testing::ExitedWithCode(3), "");
}

// 0 if the child's share of the work is right. ThreadSanitizer cannot follow
// threads that a forked child starts, so there it starts none.
int use_in_child(StreamWorker& worker, int generation) {
  alarm(60);  // a child that hangs is ended
  if (core::detail::fork_generation() != generation + 1) {
    return 1;
  }
#ifndef __SANITIZE_THREAD__
  int value = 0;
  for (int round = 0; round < 10; ++round) {
    worker.enqueue([&] { ++value; });
    worker.synchronize();
  }
  return value == 10 ? 0 : 2;
#else
  worker.synchronize();
  return 0;
#endif
}

TEST(StreamWorkerTest, ForkedChildStartsAnew) {
  StreamWorker worker;
  worker.enqueue([] {});
  worker.synchronize();
  int generation = core::detail::fork_generation();
  pid_t child = fork();
  if (child == 0) {
    std::_Exit(use_in_child(worker, generation));
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(core::detail::fork_generation(), generation);
}

TEST(StreamWorkerTest, PendingWorkStaysWithTheParent) {
  StreamWorker worker;
  std::atomic<bool> begun{false};
  std::atomic<bool> go{false};
  std::atomic<int> ran{0};
  worker.enqueue([&] {
    begun = true;
    while (!go) {
      std::this_thread::yield();
    }
    ++ran;
  });
  worker.enqueue([&] { ++ran; });
  // AddressSanitizer holds a lock of its own while a thread starts, which a
  // child forked in that moment would find taken for good.
  while (!begun) {
    std::this_thread::yield();
  }
  int generation = core::detail::fork_generation();
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    try {
      worker.synchronize();
      std::_Exit(4);
    } catch (const std::runtime_error&) {
    }
    int result = use_in_child(worker, generation);
    std::_Exit(ran == 0 ? result : 5);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  go = true;
  worker.synchronize();
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace mlx::core::cpu
