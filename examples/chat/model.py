"""The llama network in mlx.nn, with weights as a GGUF file stores them.

Quantized blocks stay quantized: matrices that read the same input are put one
below the other once, so that a layer needs four products with weights. Names of
tensors and metadata are those of https://github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from .cache import Cache, CacheAt, NoCache

Tensors = dict[str, mx.array]
AnyCache = Cache | CacheAt | NoCache


@dataclass(frozen=True)
class Sizes:
    """What the metadata of the file says about the network."""

    layers: int
    heads: int
    kv_heads: int
    head_dims: int
    rope_dims: int
    rope_base: float
    rope_scale: float
    norm_eps: float
    context: int

    @staticmethod
    def from_metadata(metadata: dict[str, Any]) -> Sizes:
        def number(key: str, default: float | None = None) -> Any:
            value = metadata.get(f"llama.{key}", default)
            if value is None:
                raise ValueError(f"the metadata lacks llama.{key}")
            return value.item() if isinstance(value, mx.array) else value

        heads = number("attention.head_count")
        head_dims = number(
            "attention.key_length", number("embedding_length") // max(heads, 1)
        )
        stretched = metadata.get("llama.rope.scaling.type") == "linear"
        return Sizes(
            layers=number("block_count"),
            heads=heads,
            kv_heads=number("attention.head_count_kv", heads),
            head_dims=head_dims,
            rope_dims=number("rope.dimension_count", head_dims),
            rope_base=number("rope.freq_base", 10000.0),
            rope_scale=1 / number("rope.scaling.factor", 1.0) if stretched else 1.0,
            norm_eps=number("attention.layer_norm_rms_epsilon"),
            context=number("context_length", 2048),
        )


class Stacked(nn.Module):
    """Maps of one input that are stored differently, results side by side."""

    def __init__(self, parts: list[nn.Module]) -> None:
        super().__init__()
        self.parts = parts

    def __call__(self, x: mx.array) -> mx.array:
        return mx.concatenate([part(x) for part in self["parts"]], -1)


def take(tensors: Tensors, name: str) -> Tensors:
    """Remove and return `weight` and, if quantized, `scales` and `biases`."""
    kinds = [k for k in ("weight", "scales", "biases") if f"{name}.{k}" in tensors]
    if "weight" not in kinds:
        raise ValueError(f"the tensor {name}.weight is missing")
    return {kind: tensors.pop(f"{name}.{kind}") for kind in kinds}


def layout(part: Tensors) -> dict[str, int]:
    """Group size and bits: 32 codes and a scale make a block of the file."""
    groups = part["scales"].shape[1]
    return {"group_size": 32, "bits": part["weight"].shape[1] // groups}


def linear(tensors: Tensors, *names: str) -> nn.Module:
    """The map whose rows are those of the named matrices, as they are stored."""
    parts = [take(tensors, name) for name in names]
    if len({(len(p), p["weight"].dtype, p["weight"].shape[1]) for p in parts}) > 1:
        return Stacked([as_linear(part) for part in parts])
    if len(parts) == 1:
        return as_linear(parts[0])
    return as_linear(
        {kind: mx.concatenate([part[kind] for part in parts]) for kind in parts[0]}
    )


def as_linear(part: Tensors) -> nn.Module:
    rows, columns = part["weight"].shape
    if "scales" not in part:
        return nn.Linear(columns, rows, bias=False).update(part)
    width = 32 * part["scales"].shape[1]
    return nn.QuantizedLinear(width, rows, bias=False, **layout(part)).update(part)


class Table(nn.QuantizedEmbedding):
    """Rows are worked out in float32: float16, as the scales are stored in, has
    too few digits for code * scale."""

    def __call__(self, ids: mx.array) -> mx.array:
        codes, scales, biases = (
            self[kind][ids] for kind in ("weight", "scales", "biases")
        )
        return mx.dequantize(
            codes,
            scales.astype(mx.float32),
            biases.astype(mx.float32),
            group_size=self.group_size,
            bits=self.bits,
        )


def embedding(tensors: Tensors, name: str) -> nn.Module:
    part = take(tensors, name)
    rows, columns = part["weight"].shape
    if "scales" not in part:
        return nn.Embedding(rows, columns).update(part)
    width = 32 * part["scales"].shape[1]
    return Table(rows, width, **layout(part)).update(part)


def norm(tensors: Tensors, name: str, eps: float) -> nn.Module:
    part = take(tensors, name)
    return nn.RMSNorm(part["weight"].shape[0], eps).update(part)


class Block(nn.Module):
    """Attention, then the gated feed-forward net, each added to its input.

    Reads its items as ``self["name"]``: that is quicker than an attribute, and
    a token passes here thirty times.
    """

    def __init__(self, sizes: Sizes, tensors: Tensors, prefix: str) -> None:
        super().__init__()
        self.sizes = sizes
        self.norm1 = norm(tensors, f"{prefix}.attn_norm", sizes.norm_eps)
        names = [f"{prefix}.attn_{name}" for name in "qkv"]
        self.queries_keys_values = linear(tensors, *names)
        self.output = linear(tensors, f"{prefix}.attn_output")
        self.norm2 = norm(tensors, f"{prefix}.ffn_norm", sizes.norm_eps)
        self.gate_up = linear(tensors, f"{prefix}.ffn_gate", f"{prefix}.ffn_up")
        self.down = linear(tensors, f"{prefix}.ffn_down")

    def __call__(self, x: mx.array, rope: Any, cache: AnyCache) -> mx.array:
        x = x + self.attention(self["norm1"](x), rope, cache).astype(x.dtype)
        gate_up = self["gate_up"](self["norm2"](x)).astype(x.dtype)
        gate, up = mx.split(gate_up, 2, -1)
        return x + self["down"](nn.silu(gate) * up).astype(x.dtype)

    def attention(self, x: mx.array, rope: Any, cache: AnyCache) -> mx.array:
        sizes, (count, length) = self.sizes, x.shape[:2]
        rows = self["queries_keys_values"](x).astype(x.dtype)
        rows = rows.reshape(count, length, -1, sizes.head_dims).transpose(0, 2, 1, 3)
        turned = sizes.heads + sizes.kv_heads
        # Queries and keys lie side by side and turn together.
        queries_keys, values = mx.split(rows, [turned], 1)
        queries, keys = mx.split(rope(queries_keys, cache.length), [sizes.heads], 1)
        keys, values = cache.extend(keys, values)
        mixed = mx.fast.scaled_dot_product_attention(
            queries,
            keys,
            values,
            scale=sizes.head_dims**-0.5,
            mask=cache.mask(length),
        )
        return self["output"](mixed.transpose(0, 2, 1, 3).reshape(count, length, -1))


class Llama(nn.Module):
    """The network: token ids (N, length) to logits (N, vocabulary) of the next.

    Args:
        metadata: Of the GGUF file.
        tensors: Of the GGUF file; those that are used are taken out.
        dtype: Of the activations and of weights that are not quantized.

    Raises:
        ValueError: If the file does not hold a network of this kind.
    """

    def __init__(
        self, metadata: dict[str, Any], tensors: Tensors, dtype: mx.Dtype
    ) -> None:
        super().__init__()
        kind = metadata.get("general.architecture", "unknown")
        if kind != "llama":
            raise ValueError(f"its architecture is {kind}, not llama")
        self.sizes = sizes = Sizes.from_metadata(metadata)
        self.dtype = dtype
        self.embedding = embedding(tensors, "token_embd")
        count = range(sizes.layers)
        self.blocks = [Block(sizes, tensors, f"blk.{i}") for i in count]
        self.norm = norm(tensors, "output_norm", sizes.norm_eps)
        if "output.weight" in tensors:  # else the embedding serves as output
            self.output = linear(tensors, "output")
        self._rope_freqs = self.frequencies(tensors.pop("rope_freqs.weight", None))
        if tensors:
            raise ValueError(f"it has tensors of another network: {min(tensors)}")
        self.to_dtype()

    def frequencies(self, factors: mx.array | None) -> mx.array | None:
        """Wave lengths of the rope where the file stretches them one by one."""
        if factors is None:
            return None
        pairs = mx.arange(0, self.sizes.rope_dims, 2) / self.sizes.rope_dims
        return factors * self.sizes.rope_base**pairs

    def to_dtype(self) -> None:
        """Cast what is not quantized; scales and biases stay as stored."""

        def cast(path: str, module: nn.Module) -> None:
            if "scales" not in module and "weight" in module:
                module.set_dtype(self.dtype)

        self.apply_to_modules(cast)

    def rope(self, x: mx.array, offset: int | mx.array) -> mx.array:
        # GGUF files of this family store the rows of q and k so that the pairs
        # that turn together are neighbours: the traditional order.
        return mx.fast.rope(
            x,
            self.sizes.rope_dims,
            traditional=True,
            base=self.sizes.rope_base if self._rope_freqs is None else None,
            scale=self.sizes.rope_scale,
            offset=offset,
            freqs=self._rope_freqs,
        )

    def new_cache(self) -> list[Cache]:
        return [Cache() for _ in self.blocks]

    def __call__(self, ids: mx.array, cache: Sequence[AnyCache]) -> mx.array:
        return self.logits(self.hidden(ids, cache)[:, -1])

    def hidden(self, ids: mx.array, cache: Sequence[AnyCache]) -> mx.array:
        """What the last block gives (N, length, width)."""
        x = self["embedding"](ids).astype(self.dtype)
        for block, layer_cache in zip(self["blocks"], cache):
            x = block(x, self.rope, layer_cache)
        return x

    def logits(self, x: mx.array) -> mx.array:
        """Logits (..., vocabulary) of what follows, from `hidden`."""
        x = self["norm"](x)
        return self["output"](x) if "output" in self else self["embedding"].as_linear(x)
