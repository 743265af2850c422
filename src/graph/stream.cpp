// Streams by number; which stream is a thread's default.
#include "mlx/stream.h"

#include <mutex>
#include <optional>
#include <unordered_map>

#include "backend/backend.h"
#include "types/error.h"

namespace mlx::core {

namespace {

struct StreamList {
  std::mutex mutex;
  std::vector<Stream> streams;
  int thread_local_count = 0;
};

StreamList& stream_list() {
  static auto* list = new StreamList;
  return *list;
}

void check_device(const char* op, Device d) {
  if (!is_available(d)) {
    invalid(
        op, "no such device: ", d, ". No backend of this process serves it.");
  }
}

Stream add_stream(Device d) {
  StreamList& list = stream_list();
  std::lock_guard lock(list.mutex);
  list.streams.emplace_back(static_cast<int>(list.streams.size()), d);
  return list.streams.back();
}

// Every node asks for one of these; apart, so that nothing has to be made and
// ended with the thread.
thread_local std::optional<Stream> defaults[2];

std::unordered_map<int, Stream>& thread_locals() {
  thread_local std::unordered_map<int, Stream> streams;
  return streams;
}

std::optional<Stream>& default_slot(Device d) {
  return defaults[d.type == Device::gpu];
}

}  // namespace

Stream default_stream(Device d) {
  std::optional<Stream>& slot = default_slot(d);
  if (!slot || slot->device != d) {
    check_device("default_stream", d);
    slot = add_stream(d);
  }
  return *slot;
}

void set_default_stream(Stream s) {
  check_device("set_default_stream", s.device);
  default_slot(s.device) = s;
}

Stream new_stream(Device d) {
  check_device("new_stream", d);
  return add_stream(d);
}

// Streams have no home thread here, so this is the same.
Stream new_thread_unsafe_stream(Device d) {
  return new_stream(d);
}

ThreadLocalStream new_thread_local_stream(Device d) {
  check_device("new_thread_local_stream", d);
  StreamList& list = stream_list();
  std::lock_guard lock(list.mutex);
  return ThreadLocalStream(list.thread_local_count++, d);
}

Stream stream_from_thread_local_stream(ThreadLocalStream tls) {
  auto& locals = thread_locals();
  auto it = locals.find(tls.index);
  if (it == locals.end()) {
    it = locals.emplace(tls.index, add_stream(tls.device)).first;
  }
  return it->second;
}

std::vector<Stream> get_streams() {
  StreamList& list = stream_list();
  std::lock_guard lock(list.mutex);
  return list.streams;
}

void synchronize() {
  synchronize(default_stream(default_device()));
}

void synchronize(Stream s) {
  get_backend(s.device.type).synchronize(s);
}

void synchronize(ThreadLocalStream s) {
  synchronize(stream_from_thread_local_stream(s));
}

void clear_streams() {
  for (auto& slot : defaults) {
    slot.reset();
  }
  thread_locals().clear();
}

}  // namespace mlx::core
