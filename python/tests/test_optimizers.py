"""mlx.optimizers against the formulas of the papers, in NumPy float64.

Each rule here is written on its own, with the gradient, the parameter and a
dictionary that it may keep things in, and is followed over several steps.
"""

from __future__ import annotations

import doctest
import importlib
import math
from pathlib import Path
from typing import Any, Callable

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_unflatten

STEPS = 6
RATE = 0.05
SHAPES = {"w": (4, 6), "tall": (6, 4), "b": (5,), "conv": (8, 3, 2), "s": ()}
RNG = np.random.default_rng(21)
PARAMETERS = {k: RNG.normal(size=shape) for k, shape in SHAPES.items()}
GRADIENTS = [
    {k: RNG.normal(size=shape) for k, shape in SHAPES.items()} for _ in range(STEPS)
]

Rule = Callable[[Any, Any, dict[str, Any], int], Any]


def sgd(momentum: float = 0.0, decay: float = 0.0, damp: float = 0.0) -> Rule:
    def rule(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
        s["v"] = momentum * s.get("v", 0) + (1 - damp) * (g + decay * w)
        return w - RATE * s["v"]

    return rule


def nesterov(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
    s["v"] = 0.9 * s.get("v", 0) + g
    return w - RATE * (g + 0.9 * s["v"])


def rmsprop(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g**2
    return w - RATE * g / (s["v"] ** 0.5 + 1e-5)


def adagrad(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
    s["v"] = s.get("v", 0) + g**2
    return w - RATE * g / (s["v"] ** 0.5 + 1e-8)


def adadelta(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
    s["v"] = 0.8 * s.get("v", 0) + 0.2 * g**2
    d = g * ((s.get("u", 0) + 1e-4) / (s["v"] + 1e-4)) ** 0.5
    s["u"] = 0.8 * s.get("u", 0) + 0.2 * d**2
    return w - RATE * d


def adam(decay: float = 0.0, corrected: bool = False) -> Rule:
    def rule(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
        s["m"] = 0.8 * s.get("m", 0) + 0.2 * g
        s["v"] = 0.99 * s.get("v", 0) + 0.01 * g**2
        m, v = s["m"], s["v"]
        if corrected:
            m, v = m / (1 - 0.8**t), v / (1 - 0.99**t)
        return w - RATE * (m / (v**0.5 + 1e-8) + decay * w)

    return rule


def adamax(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = np.maximum(0.999 * s.get("v", 0), np.abs(g))
    return w - RATE * s["m"] / (s["v"] + 1e-8)


def lion(decay: float) -> Rule:
    def rule(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
        c = 0.9 * s.get("m", 0) + 0.1 * g
        s["m"] = 0.99 * s.get("m", 0) + 0.01 * g
        return w - RATE * (np.sign(c) + decay * w)

    return rule


def rms(x: Any) -> Any:
    return np.mean(x**2) ** 0.5


def adafactor(
    relative: bool = True,
    warmup: bool = False,
    scaled: bool = True,
    beta: float | None = None,
    decay: float = 0.0,
    clip: float = 1.0,
) -> Rule:
    """Algorithms 4 and 5 of the paper, its second moment as a full matrix."""

    def rule(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
        keep = 1 - t**-0.8
        squares = g**2 + 1e-30
        if g.ndim >= 2:
            rows = keep * s.get("row", 0) + (1 - keep) * squares.sum(-1)
            columns = keep * s.get("column", 0) + (1 - keep) * squares.sum(-2)
            s["row"], s["column"] = rows, columns
            total = rows.sum(-1)[..., None, None]
            moment = rows[..., :, None] * columns[..., None, :] / total
        else:
            moment = keep * s.get("moment", 0) + (1 - keep) * squares
            s["moment"] = moment
        u = g / moment**0.5
        u = u / max(1, rms(u) / clip)
        rate = min(1e-6 * t if warmup else 1e-2, t**-0.5) if relative else RATE
        rate *= max(1e-3, rms(w)) if scaled else 1
        u = rate * u
        if beta is not None:
            u = s["mean"] = beta * s.get("mean", 0) + (1 - beta) * u
        return w - u - decay * rate * w

    return rule


def muon(decay: float = 0.01, ahead: bool = True, steps: int = 5) -> Rule:
    """The odd polynomial applied to the singular values themselves."""

    def rule(g: Any, w: Any, s: dict[str, Any], t: int) -> Any:
        g = g + decay * w
        v = s["v"] = 0.95 * s.get("v", 0) + 0.05 * g
        if ahead:
            v = 0.05 * g + 0.95 * v
        if v.ndim < 2:
            return w - RATE * v
        left, values, right = np.linalg.svd(v.reshape(len(v), -1), full_matrices=False)
        values = values / np.sqrt((values**2).sum())
        for _ in range(steps):
            values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
        size = max(1, v.shape[-2] / v.shape[-1]) ** 0.5
        return w - RATE * size * ((left * values) @ right).reshape(v.shape)

    return rule


# What is built, and the formula of it.
CASES: dict[str, tuple[Callable[[], optim.Optimizer], Rule]] = {
    "SGD": (lambda: optim.SGD(RATE), sgd()),
    "SGD momentum": (lambda: optim.SGD(RATE, 0.9, 0.1), sgd(0.9, 0.1)),
    "SGD dampened": (
        lambda: optim.SGD(RATE, 0.9, dampening=0.3),
        sgd(0.9, 0.0, 0.3),
    ),
    "SGD decay alone": (lambda: optim.SGD(RATE, weight_decay=0.1), sgd(0.0, 0.1)),
    "SGD Nesterov": (lambda: optim.SGD(RATE, 0.9, nesterov=True), nesterov),
    "RMSprop": (lambda: optim.RMSprop(RATE, 0.9, 1e-5), rmsprop),
    "Adagrad": (lambda: optim.Adagrad(RATE), adagrad),
    "AdaDelta": (lambda: optim.AdaDelta(RATE, 0.8, 1e-4), adadelta),
    "Adam": (lambda: optim.Adam(RATE, [0.8, 0.99]), adam()),
    "Adam corrected": (
        lambda: optim.Adam(RATE, [0.8, 0.99], bias_correction=True),
        adam(corrected=True),
    ),
    "AdamW": (
        lambda: optim.AdamW(RATE, [0.8, 0.99], weight_decay=0.3),
        adam(0.3),
    ),
    "AdamW corrected": (
        lambda: optim.AdamW(RATE, [0.8, 0.99], bias_correction=True),
        adam(0.01, True),
    ),
    "Adamax": (lambda: optim.Adamax(RATE), adamax),
    "Lion": (lambda: optim.Lion(RATE), lion(0.0)),
    "Lion decay": (lambda: optim.Lion(RATE, weight_decay=0.2), lion(0.2)),
    "Adafactor": (optim.Adafactor, adafactor()),
    "Adafactor warm-up": (
        lambda: optim.Adafactor(warmup_init=True),
        adafactor(warmup=True),
    ),
    "Adafactor rate": (
        lambda: optim.Adafactor(RATE, relative_step=False, scale_parameter=False),
        adafactor(False, scaled=False),
    ),
    "Adafactor all": (
        lambda: optim.Adafactor(
            RATE, clip_threshold=0.5, beta_1=0.9, weight_decay=0.1, relative_step=False
        ),
        adafactor(False, beta=0.9, decay=0.1, clip=0.5),
    ),
    "Muon": (lambda: optim.Muon(RATE), muon()),
    "Muon plain": (
        lambda: optim.Muon(RATE, weight_decay=0.0, nesterov=False, ns_steps=3),
        muon(0.0, False, 3),
    ),
}
CLASSES = [
    getattr(optim, name)
    for name in optim.__all__
    if name[0].isupper() and name not in ("Optimizer", "MultiOptimizer")
]


def to_arrays(tree: dict[str, Any], dtype: mx.Dtype = mx.float32) -> dict[str, Any]:
    return {k: mx.array(v.astype(np.float32), dtype) for k, v in tree.items()}


def follow(rule: Rule) -> list[dict[str, Any]]:
    """The parameters after each step, by a formula."""
    values, kept, all_values = PARAMETERS, {k: {} for k in SHAPES}, []
    for t, gradients in enumerate(GRADIENTS, 1):
        values = {k: rule(gradients[k], values[k], kept[k], t) for k in values}
        all_values.append(values)
    return all_values


def run(optimizer: optim.Optimizer, dtype: mx.Dtype = mx.float32) -> list[Any]:
    parameters, all_parameters = to_arrays(PARAMETERS, dtype), []
    for gradients in GRADIENTS:
        parameters = optimizer.apply_gradients(to_arrays(gradients, dtype), parameters)
        all_parameters.append(parameters)
    return all_parameters


def test_every_optimizer_has_a_case() -> None:
    assert {type(make()) for make, _ in CASES.values()} == set(CLASSES)


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_formula(name: str) -> None:
    make, rule = CASES[name]
    for step, (got, want) in enumerate(zip(run(make()), follow(rule)), 1):
        for key in SHAPES:
            np.testing.assert_allclose(
                np.array(got[key]),
                want[key],
                rtol=1e-5,
                atol=1e-5,
                err_msg=f"{key} in step {step}",
            )


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_half_types_stay_and_stay_close(name: str, dtype: mx.Dtype) -> None:
    make, rule = CASES[name]
    optimizer = make()
    got = run(optimizer, dtype)
    assert all(p.dtype == dtype for p in got[-1].values())
    for key in SHAPES:
        assert all(v.dtype == dtype for v in optimizer.state[key].values())
    # The first step: parameters up to 4 are rounded before and after it, the
    # gradient too; its length is at most a few rates.
    unit = {mx.float16: 2**-11, mx.bfloat16: 2**-8}[dtype]
    for key, want in follow(rule)[0].items():
        error = np.abs(np.array(got[0][key].astype(mx.float32)) - want)
        assert error.max() < 8 * unit


def test_second_moments_of_small_half_gradients() -> None:
    """1e-4 squared is nothing in float16: the step must not divide by it."""
    w, g = {"w": mx.ones((3,), mx.float16)}, {"w": mx.full((3,), 1e-4, mx.float16)}
    for optimizer in (optim.Adam(0.01), optim.RMSprop(0.01), optim.Adagrad(0.01)):
        new = optimizer.apply_gradients(g, w)["w"]
        first = {"Adam": 0.1 / 0.001**0.5, "RMSprop": 10, "Adagrad": 1}
        want = 1 - 0.01 * first[type(optimizer).__name__]
        assert new.tolist() == pytest.approx([want] * 3, abs=2e-3)


def test_parameters_keep_their_dtype_under_other_gradients() -> None:
    for kind in CLASSES:
        w = {"w": mx.ones((2, 3), mx.bfloat16)}
        new = kind(learning_rate=0.1).apply_gradients({"w": mx.ones((2, 3))}, w)
        assert new["w"].dtype == mx.bfloat16


def test_bias_correction_keeps_its_digits() -> None:
    """1 - 0.999999^1 is one part in a million: rounding must not eat it."""
    optimizer = optim.Adam(1.0, [0.0, 0.999999], eps=0.0, bias_correction=True)
    new = optimizer.apply_gradients({"w": mx.array([3.0])}, {"w": mx.array([0.0])})
    assert new["w"].item() == pytest.approx(-1.0, rel=1e-6)


def test_zero_gradients_change_nothing() -> None:
    w, zero = {"w": mx.full((2, 3), 2.0)}, {"w": mx.zeros((2, 3))}
    for kind in CLASSES:
        if kind in (optim.AdamW, optim.Muon):  # they decay
            continue
        optimizer = kind(learning_rate=0.1)
        for _ in range(2):
            new = optimizer.apply_gradients(zero, w)
            assert new["w"].tolist() == w["w"].tolist(), kind


# State


def test_state_begins_with_step_and_rate() -> None:
    for kind in CLASSES:
        optimizer = kind(learning_rate=0.25)
        state = optimizer.state
        assert list(state) == ["step", "learning_rate"]
        assert state["step"].dtype == mx.uint64 and optimizer.step.item() == 0
        assert state["learning_rate"].dtype == mx.float32
        assert optimizer.learning_rate.item() == 0.25
    assert list(optim.Adafactor().state) == ["step"]


STATES = {
    "SGD": ["v"],
    "RMSprop": ["v"],
    "Adagrad": ["v"],
    "AdaDelta": ["v", "u"],
    "Adam": ["m", "v"],
    "AdamW": ["m", "v"],
    "Adamax": ["m", "v"],
    "Lion": ["m"],
    "Adafactor": ["exp_avg_sq_row", "exp_avg_sq_col"],
    "Muon": ["v"],
}


@pytest.mark.parametrize("name", STATES)
def test_init_makes_zeros_at_the_place_of_each_parameter(name: str) -> None:
    optimizer = getattr(optim, name)(learning_rate=0.1)
    state = optimizer.state
    optimizer.init({"a": [mx.ones((2, 3)), {}], "b": {"c": mx.ones((4, 5))}})
    assert optimizer.state is state
    for place, (rows, columns) in ((state["a"][0], (2, 3)), (state["b"]["c"], (4, 5))):
        assert list(place) == STATES[name]
        for key, value in place.items():
            shape = {"exp_avg_sq_row": (rows,), "exp_avg_sq_col": (columns,)}
            assert mx.array_equal(value, mx.zeros(shape.get(key, (rows, columns))))
    assert state["a"][1] == {} and optimizer.step.item() == 0


def test_adafactor_states() -> None:
    optimizer = optim.Adafactor(beta_1=0.9)
    optimizer.init({"v": mx.ones((3,)), "c": mx.ones((2, 3, 4))})
    shapes = {k: v.shape for k, v in optimizer.state["c"].items()}
    assert shapes == {
        "exp_avg_sq_row": (2, 3),
        "exp_avg_sq_col": (2, 4),
        "exp_avg": (2, 3, 4),
    }
    assert list(optimizer.state["v"]) == ["exp_avg_sq", "exp_avg"]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.0), nn.Linear(4, 2))


def train(model: nn.Module, optimizer: optim.Optimizer, steps: range) -> None:
    step = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x), y))
    for i in steps:
        x = mx.random.normal((8, 3), key=mx.random.key(i))
        _, gradients = step(x, x[:, :2])
        optimizer.update(model, gradients)
        mx.eval(model.state, optimizer.state)


@pytest.mark.parametrize("kind", CLASSES)
def test_state_goes_through_a_file(kind: Any, tmp_path: Path) -> None:
    mx.random.seed(8)
    model, optimizer = network(), kind(learning_rate=0.01)
    train(model, optimizer, range(3))
    file = str(tmp_path / "state.safetensors")
    mx.save_safetensors(file, dict(tree_flatten(optimizer.state)))
    weights = tree_flatten(model.parameters())
    train(model, optimizer, range(3, 6))

    twin, other = network(), kind(learning_rate=0.5)
    twin.load_weights(weights)
    other.state = tree_unflatten(list(mx.load(file).items()))
    assert other.step.item() == 3 and other.learning_rate.item() == pytest.approx(0.01)
    train(twin, other, range(3, 6))
    for (path, a), (_, b) in zip(
        tree_flatten(model.parameters()), tree_flatten(twin.parameters())
    ):
        assert mx.array_equal(a, b).item(), path
    assert other.step.item() == 6


def test_assigned_state_is_kept_and_completed() -> None:
    optimizer = optim.SGD(0.1, momentum=0.5)
    optimizer.state = {0: 1}
    assert optimizer.state == {0: 1}
    ten = {"v": mx.array([10.0])}
    optimizer.state = {
        "step": mx.array(4, mx.uint64),
        "learning_rate": mx.array(1.0),
        "a": ten,
    }
    one = {"a": mx.array([1.0]), "b": [mx.array([1.0])]}
    new = optimizer.apply_gradients(one, one)
    assert new["a"].item() == 1 - (0.5 * 10 + 1) and new["b"][0].item() == 0.0
    assert optimizer.step.item() == 5


def test_learning_rate_can_be_assigned() -> None:
    optimizer, one = optim.SGD(1.0), {"w": mx.array([1.0])}
    state = optimizer.state
    optimizer.learning_rate = -2.0
    assert state["learning_rate"].item() == -2.0
    assert optimizer.apply_gradients(one, one)["w"].item() == 3.0
    optimizer.learning_rate = mx.array(0.25)
    assert optimizer.apply_gradients(one, one)["w"].item() == 0.75


def test_some_parameters_without_gradient() -> None:
    model = network()
    model.layers[0].freeze()
    before = model.layers[0].weight
    optimizer = optim.Adam(0.1)
    train(model, optimizer, range(2))
    assert model.layers[0].weight is before
    assert "weight" not in optimizer.state["layers"][0]
    model.unfreeze()
    optimizer.init(model.trainable_parameters())
    mean = optimizer.state["layers"][3]["weight"]["m"]
    train(model, optimizer, range(2, 3))
    assert not mx.array_equal(model.layers[0].weight, before).item()
    assert mx.abs(mean).sum().item() > 0


def test_arrays_alone() -> None:
    optimizer = optim.SGD(0.5, momentum=0.5)
    w = mx.array([1.0])
    for _ in range(2):
        w = optimizer.apply_gradients(mx.array([1.0]), w)
    assert w.item() == 1 - 0.5 - 0.75 and optimizer.state["v"].item() == 1.5


def test_base_class() -> None:
    bare = optim.Optimizer({"twice": lambda step: step * 2})
    bare.update({}, {})
    bare.update({}, {})
    assert {k: v.item() for k, v in bare.state.items()} == {"step": 2, "twice": 2}
    for call in (
        lambda: bare.init({"w": mx.ones((1,))}),
        lambda: bare.apply_single(mx.ones((1,)), mx.ones((1,)), {}),
    ):
        with pytest.raises(NotImplementedError, match=r"^\[Optimizer\..* not defined"):
            call()


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "nesterov without momentum": (
        lambda: optim.SGD(0.1, nesterov=True),
        r"^\[SGD\] nesterov does not go with momentum 0\.0 and dampening 0\.0\. It",
    ),
    "nesterov dampened": (
        lambda: optim.SGD(0.1, 0.9, dampening=0.1, nesterov=True),
        r"^\[SGD\] nesterov does not go with momentum 0\.9 and dampening 0\.1\. It",
    ),
    "alpha": (
        lambda: optim.RMSprop(0.1, alpha=-1),
        r"^\[RMSprop\] alpha out of range: -1\. It must be >=0\.",
    ),
    "eps RMSprop": (
        lambda: optim.RMSprop(0.1, eps=0.0),
        r"^\[RMSprop\] eps out of range: 0\.0\. It must be >0\.",
    ),
    "eps Adagrad": (lambda: optim.Adagrad(0.1, eps=-1.0), r"^\[Adagrad\] eps .*>0"),
    "rho": (lambda: optim.AdaDelta(0.1, rho=-0.5), r"^\[AdaDelta\] rho out .*>=0"),
    "eps AdaDelta": (lambda: optim.AdaDelta(0.1, eps=0), r"^\[AdaDelta\] eps .*>0"),
    "eps Adam": (
        lambda: optim.Adam(0.1, eps=-1.0),
        r"^\[Adam\] eps out of range: -1\.0\. It must be >=0\.",
    ),
    "eps Adamax": (lambda: optim.Adamax(0.1, eps=-1.0), r"^\[Adamax\] eps"),
    "beta Adam": (
        lambda: optim.Adam(0.1, [1.0, 0.9]),
        r"^\[Adam\] betas\[0\] out of range: 1\.0\. It must be in \[0, 1\)\.",
    ),
    "beta AdamW": (lambda: optim.AdamW(0.1, [0.9, -1]), r"^\[AdamW\] betas\[1\] out"),
    "beta NaN": (lambda: optim.Adam(0.1, [0.9, math.nan]), r"^\[Adam\] betas\[1\]"),
    "beta Lion": (lambda: optim.Lion(0.1, [2, 0.9]), r"^\[Lion\] betas\[0\] out"),
    "no rate": (
        lambda: optim.Adafactor(relative_step=False).apply_gradients(
            {"w": mx.ones((1,))}, {"w": mx.ones((1,))}
        ),
        r"^\[Adafactor\] no learning rate: relative_step is False\. Give",
    ),
    "list": (
        lambda: optim.SGD(0.1).init([mx.ones((1,))]),
        r"^\[SGD\.init\] parameters are a list\. Expected a dict",
    ),
    "no parameter": (
        lambda: optim.SGD(0.1).apply_gradients({"w": mx.ones((1,))}, {}),
        "trees differ",
    ),
    "filters": (
        lambda: optim.MultiOptimizer([optim.SGD(0.1)], [lambda p, w: True]),
        r"^\[MultiOptimizer\] 1 filters for 1 optimizers\. There must be one",
    ),
    "no optimizers": (lambda: optim.MultiOptimizer([]), r"0 filters for 0 optimizers"),
    "state of others": (
        lambda: setattr(two_optimizers(), "state", {"states": [{}]}),
        r"^\[MultiOptimizer\.state\] not a state of this optimizer: \['states'\]\. Exp",
    ),
    "state without": (
        lambda: setattr(two_optimizers(), "state", {"step": 1}),
        r"not a state of this optimizer: \['step'\]",
    ),
    "norm": (
        lambda: optim.clip_grad_norm({"w": mx.ones((1,))}, -1.0),
        r"^\[clip_grad_norm\] max_norm out of range: -1\.0\. It must be >=0\.",
    ),
    "norm NaN": (lambda: optim.clip_grad_norm({}, math.nan), r"^\[clip_grad_norm\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


# Several optimizers, norms


def two_optimizers() -> optim.MultiOptimizer:
    return optim.MultiOptimizer(
        [optim.Adam(0.001), optim.SGD(0.1, momentum=0.9)],
        [lambda path, array: array.ndim > 1],
    )


def test_multi_optimizer_parts() -> None:
    mx.random.seed(9)
    model = network()
    weights = tree_flatten(model.parameters())
    train(model, two_optimizers(), range(3))
    alone = network()
    parts = {"weight": optim.Adam(0.001), "bias": optim.SGD(0.1, 0.9)}
    for kind, optimizer in parts.items():
        alone.load_weights(weights)
        # One kind learns by its optimizer, the other by the same steps as above.
        other = two_optimizers().optimizers[kind == "weight"]
        both = optim.MultiOptimizer(
            [optimizer, other], [lambda path, _, kind=kind: path.endswith(kind)]
        )
        train(alone, both, range(3))
        for (path, a), (_, b) in zip(
            tree_flatten(alone.parameters()), tree_flatten(model.parameters())
        ):
            assert mx.array_equal(a, b).item(), path


def test_multi_optimizer_state(tmp_path: Path) -> None:
    mx.random.seed(10)
    model, optimizer = network(), two_optimizers()
    optimizer.init(model.trainable_parameters())
    adam, sgd = (dict(tree_flatten(s)) for s in optimizer.state["states"])
    assert set(adam) == {"step", "learning_rate"} | {
        f"layers.{i}.weight.{k}" for i in (0, 3) for k in "mv"
    }
    assert set(sgd) == {"step", "learning_rate", "layers.0.bias.v", "layers.3.bias.v"}
    train(model, optimizer, range(2))
    assert optimizer.step.item() == 2
    file = str(tmp_path / "state.safetensors")
    mx.save_safetensors(file, dict(tree_flatten(optimizer.state)))
    weights = tree_flatten(model.parameters())
    train(model, optimizer, range(2, 4))
    twin, other = network().load_weights(weights), two_optimizers()
    other.state = tree_unflatten(list(mx.load(file).items()))
    train(twin, other, range(2, 4))
    for (path, a), (_, b) in zip(
        tree_flatten(model.parameters()), tree_flatten(twin.parameters())
    ):
        assert mx.array_equal(a, b).item(), path


def test_multi_optimizer_rate() -> None:
    optimizer = two_optimizers()
    assert optimizer.learning_rate.item() == pytest.approx(0.001)
    optimizer.learning_rate = 0.5
    assert [s["learning_rate"].item() for s in optimizer.state["states"]] == [0.5, 0.5]
    one = {"b": mx.array([1.0])}
    assert optimizer.apply_gradients(one, one)["b"].item() == 0.5


@pytest.mark.parametrize("max_norm", [0.0, 1.0, 8.0, 100.0])
def test_clip_grad_norm(max_norm: float) -> None:
    grads = to_arrays(GRADIENTS[0])
    clipped, norm = optim.clip_grad_norm({"a": [grads], "b": {}}, max_norm)
    want = math.sqrt(sum((g**2).sum() for g in GRADIENTS[0].values()))
    assert norm.item() == pytest.approx(want, rel=1e-6) and clipped["b"] == {}
    scale = min(1, max_norm / want)
    for key, grad in GRADIENTS[0].items():
        got = np.array(clipped["a"][0][key])
        np.testing.assert_allclose(got, grad * scale, rtol=2e-6)
        if scale == 1:
            assert mx.array_equal(clipped["a"][0][key], grads[key]).item()


def test_clip_grad_norm_of_other_dtypes() -> None:
    halves = {"a": mx.array([300.0, 400.0], mx.float16)}
    clipped, norm = optim.clip_grad_norm(halves, 5.0)
    assert norm.item() == 500.0  # its square is beyond float16
    assert clipped["a"].dtype == mx.float16
    assert clipped["a"].tolist() == pytest.approx([3, 4], rel=1e-3)
    clipped, _ = optim.clip_grad_norm({"a": mx.array([30, 40])}, 5.0)
    assert clipped["a"].tolist() == pytest.approx([3, 4])
    assert optim.clip_grad_norm({}, 1.0)[1].item() == 0.0


# Training


@pytest.mark.parametrize("kind", CLASSES)
def test_each_optimizer_learns(kind: Any) -> None:
    """The loss of a small fit falls to less than a tenth."""
    rates = {"AdaDelta": 50.0, "Adagrad": 0.3, "Lion": 0.02, "SGD": 0.3, "Muon": 0.1}
    mx.random.seed(12)
    x = mx.random.normal((64, 3))
    y = x @ mx.array([[1.0], [-2.0], [0.5]])
    model = nn.Linear(3, 1)
    options: dict[str, Any] = {}
    if kind is optim.Adafactor:
        options = {"relative_step": False, "scale_parameter": False}
    optimizer = kind(learning_rate=rates.get(kind.__name__, 0.05), **options)
    step = nn.value_and_grad(model, lambda m: nn.losses.mse_loss(m(x), y))
    first, _ = step(model)
    for _ in range(150):
        loss, gradients = step(model)
        optimizer.update(model, gradients)
        mx.eval(model.state, optimizer.state)
    assert loss.item() < 0.1 * first.item()


def test_checkpoint_of_a_module_gives_the_same_gradient() -> None:
    mx.random.seed(13)
    model = network()
    x = mx.random.normal((5, 3))
    plain = nn.value_and_grad(model, lambda x: model(x).square().sum())
    calls: list[int] = []

    def call(x: mx.array) -> mx.array:
        calls.append(1)
        return model(x)

    for saving in (nn.utils.checkpoint(model), nn.utils.checkpoint(model, call)):
        weights = model.parameters()
        saved = nn.value_and_grad(
            model, lambda x, saving=saving: saving(x).square().sum()
        )
        for (path, a), (_, b) in zip(tree_flatten(plain(x)), tree_flatten(saved(x))):
            assert mx.array_equal(a, b).item(), path
        for (path, a), (_, b) in zip(
            tree_flatten(weights), tree_flatten(model.parameters())
        ):
            assert a is b, path
    assert len(calls) == 2  # once forward, once for the gradient
    inputs = mx.grad(lambda x: nn.utils.checkpoint(model)(x).sum())(x)
    expected = mx.grad(lambda x: model(x).sum())(x)
    assert mx.array_equal(inputs, expected).item()


@pytest.mark.parametrize(
    "room",
    ["adafactor", "adam", "adaptive", "base", "multi", "muon", "sgd"],
)
def test_examples_in_docstrings(room: str) -> None:
    results = doctest.testmod(importlib.import_module(f"mlx.optimizers.{room}"))
    assert results.failed == 0 and results.attempted > 0


def test_names_of_the_rooms() -> None:
    assert optim.optimizers.Adam is optim.Adam
    assert optim.schedulers.cosine_decay is optim.cosine_decay
    assert all(hasattr(optim.optimizers, name) for name in optim.optimizers.__all__)
