// Derivatives of Python functions: grad, value_and_grad, vjp, jvp, and
// checkpoint.
#include "transforms.h"

#include <nanobind/stl/variant.h>

#include <algorithm>
#include <numeric>
#include <variant>

#include "casters.h"
#include "convert.h"
#include "mlx/transforms.h"
#include "modules.h"
#include "tree_loan.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Names = std::variant<std::string, std::vector<std::string>>;
using Arrays = std::vector<mx::array>;

/// Which arguments grad and value_and_grad differentiate by.
struct Wanted {
  const char* op;
  bool with_value;
  /// Ascending.
  std::vector<int> argnums;
  std::vector<std::string> argnames;
};

Wanted read_wanted(bool with_value, const Axes& argnums, const Names& names) {
  Wanted wanted{with_value ? "value_and_grad" : "grad", with_value, {}, {}};
  if (const auto* one = std::get_if<std::string>(&names)) {
    wanted.argnames = {*one};
  } else {
    wanted.argnames = std::get<std::vector<std::string>>(names);
  }
  std::sort(wanted.argnames.begin(), wanted.argnames.end());
  wanted.argnames.erase(
      std::unique(wanted.argnames.begin(), wanted.argnames.end()),
      wanted.argnames.end());
  wanted.argnums = argnums.values;
  if (argnums.none() && wanted.argnames.empty()) {
    wanted.argnums = {0};
  }
  std::vector<int>& sorted = wanted.argnums;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() && wanted.argnames.empty()) {
    mx::invalid(wanted.op, "no argument named. Expected at least one.");
  }
  if (!sorted.empty() && sorted.front() < 0) {
    mx::invalid(
        wanted.op,
        "negative argument number: ",
        sorted.front(),
        ". Expected one counted from 0.");
  }
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    mx::invalid(wanted.op, "argument ", *twice, " is named twice.");
  }
  return wanted;
}

/// The call of a function some of whose arguments are differentiated.
class GradCall {
 public:
  GradCall(
      const Wanted& wanted,
      const nb::object& fun,
      const nb::tuple& args,
      const nb::dict& kwargs)
      : wanted_(wanted), fun_(fun), args_(args), kwargs_(kwargs) {
    for (int argnum : wanted.argnums) {
      if (static_cast<size_t>(argnum) >= args.size()) {
        mx::invalid(
            wanted.op,
            "argument ",
            argnum,
            " of a call with ",
            args.size(),
            " positional arguments.");
      }
      add(args[argnum]);
    }
    for (const std::string& name : wanted.argnames) {
      if (!kwargs.contains(name.c_str())) {
        mx::invalid(
            wanted.op, "keyword argument ", name, " is not in the call.");
      }
      add(kwargs[name.c_str()]);
    }
  }

  nb::object run() {
    Arrays grads;
    if (primals_.empty()) {
      loss(primals_);
    } else {
      std::vector<int> all(primals_.size());
      std::iota(all.begin(), all.end(), 0);
      mx::ArrayFn traced = [&](const Arrays& in) { return Arrays{loss(in)}; };
      grads = mx::value_and_grad(traced, all)(primals_).second;
    }
    nb::object tree = grad_tree(grads);
    return wanted_.with_value ? nb::make_tuple(value_, tree) : tree;
  }

 private:
  void add(nb::handle argument) {
    FlatTree flat = flatten_tree(argument, OtherLeaves::refuse, wanted_.op);
    primals_.insert(primals_.end(), flat.arrays.begin(), flat.arrays.end());
    structures_.push_back(std::move(flat.structure));
  }

  /// Calls the function on tracers; keeps all that it returns.
  mx::array loss(const Arrays& tracers) {
    TreeLoan loan(tracers);
    nb::list args(args_);
    for (int argnum : wanted_.argnums) {
      args[argnum] = loan.lend(args_[argnum]);
    }
    nb::dict kwargs = nb::steal<nb::dict>(PyDict_Copy(kwargs_.ptr()));
    for (const std::string& name : wanted_.argnames) {
      kwargs[name.c_str()] = loan.lend(kwargs_[name.c_str()]);
    }
    value_ = call_python(fun_, nb::tuple(args), kwargs);
    return scalar();
  }

  const mx::array& scalar() const {
    nb::object first = value_;
    if (wanted_.with_value && PyTuple_Check(value_.ptr()) &&
        PyTuple_GET_SIZE(value_.ptr()) > 0) {
      first = nb::borrow(PyTuple_GET_ITEM(value_.ptr(), 0));
    }
    const mx::array* a = as_array(first);
    if (!a) {
      mx::invalid(
          wanted_.op,
          "the function returned an object of type ",
          nb::type_name(value_.type()).c_str(),
          ". Expected a scalar array",
          wanted_.with_value ? " or a tuple that begins with one." : ".");
    }
    return *a;
  }

  nb::object grad_tree(const Arrays& grads) const {
    size_t next = 0;
    auto structure = structures_.begin();
    nb::list positional;
    for (size_t i = 0; i < wanted_.argnums.size(); ++i) {
      positional.append(fill_tree(*structure++, grads, next));
    }
    nb::object first = nb::none();
    if (positional.size() > 0) {
      first = positional.size() == 1 ? nb::object(positional[0])
                                     : nb::object(nb::tuple(positional));
    }
    if (wanted_.argnames.empty()) {
      return first;
    }
    nb::dict named;
    for (const std::string& name : wanted_.argnames) {
      named[name.c_str()] = fill_tree(*structure++, grads, next);
    }
    return nb::make_tuple(first, named);
  }

  const Wanted& wanted_;
  const nb::object& fun_;
  const nb::tuple& args_;
  const nb::dict& kwargs_;
  Arrays primals_;
  std::vector<nb::object> structures_;
  nb::object value_;
};

nb::object gradient(
    bool with_value,
    nb::callable fun,
    const Axes& argnums,
    const Names& names) {
  Wanted wanted = read_wanted(with_value, argnums, names);
  return transformed(
      std::move(fun),
      [wanted](
          const nb::object& f, const nb::tuple& args, const nb::dict& kwargs) {
        return GradCall(wanted, f, args, kwargs).run();
      });
}

/// fun of Python on positional arrays, for vjp and jvp.
mx::ArrayFn array_function(const char* op, const nb::callable& fun) {
  return [op, &fun](const Arrays& inputs) {
    nb::list args;
    for (const mx::array& in : inputs) {
      args.append(nb::cast(in));
    }
    nb::object out = call_python(fun, nb::tuple(args), nb::dict());
    return flatten_tree(out, OtherLeaves::refuse, op).arrays;
  };
}

void bind_gradients(nb::module_& m) {
  m.def(
      "value_and_grad",
      [](nb::callable fun, const Axes& argnums, const Names& argnames) {
        return gradient(true, std::move(fun), argnums, argnames);
      },
      "fun"_a,
      "argnums"_a = nb::none(),
      "argnames"_a = nb::make_tuple(),
      nb::sig("def value_and_grad(fun: Callable, argnums: int | Sequence[int] "
              "| None = None, argnames: str | Sequence[str] = []) -> Callable"),
      "A function that gives fun's value and its gradients.\n\n"
      "Args:\n"
      "    fun (Callable): Returns a scalar array, or a tuple that begins\n"
      "        with one; the rest is passed on.\n"
      "    argnums (int or Sequence[int], optional): The positional arguments\n"
      "        to differentiate by: arrays or trees of arrays. Default: 0, or\n"
      "        none when argnames are given.\n"
      "    argnames (str or Sequence[str], optional): The keyword arguments\n"
      "        to differentiate by.\n\n"
      "Returns:\n"
      "    Callable: Takes fun's arguments, returns ``(value, grad)`` with\n"
      "    grad as from `grad`.\n\n"
      "Example:\n"
      "    >>> f = mx.value_and_grad(lambda x: (x * x, \"more\"))\n"
      "    >>> f(mx.array(3.0))\n"
      "    ((array(9, dtype=float32), 'more'), array(6, dtype=float32))");
  m.def(
      "grad",
      [](nb::callable fun, const Axes& argnums, const Names& argnames) {
        return gradient(false, std::move(fun), argnums, argnames);
      },
      "fun"_a,
      "argnums"_a = nb::none(),
      "argnames"_a = nb::make_tuple(),
      nb::sig("def grad(fun: Callable, argnums: int | Sequence[int] | None = "
              "None, argnames: str | Sequence[str] = []) -> Callable"),
      "A function that gives fun's gradients.\n\n"
      "Args:\n"
      "    fun (Callable): Returns a scalar array.\n"
      "    argnums (int or Sequence[int], optional): As for `value_and_grad`.\n"
      "    argnames (str or Sequence[str], optional): As for "
      "`value_and_grad`.\n\n"
      "Returns:\n"
      "    Callable: Takes fun's arguments, returns the gradient in the form\n"
      "    of the argument, a tuple for several argnums, and with argnames\n"
      "    ``(positional, {name: gradient})``.\n\n"
      "Raises:\n"
      "    ValueError: For negative and repeated argnums; when called, for\n"
      "        missing arguments, leaves that are not arrays and results that\n"
      "        are not scalar.\n\n"
      "Example:\n"
      "    >>> mx.grad(lambda p: p[\"a\"] * p[\"b\"])(\n"
      "    ...     {\"a\": mx.array(2.0), \"b\": mx.array(3.0)})\n"
      "    {'a': array(3, dtype=float32), 'b': array(2, dtype=float32)}");
}

void bind_products(nb::module_& m) {
  m.def(
      "vjp",
      [](const nb::callable& fun,
         const Arrays& primals,
         const Arrays& cotangents) {
        return mx::vjp(array_function("vjp", fun), primals, cotangents);
      },
      "fun"_a,
      "primals"_a,
      "cotangents"_a,
      nb::sig("def vjp(fun: Callable, primals: list[array], cotangents: "
              "list[array]) -> tuple[list[array], list[array]]"),
      "Values of fun and the product of cotangents with its Jacobian.\n\n"
      "Args:\n"
      "    fun (Callable): Takes arrays, returns an array or several.\n"
      "    primals (list[array]): The arguments.\n"
      "    cotangents (list[array]): One for each output, except for results\n"
      "        of `stop_gradient`.\n\n"
      "Returns:\n"
      "    tuple[list[array], list[array]]: The outputs, and for each primal\n"
      "    its product.\n\n"
      "Example:\n"
      "    >>> x = mx.array([1.0, 2.0])\n"
      "    >>> mx.vjp(lambda x: x * x, [x], [mx.array([1.0, 10.0])])[1]\n"
      "    [array([2, 40], dtype=float32)]");
  m.def(
      "jvp",
      [](const nb::callable& fun,
         const Arrays& primals,
         const Arrays& tangents) {
        return mx::jvp(array_function("jvp", fun), primals, tangents);
      },
      "fun"_a,
      "primals"_a,
      "tangents"_a,
      nb::sig("def jvp(fun: Callable, primals: list[array], tangents: "
              "list[array]) -> tuple[list[array], list[array]]"),
      "Values of fun and the product of its Jacobian with tangents.\n\n"
      "Args:\n"
      "    fun (Callable): Takes arrays, returns an array or several.\n"
      "    primals (list[array]): The arguments.\n"
      "    tangents (list[array]): One for each primal.\n\n"
      "Returns:\n"
      "    tuple[list[array], list[array]]: The outputs, and for each its\n"
      "    product.\n\n"
      "Example:\n"
      "    >>> x = mx.array([1.0, 2.0])\n"
      "    >>> mx.jvp(lambda x: x * x, [x], [mx.array([1.0, 10.0])])[1]\n"
      "    [array([2, 40], dtype=float32)]");
}

nb::object call_checkpointed(
    const nb::object& fun, const nb::tuple& args, const nb::dict& kwargs) {
  auto call = std::make_shared<TreeCall>("checkpoint", fun, args, kwargs);
  Arrays inputs = call->take_inputs();
  Arrays outputs = mx::checkpoint(
      [call](const Arrays& in) { return call->run(in); })(inputs);
  return call->output(outputs);
}

void bind_checkpoint(nb::module_& m) {
  m.def(
      "checkpoint",
      [](nb::callable fun) {
        return transformed(std::move(fun), call_checkpointed);
      },
      "fun"_a,
      nb::sig("def checkpoint(fun: Callable) -> Callable"),
      "fun, with its intermediate values computed again for the derivative.\n\n"
      "Saves memory for time. Arrays that fun uses besides its arguments "
      "count\n"
      "as constants.\n\n"
      "Args:\n"
      "    fun (Callable): Takes and returns trees of arrays.\n\n"
      "Example:\n"
      "    >>> f = mx.checkpoint(lambda x: mx.exp(mx.sin(x)))\n"
      "    >>> mx.grad(f)(mx.array(0.0))\n"
      "    array(1, dtype=float32)");
}

}  // namespace

void init_transforms(nb::module_& m) {
  bind_transformed_function(m);
  bind_gradients(m);
  bind_products(m);
  bind_checkpoint(m);
}

}  // namespace mlx::python
