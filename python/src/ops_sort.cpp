// Sorting, selection and search.
#include <string>

#include "casters.h"
#include "mlx/ops/sort.h"
#include "modules.h"

namespace mlx::python {

namespace {

using Stream = mx::StreamOrDevice;

struct SortRow {
  const char* name;
  mx::array (*flat)(const mx::array&, Stream);
  mx::array (*along)(const mx::array&, int, Stream);
  const char* summary;
  const char* example;
};

constexpr SortRow kSorts[] = {
    {"sort",
     mx::sort,
     mx::sort,
     "The elements in ascending order along an axis, NaN last",
     "array([1, 2, 3], dtype=int32)"},
    {"argsort",
     mx::argsort,
     mx::argsort,
     "The indices (uint32) that sort the elements along an axis",
     "array([1, 2, 0], dtype=uint32)"},
};

struct SelectRow {
  const char* name;
  const char* number;
  mx::array (*flat)(const mx::array&, int, Stream);
  mx::array (*along)(const mx::array&, int, int, Stream);
  const char* summary;
  const char* meaning;
};

constexpr SelectRow kSelections[] = {
    {"partition",
     "kth",
     mx::partition,
     mx::partition,
     "The elements along an axis with one in its sorted place, smaller ones\n"
     "before and larger ones after it",
     "The index of that element"},
    {"argpartition",
     "kth",
     mx::argpartition,
     mx::argpartition,
     "The indices (uint32) that partition the elements along an axis",
     "The index of the element in its sorted place"},
    {"topk",
     "k",
     mx::topk,
     mx::topk,
     "The largest elements along an axis, in no particular order",
     "How many"},
};

constexpr const char* kAxisDoc =
    "    axis (int, optional): Default: -1; None flattens first.\n"
    "    stream (Stream or Device, optional): Where to compute.\n\n"
    "Raises:\n"
    "    ValueError: For an axis out of range.\n\n"
    "Example:\n"
    "    >>> ";

void bind_sort(nb::module_& m, const SortRow& row) {
  std::string sig =
      std::string("def ") + row.name +
      "(a: array, /, axis: None | int = -1, *, stream: StreamOrDevice = None) "
      "-> array";
  std::string doc = std::string(row.summary) +
                    ".\n\n"
                    "Equal elements keep their order.\n\n"
                    "Args:\n"
                    "    a (array): Any shape.\n" +
                    kAxisDoc + "mx." + row.name +
                    "(mx.array([3, 1, 2]))\n    " + row.example;
  m.def(
      row.name,
      [flat = row.flat, along = row.along](
          const mx::array& a, std::optional<int> axis, const Stream& s) {
        return axis ? along(a, *axis, s) : flat(a, s);
      },
      nb::arg(),
      "axis"_a.none() = -1,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      doc.c_str());
}

void bind_selection(nb::module_& m, const SelectRow& row) {
  std::string sig = std::string("def ") + row.name + "(a: array, /, " +
                    row.number +
                    ": int, axis: None | int = -1, *, stream: StreamOrDevice = "
                    "None) -> array";
  std::string doc = std::string(row.summary) +
                    ".\n\n"
                    "Args:\n"
                    "    a (array): Any shape.\n"
                    "    " +
                    row.number + " (int): " + row.meaning + ".\n" + kAxisDoc +
                    "x = mx." + row.name + "(mx.array([3, 1, 2]), 1)";
  m.def(
      row.name,
      [flat = row.flat, along = row.along](
          const mx::array& a, int n, std::optional<int> axis, const Stream& s) {
        return axis ? along(a, n, *axis, s) : flat(a, n, s);
      },
      nb::arg(),
      nb::arg(row.number),
      "axis"_a.none() = -1,
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(sig.c_str()),
      doc.c_str());
}

}  // namespace

void init_ops_sort(nb::module_& m) {
  for (const SortRow& row : kSorts) {
    bind_sort(m, row);
  }
  for (const SelectRow& row : kSelections) {
    bind_selection(m, row);
  }
  m.def(
      "searchsorted",
      [](const mx::array& sorted,
         const mx::array& values,
         const std::string& side,
         const Stream& s) { return mx::searchsorted(sorted, values, side, s); },
      nb::arg(),
      nb::arg(),
      "side"_a = "left",
      nb::kw_only(),
      "stream"_a = nb::none(),
      nb::sig(
          "def searchsorted(sorted_sequence: array, values: array, /, side: "
          "str = 'left', *, stream: StreamOrDevice = None) -> array"),
      "Where values belong in an ascending sequence.\n\n"
      "Args:\n"
      "    sorted_sequence (array): 1-d, ascending.\n"
      "    values (array): Any shape.\n"
      "    side (str): ``left`` stands before equal elements, ``right`` after\n"
      "        them. Default: ``left``.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: uint32, the shape of values.\n\n"
      "Example:\n"
      "    >>> mx.searchsorted(mx.array([1, 3, 5]), mx.array([3, 4]))\n"
      "    array([1, 2], dtype=uint32)");
}

}  // namespace mlx::python
