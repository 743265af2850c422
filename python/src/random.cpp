// The module mlx.core.random: keys, distributions and the calling thread's
// sequence of keys.
#include "mlx/random.h"

#include <nanobind/stl/variant.h>

#include <variant>

#include "casters.h"
#include "convert.h"
#include "modules.h"
#include "random_state.h"
#include "types/error.h"

namespace mlx::python {

namespace {

using Key = std::optional<mx::array>;
using OptionalDtype = std::optional<mx::Dtype>;
using Stream = mx::StreamOrDevice;

/// A number or an array, or nothing for None.
std::optional<mx::array> optional_operand(nb::handle obj) {
  return obj.is_none() ? std::nullopt : std::make_optional(to_array(obj));
}

void bind_keys(nb::module_& m) {
  m.def(
      "seed",
      mx::random::seed,
      "seed"_a,
      "Seeds the calling thread's sequence of keys.\n\n"
      "Args:\n"
      "    seed (int): From 0 to 2^64 - 1.\n\n"
      "Example:\n"
      "    >>> mx.random.seed(0)\n"
      "    >>> mx.random.uniform(shape=(4,))\n"
      "    array([0.872414, 0.443021, 0.277081, 0.786595], dtype=float32)");
  m.def(
      "key",
      mx::random::key,
      "seed"_a,
      nb::sig("def key(seed: int) -> array"),
      "The key of a seed.\n\n"
      "Args:\n"
      "    seed (int): From 0 to 2^64 - 1.\n\n"
      "Returns:\n"
      "    array: uint32 of shape (2,), the high half first.\n\n"
      "Example:\n"
      "    >>> mx.random.key(3)\n"
      "    array([0, 3], dtype=uint32)");
  m.def(
      "split",
      [](const mx::array& key, int num, const Stream& s) {
        return mx::random::split(key, num, s);
      },
      "key"_a,
      "num"_a = 2,
      "stream"_a = nb::none(),
      nb::sig("def split(key: array, num: int = 2, stream: StreamOrDevice = "
              "None) -> array"),
      "Keys that are independent of each other and of the given one.\n\n"
      "Args:\n"
      "    key (array): A key.\n"
      "    num (int): How many. Default: 2.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: One key a row, shape (num, 2).\n\n"
      "Example:\n"
      "    >>> mx.random.split(mx.random.key(0))\n"
      "    array([[4146024105, 967050713],\n"
      "           [2718843009, 1272950319]], dtype=uint32)");
}

void bind_uniform(nb::module_& m) {
  m.def(
      "uniform",
      [](nb::handle low,
         nb::handle high,
         const Lengths& shape,
         OptionalDtype dtype,
         const Key& key,
         const Stream& s) {
        return mx::random::uniform(
            to_array(low),
            to_array(high),
            shape.shape("uniform"),
            dtype.value_or(mx::float32),
            key,
            s);
      },
      "low"_a = 0,
      "high"_a = 1,
      "shape"_a = nb::make_tuple(),
      "dtype"_a = mx::float32,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def uniform(low: scalar | array = 0, high: scalar | array = 1, "
              "shape: Sequence[int] = [], dtype: Dtype | None = float32, key: "
              "array | None = None, stream: StreamOrDevice = None) -> array"),
      "Uniform numbers of [low, high).\n\n"
      "Args:\n"
      "    low (scalar or array): The lower bound. Default: 0.\n"
      "    high (scalar or array): The upper bound. Default: 1.\n"
      "    shape (Sequence[int]): The bounds broadcast to it. Default: ().\n"
      "    dtype (Dtype): float16, bfloat16 or float32 (the default).\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.uniform(shape=(4,), key=mx.random.key(42))\n"
      "    array([0.574144, 0.856638, 0.0594612, 0.0623556], dtype=float32)");
  m.def(
      "randint",
      [](nb::handle low,
         nb::handle high,
         const Lengths& shape,
         OptionalDtype dtype,
         const Key& key,
         const Stream& s) {
        return mx::random::randint(
            to_array(low),
            to_array(high),
            shape.shape("randint"),
            dtype.value_or(mx::int32),
            key,
            s);
      },
      "low"_a,
      "high"_a,
      "shape"_a = nb::make_tuple(),
      "dtype"_a = mx::int32,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def randint(low: scalar | array, high: scalar | array, shape: "
              "Sequence[int] = [], dtype: Dtype | None = int32, key: array | "
              "None = None, stream: StreamOrDevice = None) -> array"),
      "Uniform integers of [low, high).\n\n"
      "Args:\n"
      "    low (scalar or array): The lower bound.\n"
      "    high (scalar or array): The upper bound, not reached.\n"
      "    shape (Sequence[int]): The bounds broadcast to it. Default: ().\n"
      "    dtype (Dtype): An integer type. Default: int32.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.randint(0, 10, (4,), key=mx.random.key(0))\n"
      "    array([9, 2, 6, 2], dtype=int32)");
}

void bind_normal(nb::module_& m) {
  m.def(
      "normal",
      [](const Lengths& shape,
         OptionalDtype dtype,
         nb::handle loc,
         nb::handle scale,
         const Key& key,
         const Stream& s) {
        return mx::random::normal(
            shape.shape("normal"),
            dtype.value_or(mx::float32),
            optional_operand(loc),
            optional_operand(scale),
            key,
            s);
      },
      "shape"_a = nb::make_tuple(),
      "dtype"_a = mx::float32,
      "loc"_a = nb::none(),
      "scale"_a = nb::none(),
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def normal(shape: Sequence[int] = [], dtype: Dtype | None = "
              "float32, loc: scalar | array | None = None, scale: scalar | "
              "array | None = None, key: array | None = None, stream: "
              "StreamOrDevice = None) -> array"),
      "Normal numbers.\n\n"
      "Args:\n"
      "    shape (Sequence[int]): Default: ().\n"
      "    dtype (Dtype): float16, bfloat16, float32 (the default) or\n"
      "        complex64, whose parts are of deviation 1 / sqrt(2).\n"
      "    loc (scalar or array, optional): The mean. Default: 0.\n"
      "    scale (scalar or array, optional): The standard deviation.\n"
      "        Default: 1.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.normal((2, 3)).shape\n"
      "    (2, 3)");
  m.def(
      "truncated_normal",
      [](nb::handle lower,
         nb::handle upper,
         const std::optional<Lengths>& shape,
         OptionalDtype dtype,
         const Key& key,
         const Stream& s) {
        mx::array lo = to_array(lower);
        mx::array hi = to_array(upper);
        mx::Dtype type = dtype.value_or(mx::float32);
        return shape
                   ? mx::random::truncated_normal(
                         lo, hi, shape->shape("truncated_normal"), type, key, s)
                   : mx::random::truncated_normal(lo, hi, type, key, s);
      },
      "lower"_a,
      "upper"_a,
      "shape"_a = nb::none(),
      "dtype"_a = mx::float32,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def truncated_normal(lower: scalar | array, upper: scalar | "
              "array, shape: Sequence[int] | None = None, dtype: Dtype | None "
              "= float32, key: array | None = None, stream: StreamOrDevice = "
              "None) -> array"),
      "Standard normal numbers between two bounds.\n\n"
      "Args:\n"
      "    lower (scalar or array): The lower bound.\n"
      "    upper (scalar or array): The upper bound.\n"
      "    shape (Sequence[int], optional): Default: that of the bounds.\n"
      "    dtype (Dtype): float16, bfloat16 or float32 (the default).\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> x = mx.random.truncated_normal(-2, 2, (100,))\n"
      "    >>> bool(mx.all(mx.abs(x) <= 2))\n"
      "    True");
}

void bind_other_floats(nb::module_& m) {
  m.def(
      "gumbel",
      [](const Lengths& shape,
         OptionalDtype dtype,
         const Key& key,
         const Stream& s) {
        return mx::random::gumbel(
            shape.shape("gumbel"), dtype.value_or(mx::float32), key, s);
      },
      "shape"_a = nb::make_tuple(),
      "dtype"_a = mx::float32,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def gumbel(shape: Sequence[int] = [], dtype: Dtype | None = "
              "float32, key: array | None = None, stream: StreamOrDevice = "
              "None) -> array"),
      "Numbers of the standard Gumbel distribution.\n\n"
      "Args:\n"
      "    shape (Sequence[int]): Default: ().\n"
      "    dtype (Dtype): float16, bfloat16 or float32 (the default).\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.gumbel((3,)).shape\n"
      "    (3,)");
  m.def(
      "laplace",
      [](const Lengths& shape,
         OptionalDtype dtype,
         float loc,
         float scale,
         const Key& key,
         const Stream& s) {
        return mx::random::laplace(
            shape.shape("laplace"),
            dtype.value_or(mx::float32),
            loc,
            scale,
            key,
            s);
      },
      "shape"_a = nb::make_tuple(),
      "dtype"_a = mx::float32,
      "loc"_a = 0.0f,
      "scale"_a = 1.0f,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def laplace(shape: Sequence[int] = [], dtype: Dtype | None = "
              "float32, loc: float = 0.0, scale: float = 1.0, key: array | "
              "None = None, stream: StreamOrDevice = None) -> array"),
      "Numbers of the Laplace distribution.\n\n"
      "Args:\n"
      "    shape (Sequence[int]): Default: ().\n"
      "    dtype (Dtype): float16, bfloat16 or float32 (the default).\n"
      "    loc (float): The mean. Default: 0.\n"
      "    scale (float): The mean distance from it. Default: 1.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.laplace((3,), loc=2.0).shape\n"
      "    (3,)");
}

mx::array categorical(
    const mx::array& logits,
    int axis,
    const std::optional<Lengths>& shape,
    std::optional<int> num_samples,
    const Key& key,
    const Stream& s) {
  if (shape && num_samples) {
    mx::invalid(
        "categorical", "both shape and num_samples given. Expected one.");
  }
  if (shape) {
    return mx::random::categorical(
        logits, axis, shape->shape("categorical"), key, s);
  }
  return num_samples
             ? mx::random::categorical(logits, axis, *num_samples, key, s)
             : mx::random::categorical(logits, axis, key, s);
}

void bind_choices(nb::module_& m) {
  m.def(
      "bernoulli",
      [](nb::handle p,
         const std::optional<Lengths>& shape,
         const Key& key,
         const Stream& s) {
        mx::array chance = to_array(p);
        return shape ? mx::random::bernoulli(
                           chance, shape->shape("bernoulli"), key, s)
                     : mx::random::bernoulli(chance, key, s);
      },
      "p"_a = 0.5,
      "shape"_a = nb::none(),
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def bernoulli(p: scalar | array = 0.5, shape: Sequence[int] | "
              "None = None, key: array | None = None, stream: StreamOrDevice "
              "= None) -> array"),
      "True with a given probability.\n\n"
      "Args:\n"
      "    p (float or array): The probability. Default: 0.5.\n"
      "    shape (Sequence[int], optional): Default: that of p.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.bernoulli(1.0, (2,))\n"
      "    array([True, True], dtype=bool)");
  m.def(
      "categorical",
      categorical,
      "logits"_a,
      "axis"_a = -1,
      "shape"_a = nb::none(),
      "num_samples"_a = nb::none(),
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def categorical(logits: array, axis: int = -1, shape: "
              "Sequence[int] | None = None, num_samples: int | None = None, "
              "key: array | None = None, stream: StreamOrDevice = None) -> "
              "array"),
      "Indices drawn with the probabilities softmax(logits).\n\n"
      "Args:\n"
      "    logits (array): Logarithms of weights.\n"
      "    axis (int): Along which the choices lie. Default: -1.\n"
      "    shape (Sequence[int], optional): Default: that of the logits\n"
      "        without the axis, which broadcasts to a given one.\n"
      "    num_samples (int, optional): How many for each distribution,\n"
      "        instead of a shape; a last axis of that length results.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Returns:\n"
      "    array: uint32.\n\n"
      "Example:\n"
      "    >>> mx.random.categorical(mx.array([0.0, 50.0]), num_samples=3)\n"
      "    array([1, 1, 1], dtype=uint32)");
  m.def(
      "permutation",
      [](const std::variant<int, mx::array>& x,
         int axis,
         const Key& key,
         const Stream& s) {
        const int* n = std::get_if<int>(&x);
        return n ? mx::random::permutation(*n, key, s)
                 : mx::random::permutation(
                       std::get<mx::array>(x), axis, key, s);
      },
      "x"_a,
      "axis"_a = 0,
      "key"_a = nb::none(),
      "stream"_a = nb::none(),
      nb::sig("def permutation(x: int | array, axis: int = 0, key: array | "
              "None = None, stream: StreamOrDevice = None) -> array"),
      "The numbers 0 .. x - 1, or the sub-arrays along an axis, in random "
      "order.\n\n"
      "Args:\n"
      "    x (int or array): The count, or what is put in order.\n"
      "    axis (int): Of an array. Default: 0.\n"
      "    key (array, optional): Default: one of the thread's sequence.\n"
      "    stream (Stream or Device, optional): Where to compute.\n\n"
      "Example:\n"
      "    >>> mx.random.permutation(6, key=mx.random.key(0))\n"
      "    array([1, 5, 0, 4, 2, 3], dtype=uint32)");
}

}  // namespace

void init_random(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("random", "Random numbers.");
  bind_random_state(m);
  bind_keys(m);
  bind_uniform(m);
  bind_normal(m);
  bind_other_floats(m);
  bind_choices(m);
}

}  // namespace mlx::python
