// The end of the interpreter: threads that come back too late, pending work.
#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "mlx/stream.h"

namespace mlx::python {

namespace nb = nanobind;

namespace {

std::atomic<bool> ending{false};
std::thread::id ending_thread;
std::atomic<int> returning{0};  // threads that wait for the lock

void at_exit() {
  ending_thread = std::this_thread::get_id();
  ending = true;
  PyThreadState* state = PyEval_SaveThread();
  // Who asked for the lock before gets it now. A bound, for the case that some
  // other library never gives it up.
  for (int i = 0; returning > 0 && i < 2000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (core::Stream s : core::get_streams()) {
    try {
      core::synchronize(s);
    } catch (const std::exception&) {
      // Nobody is left to be told.
    }
  }
  PyEval_RestoreThread(state);
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  ++returning;
  if (ending && std::this_thread::get_id() != ending_thread) {
    --returning;
    while (true) {
      pause();
    }
  }
  PyEval_RestoreThread(state_);
  --returning;
}

void finish_work_at_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(at_exit));
}

}  // namespace mlx::python
