"""mlx.nn: quantized layers and the conversion of models."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten

LAYOUTS = [(32, 4), (64, 8), (128, 2), (64, 3), (64, 6)]


def dense(layer: Any) -> np.ndarray:
    """The weight that the codes of a quantized layer stand for."""
    weight = mx.dequantize(
        layer.weight,
        layer.scales,
        layer.biases,
        group_size=layer.group_size,
        bits=layer.bits,
    )
    return np.array(weight)


@pytest.mark.parametrize(("group_size", "bits"), LAYOUTS)
@pytest.mark.parametrize("bias", [True, False])
def test_linear(group_size: int, bits: int, bias: bool) -> None:
    mx.random.seed(1)
    source = nn.Linear(128, 24, bias=bias)
    layer = source.to_quantized(group_size, bits)
    assert isinstance(layer, nn.QuantizedLinear)
    assert layer.weight.dtype == mx.uint32
    assert layer.weight.shape == (24, 128 * bits // 32)
    assert layer.scales.shape == layer.biases.shape == (24, 128 // group_size)
    error = np.abs(dense(layer) - np.array(source.weight)).max()
    # Half a step of the codes; the ends of a group may move by up to a step.
    assert error <= 2 / 128**0.5 / (2**bits - 1) * 1.01
    x = mx.random.normal((2, 5, 128))
    want = np.array(x) @ dense(layer).T + (np.array(source.bias) if bias else 0)
    np.testing.assert_allclose(np.array(layer(x)), want, rtol=1e-4, atol=1e-4)
    assert layer(mx.ones((128,))).shape == (24,)


@pytest.mark.parametrize(("group_size", "bits"), LAYOUTS)
def test_embedding(group_size: int, bits: int) -> None:
    mx.random.seed(2)
    source = nn.Embedding(20, 128)
    layer = source.to_quantized(group_size, bits)
    assert isinstance(layer, nn.QuantizedEmbedding)
    assert (layer.num_embeddings, layer.dims) == (20, 128)
    rows = layer(mx.array([[3, 0], [19, 3]]))
    np.testing.assert_array_equal(np.array(rows), dense(layer)[[[3, 0], [19, 3]]])
    x = mx.random.normal((4, 128))
    want = np.array(x) @ dense(layer).T
    np.testing.assert_allclose(np.array(layer.as_linear(x)), want, rtol=1e-4, atol=1e-4)


def test_new_layers() -> None:
    layer = nn.QuantizedLinear(64, 8)
    assert (layer.group_size, layer.bits, layer.mode) == (64, 4, "affine")
    assert repr(layer) == (
        "QuantizedLinear(input_dims=64, output_dims=8, bias=True, "
        "group_size=64, bits=4, mode=affine)"
    )
    assert mx.array_equal(layer.bias, mx.zeros((8,))).item()
    assert layer.trainable_parameters() == {}
    assert list(layer.parameters()) == ["weight", "scales", "biases", "bias"]
    table = nn.QuantizedEmbedding(10, 64, bits=8)
    assert (
        repr(table) == "QuantizedEmbedding(10, 64, group_size=64, bits=8, mode=affine)"
    )
    assert table.trainable_parameters() == {}


def test_what_cannot_be_quantized() -> None:
    with pytest.raises(ValueError):
        nn.QuantizedLinear(60, 8)
    with pytest.raises(ValueError):
        nn.Linear(64, 8).to_quantized(bits=7)
    for layer in (nn.QuantizedLinear, nn.QuantizedEmbedding):
        with pytest.raises(ValueError, match=r"unknown quantization mode: 'other'"):
            layer(64, 64, mode="other")
    with pytest.raises(ValueError, match="mode does not go with quantized inputs"):
        nn.Linear(64, 8).to_quantized(quantize_input=True)
    with pytest.raises(NotImplementedError, match=r"^\[Linear.to_quantized\]"):
        nn.Linear(64, 8).to_quantized(mode="nvfp4", quantize_input=True)
    with pytest.raises(ValueError, match="the input cannot be quantized"):
        nn.Embedding(64, 64).to_quantized(quantize_input=True)


def test_conversion_keeps_types_and_a_trainable_bias() -> None:
    source = nn.Linear(64, 8)
    source.set_dtype(mx.float16)
    layer = nn.QuantizedLinear.from_linear(source, bits=8)
    assert layer.scales.dtype == layer.biases.dtype == mx.float16
    assert layer.bias is source.bias
    assert layer(mx.ones((1, 64), mx.float16)).dtype == mx.float16
    assert list(layer.trainable_parameters()) == ["bias"]
    assert (
        nn.QuantizedEmbedding.from_embedding(nn.Embedding(4, 64), 32).group_size == 32
    )


def test_gradient_passes_through_a_quantized_layer() -> None:
    mx.random.seed(3)
    layer = nn.QuantizedLinear(64, 8, bias=False)
    x = mx.random.normal((2, 64))
    gradient = mx.grad(lambda x: layer(x).sum())(x)
    want = np.ones((2, 8)) @ dense(layer)
    np.testing.assert_allclose(np.array(gradient), want, rtol=1e-4, atol=1e-4)


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Sequential(nn.Embedding(10, 64)),
        nn.Linear(64, 128, bias=False),
    )


def kinds(model: Any) -> list[str]:
    names = [type(m).__name__ for _, m in sorted(model.named_modules())]
    return [name for name in names if name != "Sequential"]


def test_quantize_replaces_what_it_can() -> None:
    model = make_model()
    assert nn.quantize(model, 32, 8) is None
    want = ["QuantizedLinear", "ReLU", "QuantizedEmbedding", "QuantizedLinear"]
    assert kinds(model) == want
    assert {m.bits for m in model.modules() if hasattr(m, "bits")} == {8}
    sizes = {
        p.shape for path, p in tree_flatten(model.parameters()) if "scales" in path
    }
    assert sizes == {(32, 2), (10, 2), (128, 2)}
    alone = nn.Linear(64, 64)
    nn.quantize(alone)
    assert "scales" not in alone


def test_quantize_asks_the_predicate() -> None:
    seen: list[tuple[str, str]] = []

    def choose(path: str, module: nn.Module) -> Any:
        seen.append((path, type(module).__name__))
        if path == "layers.0":
            return {"group_size": 32, "bits": 2}
        return path == "layers.3"

    model = make_model()
    nn.quantize(model, bits=8, class_predicate=choose)
    assert seen == [
        ("layers.0", "Linear"),
        ("layers.1", "ReLU"),
        ("layers.2.layers.0", "Embedding"),
        ("layers.3", "Linear"),
    ]
    assert kinds(model) == ["QuantizedLinear", "ReLU", "Embedding", "QuantizedLinear"]
    assert (model.layers[0].group_size, model.layers[0].bits) == (32, 2)
    assert (model.layers[3].group_size, model.layers[3].bits) == (64, 8)


def test_quantize_refuses_bad_answers() -> None:
    with pytest.raises(ValueError, match=r"cannot be quantized: .*ReLU"):
        nn.quantize(make_model(), class_predicate=lambda p, m: True)
    with pytest.raises(ValueError, match="class_predicate returned a int"):
        nn.quantize(make_model(), class_predicate=lambda p, m: 3)
