// Forked children: what another thread of the parent was to compute is never
// computed there, so waiting for it is an error.
#include "graph/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"
#include "testing_primitives.h"

namespace mlx::core {
namespace {

using testing::probe;

// The status of a child that runs f, which may start no thread
// (ThreadSanitizer) and returns 0 when all is well.
template <typename F>
int status_of_child(F f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs is ended
    std::_Exit(f());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool is_lost(array a) {
  try {
    a.eval();
  } catch (const std::runtime_error& e) {
    return std::string(e.what()).find("forked") != std::string::npos;
  }
  return false;
}

// `x`, whose computation waits until `go`.
array gated(
    const array& x,
    Stream s,
    std::atomic<bool>& begun,
    const std::atomic<bool>& go) {
  return probe(x, s, [&] {
    begun = true;
    while (!go) {
      std::this_thread::yield();
    }
  });
}

void lose_work_of_thread(bool inline_there) {
  std::atomic<bool> begun{false};
  std::atomic<bool> go{false};
  array x = gated(ones({4}), default_stream(Device::cpu), begun, go);
  array y = x + array(1.0f);
  std::thread thread([y, inline_there, s = default_stream(Device::cpu)] {
    if (inline_there) {
      set_default_stream(s);
    }
    EXPECT_EQ(sum(y).item<float>(), 8.0f);
  });
  while (!begun) {
    std::this_thread::yield();
  }
  int status = status_of_child([&] {
    bool good = is_lost(y) && is_lost(y + array(1.0f)) &&
                sum(ones({3}) + array(1.0f)).item<float>() == 6.0f;
    return good ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  go = true;
  thread.join();
  EXPECT_EQ(y.status(), array::available);
}

TEST(Fork, WorkOfAnotherThreadIsLost) {
  lose_work_of_thread(true);
  lose_work_of_thread(false);
}

TEST(Fork, WorkOfAStreamIsLost) {
  Stream s = new_stream(Device::cpu);
  std::atomic<bool> go{false};
  array x = add(ones({4}), array(1.0f), s);
  cpu::get_command_encoder(s).dispatch([&] {  // holds the stream up
    while (!go) {
      std::this_thread::yield();
    }
  });
  async_eval(x);
  EXPECT_FALSE(x.is_available());
  int status = status_of_child(
      [&] { return is_lost(x) && is_lost(x + array(1.0f)) ? 0 : 1; });
  EXPECT_EQ(status, 0);
  go = true;
  EXPECT_EQ(sum(x).item<float>(), 8.0f);
}

}  // namespace
}  // namespace mlx::core
