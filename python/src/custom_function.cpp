// The class custom_function: a Python function with derivative and batch
// rules of its own.
#include "casters.h"
#include "convert.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "modules.h"
#include "transforms.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Arrays = std::vector<mx::array>;
using CallPtr = std::shared_ptr<TreeCall>;
constexpr const char* kOp = "custom_function";

struct CustomFunction {
  nb::object fun;
  nb::object vjp;
  nb::object jvp;
  nb::object vmap;

  bool has_rules() const {
    return vjp.is_valid() || jvp.is_valid() || vmap.is_valid();
  }
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    auto* f = nb::inst_ptr<CustomFunction>(self);
    Py_VISIT(f->fun.ptr());
    Py_VISIT(f->vjp.ptr());
    Py_VISIT(f->jvp.ptr());
    Py_VISIT(f->vmap.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  // Moved out first: freeing them may run code that comes back here.
  CustomFunction gone = std::move(*nb::inst_ptr<CustomFunction>(self));
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr}};

/// Rules get a single argument bare, several as a tuple.
nb::object bare_or_tuple(const nb::object& args) {
  return nb::len(args) == 1 ? nb::object(args[0]) : args;
}

/// The arguments' containers with fn() in place of each array, None in place
/// of other leaves.
nb::object beside_arguments(
    const TreeCall& call, const std::function<nb::object()>& fn) {
  return bare_or_tuple(map_tree(call.args(), [&](nb::handle leaf) {
    return is_mark(leaf) ? fn() : nb::none();
  }));
}

/// Positional arguments for a rule that takes no keywords.
nb::object plain_arguments(
    const TreeCall& call, const Arrays& inputs, const char* rule) {
  if (nb::len(call.kwargs()) > 0) {
    mx::invalid(
        kOp,
        "keyword arguments with a rule for ",
        rule,
        ". Expected only positional ones.");
  }
  return bare_or_tuple(fill_tree(call.args(), inputs));
}

void check_count(const char* rule, size_t given, size_t expected) {
  if (given != expected) {
    mx::invalid(
        kOp,
        "the rule for ",
        rule,
        " returned ",
        given,
        " arrays. Expected ",
        expected,
        ".");
  }
}

/// What a vjp rule returned, one for each primal: arrays, or None for zeros.
/// Cotangents of the keyword arguments may be left out.
Arrays cotangents_of(
    const TreeCall& call, const nb::object& result, const Arrays& primals) {
  Arrays given = tree_arrays(result);
  if (given.size() != primals.size() && given.size() != call.num_positional()) {
    given.clear();
    map_tree(result, [&](nb::handle leaf) {
      if (const mx::array* a = as_array(leaf)) {
        given.push_back(*a);
      } else if (leaf.is_none() && given.size() < primals.size()) {
        given.push_back(mx::zeros_like(primals[given.size()]));
      }
      return nb::none();
    });
  }
  if (given.size() == call.num_positional()) {
    for (size_t i = given.size(); i < primals.size(); ++i) {
      given.push_back(mx::zeros_like(primals[i]));
    }
  }
  check_count("vjp", given.size(), primals.size());
  return given;
}

auto vjp_rule(const CallPtr& call, const nb::object& rule) {
  return [call, rule = Held(rule)](
             const Arrays& primals,
             const Arrays& cotangents,
             const Arrays& outputs) {
    nb::gil_scoped_acquire gil;
    size_t next = 0;
    nb::object args = fill_tree(call->args(), primals, next);
    nb::object kwargs = fill_tree(call->kwargs(), primals, next);
    nb::object result = call_python(
        rule.get(),
        nb::make_tuple(
            bare_or_tuple(args),
            call->output(cotangents),
            call->output(outputs)),
        kwargs);
    return cotangents_of(*call, result, primals);
  };
}

auto jvp_rule(const CallPtr& call, const nb::object& rule) {
  return [call, rule = Held(rule)](
             const Arrays& primals,
             const Arrays& tangents,
             const std::vector<int>& argnums) {
    nb::gil_scoped_acquire gil;
    nb::object args = plain_arguments(*call, primals, "jvp");
    std::vector<nb::object> known(primals.size(), nb::none());
    for (size_t i = 0; i < argnums.size(); ++i) {
      known[argnums[i]] = nb::cast(tangents[i]);
    }
    size_t next = 0;
    nb::object beside = beside_arguments(*call, [&] { return known[next++]; });
    Arrays out = tree_arrays(
        call_python(rule.get(), nb::make_tuple(args, beside), nb::dict()));
    check_count("jvp", out.size(), call->num_outputs());
    return out;
  };
}

auto vmap_rule(const CallPtr& call, const nb::object& rule) {
  return [call, rule = Held(rule)](
             const Arrays& inputs, const std::vector<int>& axes) {
    nb::gil_scoped_acquire gil;
    nb::object args = plain_arguments(*call, inputs, "vmap");
    size_t next = 0;
    nb::object beside = beside_arguments(*call, [&]() -> nb::object {
      int axis = axes[next++];
      return axis < 0 ? nb::none() : nb::cast(axis);
    });
    nb::object result =
        call_python(rule.get(), nb::make_tuple(args, beside), nb::dict());
    if (!PyTuple_Check(result.ptr()) || PyTuple_GET_SIZE(result.ptr()) != 2) {
      mx::invalid(
          kOp,
          "the rule for vmap returned no pair. Expected the outputs and "
          "their axes.");
    }
    nb::object outputs = result[0];
    Arrays arrays = tree_arrays(outputs);
    check_count("vmap", arrays.size(), call->num_outputs());
    std::vector<int> out_axes =
        tree_axes(outputs, nb::object(result[1]), 0, "output axes");
    return std::make_pair(std::move(arrays), std::move(out_axes));
  };
}

nb::object call_custom(
    const CustomFunction& self,
    const nb::args& args,
    const nb::kwargs& kwargs) {
  nb::object fun = self.fun;
  if (!self.has_rules()) {
    return call_python(fun, args, kwargs);
  }
  auto call = std::make_shared<TreeCall>(kOp, fun, args, kwargs);
  auto given = [&](const nb::object& rule, auto make) {
    using Rule = decltype(make(call, rule));
    return rule.is_valid() ? std::make_optional<Rule>(make(call, rule))
                           : std::nullopt;
  };
  Arrays inputs = call->take_inputs();
  Arrays outputs = mx::custom_function(
      [call](const Arrays& in) { return call->run(in); },
      given(self.vjp, vjp_rule),
      given(self.jvp, jvp_rule),
      given(self.vmap, vmap_rule))(inputs);
  return call->output(outputs);
}

template <nb::object CustomFunction::*rule>
nb::object set_rule(nb::object self, nb::callable f) {
  nb::cast<CustomFunction&>(self).*rule = std::move(f);
  return self;
}

void bind_rules(nb::class_<CustomFunction>& c) {
  c.def(
      "vjp",
      set_rule<&CustomFunction::vjp>,
      "f"_a,
      nb::sig("def vjp(self, f: Callable) -> custom_function"),
      "Sets the rule for reverse-mode derivatives.\n\n"
      "Args:\n"
      "    f (Callable): ``f(primals, cotangents, outputs)`` returns a\n"
      "        cotangent for each primal. primals is the single argument or\n"
      "        the tuple of arguments; keyword arguments are passed on.");
  c.def(
      "jvp",
      set_rule<&CustomFunction::jvp>,
      "f"_a,
      nb::sig("def jvp(self, f: Callable) -> custom_function"),
      "Sets the rule for forward-mode derivatives.\n\n"
      "Args:\n"
      "    f (Callable): ``f(primals, tangents)`` returns the tangents of the\n"
      "        outputs. A tangent is None where there is none.");
  c.def(
      "vmap",
      set_rule<&CustomFunction::vmap>,
      "f"_a,
      nb::sig("def vmap(self, f: Callable) -> custom_function"),
      "Sets the rule for batches.\n\n"
      "Args:\n"
      "    f (Callable): ``f(inputs, axes)`` returns ``(outputs, axes of the\n"
      "        outputs)``. An axis is None where the input has no batch.");
}

}  // namespace

void init_custom_function(nb::module_& m) {
  nb::class_<CustomFunction> c(
      m,
      "custom_function",
      nb::type_slots(slots),
      "A function with derivative and batch rules of its own.\n\n"
      "Used as a decorator. Rules that are not set follow from the function;\n"
      "arrays that it uses besides its arguments count as constants as soon "
      "as\n"
      "there is a rule.\n\n"
      "Args:\n"
      "    f (Callable): Takes and returns trees of arrays.\n\n"
      "Example:\n"
      "    >>> @mx.custom_function\n"
      "    ... def clip(x):\n"
      "    ...     return mx.minimum(x, 1.0)\n"
      "    >>> @clip.vjp\n"
      "    ... def clip(x, cotangent, out):\n"
      "    ...     return cotangent\n"
      "    >>> mx.grad(clip)(mx.array(5.0))\n"
      "    array(1, dtype=float32)");
  c.def(
      "__init__",
      [](CustomFunction* self, nb::callable f) {
        new (self) CustomFunction{std::move(f), {}, {}, {}};
      },
      "f"_a,
      nb::sig("def __init__(self, f: Callable) -> None"));
  c.def(
      "__call__",
      call_custom,
      nb::sig("def __call__(self, *args: object, **kwargs: object) -> object"),
      "Calls the function.");
  c.def_prop_ro(
      "__wrapped__", [](const CustomFunction& self) { return self.fun; });
  bind_rules(c);
}

}  // namespace mlx::python
