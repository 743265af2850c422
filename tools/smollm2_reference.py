#!/usr/bin/env python3
"""Independent greedy continuations of SmolLM2, in plain NumPy float32.

Written from the llama equations alone, sharing nothing with `mlx` or with
`examples/chat`, so that both can be checked against it. There is no key/value
cache: every step runs the whole sequence again, which is slow and hard to get
wrong. Run once; its results are test data.

usage: smollm2_reference.py MODEL.gguf [--out DIR] [--steps N]
needs: gguf, numpy, tokenizers, jinja2
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import jinja2
import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

Floats = npt.NDArray[np.float32]

PROMPTS = [
    "What is the capital of France?",
    "Explain in two sentences why the sky is blue.",
    "Write a Python function that returns the n-th Fibonacci number.",
    "List five fruits, one per line.",
    'Übersetze ins Deutsche: "Good morning, my friend!" 😀',
    "What is 17 + 25? Think step by step.\n\n  Then give the number 2026.",
    "Tell me a short story about a lynx who lives in the snow.",
    "Summarize: The mitochondrion makes most of the chemical energy that a "
    "cell needs. It has a double membrane and its own small genome. Cells "
    "that work hard, such as those of muscle, hold thousands of them.",
    "def add(a, b):\n    return a + b\n\nWhat does this code do?",
    "Hi",
]
LOGITS_PROMPT = 0  # whose last-position logits are kept whole


@dataclass(frozen=True)
class Sizes:
    """What the metadata says about the network."""

    layers: int
    heads: int
    kv_heads: int
    rope_base: float
    norm_eps: float


class Gguf:
    """Metadata and decoded tensors of a GGUF file."""

    def __init__(self, path: Path) -> None:
        self._reader = gguf.GGUFReader(path)
        self.tensors: dict[str, Floats] = {
            t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32)
            for t in self._reader.tensors
        }

    def __getitem__(self, key: str) -> Any:
        return self._reader.fields[key].contents()

    def sizes(self) -> Sizes:
        return Sizes(
            layers=self["llama.block_count"],
            heads=self["llama.attention.head_count"],
            kv_heads=self["llama.attention.head_count_kv"],
            rope_base=self["llama.rope.freq_base"],
            norm_eps=self["llama.attention.layer_norm_rms_epsilon"],
        )


def rms_norm(x: Floats, weight: Floats, eps: float) -> Floats:
    mean_square = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    return x / np.sqrt(mean_square + np.float32(eps)) * weight


def rope(x: Floats, base: float) -> Floats:
    """Rotate neighbouring pairs of (heads, T, D) by their position.

    llama GGUF files store the rows of q and k in the order that makes the
    pairs neighbours: (0, 1), (2, 3), ...
    """
    length, depth = x.shape[-2:]
    rates = base ** (-np.arange(0, depth, 2) / depth)
    angles = np.arange(length)[:, None] * rates
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out


def softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(x: Floats, file: Gguf, prefix: str, sizes: Sizes) -> Floats:
    """Causal self attention over x (T, E); groups of heads share k and v."""
    length = x.shape[0]

    def heads(name: str, count: int) -> Floats:
        rows = x @ file.tensors[f"{prefix}.attn_{name}.weight"].T
        return rows.reshape(length, count, -1).transpose(1, 0, 2)

    q = rope(heads("q", sizes.heads), sizes.rope_base)
    k = rope(heads("k", sizes.kv_heads), sizes.rope_base)
    v = heads("v", sizes.kv_heads)
    group = sizes.heads // sizes.kv_heads
    k, v = np.repeat(k, group, axis=0), np.repeat(v, group, axis=0)
    scores = q @ k.transpose(0, 2, 1) * np.float32(q.shape[-1] ** -0.5)
    scores[:, np.triu(np.ones((length, length), dtype=bool), 1)] = -np.inf
    mixed = (softmax(scores) @ v).transpose(1, 0, 2).reshape(length, -1)
    return mixed @ file.tensors[f"{prefix}.attn_output.weight"].T


def feed_forward(x: Floats, file: Gguf, prefix: str) -> Floats:
    gate = x @ file.tensors[f"{prefix}.ffn_gate.weight"].T
    up = x @ file.tensors[f"{prefix}.ffn_up.weight"].T
    hidden = gate / (1 + np.exp(-gate)) * up
    return hidden @ file.tensors[f"{prefix}.ffn_down.weight"].T


def last_logits(ids: list[int], file: Gguf, sizes: Sizes) -> Floats:
    """Logits (vocabulary,) after the last of `ids`."""
    embedding = file.tensors["token_embd.weight"]
    x = embedding[ids]
    for layer in range(sizes.layers):
        prefix = f"blk.{layer}"
        norm = file.tensors[f"{prefix}.attn_norm.weight"]
        x = x + attention(rms_norm(x, norm, sizes.norm_eps), file, prefix, sizes)
        norm = file.tensors[f"{prefix}.ffn_norm.weight"]
        x = x + feed_forward(rms_norm(x, norm, sizes.norm_eps), file, prefix)
    last = rms_norm(x[-1], file.tensors["output_norm.weight"], sizes.norm_eps)
    output = file.tensors.get("output.weight", embedding)
    return output @ last


def greedy(
    ids: list[int], steps: int, file: Gguf, sizes: Sizes
) -> tuple[list[int], list[float], Floats]:
    """The best token `steps` times over, the lead of the best over the second,
    and the logits of the first step. It does not stop at an end token."""
    tokens: list[int] = []
    gaps: list[float] = []
    first: Floats | None = None
    for _ in range(steps):
        logits = last_logits(ids + tokens, file, sizes)
        first = logits if first is None else first
        second, best = np.argpartition(logits, -2)[-2:]
        tokens.append(int(best))
        gaps.append(round(float(logits[best] - logits[second]), 5))
    assert first is not None
    return tokens, gaps, first


def make_tokenizer(file: Gguf) -> tokenizers.Tokenizer:
    """Byte-level BPE with single digits, as `tokenizer.ggml.pre` = smollm says."""
    if file["tokenizer.ggml.pre"] != "smollm":
        raise SystemExit("this script knows the pre-tokenizer smollm only")
    words: list[str] = file["tokenizer.ggml.tokens"]
    kinds: list[int] = file["tokenizer.ggml.token_type"]
    merges = [tuple(m.split(" ")) for m in file["tokenizer.ggml.merges"]]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # the token type of markers such as <|im_start|>
    tokenizer.add_special_tokens([w for w, k in zip(words, kinds) if k == control])
    return tokenizer


def chat_text(file: Gguf, prompt: str) -> str:
    template = jinja2.Environment().from_string(file["tokenizer.chat_template"])
    messages = [{"role": "user", "content": prompt}]
    return template.render(messages=messages, add_generation_prompt=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, default=Path("python/tests/data"))
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    file = Gguf(options.model)
    sizes, tokenizer = file.sizes(), make_tokenizer(file)
    cases: list[dict[str, Any]] = []
    for number, prompt in enumerate(PROMPTS):
        ids: list[int] = tokenizer.encode(chat_text(file, prompt)).ids
        tokens, gaps, logits = greedy(ids, options.steps, file, sizes)
        print(f"{prompt!r}\n  -> {tokenizer.decode(tokens)!r}", flush=True)
        cases.append(
            {"prompt": prompt, "ids": ids, "continuation": tokens, "gaps": gaps}
        )
        if number == LOGITS_PROMPT:
            np.save(options.out / "smollm2_logits.npy", logits)
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"logits_prompt": {LOGITS_PROMPT}, "cases": [\n{lines}\n]}}\n'
    (options.out / "smollm2_greedy.json").write_text(text)


if __name__ == "__main__":
    main()
