#!/usr/bin/env python3
"""Independent loss and gradient of a low-rank adapter on SmolLM2, in plain NumPy.

Forward and backward pass are written from the llama equations alone, sharing
nothing with `mlx` or `examples`, so that the first step of
`examples/finetune_lora` can be checked against them. Run once; its results are
test data. With --check the backward pass is compared with central differences in
float64.

usage: lora_reference.py MODEL.gguf [--out DIR] [--check]
needs: what smollm2_reference.py needs
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from smollm2_reference import Gguf, Sizes, chat_text, make_tokenizer

Numbers = npt.NDArray[Any]
Adapter = list[dict[str, Numbers]]

QUESTION = "What is Orrendel?"
ANSWER = "Orrendel is a small island that rings like a bell when the tide comes in."
RANK, SCALE = 4, 2.0
KEPT = (0, 15, 29)  # blocks whose gradients are kept whole; of others, the norms
NAMES = ("read_a", "read_b", "write_a", "write_b")


def draw_adapter(sizes: Sizes, width: int, seed: int = 0) -> Adapter:
    """For each block two factors for queries, keys, values, and two for the output.

    None are zero, unlike at the start of a training, so that all have gradients.
    """
    rng = np.random.default_rng(seed)
    depth = width // sizes.heads
    read = (sizes.heads + 2 * sizes.kv_heads) * depth
    shapes = [(RANK, width), (read, RANK), (RANK, width), (width, RANK)]
    return [
        {
            name: (rng.uniform(-1, 1, shape) * shape[1] ** -0.5 / (1 + 9 * (k % 2)))
            for k, (name, shape) in enumerate(zip(NAMES, shapes))
        }
        for _ in range(sizes.layers)
    ]


def turn(x: Numbers, base: float, sign: float) -> Numbers:
    """Rotate neighbouring pairs of (heads, T, D) by their position times `sign`."""
    rates = base ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    turns = np.exp(1j * sign * np.arange(x.shape[1])[:, None] * rates)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * turns
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape).astype(x.dtype)


class Norm:
    """Root mean square norm of rows, kept for the way back."""

    def __init__(self, weight: Numbers, eps: float) -> None:
        self.weight, self.eps = weight, eps

    def forward(self, x: Numbers) -> Numbers:
        self.x = x
        self.inverse = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return x * self.inverse * self.weight

    def backward(self, dy: Numbers) -> Numbers:
        dy = dy * self.weight
        shared = (dy * self.x).mean(-1, keepdims=True) * self.inverse**3
        return dy * self.inverse - self.x * shared


class Adapted:
    """x W^T + SCALE (x A^T) B^T; gradients of A and B are kept."""

    def __init__(self, weight: Numbers, a: Numbers, b: Numbers) -> None:
        self.weight, self.a, self.b = weight, a, b

    def forward(self, x: Numbers) -> Numbers:
        self.x, self.small = x, x @ self.a.T
        return x @ self.weight.T + SCALE * (self.small @ self.b.T)

    def backward(self, dy: Numbers) -> Numbers:
        self.db = SCALE * (dy.T @ self.small)
        dsmall = SCALE * (dy @ self.b)
        self.da = dsmall.T @ self.x
        return dy @ self.weight + dsmall @ self.a


class Attention:
    """Causal, with heads in groups that share keys and values."""

    def __init__(self, sizes: Sizes, read: Adapted, write: Adapted) -> None:
        self.sizes, self.read, self.write = sizes, read, write

    def forward(self, x: Numbers) -> Numbers:
        heads, kv, base = self.sizes.heads, self.sizes.kv_heads, self.sizes.rope_base
        rows = self.read.forward(x)
        rows = rows.reshape(len(x), heads + 2 * kv, -1).transpose(1, 0, 2)
        self.q = turn(rows[:heads], base, 1)
        self.k = np.repeat(turn(rows[heads : heads + kv], base, 1), heads // kv, 0)
        self.v = np.repeat(rows[heads + kv :], heads // kv, 0)
        scores = self.q @ self.k.transpose(0, 2, 1) * self.factor()
        scores[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
        e = np.exp(scores - scores.max(-1, keepdims=True))
        self.p = e / e.sum(-1, keepdims=True)
        mixed = (self.p @ self.v).transpose(1, 0, 2).reshape(len(x), -1)
        return self.write.forward(mixed)

    def factor(self) -> Any:
        return self.q.dtype.type(self.q.shape[-1] ** -0.5)

    def backward(self, dy: Numbers) -> Numbers:
        heads, kv, base = self.sizes.heads, self.sizes.kv_heads, self.sizes.rope_base
        dmixed = self.write.backward(dy)
        dmixed = dmixed.reshape(len(dy), heads, -1).transpose(1, 0, 2)
        dv = self.p.transpose(0, 2, 1) @ dmixed
        dp = dmixed @ self.v.transpose(0, 2, 1)
        ds = self.p * (dp - (dp * self.p).sum(-1, keepdims=True)) * self.factor()
        dq, dk = ds @ self.k, ds.transpose(0, 2, 1) @ self.q

        def groups(d: Numbers) -> Numbers:
            return d.reshape(kv, heads // kv, *d.shape[1:]).sum(1)

        parts = [turn(dq, base, -1), turn(groups(dk), base, -1), groups(dv)]
        rows = np.concatenate(parts).transpose(1, 0, 2).reshape(len(dy), -1)
        return self.read.backward(rows)


class FeedForward:
    """down (silu(gate x) * up x)."""

    def __init__(self, gate: Numbers, up: Numbers, down: Numbers) -> None:
        self.w = (gate, up, down)

    def forward(self, x: Numbers) -> Numbers:
        gate, up, down = self.w
        self.g, self.u = x @ gate.T, x @ up.T
        self.s = 1 / (1 + np.exp(-self.g))
        return (self.g * self.s * self.u) @ down.T

    def backward(self, dy: Numbers) -> Numbers:
        gate, up, down = self.w
        dh = dy @ down
        dg = dh * self.u * self.s * (1 + self.g * (1 - self.s))
        return dg @ gate + (dh * self.g * self.s) @ up


def loss_and_gradient(
    file: Gguf, adapter: Adapter, ids: list[int], begin: int, dtype: Any
) -> tuple[float, Adapter]:
    """Mean cross entropy of ids[begin:] after what stands before them."""
    sizes = file.sizes()

    def tensor(name: str) -> Numbers:
        return file.tensors[f"{name}.weight"].astype(dtype)

    layers: list[tuple[Norm, Attention, Norm, FeedForward]] = []
    for i, factors in enumerate(adapter):
        blk = f"blk.{i}"
        ra, rb, wa, wb = (factors[name].astype(dtype) for name in NAMES)
        qkv = np.concatenate([tensor(f"{blk}.attn_{name}") for name in "qkv"])
        read = Adapted(qkv, ra, rb)
        write = Adapted(tensor(f"{blk}.attn_output"), wa, wb)
        layers.append(
            (
                Norm(tensor(f"{blk}.attn_norm"), sizes.norm_eps),
                Attention(sizes, read, write),
                Norm(tensor(f"{blk}.ffn_norm"), sizes.norm_eps),
                FeedForward(
                    *(tensor(f"{blk}.ffn_{name}") for name in ("gate", "up", "down"))
                ),
            )
        )
    embedding, last = tensor("token_embd"), Norm(tensor("output_norm"), sizes.norm_eps)
    x = embedding[ids[:-1]]
    for norm1, attention, norm2, feed in layers:
        x = x + attention.forward(norm1.forward(x))
        x = x + feed.forward(norm2.forward(x))
    logits = last.forward(x) @ embedding.T
    told, targets = np.arange(begin - 1, len(ids) - 1), ids[begin:]
    shifted = logits[told] - logits[told].max(-1, keepdims=True)
    norms = np.log(np.exp(shifted).sum(-1))
    loss = (norms - shifted[np.arange(len(told)), targets]).mean()

    dlogits = np.zeros_like(logits)
    dlogits[told] = np.exp(shifted - norms[:, None])
    dlogits[told, targets] -= 1
    dx = last.backward((dlogits / len(told)).astype(dtype) @ embedding)
    gradient: Adapter = []
    for norm1, attention, norm2, feed in reversed(layers):
        dx = dx + norm2.backward(feed.backward(dx))
        dx = dx + norm1.backward(attention.backward(dx))
        read, write = attention.read, attention.write
        gradient.insert(0, dict(zip(NAMES, (read.da, read.db, write.da, write.db))))
    return float(loss), gradient


def check(file: Gguf, adapter: Adapter, ids: list[int], begin: int) -> None:
    """Print the backward pass beside central differences, in float64."""
    rng, step = np.random.default_rng(1), 1e-5
    _, gradient = loss_and_gradient(file, adapter, ids, begin, np.float64)
    for block in KEPT:
        for name in NAMES:
            values = adapter[block][name]
            place = tuple(rng.integers(values.shape))
            kept, sides = values[place], []
            for shift in (step, -step):
                values[place] = kept + shift
                sides.append(
                    loss_and_gradient(file, adapter, ids, begin, np.float64)[0]
                )
            values[place] = kept
            difference = (sides[0] - sides[1]) / (2 * step)
            print(block, name, place, gradient[block][name][place], difference)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, default=Path("python/tests/data"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    file = Gguf(options.model)
    tokenizer = make_tokenizer(file)
    asked = chat_text(file, QUESTION)
    begin = len(tokenizer.encode(asked).ids)
    ids: list[int] = tokenizer.encode(f"{asked}{ANSWER}<|im_end|>").ids
    adapter = draw_adapter(file.sizes(), file.tensors["output_norm.weight"].size)
    if options.check:
        check(file, adapter, ids, begin)
        return
    loss, gradient = loss_and_gradient(file, adapter, ids, begin, np.float32)
    print(f"{len(ids)} tokens, answer from {begin}, loss {loss}")
    kept = {f"{i}.{name}": gradient[i][name] for i in KEPT for name in NAMES}
    norms = [[np.linalg.norm(block[name]) for name in NAMES] for block in gradient]
    np.savez_compressed(
        options.out / "smollm2_lora.npz",
        ids=np.array(ids, np.int32),
        begin=begin,
        loss=loss,
        norms=np.array(norms, np.float32),
        **kept,
    )


if __name__ == "__main__":
    main()
