// What the allocator holds and its limits; sizes of arrays' buffers.
#include "mlx/memory.h"

#include <unordered_set>

#include "casters.h"
#include "modules.h"
#include "trees.h"

namespace mlx::python {

void init_memory(nb::module_& m) {
  m.def(
      "get_active_memory",
      mx::get_active_memory,
      "The bytes that arrays hold.\n\n"
      "Example:\n"
      "    >>> mx.get_active_memory() >= 0\n"
      "    True");
  m.def(
      "get_peak_memory",
      mx::get_peak_memory,
      "The most bytes that arrays held at one time since the start or the\n"
      "last `reset_peak_memory`.\n\n"
      "Example:\n"
      "    >>> mx.get_peak_memory() >= mx.get_active_memory()\n"
      "    True");
  m.def("reset_peak_memory", mx::reset_peak_memory, "Sets the peak to zero.");
  m.def(
      "get_cache_memory",
      mx::get_cache_memory,
      "The bytes of free buffers kept for reuse.");
  m.def(
      "get_memory_limit",
      mx::get_memory_limit,
      "The limit on active memory in bytes.");
  m.def(
      "set_memory_limit",
      mx::set_memory_limit,
      "limit"_a,
      "Sets the limit on memory: above it free buffers are given back.\n\n"
      "Args:\n"
      "    limit (int): Bytes.\n\n"
      "Returns:\n"
      "    int: The limit before.\n\n"
      "Example:\n"
      "    >>> before = mx.set_memory_limit(2**30)\n"
      "    >>> mx.set_memory_limit(before)\n"
      "    1073741824");
  m.def(
      "set_cache_limit",
      mx::set_cache_limit,
      "limit"_a,
      "Sets how many bytes of free buffers are kept for reuse; 0 for none.\n\n"
      "Args:\n"
      "    limit (int): Bytes.\n\n"
      "Returns:\n"
      "    int: The limit before.\n\n"
      "Example:\n"
      "    >>> before = mx.set_cache_limit(0)\n"
      "    >>> mx.set_cache_limit(before)\n"
      "    0");
  m.def(
      "set_wired_limit",
      mx::set_wired_limit,
      "limit"_a,
      "Does nothing and returns 0: memory here is never wired.");
  m.def("clear_cache", mx::clear_cache, "Gives free buffers back.");
  m.def(
      "get_array_buffer_size",
      [](nb::args args) {
        std::unordered_set<const void*> seen;
        size_t bytes = 0;
        for (const mx::array& a : tree_arrays(args)) {
          if (a.is_available() &&
              seen.insert(a.data_shared_ptr().get()).second) {
            bytes += a.buffer_size();
          }
        }
        return bytes;
      },
      "args"_a,
      nb::sig("def get_array_buffer_size(*args: object) -> int"),
      "The bytes of the buffers behind the computed arrays in trees; a buffer\n"
      "that several arrays share counts once.");
}

}  // namespace mlx::python
