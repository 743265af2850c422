// Functions that read and write elements at computed positions.
#include "casters.h"
#include "convert.h"
#include "graph/postponed.h"
#include "mlx/ops.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

/// take_along_axis and put_along_axis over the flattened array.
mx::array flat(const mx::array& a, const Stream& s) {
  return mx::flatten(a, s);
}

mx::array put_flat(
    const mx::array& a,
    const mx::array& indices,
    const mx::array& values,
    mx::Stream s) {
  if (mx::detail::lengths_open(a, indices, values)) {
    return mx::detail::postpone(
        "put_along_axis",
        {a, indices, values},
        s,
        [s](const std::vector<mx::array>& in) {
          return std::vector<mx::array>{put_flat(in[0], in[1], in[2], s)};
        })[0];
  }
  mx::array put = mx::put_along_axis(
      flat(a, s),
      flat(indices, s),
      flat(mx::broadcast_to(values, indices.shape(), s), s),
      0,
      s);
  return mx::reshape(put, a.shape(), s);
}

mx::array take(
    const mx::array& a,
    nb::handle indices,
    std::optional<int> axis,
    const Stream& s) {
  int64_t one;
  if (!as_array(indices) && detail::read_integer(indices, one)) {
    int index = mx::safe_cast(one, "take");
    return axis ? mx::take(a, index, *axis, s) : mx::take(a, index, s);
  }
  if (!as_array(indices) && !nb::hasattr(indices, "__mlx_array__")) {
    throw nb::type_error(mx::message(
                             "take",
                             "indices of type ",
                             nb::type_name(indices.type()).c_str(),
                             ". Expected an int or an integer array.")
                             .c_str());
  }
  mx::array where = to_array(indices);
  return axis ? mx::take(a, where, *axis, s) : mx::take(a, where, s);
}

void bind_takes(nb::module_& m) {
  m.def(
      "take",
      take,
      nb::arg(),
      "indices"_a,
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def take(a: array, /, indices: int | array, axis: int | None = "
              "None, *, stream: StreamOrDevice = None) -> array"),
      "The sub-arrays at indices along an axis.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    indices (int or array): Integers; negative ones count from the "
      "end,\n"
      "        others are not checked against the bounds.\n"
      "    axis (int, optional): Default: the flattened array.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: The shape of a with the indices' shape in place of the "
      "axis.\n"
      "\n"
      "Raises:\n"
      "    ValueError: For floating indices and an empty axis.\n\n"
      "Example:\n"
      "    >>> mx.take(mx.array([5, 6, 7]), mx.array([2, 0]))\n"
      "    array([7, 5], dtype=int32)");
  m.def(
      "take_along_axis",
      [](const mx::array& a,
         const mx::array& indices,
         std::optional<int> axis,
         const Stream& s) {
        return axis ? mx::take_along_axis(a, indices, *axis, s)
                    : mx::take_along_axis(flat(a, s), flat(indices, s), 0, s);
      },
      nb::arg(),
      "indices"_a,
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def take_along_axis(a: array, /, indices: array, axis: int | "
              "None = None, *, stream: StreamOrDevice = None) -> array"),
      "The elements at indices along an axis, for each place elsewhere.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    indices (array): Integers, as many axes as a; shapes broadcast\n"
      "        outside of the axis.\n"
      "    axis (int, optional): Default: both flattened.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> a = mx.array([[1, 2], [3, 4]])\n"
      "    >>> mx.take_along_axis(a, mx.array([[1], [0]]), axis=1)\n"
      "    array([[2],\n"
      "           [3]], dtype=int32)");
  m.def(
      "put_along_axis",
      [](const mx::array& a,
         const mx::array& indices,
         const mx::array& values,
         std::optional<int> axis,
         const Stream& s) {
        if (axis) {
          return mx::put_along_axis(a, indices, values, *axis, s);
        }
        return put_flat(a, indices, values, mx::to_stream(s));
      },
      nb::arg(),
      "indices"_a,
      "values"_a,
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def put_along_axis(a: array, /, indices: array, values: array, "
              "axis: int | None = None, *, stream: StreamOrDevice = None) -> "
              "array"),
      "A copy with values at indices along an axis.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    indices (array): Integers as for `take_along_axis`.\n"
      "    values (array): Broadcast to the indices.\n"
      "    axis (int, optional): Default: both flattened.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> a = mx.zeros((2, 2))\n"
      "    >>> one = mx.array(1.0)\n"
      "    >>> mx.put_along_axis(a, mx.array([[1], [0]]), one, axis=1)\n"
      "    array([[0, 1],\n"
      "           [1, 0]], dtype=float32)");
}

void bind_slices(nb::module_& m) {
  m.def(
      "slice",
      [](const mx::array& a,
         const mx::array& start_indices,
         std::vector<int> axes,
         const Lengths& slice_size,
         const Stream& s) {
        return mx::slice(
            a, start_indices, std::move(axes), slice_size.shape("slice"), s);
      },
      nb::arg(),
      "start_indices"_a,
      "axes"_a,
      "slice_size"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def slice(a: array, /, start_indices: array, axes: "
              "Sequence[int], slice_size: Sequence[int], *, stream: "
              "StreamOrDevice = None) -> array"),
      "A sub-array of fixed size at a computed position.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    start_indices (array): An integer for each named axis, moved so\n"
      "        that the slice fits.\n"
      "    axes (Sequence[int]): The axes; others begin at 0.\n"
      "    slice_size (Sequence[int]): The shape of the result.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.slice(mx.arange(5), mx.array([2]), [0], [3])\n"
      "    array([2, 3, 4], dtype=int32)");
  m.def(
      "slice_update",
      [](const mx::array& a,
         const mx::array& update,
         const mx::array& start_indices,
         std::vector<int> axes,
         const Stream& s) {
        return mx::slice_update(a, update, start_indices, std::move(axes), s);
      },
      nb::arg(),
      "update"_a,
      "start_indices"_a,
      "axes"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def slice_update(a: array, /, update: array, start_indices: "
              "array, axes: Sequence[int], *, stream: StreamOrDevice = None) "
              "-> array"),
      "A copy with a sub-array written at a computed position.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    update (array): What is written.\n"
      "    start_indices (array): An integer for each named axis.\n"
      "    axes (Sequence[int]): The axes; others begin at 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> new = mx.array([7, 8])\n"
      "    >>> mx.slice_update(mx.arange(4), new, mx.array([1]), [0])\n"
      "    array([0, 7, 8, 3], dtype=int32)");
}

}  // namespace

void init_ops_indexing(nb::module_& m) {
  bind_takes(m);
  bind_slices(m);
}

}  // namespace mlx::python
