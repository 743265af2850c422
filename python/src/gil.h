// Work without the interpreter's lock, and what becomes of it when the
// interpreter ends.
#pragma once

#include <nanobind/nanobind.h>

namespace mlx::python {

/// Lets other Python threads run during its lifetime. Use this one, not
/// nb::gil_scoped_release: an ending interpreter kills a thread that asks for
/// the lock again by unwinding it, which no C++ destructor survives. Here such
/// a (daemon) thread sleeps until the process is gone.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Has the interpreter, when it ends, wait for the work of all streams: tasks
/// may let go of Python objects.
void finish_work_at_exit();

}  // namespace mlx::python
