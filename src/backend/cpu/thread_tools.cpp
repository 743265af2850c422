// System calls behind thread_tools.h.
#include "backend/cpu/thread_tools.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace mlx::core::cpu {

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t who) {
  syscall(
      SYS_futex,
      reinterpret_cast<uint32_t*>(&word),
      FUTEX_WAIT_BITSET_PRIVATE,
      expected,
      nullptr,
      nullptr,
      who);
}

void futex_wake(std::atomic<uint32_t>& word, int count, uint32_t who) {
  syscall(
      SYS_futex,
      reinterpret_cast<uint32_t*>(&word),
      FUTEX_WAKE_BITSET_PRIVATE,
      count,
      nullptr,
      nullptr,
      who);
}

std::thread start_thread(const std::string& name, std::function<void()> run) {
  struct NoSignals {
    NoSignals() {
      sigset_t all;
      sigfillset(&all);
      // Those that a fault of the thread itself raises: blocked, they would end
      // the process without a word from faulthandler or a sanitizer.
      for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
        sigdelset(&all, fault);
      }
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } while_starting;
  std::thread thread(std::move(run));
  pthread_setname_np(thread.native_handle(), name.c_str());
  return thread;
}

}  // namespace mlx::core::cpu
