// Streams and the scopes that make one the default.
#include "mlx/stream.h"

#include <memory>
#include <sstream>
#include <stdexcept>

#include "casters.h"
#include "gil.h"
#include "modules.h"

namespace mlx::python {

namespace {

/// The context manager behind mx.stream.
struct StreamScope {
  mx::StreamOrDevice stream;
  std::unique_ptr<mx::StreamContext> active;
};

StreamScope make_scope(const mx::StreamOrDevice& s) {
  if (std::holds_alternative<std::monostate>(s)) {
    throw std::runtime_error(
        "[stream] no stream given: None. Expected a stream or device.");
  }
  return {s, nullptr};
}

template <typename T>
std::string text_of(const T& stream, const char* name) {
  std::ostringstream os;
  os << name << "(" << stream.device << ", " << stream.index << ")";
  return os.str();
}

template <typename T>
void bind_stream_class(nb::module_& m, const char* name, const char* doc) {
  nb::class_<T>(m, name, doc)
      .def_prop_ro(
          "device",
          [](const T& s) { return s.device; },
          nb::sig("def device(self) -> Device"),
          "Its device.")
      .def_ro("index", &T::index, "Its number.")
      .def("__repr__", [name](const T& s) { return text_of(s, name); })
      .def(
          "__eq__",
          [](const T& s, nb::handle other) {
            return nb::isinstance<T>(other) && s == nb::cast<T>(other);
          },
          nb::arg().none(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const T& s) {
        return 2 * static_cast<int64_t>(s.index) +
               static_cast<int64_t>(s.device.type);
      });
}

void bind_scope(nb::module_& m) {
  nb::class_<StreamScope>(
      m,
      "StreamContext",
      "Makes a stream or device the default one within a ``with`` block.\n\n"
      "Args:\n"
      "    s (Stream or Device): What operations that name none run on.")
      .def(
          "__init__",
          [](StreamScope* self, mx::StreamOrDevice s) {
            new (self) StreamScope(make_scope(s));
          },
          "s"_a.none(),
          nb::sig("def __init__(self, s: StreamOrDevice) -> None"))
      .def(
          "__enter__",
          [](StreamScope& scope) {
            scope.active = std::make_unique<mx::StreamContext>(scope.stream);
          },
          nb::sig("def __enter__(self) -> None"),
          "Sets the default device and stream.")
      .def(
          "__exit__",
          [](StreamScope& scope, nb::handle, nb::handle, nb::handle) {
            scope.active.reset();
          },
          "exc_type"_a = nb::none(),
          "exc_value"_a = nb::none(),
          "traceback"_a = nb::none(),
          nb::sig("def __exit__(self, exc_type: type | None = None, exc_value: "
                  "object | None = None, traceback: object | None = None) -> "
                  "None"),
          "Restores the ones before.");
  m.def(
      "stream",
      make_scope,
      "s"_a.none(),
      nb::sig("def stream(s: StreamOrDevice) -> StreamContext"),
      "A ``with`` block in which a stream or device is the default one.\n\n"
      "Args:\n"
      "    s (Stream or Device): What operations that name none run on.\n\n"
      "Example:\n"
      "    >>> with mx.stream(mx.cpu):\n"
      "    ...     y = mx.exp(mx.array(0.0))");
}

void bind_functions(nb::module_& m) {
  m.def(
      "default_stream",
      mx::default_stream,
      "device"_a,
      nb::sig("def default_stream(device: Device | DeviceType) -> Stream"),
      "The calling thread's default stream of a device.\n\n"
      "Example:\n"
      "    >>> mx.default_stream(mx.cpu).device\n"
      "    Device(cpu, 0)");
  m.def(
      "set_default_stream",
      [](mx::StreamOrDevice s) { mx::set_default_stream(mx::to_stream(s)); },
      "stream"_a,
      nb::sig("def set_default_stream(stream: StreamOrDevice) -> None"),
      "Makes a stream the calling thread's default one of its device.\n\n"
      "Example:\n"
      "    >>> mx.set_default_stream(mx.default_stream(mx.cpu))");
  m.def(
      "new_stream",
      mx::new_stream,
      "device"_a,
      nb::sig("def new_stream(device: Device | DeviceType) -> Stream"),
      "A new stream, for use in the calling thread.\n\n"
      "Example:\n"
      "    >>> s = mx.new_stream(mx.cpu)\n"
      "    >>> y = mx.add(mx.array(1), mx.array(2), stream=s)");
  m.def(
      "new_thread_unsafe_stream",
      mx::new_thread_unsafe_stream,
      "device"_a,
      nb::sig("def new_thread_unsafe_stream(device: Device | DeviceType) -> "
              "Stream"),
      "A new stream that any thread may use; the order of work given by\n"
      "several threads is up to the caller.");
  m.def(
      "new_thread_local_stream",
      mx::new_thread_local_stream,
      "device"_a,
      nb::sig("def new_thread_local_stream(device: Device | DeviceType) -> "
              "ThreadLocalStream"),
      "A name that stands for another stream in each thread.");
  m.def(
      "clear_streams",
      mx::clear_streams,
      "Drops the calling thread's default and thread-local streams.");
  m.def(
      "synchronize",
      [](mx::StreamOrDevice s) {
        mx::Stream stream = mx::to_stream(s);
        WithoutGil release;
        mx::synchronize(stream);
      },
      "stream"_a = nb::none(),
      nb::sig("def synchronize(stream: StreamOrDevice = None) -> None"),
      "Waits for all work of a stream, by default of the default one.\n\n"
      "Raises:\n"
      "    RuntimeError: With the first error of the work.\n\n"
      "Example:\n"
      "    >>> mx.synchronize()");
}

}  // namespace

void init_stream(nb::module_& m) {
  bind_stream_class<mx::Stream>(
      m, "Stream", "A queue of work on a device, done in order.");
  bind_stream_class<mx::ThreadLocalStream>(
      m,
      "ThreadLocalStream",
      "A name that stands for another stream in each thread.");
  bind_scope(m);
  bind_functions(m);
}

}  // namespace mlx::python
