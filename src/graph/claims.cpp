// The lock, the claims of each thread, and waiting for other threads' claims.
#include "graph/claims.h"

#include <pthread.h>

#include <condition_variable>
#include <optional>
#include <stdexcept>

#include "graph/fork.h"
#include "mlx/primitives.h"

namespace mlx::core::detail {

namespace {

struct Shared {
  std::mutex mutex;
  std::condition_variable settled;
  std::atomic<int> waiters{0};
};

// A forked child starts with a new one: the old one's lock may be held, and
// its waiters counted, by threads that are not here.
Shared*& shared() {
  static Shared* current = new Shared;
  return current;
}

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { shared() = new Shared; });

std::atomic<uint32_t> claims{0};

thread_local Claimant* innermost = nullptr;

template <typename F>
void each_output(const array& node, F&& f) {
  f(node);
  for (const array& sibling : node.siblings()) {
    f(sibling);
  }
}

}  // namespace

GraphLock::GraphLock() : lock_(shared()->mutex) {}

Claimant::Claimant()
    : outer_(innermost),
      number_(claims.fetch_add(1, std::memory_order_relaxed)) {
  innermost = this;
}

Claimant::~Claimant() {
  innermost = outer_;
}

void Claimant::take(const array& node) {
  array::Claim claim{number_, static_cast<uint32_t>(fork_generation())};
  each_output(node, [&](const array& out) {
    out.claim() = claim;
    out.set_status(array::running);
  });
}

void Claimant::give_back(const array& node) {
  each_output(node, [](const array& out) {
    if (out.status() == array::running) {
      out.set_status(array::unscheduled);
    }
  });
}

bool Claimant::thread_owns(const array& node) {
  for (Claimant* c = innermost; c; c = c->outer_) {
    if (c->number_ == node.claim().number) {
      return true;
    }
  }
  return false;
}

bool is_settled(const array& node) {
  switch (node.status()) {
    case array::running:
      return false;
    case array::evaluated:
      return !node.event().valid() || node.event().is_posted();
    default:
      return true;
  }
}

void wait_until_settled(const array& node) {
  Shared& s = *shared();
  std::unique_lock lock(s.mutex);
  if (is_settled(node)) {
    return;
  }
  if (Claimant::thread_owns(node)) {
    throw std::runtime_error(
        "[eval] an operation asks for a value that is computed after it. "
        "Expected it to ask for its inputs, or for new arrays.");
  }
  if (node.claim().forks != static_cast<uint32_t>(fork_generation())) {
    lost_in_fork();
  }
  s.waiters.fetch_add(1, std::memory_order_relaxed);
  s.settled.wait(lock, [&] { return is_settled(node); });
  s.waiters.fetch_sub(1, std::memory_order_relaxed);
}

void wake_waiters() {
  Shared& s = *shared();
  if (s.waiters.load(std::memory_order_relaxed) > 0) {
    std::lock_guard lock(s.mutex);
    s.settled.notify_all();
  }
}

namespace {

// Calls f with the primitive that an array waits for, if there is one. Nodes
// of a traced function belong to the thread that traces.
template <typename F>
void with_primitive(const array& a, F&& f) {
  std::optional<GraphLock> lock;
  if (!a.is_tracer()) {
    lock.emplace();
    if (a.status() != array::unscheduled) {
      return;
    }
  }
  if (a.has_primitive()) {
    f(a.primitive());
  }
}

}  // namespace

Stream stream_of(const array& a, Stream otherwise) {
  with_primitive(a, [&](Primitive& p) { otherwise = p.stream(); });
  return otherwise;
}

bool has_primitive_of(const array& a, const std::type_info& type) {
  bool found = false;
  with_primitive(a, [&](Primitive& p) { found = typeid(p) == type; });
  return found;
}

}  // namespace mlx::core::detail
