// Devices, and what is particular to some of them: mx.metal and mx.cuda.
#include "mlx/device.h"

#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/variant.h>

#include <iostream>
#include <set>
#include <sstream>

#include "casters.h"
#include "mlx/memory.h"
#include "modules.h"

namespace mlx::python {

namespace {

using DeviceType = mx::Device::DeviceType;

template <typename T>
std::string text_of(const T& v) {
  std::ostringstream os;
  os << v;
  return os.str();
}

bool equal(const mx::Device& d, nb::handle other) {
  if (nb::isinstance<mx::Device>(other)) {
    return d == nb::cast<mx::Device>(other);
  }
  return nb::isinstance<DeviceType>(other) && d == nb::cast<DeviceType>(other);
}

void bind_classes(nb::module_& m) {
  nb::enum_<DeviceType>(m, "DeviceType", "The kind of a device.")
      .value("cpu", DeviceType::cpu, "The processor.")
      .value("gpu", DeviceType::gpu, "The graphics processor.")
      .export_values()
      .def(
          "__eq__",
          [](DeviceType t, nb::handle other) {
            return nb::isinstance<DeviceType>(other)
                       ? t == nb::cast<DeviceType>(other)
                       : nb::isinstance<mx::Device>(other) &&
                             nb::cast<mx::Device>(other) == t;
          },
          nb::arg().none(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](DeviceType t) { return static_cast<int64_t>(t); });
  nb::class_<mx::Device>(
      m,
      "Device",
      "A device that arrays are computed on.\n\n"
      "Args:\n"
      "    type (DeviceType): ``mx.cpu`` or ``mx.gpu``.\n"
      "    index (int): Its number. Default: 0.\n\n"
      "Example:\n"
      "    >>> mx.Device(mx.cpu)\n"
      "    Device(cpu, 0)")
      .def(nb::init<DeviceType, int>(), "type"_a, "index"_a = 0)
      .def_prop_ro(
          "type",
          [](const mx::Device& d) { return d.type; },
          nb::sig("def type(self) -> DeviceType"),
          "Its kind.")
      .def("__repr__", text_of<mx::Device>)
      .def(
          "__eq__",
          equal,
          nb::arg().none(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const mx::Device& d) {
        return static_cast<int64_t>(d.type) + 2 * d.index;
      });
  nb::implicitly_convertible<DeviceType, mx::Device>();
}

void bind_functions(nb::module_& m) {
  m.def(
      "default_device",
      [] { return mx::default_device(); },
      "The device of operations that name none.\n\n"
      "Example:\n"
      "    >>> mx.is_available(mx.default_device())\n"
      "    True");
  m.def(
      "set_default_device",
      mx::set_default_device,
      "device"_a,
      nb::sig("def set_default_device(device: Device | DeviceType) -> None"),
      "Sets the device of operations that name none.\n\n"
      "Raises:\n"
      "    ValueError: When this build or machine has no such device.\n\n"
      "Example:\n"
      "    >>> mx.set_default_device(mx.cpu)");
  m.def(
      "is_available",
      mx::is_available,
      "device"_a,
      nb::sig("def is_available(device: Device | DeviceType) -> bool"),
      "Whether a device can be used.\n\n"
      "Example:\n"
      "    >>> mx.is_available(mx.cpu)\n"
      "    True");
  m.def(
      "device_count",
      mx::device_count,
      "device_type"_a,
      nb::sig("def device_count(device_type: DeviceType) -> int"),
      "The number of devices of a kind.\n\n"
      "Example:\n"
      "    >>> mx.device_count(mx.cpu)\n"
      "    1");
  m.def(
      "device_info",
      [](std::optional<mx::Device> d) {
        return mx::device_info(d.value_or(mx::default_device()));
      },
      "d"_a = nb::none(),
      nb::sig("def device_info(d: None | Device | DeviceType = None) -> "
              "dict[str, str | int]"),
      "Facts about a device, at least its name and architecture.\n\n"
      "Example:\n"
      "    >>> mx.device_info(mx.cpu)[\"architecture\"]\n"
      "    'x86_64'");
}

/// Says once for each name under mx.metal that it has moved.
void deprecated(const char* name) {
  static std::set<std::string> said;  // guarded by the interpreter's lock
  if (said.insert(name).second) {
    std::cerr << "mx.metal." << name
              << " is deprecated and will be removed. Use mx." << name
              << " instead.\n";
  }
}

void bind_metal(nb::module_& m) {
  nb::module_ metal =
      m.def_submodule("metal", "Names that concern Apple's Metal only.");
  metal.def(
      "is_available", [] { return false; }, "Whether Metal can be used: no.");
  metal.def(
      "start_capture",
      [](const std::string&) {},
      "path"_a,
      "Does nothing: there are no Metal captures here.");
  metal.def(
      "stop_capture", [] {}, "Does nothing: there are no Metal captures here.");
  metal.def(
      "device_info",
      [] {
        deprecated("device_info");
        std::unordered_map<std::string, std::variant<std::string, size_t>> none;
        return mx::is_available(mx::Device::gpu)
                   ? mx::device_info(mx::Device::gpu)
                   : none;
      },
      nb::sig("def device_info() -> dict[str, str | int]"),
      "Use `mlx.core.device_info`.");
#define MLX_MOVED(name)    \
  metal.def(               \
      #name,               \
      [] {                 \
        deprecated(#name); \
        return mx::name(); \
      },                   \
      "Use `mlx.core." #name "`.")
#define MLX_MOVED_LIMIT(name)   \
  metal.def(                    \
      #name,                    \
      [](size_t limit) {        \
        deprecated(#name);      \
        return mx::name(limit); \
      },                        \
      "limit"_a,                \
      "Use `mlx.core." #name "`.")
  MLX_MOVED(get_active_memory);
  MLX_MOVED(get_peak_memory);
  MLX_MOVED(reset_peak_memory);
  MLX_MOVED(get_cache_memory);
  MLX_MOVED(clear_cache);
  MLX_MOVED_LIMIT(set_memory_limit);
  MLX_MOVED_LIMIT(set_cache_limit);
  MLX_MOVED_LIMIT(set_wired_limit);
#undef MLX_MOVED
#undef MLX_MOVED_LIMIT
}

void bind_cuda(nb::module_& m) {
  nb::module_ cuda = m.def_submodule("cuda", "What concerns NVIDIA's CUDA.");
  cuda.def(
      "is_available",
      [] { return mx::is_available(mx::Device::gpu); },
      "Whether a CUDA device can be used.");
}

}  // namespace

void init_device(nb::module_& m) {
  bind_classes(m);
  bind_functions(m);
  bind_metal(m);
  bind_cuda(m);
}

}  // namespace mlx::python
