// compile: the class of compiled functions, their calls and captured state.
#include "mlx/compile.h"

#include <map>
#include <tuple>

#include "casters.h"
#include "compile_key.h"
#include "convert.h"
#include "mlx/random.h"
#include "modules.h"
#include "random_state.h"
#include "transforms.h"
#include "transforms/compile/cache.h"
#include "tree_loan.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Arrays = std::vector<mx::array>;
using CachePtr = std::shared_ptr<mx::detail::TraceCache>;

struct CompiledFunction {
  nb::object fun;
  nb::object inputs;   // captured, or None
  nb::object outputs;  // captured, or None
  bool shapeless;
  CachePtr cache;
};

/// How to give back what a traced function made.
struct TraceResult {
  Held output;
  Held captured;
};

// Functions that are compiled again find the traces of the first time for as
// long as one of the compiled ones lives. Guarded by the interpreter's lock.
CachePtr shared_cache(
    nb::handle fun, nb::handle inputs, nb::handle outputs, bool shapeless) {
  using Identity = std::tuple<PyObject*, PyObject*, PyObject*, bool>;
  static auto* caches =
      new std::map<Identity, std::weak_ptr<mx::detail::TraceCache>>;
  static nb::ft_mutex mutex;
  nb::ft_lock_guard lock(mutex);
  std::erase_if(*caches, [](const auto& e) { return e.second.expired(); });
  auto& place = (*caches)[{fun.ptr(), inputs.ptr(), outputs.ptr(), shapeless}];
  CachePtr cache = place.lock();
  if (!cache) {
    cache = std::make_shared<mx::detail::TraceCache>();
    place = cache;
  }
  return cache;
}

class CapturedUpdate {
 public:
  explicit CapturedUpdate(const Arrays& arrays, size_t next = 0)
      : arrays_(arrays), next_(next) {}

  /// Puts arrays into the places of `tree` that have marks in `structure`;
  /// what else is in the tree stays.
  void put(nb::handle tree, nb::handle structure) {
    if (nb::isinstance<RandomState>(tree)) {
      mx::random::KeySequence::default_().set_state(arrays_.at(next_++));
    } else if (PyDict_Check(structure.ptr()) && PyDict_Check(tree.ptr())) {
      put_items(tree, structure);
    } else if (PyList_Check(structure.ptr()) && PyList_Check(tree.ptr())) {
      put_list(tree, structure);
    } else if (PyTuple_Check(structure.ptr()) && PyTuple_Check(tree.ptr())) {
      Py_ssize_t size = PyTuple_GET_SIZE(structure.ptr());
      for (Py_ssize_t i = 0; i < size; ++i) {
        put(PyTuple_GET_ITEM(tree.ptr(), i),
            PyTuple_GET_ITEM(structure.ptr(), i));
      }
    } else if (is_mark(structure)) {
      ++next_;  // an array in a tuple, which nothing can be put into
    }
  }

 private:
  static bool is_open(nb::handle node) {
    return PyDict_Check(node.ptr()) || PyList_Check(node.ptr()) ||
           nb::isinstance<RandomState>(node);
  }

  // What goes into a place that has `before` now; nothing for leaves.
  nb::object replacement(nb::handle before, nb::handle part) {
    if (before.is_valid() && is_open(before)) {
      put(before, part);
      return {};
    }
    bool is_leaf = !PyDict_Check(part.ptr()) && !PyList_Check(part.ptr()) &&
                   !PyTuple_Check(part.ptr()) && !is_mark(part);
    return is_leaf ? nb::object() : fill_tree(part, arrays_, next_);
  }

  void put_list(nb::handle list, nb::handle structure) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(structure.ptr()); ++i) {
      nb::object part = nb::borrow(PyList_GET_ITEM(structure.ptr(), i));
      bool has_place = i < PyList_GET_SIZE(list.ptr());
      nb::object before =
          has_place ? nb::borrow(PyList_GET_ITEM(list.ptr(), i)) : nb::object();
      nb::object now = replacement(before, part);
      if (!has_place) {
        PyList_Append(list.ptr(), now.is_valid() ? now.ptr() : part.ptr());
      } else if (now.is_valid()) {
        PyList_SetItem(list.ptr(), i, now.release().ptr());
      }
    }
  }

  void put_items(nb::handle dict, nb::handle structure) {
    PyObject* key;
    PyObject* value;
    Py_ssize_t position = 0;
    while (PyDict_Next(structure.ptr(), &position, &key, &value)) {
      nb::object part = nb::borrow(value);
      nb::object before = nb::borrow(PyDict_GetItemWithError(dict.ptr(), key));
      nb::object now = replacement(before, part);
      if (now.is_valid() && PyDict_SetItem(dict.ptr(), key, now.ptr()) != 0) {
        throw nb::python_error();
      }
    }
  }

  const Arrays& arrays_;
  size_t next_;
};

class CompiledCall {
 public:
  CompiledCall(
      const CompiledFunction& self, const nb::tuple& args, const nb::dict& kw)
      : self_(self), args_(args), kwargs_(kw), key_(self.shapeless) {
    key_.add_arguments(args);
    key_.add_arguments(kw);
    if (!self.inputs.is_none()) {
      key_.add_captured(self.inputs);
    }
  }

  nb::object run() {
    auto trace = self_.cache->find(key_.bytes());
    if (!trace) {
      trace = make_trace();
      self_.cache->insert(key_.bytes(), trace);
    }
    Arrays made = trace->call(key_.arrays());
    const auto& result = *static_cast<const TraceResult*>(trace->extra.get());
    size_t next = 0;
    nb::object output = fill_tree(result.output.get(), made, next);
    if (!self_.outputs.is_none()) {
      CapturedUpdate(made, next).put(self_.outputs, result.captured.get());
    }
    return output;
  }

 private:
  std::shared_ptr<const mx::detail::CompiledTrace> make_trace() {
    FlatTree before;
    if (!self_.outputs.is_none()) {
      before = flatten_tree(self_.outputs, OtherLeaves::keep, "compile");
    }
    auto result = std::make_shared<TraceResult>();
    std::shared_ptr<mx::detail::CompiledTrace> traced;
    try {
      traced =
          std::make_shared<mx::detail::CompiledTrace>(mx::detail::compile_trace(
              [&](const Arrays& tracers) { return call(tracers, *result); },
              key_.arrays(),
              self_.shapeless));
    } catch (...) {
      // Captured state must not be left with values that never were.
      if (before.structure.is_valid()) {
        CapturedUpdate(before.arrays).put(self_.outputs, before.structure);
      }
      throw;
    }
    traced->extra = std::move(result);
    return traced;
  }

  Arrays call(const Arrays& tracers, TraceResult& result) {
    TreeLoan loan(tracers);
    nb::object args = loan.lend(args_);
    nb::object kwargs = loan.lend(kwargs_);
    if (!self_.inputs.is_none()) {
      loan.lend_captured(self_.inputs);
    }
    nb::object returned = call_python(self_.fun, args, kwargs);
    FlatTree output = flatten_tree(returned, OtherLeaves::keep, "compile");
    result.output = Held(std::move(output.structure));
    Arrays all = std::move(output.arrays);
    if (!self_.outputs.is_none()) {
      FlatTree state =
          flatten_tree(self_.outputs, OtherLeaves::keep, "compile");
      result.captured = Held(std::move(state.structure));
      all.insert(all.end(), state.arrays.begin(), state.arrays.end());
    }
    return all;
  }

  const CompiledFunction& self_;
  const nb::tuple& args_;
  const nb::dict& kwargs_;
  CompileKey key_;
};

nb::object call_compiled(
    const CompiledFunction& given, const nb::tuple& args, const nb::dict& kw) {
  CompiledFunction self = given;  // a call may drop the last reference to it
  if (mx::detail::compile_mode() == mx::CompileMode::disabled ||
      mx::detail::is_transformed()) {
    return call_python(self.fun, args, kw);
  }
  return CompiledCall(self, args, kw).run();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    auto* f = nb::inst_ptr<CompiledFunction>(self);
    Py_VISIT(f->fun.ptr());
    Py_VISIT(f->inputs.ptr());
    Py_VISIT(f->outputs.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  // Moved out first: freeing them may run code that comes back here.
  CompiledFunction gone = std::move(*nb::inst_ptr<CompiledFunction>(self));
  return 0;
}

// As a method of a class.
PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  return instance ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
    {0, nullptr}};

nb::dict cache_info(const CompiledFunction& self) {
  mx::detail::TraceCache::Info info = self.cache->info();
  nb::dict result;
  result["hits"] = info.hits;
  result["misses"] = info.misses;
  result["evictions"] = info.evictions;
  result["size"] = info.size;
  return result;
}

void bind_class(nb::module_& m) {
  nb::class_<CompiledFunction>(
      m,
      "_CompiledFunction",
      nb::type_slots(slots),
      "A function made by `compile`.")
      .def(
          "__call__",
          [](const CompiledFunction& self, nb::args args, nb::kwargs kwargs) {
            return call_compiled(self, args, kwargs);
          })
      .def(
          "__getattr__",
          [](const CompiledFunction& self, nb::str name) {
            return self.fun.attr(name);
          })
      .def(
          "cache_info",
          cache_info,
          "How many calls found their trace (hits) and how many did not\n"
          "(misses), how many traces made room for new ones (evictions), and\n"
          "how many there are (size). Functions compiled twice share them.")
      .def_prop_ro(
          "__doc__",
          [](const CompiledFunction& self) { return self.fun.attr("__doc__"); })
      .def_prop_ro(
          "__wrapped__", [](const CompiledFunction& self) { return self.fun; });
}

}  // namespace

void init_compile(nb::module_& m) {
  bind_class(m);
  m.def(
      "compile",
      [](nb::callable fun,
         nb::object inputs,
         nb::object outputs,
         bool shapeless) {
        CachePtr cache = shared_cache(fun, inputs, outputs, shapeless);
        return nb::cast(CompiledFunction{
            std::move(fun),
            std::move(inputs),
            std::move(outputs),
            shapeless,
            std::move(cache)});
      },
      "fun"_a,
      "inputs"_a = nb::none(),
      "outputs"_a = nb::none(),
      "shapeless"_a = false,
      nb::sig("def compile(fun: Callable[P, R], inputs: object | None = None, "
              "outputs: object | None = None, shapeless: bool = False) -> "
              "Callable[P, R]"),
      "A function that does what fun does, traced once and fused.\n\n"
      "fun runs at the first call, and again when the number, shapes or types\n"
      "of the arrays or a constant among the arguments change; other calls\n"
      "only compute what it built. So what it does besides, printing say,\n"
      "happens only then, and inside of it arrays have no values.\n\n"
      "Args:\n"
      "    fun (Callable): Takes trees of arrays and constants, returns any\n"
      "        tree. What it finds elsewhere counts as constant.\n"
      "    inputs (list or dict, optional): State that fun reads: its arrays "
      "are\n"
      "        inputs too. ``mx.random.state`` can be among it.\n"
      "    outputs (list or dict, optional): State that fun changes: its "
      "arrays\n"
      "        are set after each call.\n"
      "    shapeless (bool): One trace serves arrays of other shapes with the\n"
      "        same number of dimensions. Shapes that fun reads are those of "
      "the\n"
      "        first call. Default: ``False``.\n\n"
      "Returns:\n"
      "    Callable: Takes fun's arguments.\n\n"
      "Raises:\n"
      "    ValueError: When called with other leaves than arrays, numbers,\n"
      "        strings and None; when fun evaluates an array; with shapeless,\n"
      "        for operations that do not know the shape of their result.\n\n"
      "The environment variable MLX_COMPILE_VERBOSE prints what was fused.\n\n"
      "Example:\n"
      "    >>> @mx.compile\n"
      "    ... def gelu(x):\n"
      "    ...     return x * (1 + mx.erf(x / 2**0.5)) / 2\n"
      "    >>> gelu(mx.array([0.0, 1.0]))\n"
      "    array([0, 0.841345], dtype=float32)");
  m.def(
      "disable_compile",
      &mx::disable_compile,
      "Turns `compile` off for the process: compiled functions run as they\n"
      "are. So does the environment variable MLX_DISABLE_COMPILE, set to\n"
      "anything.\n\n"
      "Example:\n"
      "    >>> mx.disable_compile()\n"
      "    >>> mx.compile(lambda x: x + 1)(mx.array(1)).item()\n"
      "    2\n"
      "    >>> mx.enable_compile()");
  m.def(
      "enable_compile",
      &mx::enable_compile,
      "Turns `compile` on again, over MLX_DISABLE_COMPILE.\n\n"
      "Example:\n"
      "    >>> mx.enable_compile()");
}

}  // namespace mlx::python
