// Functions that change shape, order and type of the elements.
#include "casters.h"
#include "convert.h"
#include "graph/postponed.h"
#include "mlx/ops.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

constexpr const char* kStreamDoc =
    "    stream (Stream or Device, optional): Where to compute.\n\n";

// What is missing is that of a row-major array like a.
mx::array as_strided(
    const mx::array& a,
    const std::optional<mx::Shape>& shape,
    const std::optional<mx::Strides>& strides,
    size_t offset,
    mx::Stream s) {
  if (mx::detail::lengths_open(a)) {
    return mx::detail::postpone(
        "as_strided", {a}, s, [=](const std::vector<mx::array>& in) {
          return std::vector<mx::array>{
              as_strided(in[0], shape, strides, offset, s)};
        })[0];
  }
  mx::Shape lengths = shape.value_or(a.shape());
  mx::Strides steps(lengths.size(), 1);
  for (size_t i = lengths.size(); i-- > 1;) {
    steps[i - 1] = steps[i] * lengths[i];
  }
  return mx::as_strided(
      a, std::move(lengths), strides.value_or(steps), offset, s);
}

std::string with_stream(const char* before, const char* after) {
  return std::string(before) + kStreamDoc + after;
}

void bind_reshapes(nb::module_& m) {
  m.def(
      "reshape",
      [](const mx::array& a, const Lengths& shape, const Stream& s) {
        return mx::reshape(a, shape.shape("reshape"), s);
      },
      nb::arg(),
      "shape"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def reshape(a: array, /, shape: Sequence[int], *, stream: "
              "StreamOrDevice = None) -> array"),
      with_stream(
          "The same elements in row-major order under another shape.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    shape (Sequence[int]): The new shape; one entry may be -1.\n",
          "Raises:\n"
          "    ValueError: When the sizes differ or cannot be found.\n\n"
          "Example:\n"
          "    >>> mx.reshape(mx.arange(4), (2, -1))\n"
          "    array([[0, 1],\n"
          "           [2, 3]], dtype=int32)")
          .c_str());
  m.def(
      "flatten",
      [](const mx::array& a, int start, int end, const Stream& s) {
        return mx::flatten(a, start, end, s);
      },
      nb::arg(),
      "start_axis"_a = 0,
      "end_axis"_a = -1,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def flatten(a: array, /, start_axis: int = 0, end_axis: int = "
              "-1, *, stream: StreamOrDevice = None) -> array"),
      with_stream(
          "Neighbouring axes joined into one.\n\n"
          "Args:\n"
          "    a (array): Any shape; 0-d becomes 1-d.\n"
          "    start_axis (int): The first axis. Default: 0.\n"
          "    end_axis (int): The last axis, included. Default: -1.\n",
          "Example:\n"
          "    >>> mx.flatten(mx.zeros((2, 3, 4)), 1).shape\n"
          "    (2, 12)")
          .c_str());
  m.def(
      "unflatten",
      [](const mx::array& a, int axis, const Lengths& shape, const Stream& s) {
        return mx::unflatten(a, axis, shape.shape("unflatten"), s);
      },
      nb::arg(),
      "axis"_a,
      "shape"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def unflatten(a: array, /, axis: int, shape: Sequence[int], *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "One axis split into several.\n\n"
          "Args:\n"
          "    a (array): At least one axis.\n"
          "    axis (int): The axis.\n"
          "    shape (Sequence[int]): Lengths in its place; one may be -1.\n",
          "Example:\n"
          "    >>> mx.unflatten(mx.zeros((2, 12)), 1, (3, -1)).shape\n"
          "    (2, 3, 4)")
          .c_str());
  m.def(
      "as_strided",
      [](const mx::array& a,
         const std::optional<Lengths>& shape,
         const std::optional<Lengths>& strides,
         size_t offset,
         const Stream& s) {
        std::optional<mx::Shape> lengths;
        std::optional<mx::Strides> steps;
        if (shape) {
          lengths = shape->shape("as_strided");
        }
        if (strides) {
          steps = mx::Strides(strides->values.begin(), strides->values.end());
        }
        return as_strided(a, lengths, steps, offset, mx::to_stream(s));
      },
      nb::arg(),
      "shape"_a = nb::none(),
      "strides"_a = nb::none(),
      "offset"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def as_strided(a: array, /, shape: Sequence[int] | None = None, "
              "strides: Sequence[int] | None = None, offset: int = 0, *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "A view of the row-major elements with given strides.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    shape (Sequence[int], optional): Default: the shape of a.\n"
          "    strides (Sequence[int], optional): Distances in elements.\n"
          "        Default: those of row-major order.\n"
          "    offset (int): The first element. Default: 0.\n",
          "Example:\n"
          "    >>> mx.as_strided(mx.arange(4), (3, 2), (1, 1))\n"
          "    array([[0, 1],\n"
          "           [1, 2],\n"
          "           [2, 3]], dtype=int32)")
          .c_str());
}

void bind_axes(nb::module_& m) {
  m.def(
      "squeeze",
      [](const mx::array& a, const Axes& axis, const Stream& s) {
        return axis.none() ? mx::squeeze(a, s) : mx::squeeze(a, axis.values, s);
      },
      nb::arg(),
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def squeeze(a: array, /, axis: None | int | Sequence[int] = "
              "None, *, stream: StreamOrDevice = None) -> array"),
      with_stream(
          "Without axes of length 1.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    axis (int or Sequence[int], optional): The axes. Default: all\n"
          "        of length 1.\n",
          "Raises:\n"
          "    ValueError: For an axis that is longer.\n\n"
          "Example:\n"
          "    >>> mx.squeeze(mx.zeros((1, 3, 1))).shape\n"
          "    (3,)")
          .c_str());
  m.def(
      "expand_dims",
      [](const mx::array& a, const Axes& axis, const Stream& s) {
        return mx::expand_dims(a, axis.values, s);
      },
      nb::arg(),
      "axis"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def expand_dims(a: array, /, axis: int | Sequence[int], *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "With new axes of length 1.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    axis (int or Sequence[int]): Where they stand in the result.\n",
          "Example:\n"
          "    >>> mx.expand_dims(mx.zeros(3), (0, 2)).shape\n"
          "    (1, 3, 1)")
          .c_str());
  m.def(
      "moveaxis",
      [](const mx::array& a, int source, int destination, const Stream& s) {
        return mx::moveaxis(a, source, destination, s);
      },
      nb::arg(),
      "source"_a,
      "destination"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def moveaxis(a: array, /, source: int, destination: int, *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "One axis moved, the others in their order.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    source (int): The axis.\n"
          "    destination (int): Its place in the result.\n",
          "Example:\n"
          "    >>> mx.moveaxis(mx.zeros((2, 3, 4)), 0, 2).shape\n"
          "    (3, 4, 2)")
          .c_str());
  m.def(
      "swapaxes",
      [](const mx::array& a, int axis1, int axis2, const Stream& s) {
        return mx::swapaxes(a, axis1, axis2, s);
      },
      nb::arg(),
      "axis1"_a,
      "axis2"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def swapaxes(a: array, /, axis1: int, axis2: int, *, stream: "
              "StreamOrDevice = None) -> array"),
      with_stream(
          "Two axes exchanged.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    axis1 (int): One axis.\n"
          "    axis2 (int): The other axis.\n",
          "Example:\n"
          "    >>> mx.swapaxes(mx.zeros((2, 3, 4)), 0, 2).shape\n"
          "    (4, 3, 2)")
          .c_str());
  for (const char* name : {"transpose", "permute_dims"}) {
    std::string sig = std::string("def ") + name +
                      "(a: array, /, axes: Sequence[int] | None = None, *, "
                      "stream: StreamOrDevice = None) -> array";
    m.def(
        name,
        [](const mx::array& a,
           const std::optional<std::vector<int>>& axes,
           const Stream& s) {
          return axes ? mx::transpose(a, *axes, s) : mx::transpose(a, s);
        },
        nb::arg(),
        "axes"_a = nb::none(),
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(sig.c_str()),
        with_stream(
            "The axes in another order.\n\n"
            "Args:\n"
            "    a (array): Any shape.\n"
            "    axes (Sequence[int], optional): For each axis of the result\n"
            "        the one it comes from. Default: all reversed.\n",
            ("Example:\n"
             "    >>> mx." +
             std::string(name) +
             "(mx.zeros((2, 3, 4)), (1, 2, 0)).shape\n"
             "    (3, 4, 2)")
                .c_str())
            .c_str());
  }
  m.def(
      "matrix_transpose",
      [](const mx::array& a, const Stream& s) {
        return mx::swapaxes(a, -1, -2, s);
      },
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def matrix_transpose(a: array, /, *, stream: StreamOrDevice = "
              "None) -> array"),
      with_stream(
          "The last two axes exchanged.\n\n"
          "Args:\n"
          "    a (array): At least 2 axes.\n",
          "Example:\n"
          "    >>> mx.matrix_transpose(mx.zeros((2, 3, 4))).shape\n"
          "    (2, 4, 3)")
          .c_str());
  m.def(
      "flip",
      [](const mx::array& a, const Axes& axis, const Stream& s) {
        return axis.none() ? mx::flip(a, s) : mx::flip(a, axis.values, s);
      },
      nb::arg(),
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def flip(a: array, /, axis: None | int | Sequence[int] = None, "
              "*, stream: StreamOrDevice = None) -> array"),
      with_stream(
          "The elements in reverse order along axes.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    axis (int or Sequence[int], optional): Default: all axes.\n",
          "Example:\n"
          "    >>> mx.flip(mx.array([1, 2, 3]))\n"
          "    array([3, 2, 1], dtype=int32)")
          .c_str());
}

void bind_broadcasts(nb::module_& m) {
  m.def(
      "broadcast_to",
      [](nb::handle a, const Lengths& shape, const Stream& s) {
        return mx::broadcast_to(to_array(a), shape.shape("broadcast_to"), s);
      },
      nb::arg(),
      "shape"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def broadcast_to(a: scalar | array, /, shape: Sequence[int], *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "The elements repeated along axes of length 1 and new axes in "
          "front.\n\n"
          "Args:\n"
          "    a (scalar or array): Any shape.\n"
          "    shape (Sequence[int]): The shape of the result.\n",
          "Raises:\n"
          "    ValueError: For a shape that a does not broadcast to.\n\n"
          "Example:\n"
          "    >>> mx.broadcast_to(mx.array([1, 2]), (2, 2))\n"
          "    array([[1, 2],\n"
          "           [1, 2]], dtype=int32)")
          .c_str());
  m.def(
      "broadcast_arrays",
      [](nb::args args, const Stream& s) {
        std::vector<mx::array> inputs;
        for (nb::handle h : args) {
          inputs.push_back(to_array(h));
        }
        return nb::tuple(nb::cast(mx::broadcast_arrays(inputs, s)));
      },
      "arrays"_a,
      "stream"_a = nb::none(),
      nb::sig("def broadcast_arrays(*arrays: array, stream: StreamOrDevice = "
              "None) -> tuple[array, ...]"),
      with_stream(
          "Arrays broadcast to their common shape.\n\n"
          "Args:\n"
          "    *arrays (array): Any number.\n",
          "Example:\n"
          "    >>> a, b = mx.broadcast_arrays(mx.zeros((2, 1)), mx.zeros(3))\n"
          "    >>> a.shape, b.shape\n"
          "    ((2, 3), (2, 3))")
          .c_str());
  m.def(
      "broadcast_shapes",
      [](nb::args args) {
        if (args.size() == 0) {
          mx::invalid(
              "broadcast_shapes", "no shapes given. Expected at least one.");
        }
        mx::Shape common;
        for (nb::handle h : args) {
          Lengths lengths;
          if (!detail::read_integers(h, lengths.values)) {
            mx::invalid(
                "broadcast_shapes",
                "argument is no shape: ",
                nb::type_name(h.type()).c_str(),
                ". Expected tuples or lists of ints.");
          }
          common =
              mx::broadcast_shapes(common, lengths.shape("broadcast_shapes"));
        }
        return nb::tuple(
            nb::cast(std::vector<int>(common.begin(), common.end())));
      },
      "shapes"_a,
      nb::sig("def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, "
              "...]"),
      "The shape that shapes broadcast to.\n\n"
      "Args:\n"
      "    *shapes (Sequence[int]): At least one.\n\n"
      "Raises:\n"
      "    ValueError: When they do not broadcast.\n\n"
      "Example:\n"
      "    >>> mx.broadcast_shapes((2, 1), (3,))\n"
      "    (2, 3)");
}

void bind_types(nb::module_& m) {
  m.def(
      "astype",
      [](nb::handle a, mx::Dtype dtype, const Stream& s) {
        return mx::astype(to_array(a), dtype, s);
      },
      nb::arg(),
      "dtype"_a,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def astype(a: array, /, dtype: Dtype, *, stream: StreamOrDevice "
              "= None) -> array"),
      with_stream(
          "The elements converted to another type.\n\n"
          "Args:\n"
          "    a (array): Any shape.\n"
          "    dtype (Dtype): The type; floats become integers by cutting off\n"
          "        the fraction, complex numbers real by their real part.\n",
          "Example:\n"
          "    >>> mx.astype(mx.array([1.7, -1.7]), mx.int32)\n"
          "    array([1, -1], dtype=int32)")
          .c_str());
  m.def(
      "view",
      [](nb::handle a, mx::Dtype dtype, const Stream& s) {
        return mx::view(to_array(a), dtype, s);
      },
      nb::arg(),
      "dtype"_a,
      "stream"_a = nb::none(),
      nb::sig("def view(a: scalar | array, /, dtype: Dtype, stream: "
              "StreamOrDevice = None) -> array"),
      with_stream(
          "The same bytes read as another type.\n\n"
          "Args:\n"
          "    a (scalar or array): Any shape.\n"
          "    dtype (Dtype): The type. When its size differs the last axis\n"
          "        grows or shrinks.\n",
          "Raises:\n"
          "    ValueError: When the last axis is not divisible.\n\n"
          "Example:\n"
          "    >>> mx.view(mx.array([1.0]), mx.int32)\n"
          "    array([1065353216], dtype=int32)")
          .c_str());
  m.def(
      "contiguous",
      [](const mx::array& a, bool allow_col_major, const Stream& s) {
        return mx::contiguous(a, allow_col_major, s);
      },
      nb::arg(),
      "allow_col_major"_a = false,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def contiguous(a: array, /, allow_col_major: bool = False, *, "
              "stream: StreamOrDevice = None) -> array"),
      with_stream(
          "The same elements in row-major memory.\n\n"
          "Args:\n"
          "    a (array): Any shape; copied only where needed.\n"
          "    allow_col_major (bool): Whether column-major memory will do\n"
          "        too. Default: False.\n",
          "Example:\n"
          "    >>> mx.contiguous(mx.zeros((2, 3)).T).shape\n"
          "    (3, 2)")
          .c_str());
}

}  // namespace

void init_ops_shape(nb::module_& m) {
  bind_reshapes(m);
  bind_axes(m);
  bind_broadcasts(m);
  bind_types(m);
}

}  // namespace mlx::python
