"""mlx.nn: Module, dense layers and their gradients."""

from __future__ import annotations

import copy
import doctest
import importlib
import math
import pickle
import pkgutil
from pathlib import Path
from typing import Any, Callable

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_map


class Net(nn.Module):
    """Arrays and modules in every place where they may stand."""

    def __init__(self) -> None:
        super().__init__()
        self.w = mx.ones((2,))
        self._hidden = mx.zeros((1,))
        self.linear = nn.Linear(2, 3)
        self.items_ = [nn.Linear(2, 2), nn.Dropout(0.1), {"k": nn.ReLU()}]
        self.table = {"a": mx.ones((1,)), "b": nn.Linear(1, 1)}
        self.pair = (nn.Linear(1, 1), mx.ones((2,)))
        self.size = 3
        self.name = "net"


def paths(tree: Any) -> list[str]:
    return [path for path, _ in tree_flatten(tree)]


ALL = [
    "w",
    "linear.weight",
    "linear.bias",
    "items_.0.weight",
    "items_.0.bias",
    "table.a",
    "table.b.weight",
    "table.b.bias",
]


# Attributes and items


def test_arrays_and_containers_are_items_the_rest_attributes() -> None:
    net = Net()
    assert list(net) == ["w", "_hidden", "linear", "items_", "table", "pair"]
    assert net.size == 3 and "size" not in net
    net.size = mx.ones((1,))
    assert "size" in net and "size" not in vars(net)
    net.size = None
    assert "size" not in net and net.size is None
    del net.w
    assert "w" not in net
    with pytest.raises(AttributeError, match="no attribute 'w'"):
        _ = net.w
    with pytest.raises(AttributeError):
        del net.w
    assert net.state is net


def test_properties_of_a_subclass_work() -> None:
    class Tied(nn.Module):
        @property
        def weight(self) -> mx.array:
            return self.inner * 2

        @weight.setter
        def weight(self, value: mx.array) -> None:
            self.inner = value

        @property
        def broken(self) -> mx.array:
            return self.nowhere

    tied = Tied()
    tied.weight = mx.array([1.0])
    assert list(tied) == ["inner"] and tied.weight.item() == 2.0
    with pytest.raises(AttributeError, match="nowhere"):
        _ = tied.broken


def test_repr_nests() -> None:
    assert repr(nn.Linear(3, 4)) == "Linear(input_dims=3, output_dims=4, bias=True)"
    net = nn.Sequential(
        nn.Linear(1, 2, bias=False), abs, nn.Sequential(nn.Dropout(0.2))
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (layers.0): Linear(input_dims=1, output_dims=2, bias=False)\n"
        "  (layers.2): Sequential(\n"
        "    (layers.0): Dropout(p=0.2)\n"
        "  )\n"
        ")"
    )


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_have_the_same_parameters(clone: Any) -> None:
    layer = nn.Linear(2, 3).freeze(keys="bias").eval()
    twin = clone(layer)
    assert type(twin) is nn.Linear and twin is not layer
    assert mx.array_equal(twin.weight, layer.weight).item()
    assert not twin.training and list(twin.trainable_parameters()) == ["weight"]


# Walking


def test_parameters_children_and_leaves() -> None:
    net = Net()
    assert paths(net.parameters()) == ALL
    assert net.parameters()["items_"][1:] == [{}, {"k": {}}]
    children = tree_flatten(net.children(), is_leaf=nn.Module.is_module)
    assert [p for p, _ in children] == [
        "linear",
        "items_.0",
        "items_.1",
        "items_.2.k",
        "table.b",
    ]
    deep = nn.Sequential(nn.Sequential(nn.ReLU()))
    assert repr(deep.leaf_modules()) == "{'layers': [{'layers': [ReLU()]}]}"


def test_modules_are_listed_with_their_paths() -> None:
    net = Net()
    names = [name for name, _ in net.named_modules()]
    assert names == ["", "table.b", "items_.2.k", "items_.1", "items_.0", "linear"]
    assert [id(m) for m in net.modules()] == [id(m) for _, m in net.named_modules()]
    seen: list[str] = []
    assert net.apply_to_modules(lambda path, module: seen.append(path)) is net
    assert seen == names


def test_filter_and_map_gives_dotted_keys_inside_containers() -> None:
    keys: list[str] = []

    def note(module: nn.Module, key: str, value: Any) -> bool:
        keys.append(key)
        return True

    Net().filter_and_map(note)
    assert keys[3:9] == ["weight", "bias", "items_", "items_.0", "weight", "bias"]
    assert "table.a" in keys and "items_.2.k" in keys
    with pytest.raises(RuntimeError, match=r"^\[Module.filter_and_map\] not a leaf"):
        Net().filter_and_map(note, is_leaf_fn=lambda m, k, v: False)


# Changing


def test_update_replaces_and_returns_the_module() -> None:
    net = Net()
    new = tree_map(lambda p: p + 1, net.parameters())
    assert net.update(new) is net
    for (_, now), (_, want) in zip(tree_flatten(net.parameters()), tree_flatten(new)):
        assert now is want
    net.update({"items_": [{"bias": mx.zeros((7,))}]})
    assert net.items_[0].bias.shape == (7,)


BAD_UPDATES: dict[str, Callable[[mx.array], Any]] = {
    "unknown": lambda a: {"nowhere": a},
    "attribute": lambda a: {"size": a},
    "number for array": lambda a: {"w": 3},
    "tree for array": lambda a: {"w": {"x": a}},
    "array for module": lambda a: {"linear": a},
    "beyond the list": lambda a: {"items_": [{}, {}, {}, {"weight": a}]},
    "dict for list": lambda a: {"items_": {"0": {"weight": a}}},
    "inside a tuple": lambda a: {"pair": [{"weight": a}]},
    "array for everything": lambda a: a,
}


@pytest.mark.parametrize("case", BAD_UPDATES)
def test_update_refuses_what_does_not_fit(case: str) -> None:
    bad = BAD_UPDATES[case](mx.ones((1,)))
    net = Net()
    before = dict(tree_flatten(net.parameters()))
    with pytest.raises(ValueError, match=r"^\[Module.update\] "):
        net.update(bad)
    net.update(bad, strict=False)
    after = dict(tree_flatten(net.parameters()))
    assert all(after[path] is before[path] for path in before)


def test_update_modules() -> None:
    net = Net()
    new = nn.Linear(5, 5)
    assert net.update_modules({"items_": [{}, new], "table": {"b": new}}) is net
    assert net.items_[1] is new and net.table["b"] is new
    for bad in ({"nowhere": new}, {"linear": 3}, {"w": new}, {"linear": {"x": new}}):
        with pytest.raises(ValueError, match=r"^\[Module.update_modules\] "):
            net.update_modules(bad)
        net.update_modules(bad, strict=False)
    assert isinstance(net.linear, nn.Linear) and isinstance(net.w, mx.array)


def test_apply_and_set_dtype() -> None:
    net = Net()
    assert net.apply(lambda p: p.astype(mx.float16)) is net
    assert {p.dtype for _, p in tree_flatten(net.parameters())} == {mx.float16}
    assert net._hidden.dtype == mx.float32
    net.apply(lambda p: p.astype(mx.float32), lambda m, k, v: k == "w")
    assert net.w.dtype == mx.float32 and net.linear.bias.dtype == mx.float16
    with pytest.raises(ValueError, match="int"):
        net.apply(lambda p: 3)
    net.w = mx.array([1, 2])
    net.set_dtype(mx.bfloat16)
    assert net.w.dtype == mx.int32 and net.linear.bias.dtype == mx.bfloat16
    net.set_dtype(mx.float32, None)
    assert net.w.dtype == mx.float32
    net.set_dtype(mx.float16, lambda d: d == mx.bfloat16)
    assert net.w.dtype == mx.float32


def test_training_mode() -> None:
    net = Net()
    assert net.training and net.eval() is net
    assert not any(m.training for m in net.modules())
    assert net.train() is net and all(m.training for m in net.modules())
    assert not net.train(False).linear.training
    with pytest.raises(AttributeError):
        net.training = False


# Freezing


def test_freeze_and_unfreeze() -> None:
    net = Net()
    assert net.freeze() is net and paths(net.trainable_parameters()) == []
    net.unfreeze(keys="weight")
    want = [p for p in ALL if p.endswith("weight")]
    assert paths(net.trainable_parameters()) == want
    net.unfreeze(recurse=False)
    assert paths(net.trainable_parameters()) == [
        p for p in ALL if p in ("w", "table.a") or p.endswith("weight")
    ]
    net.unfreeze().freeze(keys=["bias", "table.a"])
    assert paths(net.trainable_parameters()) == [
        p for p in ALL if p not in ("table.a",) and not p.endswith("bias")
    ]
    assert paths(net.parameters()) == ALL


def test_strict_freezing_wants_the_key_somewhere() -> None:
    net = Net()
    net.freeze(keys="bias", strict=True)
    assert paths(net.trainable_parameters()) == [p for p in ALL if "bias" not in p]
    for change in (net.freeze, net.unfreeze):
        with pytest.raises(KeyError, match="nowhere"):
            change(keys="nowhere", strict=True)
        with pytest.raises(KeyError, match="bias"):
            change(keys="bias", strict=True, recurse=False)
    net.freeze(keys="nowhere")


# Files


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_weights_survive_a_file(tmp_path: Path, suffix: str) -> None:
    net, other = Net(), Net()
    for file in (str(tmp_path / f"a{suffix}"), tmp_path / f"b{suffix}"):
        net.save_weights(file)
        assert other.load_weights(file) is other
    for (_, a), (_, b) in zip(
        tree_flatten(net.parameters()), tree_flatten(other.parameters())
    ):
        assert mx.array_equal(a, b).item()


def test_load_weights_checks() -> None:
    layer = nn.Linear(2, 2)
    good = [("weight", mx.ones((2, 2), mx.float16)), ("bias", mx.ones((2,)))]
    assert layer.load_weights(good).weight.dtype == mx.float16
    bad: list[list[Any]] = [
        good[:1],
        [*good, ("more", mx.ones((1,)))],
        [("weight", mx.ones((2, 3))), good[1]],
        [("weight", 3), good[1]],
        [],
    ]
    for weights in bad:
        with pytest.raises(ValueError, match=r"^\[Module.load_weights\] "):
            layer.load_weights(weights)
    layer.load_weights(
        [("weight", mx.ones((2, 3))), ("a.b", mx.ones((1,)))], strict=False
    )
    assert layer.weight.shape == (2, 3) and list(layer) == ["weight", "bias"]
    with pytest.raises(ValueError, match=r"^\[Module.save_weights\] unknown kind"):
        layer.save_weights("weights.txt")
    with pytest.raises(ValueError):
        layer.load_weights("weights.txt")
    with pytest.raises(RuntimeError):
        layer.load_weights("/nowhere/weights.safetensors")


# Gradients


def test_value_and_grad_of_trainable_parameters() -> None:
    layer = nn.Linear(3, 2).freeze(keys="bias")
    before = dict(layer)
    x = mx.array([[1.0, 2.0, 3.0]])

    def loss(x: mx.array, factor: float = 1.0) -> Any:
        return (layer(x) * factor).sum(), "aux"

    (value, extra), gradient = nn.value_and_grad(layer, loss)(x, factor=2.0)
    assert extra == "aux" and value.item() == pytest.approx(2 * layer(x).sum().item())
    assert list(gradient) == ["weight"]
    assert gradient["weight"].tolist() == [[2.0, 4.0, 6.0]] * 2
    assert all(layer[key] is before[key] for key in before)


def test_value_and_grad_keeps_what_the_function_assigns() -> None:
    layer = nn.Linear(2, 1, bias=False)

    def loss(x: mx.array) -> mx.array:
        y = layer(x).sum()
        layer.weight = mx.zeros((1, 2))
        return y

    nn.value_and_grad(layer, loss)(mx.ones((1, 2)))
    assert layer.weight.tolist() == [[0.0, 0.0]]


def test_value_and_grad_leaves_the_model_clean_after_an_error() -> None:
    layer = nn.Linear(2, 1)
    before = dict(layer)

    def fail(x: mx.array) -> mx.array:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.value_and_grad(layer, fail)(mx.ones((1, 2)))
    assert all(layer[key] is before[key] for key in before)
    with pytest.raises(ValueError):
        nn.value_and_grad(layer, lambda x: layer(x))(mx.ones((3, 2)))
    with pytest.raises(ValueError, match=r"^\[value_and_grad\] nothing to train: ReLU"):
        nn.value_and_grad(nn.ReLU(), lambda x: x.sum())(mx.ones((1,)))


# Layers


def test_linear_layers_against_numpy() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5, 3)).astype(np.float32)
    for bias in (True, False):
        layer = nn.Linear(3, 2, bias=bias)
        want = x @ np.array(layer.weight).T + (np.array(layer.bias) if bias else 0)
        np.testing.assert_allclose(
            np.array(layer(mx.array(x))), want, rtol=1e-5, atol=1e-6
        )
        assert np.abs(np.array(layer.weight)).max() <= 3**-0.5
        assert ("bias" in layer) == bias
    assert nn.Linear(3, 2)(mx.ones((3,))).shape == (2,)
    assert nn.Identity(1, a=2)(x) is x


def test_bilinear_against_einsum() -> None:
    rng = np.random.default_rng(1)
    x1 = rng.normal(size=(6, 2)).astype(np.float32)
    x2 = rng.normal(size=(6, 3)).astype(np.float32)
    layer = nn.Bilinear(2, 3, 4)
    assert layer.weight.shape == (4, 3, 2) and layer.bias.shape == (4,)
    want = np.einsum("ni,kji,nj->nk", x1, np.array(layer.weight), x2) + np.array(
        layer.bias
    )
    got = layer(mx.array(x1), mx.array(x2))
    np.testing.assert_allclose(np.array(got), want, rtol=1e-4, atol=1e-5)
    assert layer(mx.ones((1, 2)), mx.ones((6, 3))).shape == (6, 4)
    assert nn.Bilinear(2, 3, 4, bias=False)(mx.ones((2,)), mx.ones((3,))).shape == (4,)


def test_embedding() -> None:
    mx.random.seed(3)
    layer = nn.Embedding(1000, 64)
    assert layer(mx.array([[1, 2], [3, 1]])).shape == (2, 2, 64)
    assert mx.array_equal(layer(mx.array(7)), layer.weight[7]).item()
    assert np.array(layer.weight).std() == pytest.approx(1 / 8, rel=0.02)
    x = mx.random.normal((2, 64))
    np.testing.assert_allclose(
        np.array(layer.as_linear(x)), np.array(x) @ np.array(layer.weight).T, atol=1e-5
    )


def test_normalization_against_numpy() -> None:
    x = np.random.default_rng(2).normal(size=(3, 8)).astype(np.float32)
    centred = x - x.mean(-1, keepdims=True)
    want = centred / np.sqrt(centred.var(-1, keepdims=True) + 1e-5)
    for layer in (
        nn.LayerNorm(8),
        nn.LayerNorm(8, affine=False),
        nn.LayerNorm(8, bias=False),
    ):
        np.testing.assert_allclose(np.array(layer(mx.array(x))), want, atol=1e-5)
    assert list(nn.LayerNorm(8)) == ["weight", "bias"]
    assert list(nn.LayerNorm(8, bias=False)) == ["weight"]
    assert list(nn.LayerNorm(8, affine=False)) == []
    rms = nn.RMSNorm(8).update({"weight": mx.arange(8.0)})
    want = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * np.arange(8)
    np.testing.assert_allclose(np.array(rms(mx.array(x))), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("traditional", [False, True])
def test_rope_against_numpy(traditional: bool) -> None:
    x = np.random.default_rng(4).normal(size=(1, 2, 5, 8)).astype(np.float32)
    layer = nn.RoPE(6, traditional=traditional, base=100.0, scale=0.5)
    angles = (np.arange(5) + 3)[:, None] * 0.5 * 100.0 ** (-np.arange(3) / 3)
    first = slice(0, 6, 2) if traditional else slice(0, 3)
    second = slice(1, 6, 2) if traditional else slice(3, 6)
    a, b = x[..., first], x[..., second]
    want = x.copy()
    want[..., first] = a * np.cos(angles) - b * np.sin(angles)
    want[..., second] = a * np.sin(angles) + b * np.cos(angles)
    np.testing.assert_allclose(np.array(layer(mx.array(x), offset=3)), want, atol=1e-5)


def test_dropout() -> None:
    mx.random.seed(5)
    x = mx.ones((100, 100))
    y = nn.Dropout(0.25)(x)
    assert set(np.unique(np.array(y))) == {0.0, np.float32(1 / 0.75)}
    assert (np.array(y) == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert nn.Dropout(0.25).eval()(x) is x and nn.Dropout(0.0)(x) is x
    assert nn.Dropout(0.5)(x.astype(mx.float16)).dtype == mx.float16
    for p in (1.0, -0.1):
        with pytest.raises(ValueError, match="probability out of range"):
            nn.Dropout(p)


@pytest.mark.parametrize(("layer", "ndim"), [(nn.Dropout2d, 3), (nn.Dropout3d, 4)])
def test_dropout_of_channels(layer: Any, ndim: int) -> None:
    mx.random.seed(6)
    for shape in ((5,) * (ndim - 1) + (64,), (8,) + (5,) * (ndim - 1) + (64,)):
        y = np.array(layer(0.5)(mx.ones(shape)))
        batch = y.reshape(-1, 5 ** (ndim - 1), 64)
        assert (batch == batch[:, :1]).all()  # a channel is whole or gone
        assert 0.3 < (batch[:, 0] == 0).mean() < 0.7
    for wrong in (ndim - 1, ndim + 2):
        with pytest.raises(ValueError, match="wrong number of axes"):
            layer(0.5)(mx.ones((2,) * wrong))


def test_sequential() -> None:
    net = nn.Sequential(nn.Linear(2, 3), lambda x: x * 2, nn.ReLU())
    x = mx.ones((4, 2))
    assert mx.array_equal(net(x), nn.relu(net.layers[0](x) * 2)).item()
    assert nn.Sequential()(x) is x


# Activations

X = np.array([-90.0, -6.0, -3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0, 6.0, 90.0])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


def _softmax(x: Any) -> Any:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


ACTIVATIONS: dict[str, Any] = {
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_softmax": lambda x: x - x.max() - np.log(np.exp(x - x.max()).sum()),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softmax": _softmax,
    "softplus": lambda x: np.logaddexp(x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "celu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "silu": lambda x: x * _sigmoid(x),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "gelu": lambda x: x * (1 + _erf(x / 2**0.5)) / 2,
    "gelu_approx": lambda x: (
        0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    ),
    "gelu_fast_approx": lambda x: x * _sigmoid(1.702 * x),
    "step": lambda x: (x >= 0).astype(np.int32),
    "selu": lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(np.minimum(x, 0))),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "softmin": lambda x: _softmax(-x),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_against_numpy(name: str) -> None:
    function = getattr(nn, name)
    got = function(mx.array(X.astype(np.float32)))
    want = ACTIVATIONS[name](X)
    np.testing.assert_allclose(np.array(got), want, rtol=2e-5, atol=1e-6)
    kept = mx.int32 if name == "step" else mx.bfloat16
    assert function(mx.ones((3,), mx.bfloat16)).dtype == kept


@pytest.mark.parametrize(
    "name", sorted(ACTIVATIONS.keys() - {"gelu_approx", "gelu_fast_approx"})
)
def test_activation_layer_is_the_function(name: str) -> None:
    key = name.replace("_", "").lower()
    (layer,) = [getattr(nn, n) for n in dir(nn) if n.lower() == key and n[0].isupper()]
    x = mx.array(X.astype(np.float32))
    assert mx.array_equal(layer()(x), getattr(nn, name)(x)).item()


@pytest.mark.parametrize("name", sorted(ACTIVATIONS.keys() - {"step"}))
def test_activation_gradient_is_finite(name: str) -> None:
    x = mx.array(X.astype(np.float32))
    gradient = mx.grad(lambda x: getattr(nn, name)(x).sum())(x)
    assert mx.isfinite(gradient).all().item()


def test_activations_with_arguments() -> None:
    x = mx.array([-2.0, 2.0])
    assert nn.leaky_relu(x, 3.0).tolist() == [-6.0, 2.0]
    assert nn.LeakyReLU(3.0)(x).tolist() == [-6.0, 2.0]
    assert nn.elu(x, 0.0).tolist() == nn.ELU(0.0)(x).tolist() == [0.0, 2.0]
    assert nn.celu(x, 1e-3).tolist() == pytest.approx([-1e-3, 2.0])
    assert nn.hard_tanh(x, -0.5, 1.5).tolist() == [-0.5, 1.5]
    assert nn.Step(2.0)(x).tolist() == [0, 1]
    assert nn.Softshrink(1.5)(x).tolist() == [-0.5, 0.5]
    assert nn.HardShrink(2.0)(x).tolist() == [0.0, 0.0]
    assert nn.prelu(x, mx.array([0.5, 9.0])).tolist() == [-1.0, 2.0]
    assert nn.PReLU(2, init=0.5).weight.tolist() == [0.5, 0.5]
    rows = mx.array([[1.0, 2.0], [1.0, 2.0]])
    for function in (nn.softmax, nn.softmin):
        assert function(rows, axis=0).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert mx.exp(nn.log_softmax(rows, axis=0)).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    x = mx.array(X.astype(np.float32))
    for approx, function in {
        "none": nn.gelu,
        "precise": nn.gelu_approx,
        "tanh": nn.gelu_approx,
        "fast": nn.gelu_fast_approx,
    }.items():
        assert mx.array_equal(nn.GELU(approx)(x), function(x)).item()
    with pytest.raises(ValueError, match=r"^\[GELU\] unknown approximation: 'other'"):
        nn.GELU("other")


def test_glu() -> None:
    x = mx.array([[3.0, 5.0], [0.0, 0.0]])
    assert nn.glu(x, axis=0).tolist() == nn.GLU(0)(x).tolist() == [[1.5, 2.5]]
    assert nn.glu(mx.array([3.0, 0.0])).item() == 1.5
    with pytest.raises(ValueError):
        nn.glu(mx.ones((3,)))


def test_nan_stays_nan() -> None:
    for name in ACTIVATIONS.keys() - {"step"}:
        y = getattr(nn, name)(mx.array([float("nan")]))
        assert mx.isnan(y).item(), name


# Documentation


MODULES = ["mlx.utils", "mlx.nn.utils"] + [
    f"mlx.nn.layers.{found.name}" for found in pkgutil.iter_modules(nn.layers.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    results = doctest.testmod(module)
    assert results.failed == 0
    assert results.attempted > 0 or name.endswith("_replace")


@pytest.mark.parametrize("value", [1.0, 1e4, 1e20, 1e36, -1e36])
def test_log_softmax_of_any_size(value: float) -> None:
    y = nn.log_softmax(mx.array([[value, value]]))
    np.testing.assert_allclose(y, [[-np.log(2)] * 2], rtol=1e-5)
    grad = mx.grad(lambda x: nn.log_softmax(x)[0])(mx.array([1.0, 2.0]))
    soft = np.exp([1, 2]) / np.exp([1, 2]).sum()
    np.testing.assert_allclose(grad, [1 - soft[0], -soft[1]], rtol=1e-5)


@pytest.mark.parametrize("layer", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("eps", [0.0, -1e-30])
def test_norms_need_a_positive_eps(layer: Any, eps: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        layer(16, eps=eps)
    assert layer(16, eps=1e-30).eps == 1e-30


def test_grad_of_a_module() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 2)
            self.rest = [nn.Linear(2, 1)]

        def __call__(self, x: mx.array) -> mx.array:
            return self.rest[0](self.first(x)).sum()

    model = Model()
    weight = model.first.weight
    x = mx.array([[1.0, 2.0, 3.0]])
    grads = mx.grad(lambda m: m(x))(model)
    assert model.first.weight is weight
    _, expected = nn.value_and_grad(model, lambda x: model(x))(x)
    np.testing.assert_array_equal(grads["first"]["weight"], expected["first"]["weight"])
    np.testing.assert_array_equal(grads["rest"][0]["bias"], [1.0])
