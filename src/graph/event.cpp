// Events forward to the backend of their stream.
#include "mlx/event.h"

#include "backend/backend.h"
#include "graph/fork.h"

namespace mlx::core {

detail::EventState::EventState() : forks_(fork_generation()) {}

void detail::EventState::check_not_lost() const {
  if (forks_ != fork_generation() && !is_signaled()) {
    lost_in_fork();
  }
}

Event::Event(Stream stream)
    : stream_(stream),
      state_(get_backend(stream.device.type).make_event(stream)) {}

void Event::wait() {
  state_->wait();
  state_->error.check();
}

void Event::wait(Stream stream) {
  state_->wait(stream);
}
void Event::signal(Stream stream) {
  state_->signal(stream);
  set_posted();
}
bool Event::is_signaled() const {
  return state_->is_signaled();
}

}  // namespace mlx::core
