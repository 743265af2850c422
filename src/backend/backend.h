// The one interface to a backend. Everything above it is the same for every
// device; everything that differs stands below, one folder a backend.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "mlx/array.h"
#include "mlx/device.h"
#include "mlx/error.h"
#include "mlx/event.h"
#include "mlx/primitives.h"
#include "mlx/stream.h"

namespace mlx::core {

using DeviceInfo =
    std::unordered_map<std::string, std::variant<std::string, size_t>>;

/// What the tasks of one eval share: after the first error the rest is
/// skipped, and the events carry the error.
struct EvalContext {
  Error error;
};

/// Submits nodes that compute results from inputs; lets go of an input where it
/// is used last.
using SubmitWork = std::function<std::vector<array>(std::vector<array> inputs)>;

/// Work that was submitted once and can be again as one piece, for other
/// inputs.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Submits it for `inputs`, which are let go, and returns the results; or
  /// nothing, with nothing done, where an input does not lie where it has to.
  virtual std::optional<std::vector<array>> replay(
      std::vector<array>& inputs) = 0;
};

/// Results of work, and the recording of it, or null where it cannot be had.
struct Recorded {
  std::vector<array> results;
  std::shared_ptr<Recording> recording;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const char* name() const = 0;
  virtual int device_count() const = 0;
  virtual const DeviceInfo& device_info(int index) const = 0;

  /// Whether the backend itself runs operations of this class.
  virtual bool has_kernel(std::type_index op) const = 0;
  /// Runs a built-in operation; raises when has_kernel() is false.
  virtual void run_kernel(
      Primitive& op,
      const std::vector<array>& inputs,
      std::vector<array>& outputs) = 0;

  /// Whether an operation along rows (softmax, a norm) of an array of this
  /// shape is left to its own kernel when others around it are fused, where it
  /// could be taken apart and be computed with them.
  virtual bool keeps_whole(const Primitive& op, const Shape& shape) const = 0;

  /// Computes one node now, on the calling thread, or submits it to its
  /// stream without waiting.
  virtual void run_inline(array& node) = 0;
  virtual void submit(array node, std::shared_ptr<EvalContext> context) = 0;
  /// Whether `s` runs on the calling thread inside a waiting eval.
  virtual bool runs_inline(Stream s) const = 0;

  virtual std::shared_ptr<detail::EventState> make_event(Stream s) = 0;
  /// Signals after the submitted work of `s`, with the context's error.
  virtual void signal(
      Stream s, Event event, std::shared_ptr<EvalContext> context) = 0;
  virtual void wait(
      Stream s, Event event, std::shared_ptr<EvalContext> context) = 0;
  /// Hands over what was submitted but held back to be batched.
  virtual void flush(Stream s) = 0;
  virtual void synchronize(Stream s) = 0;

  /// Whether work of this stream is submitted faster as a recording.
  virtual bool records(Stream) const { return false; }
  /// Submits `work`, whose nodes belong to `s` and have kernels, and keeps what
  /// it submits. `stays` says which inputs will lie in the same memory next
  /// time; others are copied to memory of the recording.
  virtual Recorded record(
      Stream,
      std::vector<array> inputs,
      const std::vector<bool>& stays,
      const SubmitWork& work) {
    (void)stays;
    return {work(std::move(inputs)), nullptr};
  }
};

/// The backend of a device type, or nullptr when this build or machine has
/// none.
Backend* find_backend(Device::DeviceType type);

/// The same; raises std::runtime_error when there is none.
Backend& get_backend(Device::DeviceType type);

}  // namespace mlx::core
