// Streams: queues of work on a device, in order within themselves.
#pragma once

#include <vector>

#include "mlx/api.h"
#include "mlx/device.h"

namespace mlx::core {

struct MLX_API Stream {
  explicit Stream(int index, Device device) : index(index), device(device) {}

  bool operator==(const Stream&) const = default;
  bool operator<(const Stream& rhs) const {
    return device < rhs.device || (device == rhs.device && index < rhs.index);
  }

  int index;
  Device device;
};

/// A stream name that stands for another stream in each thread.
struct MLX_API ThreadLocalStream : public Stream {
  using Stream::Stream;
};

/// The calling thread's default stream of a device, created on first use.
MLX_API Stream default_stream(Device d);

/// Makes `s` the calling thread's default stream of its device.
MLX_API void set_default_stream(Stream s);

MLX_API Stream new_stream(Device d);
MLX_API Stream new_thread_unsafe_stream(Device d);
MLX_API ThreadLocalStream new_thread_local_stream(Device d);
MLX_API Stream stream_from_thread_local_stream(ThreadLocalStream tls);
MLX_API std::vector<Stream> get_streams();

/// Waits for all work of a stream (without argument: of the default one).
/// Raises the first error of a task that nobody has waited for yet.
MLX_API void synchronize();
MLX_API void synchronize(Stream s);
MLX_API void synchronize(ThreadLocalStream s);

/// Drops the calling thread's default and thread-local streams.
MLX_API void clear_streams();

}  // namespace mlx::core
