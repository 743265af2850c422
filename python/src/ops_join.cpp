// Functions that join, split, repeat, pad and shift arrays.
#include "array.h"
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

std::vector<mx::array> arrays_of(nb::handle args) {
  std::vector<mx::array> out;
  for (nb::handle h : args) {
    out.push_back(to_array(h));
  }
  return out;
}

std::vector<int> to_ints(const Lengths& lengths, const char* op) {
  mx::Shape s = lengths.shape(op);
  return {s.begin(), s.end()};
}

void bind_joins(nb::module_& m) {
  for (const char* name : {"concatenate", "concat"}) {
    std::string sig = std::string("def ") + name +
                      "(arrays: Sequence[array], /, axis: int | None = 0, *, "
                      "stream: StreamOrDevice = None) -> array";
    std::string doc =
        "Arrays joined along an axis.\n\n"
        "Args:\n"
        "    arrays (Sequence[array]): Equal shapes but for the axis; types\n"
        "        are promoted.\n"
        "    axis (int, optional): Default: 0; None flattens first.\n"
        "    stream (Stream or Device, optional): Where to compute.\n\n"
        "Raises:\n"
        "    ValueError: For no arrays or shapes that differ elsewhere.\n\n"
        "Example:\n"
        "    >>> mx." +
        std::string(name) +
        "([mx.array([1]), mx.array([2, 3])])\n"
        "    array([1, 2, 3], dtype=int32)";
    m.def(
        name,
        [](std::vector<mx::array> arrays,
           std::optional<int> axis,
           const Stream& s) {
          return axis ? mx::concatenate(std::move(arrays), *axis, s)
                      : mx::concatenate(std::move(arrays), s);
        },
        nb::arg(),
        "axis"_a.none() = 0,
        nb::kw_only(),
        "stream"_a = nb::none(),
        nb::sig(sig.c_str()),
        doc.c_str());
  }
  m.def(
      "stack",
      [](std::vector<mx::array> arrays,
         std::optional<int> axis,
         const Stream& s) {
        return axis ? mx::stack(arrays, *axis, s)
                    : mx::concatenate(std::move(arrays), s);
      },
      nb::arg(),
      "axis"_a.none() = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def stack(arrays: Sequence[array], /, axis: int | None = 0, *, "
              "stream: StreamOrDevice = None) -> array"),
      "Arrays joined along a new axis.\n\n"
      "Args:\n"
      "    arrays (Sequence[array]): Equal shapes; types are promoted.\n"
      "    axis (int, optional): Where the axis stands in the result.\n"
      "        Default: 0; None joins the flattened arrays.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For no arrays or shapes that differ.\n\n"
      "Example:\n"
      "    >>> mx.stack([mx.array([1, 2]), mx.array([3, 4])])\n"
      "    array([[1, 2],\n"
      "           [3, 4]], dtype=int32)");
  m.def(
      "meshgrid",
      [](nb::args args,
         std::optional<bool> sparse,
         std::optional<std::string> indexing,
         const Stream& s) {
        return nb::tuple(nb::cast(mx::meshgrid(
            arrays_of(args),
            sparse.value_or(false),
            indexing.value_or("xy"),
            s)));
      },
      "arrays"_a,
      "sparse"_a.none() = false,
      "indexing"_a.none() = "xy",
      "stream"_a = nb::none(),
      nb::sig("def meshgrid(*arrays: array, sparse: bool | None = False, "
              "indexing: str | None = 'xy', stream: StreamOrDevice = None) -> "
              "tuple[array, ...]"),
      "Coordinates of all points of a grid.\n\n"
      "Args:\n"
      "    *arrays (array): 1-d, the coordinates along each axis.\n"
      "    sparse (bool): Whether axes of length 1 stay so. Default: False.\n"
      "    indexing (str): ``xy`` puts the second array's axis first, ``ij``\n"
      "        keeps the order. Default: ``xy``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> x, y = mx.meshgrid(mx.arange(3), mx.arange(2))\n"
      "    >>> x.shape\n"
      "    (2, 3)");
  m.def(
      "depends",
      [](nb::handle inputs, nb::handle dependencies) -> nb::object {
        const mx::array* one = as_array(inputs);
        auto list = [](nb::handle h) {
          const mx::array* a = as_array(h);
          return a ? std::vector<mx::array>{*a}
                   : nb::cast<std::vector<mx::array>>(h);
        };
        auto out = mx::depends(list(inputs), list(dependencies));
        return one ? nb::cast(out[0]) : nb::cast(out);
      },
      nb::arg(),
      nb::arg(),
      nb::sig(
          "def depends(inputs: array | Sequence[array], dependencies: array "
          "| Sequence[array], /) -> array | list[array]"),
      "The inputs, to be computed after other arrays.\n\n"
      "Args:\n"
      "    inputs (array or Sequence[array]): What is returned.\n"
      "    dependencies (array or Sequence[array]): What is computed first.\n\n"
      "Example:\n"
      "    >>> mx.depends(mx.array(1), mx.array(2))\n"
      "    array(1, dtype=int32)");
}

void bind_splits(nb::module_& m) {
  m.def(
      "split",
      split_array,
      nb::arg(),
      "indices_or_sections"_a,
      "axis"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def split(a: array, /, indices_or_sections: int | "
              "Sequence[int], axis: int = 0, *, stream: StreamOrDevice = None) "
              "-> list[array]"),
      "Pieces along an axis.\n\n"
      "Args:\n"
      "    a (array): At least one axis.\n"
      "    indices_or_sections (int or Sequence[int]): How many equal pieces,\n"
      "        or where the pieces after the first begin.\n"
      "    axis (int): The axis. Default: 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: When equal pieces are not possible.\n\n"
      "Example:\n"
      "    >>> [part.tolist() for part in mx.split(mx.arange(4), [1])]\n"
      "    [[0], [1, 2, 3]]");
  m.def(
      "unstack",
      [](const mx::array& x, int axis, const Stream& s) {
        return nb::tuple(nb::cast(mx::unstack(x, axis, s)));
      },
      nb::arg(),
      nb::kw_only(),
      "axis"_a = 0,
      "stream"_a = nb::none(),
      nb::sig("def unstack(x: array, /, *, axis: int = 0, stream: "
              "StreamOrDevice = None) -> tuple[array, ...]"),
      "The sub-arrays along an axis, without it.\n\n"
      "Args:\n"
      "    x (array): At least one axis.\n"
      "    axis (int): The axis. Default: 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> first, second = mx.unstack(mx.array([[1, 2], [3, 4]]))\n"
      "    >>> second\n"
      "    array([3, 4], dtype=int32)");
}

void bind_repeats(nb::module_& m) {
  m.def(
      "repeat",
      [](const mx::array& a,
         int repeats,
         std::optional<int> axis,
         const Stream& s) {
        return axis ? mx::repeat(a, repeats, *axis, s)
                    : mx::repeat(a, repeats, s);
      },
      nb::arg(),
      "repeats"_a,
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def repeat(array: array, /, repeats: int, axis: int | None = "
              "None, *, stream: StreamOrDevice = None) -> array"),
      "Each element several times in a row.\n\n"
      "Args:\n"
      "    array (array): Any shape.\n"
      "    repeats (int): How many times.\n"
      "    axis (int, optional): Default: the flattened array.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.repeat(mx.array([1, 2]), 2)\n"
      "    array([1, 1, 2, 2], dtype=int32)");
  m.def(
      "tile",
      [](const mx::array& a, const Lengths& reps, const Stream& s) {
        return mx::tile(a, to_ints(reps, "tile"), s);
      },
      nb::arg(),
      nb::arg(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def tile(a: array, reps: int | Sequence[int], /, *, stream: "
              "StreamOrDevice = None) -> array"),
      "The whole array repeated along each axis.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    reps (int or Sequence[int]): How many times along the last axes;\n"
      "        more numbers than axes add axes in front.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.tile(mx.array([1, 2]), 2)\n"
      "    array([1, 2, 1, 2], dtype=int32)");
  m.def(
      "roll",
      [](const mx::array& a,
         const Axes& shift,
         const Axes& axis,
         const Stream& s) {
        if (shift.none()) {
          throw nb::type_error("[roll] shift is None. Expected int or ints.");
        }
        bool one = shift.given == Axes::Given::one;
        mx::Shape shifts(shift.values.begin(), shift.values.end());
        if (axis.none()) {
          return one ? mx::roll(a, shifts[0], s) : mx::roll(a, shifts, s);
        }
        return mx::roll(a, shifts, axis.values, s);
      },
      nb::arg(),
      "shift"_a,
      "axis"_a = nb::none(),
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def roll(a: array, /, shift: int | tuple[int], axis: None | int "
              "| tuple[int] = None, *, stream: StreamOrDevice = None) -> "
              "array"),
      "The elements shifted; those that fall out come in again.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    shift (int or tuple[int]): How far, one for all axes or one each;\n"
      "        several beside one axis add up.\n"
      "    axis (int or tuple[int], optional): Default: the flattened array.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.roll(mx.array([1, 2, 3]), 1)\n"
      "    array([3, 1, 2], dtype=int32)");
}

/// The forms of pad_width: n, (n,), (before, after), one pair an axis.
mx::array pad(
    const mx::array& a,
    nb::handle width,
    const std::string& mode,
    nb::handle value,
    const Stream& s) {
  mx::array fill = to_array(value, a.dtype());
  int64_t one;
  if (detail::read_integer(width, one)) {
    return mx::pad(a, mx::safe_cast(one, "pad"), fill, mode, s);
  }
  std::vector<int64_t> flat;
  if (detail::read_integers(width, flat)) {
    if (flat.size() == 1) {
      return mx::pad(a, mx::safe_cast(flat[0], "pad"), fill, mode, s);
    }
    if (flat.size() == 2) {
      std::pair<int, int> both(
          mx::safe_cast(flat[0], "pad"), mx::safe_cast(flat[1], "pad"));
      return mx::pad(a, both, fill, mode, s);
    }
  }
  std::vector<std::pair<int, int>> pairs;
  if (!nb::try_cast(width, pairs)) {
    mx::invalid(
        "pad",
        "pad_width not understood. Expected an int, (before, after), or one "
        "such pair an axis.");
  }
  return mx::pad(a, pairs, fill, mode, s);
}

void bind_pad(nb::module_& m) {
  m.def(
      "pad",
      pad,
      nb::arg(),
      "pad_width"_a,
      "mode"_a = "constant",
      "constant_values"_a = 0,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig("def pad(a: array, /, pad_width: int | tuple[int] | tuple[int, "
              "int] | list[tuple[int, int]], mode: str = 'constant', "
              "constant_values: scalar | array = 0, *, stream: StreamOrDevice "
              "= None) -> array"),
      "Entries added before and after.\n\n"
      "Args:\n"
      "    a (array): Any shape.\n"
      "    pad_width (int or tuple): How many entries: one number for all\n"
      "        sides, (before, after) for all axes, or one such pair an axis.\n"
      "    mode (str): ``constant``, ``edge``, which repeats the border,\n"
      "        ``reflect`` or ``symmetric``, which mirror the array at its\n"
      "        border, without and with the border's own entries.\n"
      "    constant_values (scalar or array): The new entries. Default: 0.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Raises:\n"
      "    ValueError: For other modes, a width that fits no axes, and the\n"
      "        modes that repeat where an axis is empty.\n\n"
      "Example:\n"
      "    >>> mx.pad(mx.array([1, 2]), (1, 2))\n"
      "    array([0, 1, 2, 0, 0], dtype=int32)");
}

template <typename One, typename Many>
void bind_atleast(nb::module_& m, int dims, One one, Many many) {
  std::string name = "atleast_" + std::to_string(dims) + "d";
  std::string sig = "def " + name +
                    "(*arys: array, stream: StreamOrDevice = None) -> array | "
                    "list[array]";
  std::string doc =
      "Axes of length 1 added until there are " + std::to_string(dims) +
      " or more.\n\n"
      "Args:\n"
      "    *arys (array): One or several arrays.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array or list[array]: A list when several were given.\n\n"
      "Example:\n"
      "    >>> mx." +
      name + "(mx.array(1)).ndim\n    " + std::to_string(dims);
  m.def(
      name.c_str(),
      [one, many](nb::args args, const Stream& s) -> nb::object {
        std::vector<mx::array> arrays = arrays_of(args);
        return arrays.size() == 1 ? nb::cast(one(arrays[0], s))
                                  : nb::cast(many(arrays, s));
      },
      "arys"_a,
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      doc.c_str());
}

}  // namespace

std::vector<mx::array> split_array(
    const mx::array& a, const Axes& parts, int axis, const Stream& s) {
  return parts.given == Axes::Given::one
             ? mx::split(a, parts.values[0], axis, s)
             : mx::split(
                   a,
                   mx::Shape(parts.values.begin(), parts.values.end()),
                   axis,
                   s);
}

void init_ops_join(nb::module_& m) {
  using One = mx::array (*)(const mx::array&, Stream);
  using Many =
      std::vector<mx::array> (*)(const std::vector<mx::array>&, Stream);
  bind_joins(m);
  bind_splits(m);
  bind_repeats(m);
  bind_pad(m);
  bind_atleast<One, Many>(m, 1, mx::atleast_1d, mx::atleast_1d);
  bind_atleast<One, Many>(m, 2, mx::atleast_2d, mx::atleast_2d);
  bind_atleast<One, Many>(m, 3, mx::atleast_3d, mx::atleast_3d);
}

}  // namespace mlx::python
