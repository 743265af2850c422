// The one interface to a backend. Everything above it is the same for every
// device; everything that differs stands below, one folder a backend.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>
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

/// Work that was recorded once and can be submitted again as one piece. It
/// reads and writes the memory that it was recorded with: new inputs are
/// written into the old ones.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
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

  /// Calls `work` and records what the calling thread submits to `s` meanwhile
  /// in place of running it; memory that it takes stays with the recording.
  /// Null, with nothing called, where the backend gains nothing by it.
  virtual std::shared_ptr<Recording> record(
      Stream, const std::function<void()>&) {
    return nullptr;
  }
};

/// The backend of a device type, or nullptr when this build or machine has
/// none.
Backend* find_backend(Device::DeviceType type);

/// The same; raises std::runtime_error when there is none.
Backend& get_backend(Device::DeviceType type);

}  // namespace mlx::core
