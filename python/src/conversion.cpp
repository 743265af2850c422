// Functions that convert other objects to arrays.
#include "casters.h"
#include "convert.h"
#include "mlx/ops/creation.h"
#include "mlx/ops/shape.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

// Arrays own their memory, so that nothing of others is ever shared.
void refuse_no_copy(const char* op, std::optional<bool> copy) {
  if (copy && !*copy) {
    mx::invalid(
        op, "copy=False: data are always copied in. Expected True or None.");
  }
}

mx::array as_array_function(
    nb::handle a, std::optional<mx::Dtype> dtype, std::optional<bool> copy) {
  refuse_no_copy("asarray", copy);
  if (const mx::array* x = as_array(a)) {
    mx::array same = dtype ? mx::astype(*x, *dtype) : *x;
    return copy ? mx::copy(same) : same;
  }
  return create_array(a, dtype);
}

}  // namespace

void init_conversion(nb::module_& m) {
  m.def(
      "asarray",
      as_array_function,
      nb::arg(),
      "dtype"_a = nb::none(),
      nb::kw_only(),
      "copy"_a = nb::none(),
      nb::sig("def asarray(a: scalar | array | Sequence[object] | "
              "DLPackCompatible, /, dtype: Dtype | None = None, *, copy: bool "
              "| None = None) -> array"),
      "Anything that `array` takes, as an array.\n\n"
      "Args:\n"
      "    a (scalar, array, Sequence or object with data): The elements.\n"
      "    dtype (Dtype, optional): Default: as for `array`.\n"
      "    copy (bool, optional): True copies, None copies only where needed:\n"
      "        data that are no array, and other types. Default: None.\n\n"
      "Raises:\n"
      "    ValueError: When copy is False: nothing is shared.\n\n"
      "Example:\n"
      "    >>> mx.asarray([1, 2])\n"
      "    array([1, 2], dtype=int32)");
  m.def(
      "from_dlpack",
      [](nb::handle x, std::optional<bool> copy) {
        if (!nb::hasattr(x, "__dlpack__")) {
          throw nb::type_error(
              "[from_dlpack] no __dlpack__ method. Expected an object of a "
              "library that exports DLPack.");
        }
        refuse_no_copy("from_dlpack", copy);
        return as_array(x) ? as_array_function(x, std::nullopt, copy)
                           : *import_data(x, std::nullopt, Strides::keep);
      },
      nb::arg(),
      nb::kw_only(),
      "copy"_a = nb::none(),
      nb::sig("def from_dlpack(x: DLPackCompatible, /, *, copy: bool | None = "
              "None) -> array"),
      "The data of an object with ``__dlpack__`` as an array, with its "
      "strides.\n\n"
      "Args:\n"
      "    x (object): Of NumPy, PyTorch, JAX and others, with data on the "
      "CPU.\n"
      "    copy (bool, optional): As for `asarray`.\n\n"
      "Raises:\n"
      "    ValueError: When copy is False, and for negative strides.\n"
      "    TypeError: For objects without ``__dlpack__``.\n\n"
      "Example:\n"
      "    >>> import numpy as np\n"
      "    >>> mx.from_dlpack(np.arange(2, dtype=np.int32))\n"
      "    array([0, 1], dtype=int32)");
}

}  // namespace mlx::python
