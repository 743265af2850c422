"""Low-rank adapters: small matrices beside the frozen ones of the attention.

Hu et al., "LoRA: low-rank adaptation of large language models" (2021),
https://arxiv.org/abs/2106.09685. The model stays as it is, quantized too. A folder
holds an adapter: ``adapters.safetensors`` and ``adapter_config.json``.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from .model import Llama

WEIGHTS, CONFIG = "adapters.safetensors", "adapter_config.json"


@dataclass(frozen=True)
class Config:
    """How an adapter is built, and for which network.

    Attributes:
        rank: Of the product of the two matrices.
        scale: Factor of that product.
        width: Of the network.
        blocks: Of the network.
    """

    rank: int
    scale: float
    width: int
    blocks: int


class LoRA(nn.Module):
    """``base(x) + scale * (x @ lora_a.T) @ lora_b.T``.

    `lora_a` (rank, inputs) is drawn uniformly from +-1/sqrt(inputs), `lora_b`
    (outputs, rank) is zero: at first nothing is added.

    Args:
        base: A map of the last axis; frozen.
        inputs: Length of the last axis of its input.
        outputs: Length of the last axis of its output.
        rank: Of what is added.
        scale: Factor of what is added.
    """

    def __init__(
        self, base: nn.Module, inputs: int, outputs: int, rank: int, scale: float
    ) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.base = base.freeze()
        self.scale = scale
        self.lora_a = mx.random.uniform(-bound, bound, (rank, inputs))
        self.lora_b = mx.zeros((outputs, rank))

    def __call__(self, x: mx.array) -> mx.array:
        added = (x @ self["lora_a"].T) @ self["lora_b"].T
        return self["base"](x) + (self.scale * added).astype(x.dtype)


def add_lora(model: Llama, rank: int, scale: float) -> Config:
    """Freeze the model and put a `LoRA` around the projections of each attention.

    Queries, keys and values are one matrix here, so they share a `lora_a`.
    """
    sizes, width = model.sizes, model.norm.weight.shape[0]
    mixed = sizes.heads * sizes.head_dims
    read = mixed + 2 * sizes.kv_heads * sizes.head_dims
    model.freeze()
    for block in model.blocks:
        block.queries_keys_values = LoRA(
            block.queries_keys_values, width, read, rank, scale
        )
        block.output = LoRA(block.output, mixed, width, rank, scale)
    return Config(rank, scale, width, len(model.blocks))


def save_adapter(model: Llama, config: Config, folder: Path) -> None:
    """Write what `add_lora` has added."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = dict(tree_flatten(model.trainable_parameters()))
    mx.save_safetensors(str(folder / WEIGHTS), arrays)
    text = json.dumps({"fine_tune_type": "lora", **asdict(config)}, indent=2)
    (folder / CONFIG).write_text(text + "\n")


def add_adapter(model: Llama, folder: Path) -> Config:
    """Add what `save_adapter` wrote.

    Raises:
        ValueError: If it belongs to a network of other sizes, or is damaged.
    """
    table: Any = json.loads((folder / CONFIG).read_text())
    kinds = {"rank": int, "scale": float, "width": int, "blocks": int}
    try:
        config = Config(**{name: kind(table[name]) for name, kind in kinds.items()})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{CONFIG} does not describe an adapter: {error}") from None
    width, blocks = model.norm.weight.shape[0], len(model.blocks)
    if (config.width, config.blocks) != (width, blocks):
        raise ValueError(
            f"it is for {config.blocks} blocks of width {config.width}, the model has "
            f"{blocks} of {width}"
        )
    if config.rank < 1:
        raise ValueError(f"its rank is {config.rank}, less than 1")
    add_lora(model, config.rank, config.scale)
    arrays = mx.load(str(folder / WEIGHTS), format="safetensors")
    own = dict(tree_flatten(model.trainable_parameters()))
    if {n: a.shape for n, a in arrays.items()} != {n: a.shape for n, a in own.items()}:
        raise ValueError(f"{WEIGHTS} holds other arrays than {CONFIG} says")
    model.load_weights(list(arrays.items()), strict=False)
    return config
