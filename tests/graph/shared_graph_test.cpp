// Several threads with one graph that is not computed yet: each gets the value
// or the error, every node is computed once, and letting go is safe meanwhile.
// Meant for ThreadSanitizer too.
#include <gtest/gtest.h>

#include <thread>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"
#include "testing_primitives.h"

namespace mlx::core {
namespace {

using testing::probe;

constexpr int kThreads = 4;

Stream here() {
  return default_stream(Device::cpu);
}

// Runs f(0) ... f(kThreads - 1), each on a thread, begun as near together as
// can be. Every other thread computes the caller's arrays itself, the rest
// leave that to the worker of the caller's stream.
template <typename F>
void on_threads(F f) {
  std::atomic<int> ready{0};
  Stream stream = here();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ready, f, t, stream]() mutable {
      if (t % 2 == 1) {
        set_default_stream(stream);
      }
      ++ready;
      while (ready < kThreads) {
        std::this_thread::yield();
      }
      f(t);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) {
    std::this_thread::yield();
  }
}

TEST(SharedGraph, EachThreadGetsTheValue) {
  for (int round = 0; round < 100; ++round) {
    array x = arange(0.0, 64.0, 1.0);
    for (int i = 0; i < 10; ++i) {
      x = x * array(0.5f) + array(1.0f);
    }
    array total = sum(x);
    array last = x - array(1.0f);
    std::vector<float> totals(kThreads);
    std::vector<float> lasts(kThreads);
    on_threads([&, x, total, last](int t) mutable {
      if (t % 2 == 0) {
        eval(last, total);
      }
      totals[t] = total.item<float>();
      lasts[t] = sum(last + x).item<float>();
    });
    for (int t = 1; t < kThreads; ++t) {
      EXPECT_EQ(totals[t], totals[0]);
      EXPECT_EQ(lasts[t], 2 * totals[0] - 64);
    }
    EXPECT_NEAR(totals[0], 63 * 32 / 1024.0 + 64 * (2 - 1 / 512.0), 1e-3);
  }
}

TEST(SharedGraph, ANodeIsComputedOnce) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> runs{0};
    array x = probe(ones({8}), here(), [&] { ++runs; });
    std::vector<float> results(kThreads);
    on_threads([&, x](int t) {
      results[t] = sum(x + array(static_cast<float>(t))).item<float>();
    });
    EXPECT_EQ(runs, 1);
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_EQ(results[t], 8.0f * (1 + t));
    }
  }
}

TEST(SharedGraph, SiblingsAreSharedAndLetGo) {
  for (int round = 0; round < 200; ++round) {
    array x = arange(0, 4 * kThreads, 1, int32) + array(1);
    std::vector<array> parts = split(x, kThreads);
    std::vector<array> both = divmod(x, array(3));
    std::vector<int> sums(kThreads);
    std::atomic<int> quotients{0};
    std::vector<std::vector<array>> handles(kThreads, parts);
    parts.clear();
    on_threads([&, both](int t) mutable {
      array own = handles[t][t];
      array pair = both[t % 2];
      both.clear();
      if (t == 3) {
        handles[t].clear();
      }
      sums[t] = sum(own).item<int>();
      handles[t].clear();
      if (t % 2 == 0) {
        quotients += sum(pair).item<int>();
      }
    });
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_EQ(sums[t], 4 * (4 * t) + 10);
    }
    int expected = 0;
    for (int i = 1; i <= 4 * kThreads; ++i) {
      expected += i / 3;
    }
    EXPECT_EQ(quotients, 2 * expected);
  }
}

TEST(SharedGraph, SiblingsThatNobodyComputesAreFreedByTheLastThread) {
  for (int round = 0; round < 200; ++round) {
    std::weak_ptr<array::Data> memory;
    {
      array x = ones({100});
      eval(x);
      memory = x.data_shared_ptr();
      std::vector<array> parts = split(x, kThreads);
      std::vector<std::vector<array>> handles(kThreads, parts);
      x = array(0.0f);
      parts.clear();
      on_threads([&](int t) {
        array own = std::move(handles[t][t]);
        handles[t].clear();
      });
    }
    EXPECT_TRUE(memory.expired());
  }
}

TEST(SharedGraph, EachThreadGetsTheError) {
  for (int round = 0; round < 50; ++round) {
    array good = ones({4}) + array(1.0f);
    array bad = probe(good, here(), [] { throw std::runtime_error("told"); });
    array above = bad + array(1.0f);
    std::atomic<int> errors{0};
    std::vector<float> values(kThreads);
    on_threads([&, good, above](int t) mutable {
      try {
        eval(above, bad);
      } catch (const std::runtime_error& e) {
        errors += std::string(e.what()) == "told";
      }
      values[t] = sum(good).item<float>();
    });
    EXPECT_EQ(errors, kThreads);
    EXPECT_EQ(values, std::vector<float>(kThreads, 8.0f));
  }
}

// A fails for a reason of its own while B waits for what A had claimed.
TEST(SharedGraph, TheErrorOfAnotherGraphIsNotOurs) {
  std::atomic<bool> claimed{false};
  std::atomic<bool> go{false};
  array fine = ones({4}) + array(1.0f);
  array bad = probe(ones({1}), here(), [&] {
    claimed = true;
    wait_for(go);
    throw std::runtime_error("told");
  });
  std::thread failing([&, s = here()] {
    set_default_stream(s);
    EXPECT_THROW(eval(bad, fine), std::runtime_error);
  });
  wait_for(claimed);
  EXPECT_EQ(fine.status(), array::running);
  EXPECT_FALSE(fine.is_available());
  std::thread waiting([fine] { EXPECT_EQ(sum(fine).item<float>(), 8.0f); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  go = true;
  failing.join();
  waiting.join();
  EXPECT_EQ(bad.status(), array::unscheduled);
}

// Three wait for one that fails; when the first of them has claimed the node
// anew the others go on waiting.
TEST(SharedGraph, WaitersFollowTheNextClaim) {
  std::atomic<int> runs{0};
  std::atomic<bool> claimed{false};
  std::atomic<bool> fail{false};
  std::atomic<bool> end{false};
  array x = probe(ones({4}), here(), [&] {
    if (runs++ == 0) {
      claimed = true;
      wait_for(fail);
      throw std::runtime_error("told");
    }
    wait_for(end);
  });
  std::vector<float> values(3);
  std::vector<std::thread> threads;
  threads.emplace_back([x, s = here()]() mutable {
    set_default_stream(s);
    EXPECT_THROW(eval(x), std::runtime_error);
  });
  wait_for(claimed);
  for (float& value : values) {
    threads.emplace_back([x, s = here(), &value]() mutable {
      set_default_stream(s);
      value = sum(x).item<float>();
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  fail = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(values, std::vector<float>(3, 4.0f));
}

TEST(SharedGraph, StreamsOfSeveralThreadsDoNotWaitInACircle) {
  Stream a = new_stream(Device::cpu);
  Stream b = new_stream(Device::cpu);
  for (int round = 0; round < 50; ++round) {
    array x = ones({64});
    std::vector<array> steps;
    for (int i = 0; i < 12; ++i) {
      x = add(x, array(1.0f), i % 3 == 0 ? a : i % 3 == 1 ? b : here());
      steps.push_back(x);
    }
    std::vector<float> results(kThreads);
    on_threads([&, steps](int t) mutable {
      if (t % 2 == 0) {
        async_eval(steps[11 - t]);
      }
      array own = add(steps[11 - t], array(1.0f), t % 2 ? a : b);
      async_eval(own);
      results[t] = sum(own).item<float>();
    });
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_EQ(results[t], 64.0f * (14 - t));
    }
  }
}

TEST(SharedGraph, AnErrorLeavesNoWorkOfOtherStreamsBehind) {
  Stream other = new_stream(Device::cpu);
  array fine = add(ones({4}), array(1.0f), other);
  array bad = probe(fine, here(), [] { throw std::runtime_error("told"); });
  array later = add(bad, array(1.0f), other);
  EXPECT_THROW(eval(later), std::runtime_error);
  EXPECT_EQ(sum(fine).item<float>(), 8.0f);
  EXPECT_EQ(later.status(), array::unscheduled);
  EXPECT_THROW(eval(later), std::runtime_error);
}

TEST(SharedGraph, DerivativesCloseOverOneArray) {
  for (int round = 0; round < 20; ++round) {
    auto square = [](const array& x) { return sum(x * x); };
    array weight = grad(square)(arange(0.0, 8.0, 1.0));
    std::vector<float> results(kThreads);
    on_threads([&, weight](int t) {
      auto loss = [&](const array& x) { return sum(x * weight * x); };
      array g = grad(loss)(ones({8}));
      results[t] = sum(g).item<float>();
    });
    EXPECT_EQ(results, std::vector<float>(kThreads, 2 * 2 * 28.0f));
  }
}

TEST(SharedGraph, AnOperationMayEvaluateNewArrays) {
  float inner = 0;
  array x = probe(ones({2}), here(), [&] {
    inner = sum(ones({3}) + array(1.0f)).item<float>();
  });
  EXPECT_EQ(sum(x).item<float>(), 2.0f);
  EXPECT_EQ(inner, 6.0f);
}

TEST(SharedGraph, AnOperationCannotWaitForItself) {
  std::optional<array> own;
  own = probe(ones({2}), here(), [&] { own->eval(); });
  EXPECT_THROW(eval(*own), std::runtime_error);
  EXPECT_EQ(own->status(), array::unscheduled);
  own.reset();
}

}  // namespace
}  // namespace mlx::core
