// Element types, their categories and limits.
#include <nanobind/stl/variant.h>

#include <sstream>
#include <variant>

#include "casters.h"
#include "convert.h"
#include "mlx/dtype_utils.h"
#include "modules.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Category = mx::Dtype::Category;
using DtypeOrCategory = std::variant<mx::Dtype, Category>;

/// In the order of Dtype::Val.
struct Named {
  const char* name;
  mx::Dtype dtype;
};

constexpr Named kDtypes[] = {
    {"bool_", mx::bool_},
    {"uint8", mx::uint8},
    {"uint16", mx::uint16},
    {"uint32", mx::uint32},
    {"uint64", mx::uint64},
    {"int8", mx::int8},
    {"int16", mx::int16},
    {"int32", mx::int32},
    {"int64", mx::int64},
    {"float16", mx::float16},
    {"float32", mx::float32},
    {"float64", mx::float64},
    {"bfloat16", mx::bfloat16},
    {"complex64", mx::complex64}};

void bind_dtypes(nb::module_& m) {
  nb::class_<mx::Dtype>(m, "Dtype", "The type of an array's elements.")
      .def_prop_ro(
          "size",
          [](mx::Dtype t) { return static_cast<int>(t.size()); },
          "The bytes of one element.")
      .def(
          "__repr__",
          [](mx::Dtype t) {
            return std::string("mlx.core.") + mx::dtype_to_string(t);
          })
      .def(
          "__eq__",
          [](mx::Dtype t, nb::handle other) {
            return nb::isinstance<mx::Dtype>(other) &&
                   t == nb::cast<mx::Dtype>(other);
          },
          nb::arg().none(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__hash__", [](mx::Dtype t) { return static_cast<int64_t>(t.val()); })
      // Types are shared constants: pickled and copied by name.
      .def(
          "__reduce__",
          [](mx::Dtype t) {
            return std::string(kDtypes[static_cast<int>(t.val())].name);
          })
      .def("__copy__", [](nb::object self) { return self; })
      .def(
          "__deepcopy__",
          [](nb::object self, nb::handle) { return self; },
          "memo"_a);
  for (const Named& row : kDtypes) {
    m.attr(row.name) = nb::cast(row.dtype);
  }
}

void bind_categories(nb::module_& m) {
  nb::enum_<Category>(
      m,
      "DtypeCategory",
      "Groups of element types: generic holds bool and number; number holds\n"
      "integer (signedinteger, unsignedinteger) and inexact (floating,\n"
      "complexfloating).")
      .value("complexfloating", mx::complexfloating, "complex64.")
      .value("floating", mx::floating, "The real floating types.")
      .value("inexact", mx::inexact, "floating and complexfloating.")
      .value("signedinteger", mx::signedinteger, "int8 to int64.")
      .value("unsignedinteger", mx::unsignedinteger, "uint8 to uint64.")
      .value("integer", mx::integer, "All integers; bool is none.")
      .value("number", mx::number, "Every type but bool.")
      .value("generic", mx::generic, "Every type.")
      .export_values();
}

template <typename Limits>
std::string limits_text(const char* name, const Limits& limits) {
  std::ostringstream os;
  os << name << "(min=" << limits.min << ", max=" << limits.max
     << ", dtype=" << limits.dtype << ")";
  return os.str();
}

void bind_limits(nb::module_& m) {
  nb::class_<mx::finfo>(
      m,
      "finfo",
      "The limits of a floating type; complex64 reports as float32.\n\n"
      "Example:\n"
      "    >>> mx.finfo(mx.float16).max\n"
      "    65504.0")
      .def(nb::init<mx::Dtype>(), nb::arg())
      .def_ro("bits", &mx::finfo::bits, "Bits of one element.")
      .def_ro("min", &mx::finfo::min, "The most negative finite number.")
      .def_ro("max", &mx::finfo::max, "The largest finite number.")
      .def_ro("eps", &mx::finfo::eps, "From 1 to the next larger number.")
      .def_ro(
          "smallest_normal",
          &mx::finfo::smallest_normal,
          "The smallest positive normal number.")
      .def_ro("dtype", &mx::finfo::dtype, "The type described.")
      .def("__repr__", [](const mx::finfo& limits) {
        return limits_text("finfo", limits);
      });
  nb::class_<mx::iinfo>(
      m,
      "iinfo",
      "The limits of an integer type.\n\n"
      "Example:\n"
      "    >>> mx.iinfo(mx.int8).min\n"
      "    -128")
      .def(nb::init<mx::Dtype>(), nb::arg())
      .def_ro("min", &mx::iinfo::min, "The smallest number.")
      .def_ro("max", &mx::iinfo::max, "The largest number.")
      .def_ro("dtype", &mx::iinfo::dtype, "The type described.")
      .def("__repr__", [](const mx::iinfo& limits) {
        return limits_text("iinfo", limits);
      });
}

DtypeOrCategory read_type(nb::handle h, const char* which) {
  if (nb::isinstance<mx::Dtype>(h)) {
    return nb::cast<mx::Dtype>(h);
  }
  if (nb::isinstance<Category>(h)) {
    return nb::cast<Category>(h);
  }
  mx::invalid(
      "issubdtype",
      which,
      " is no type: ",
      nb::type_name(h.type()).c_str(),
      ". Expected a Dtype or DtypeCategory.");
}

mx::Dtype array_or_dtype(nb::handle h, const char* op) {
  if (const mx::array* a = as_array(h)) {
    return a->dtype();
  }
  if (nb::isinstance<mx::Dtype>(h)) {
    return nb::cast<mx::Dtype>(h);
  }
  mx::invalid(
      op,
      "argument is neither array nor dtype: ",
      nb::type_name(h.type()).c_str(),
      ". Expected arrays and dtypes.");
}

/// The kinds of the Python array API standard.
bool is_kind(mx::Dtype t, std::string_view kind) {
  if (kind == "bool") {
    return t == mx::bool_;
  }
  static constexpr std::pair<std::string_view, Category> kKinds[] = {
      {"signed integer", mx::signedinteger},
      {"unsigned integer", mx::unsignedinteger},
      {"integral", mx::integer},
      {"real floating", mx::floating},
      {"complex floating", mx::complexfloating},
      {"numeric", mx::number}};
  for (auto [name, category] : kKinds) {
    if (kind == name) {
      return mx::issubdtype(t, category);
    }
  }
  mx::invalid(
      "isdtype",
      "unknown kind: '",
      kind,
      "'. Expected bool, signed integer, unsigned integer, integral, real "
      "floating, complex floating or numeric.");
}

bool matches(mx::Dtype t, nb::handle kind) {
  if (nb::isinstance<mx::Dtype>(kind)) {
    return t == nb::cast<mx::Dtype>(kind);
  }
  if (nb::isinstance<nb::str>(kind)) {
    return is_kind(t, nb::cast<std::string>(kind));
  }
  if (nb::isinstance<nb::tuple>(kind)) {
    bool any = false;
    for (nb::handle part : nb::borrow<nb::tuple>(kind)) {
      any = matches(t, part) || any;
    }
    return any;
  }
  mx::invalid(
      "isdtype",
      "kind is of type ",
      nb::type_name(kind.type()).c_str(),
      ". Expected a Dtype, a kind name or a tuple of these.");
}

void bind_functions(nb::module_& m) {
  m.def(
      "issubdtype",
      [](nb::handle a, nb::handle b) {
        return std::visit(
            [](auto x, auto y) { return mx::issubdtype(x, y); },
            read_type(a, "arg1"),
            read_type(b, "arg2"));
      },
      "arg1"_a,
      "arg2"_a,
      nb::sig("def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | "
              "DtypeCategory) -> bool"),
      "Whether a type or category lies within another.\n\n"
      "Args:\n"
      "    arg1 (Dtype or DtypeCategory): The inner one.\n"
      "    arg2 (Dtype or DtypeCategory): The outer one; within a Dtype lies\n"
      "        only that Dtype itself.\n\n"
      "Example:\n"
      "    >>> mx.issubdtype(mx.float16, mx.floating)\n"
      "    True");
  m.def(
      "result_type",
      [](nb::args args) {
        if (args.size() == 0) {
          mx::invalid(
              "result_type",
              "no arguments given. Expected at least one array or dtype.");
        }
        mx::Dtype t = array_or_dtype(args[0], "result_type");
        for (nb::handle h : args) {
          t = mx::promote_types(t, array_or_dtype(h, "result_type"));
        }
        return t;
      },
      "arrays_and_dtypes"_a,
      nb::sig("def result_type(*arrays_and_dtypes: array | Dtype) -> Dtype"),
      "The type that arrays and types are promoted to.\n\n"
      "Example:\n"
      "    >>> mx.result_type(mx.array([1]), mx.float16)\n"
      "    mlx.core.float16");
  m.def(
      "can_cast",
      [](nb::handle from, mx::Dtype to) {
        return mx::promote_types(array_or_dtype(from, "can_cast"), to) == to;
      },
      "from_"_a,
      "to"_a,
      nb::sig("def can_cast(from_: array | Dtype, to: Dtype) -> bool"),
      "Whether promotion turns the first type into the second.\n\n"
      "Example:\n"
      "    >>> mx.can_cast(mx.int8, mx.int32)\n"
      "    True");
  m.def(
      "isdtype",
      matches,
      "dtype"_a,
      "kind"_a,
      nb::sig("def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | "
              "str, ...]) -> bool"),
      "Whether a type is of a kind.\n\n"
      "Args:\n"
      "    dtype (Dtype): The type.\n"
      "    kind (Dtype, str or tuple): A type, a name of the array API\n"
      "        standard (``bool``, ``signed integer``, ``unsigned integer``,\n"
      "        ``integral``, ``real floating``, ``complex floating``,\n"
      "        ``numeric``), or a tuple of these, any of which may hold.\n\n"
      "Example:\n"
      "    >>> mx.isdtype(mx.bfloat16, \"real floating\")\n"
      "    True");
}

}  // namespace

void init_dtype(nb::module_& m) {
  bind_dtypes(m);
  bind_categories(m);
  bind_limits(m);
  bind_functions(m);
}

}  // namespace mlx::python
