"""Token by token generation: prefill, sampling, decoding, and their timing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Callable

import mlx.core as mx

from .cache import Cache, CacheAt
from .model import Llama

Sampler = Callable[[mx.array], mx.array]
Step = Callable[[mx.array], mx.array]  # a token (1,) to the one that follows it

PREFILL_STEP = 512  # tokens at a time; bounds the memory that a long prompt needs


@dataclass
class Statistics:
    """Tokens and seconds of all answers so far."""

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    tokens: int = 0
    steps: int = 0  # tokens but the first of each answer, which prefill gives
    seconds: float = 0.0  # for these steps, the caller's time included

    def line(self) -> str:
        prompt = self.prompt_tokens / max(self.prompt_seconds, 1e-9)
        generation = self.steps / max(self.seconds, 1e-9)
        return (
            f"prompt: {self.prompt_tokens} tokens, {prompt:.1f} tok/s; "
            f"generation: {self.tokens} tokens, {generation:.1f} tok/s; "
            f"peak memory {mx.get_peak_memory() / 1e6:.0f} MB"
        )


def make_sampler(temperature: float, top_p: float) -> Sampler:
    """A function from logits (1, vocabulary) to a token id (1,).

    Args:
        temperature: Divides the logits; 0 takes the best token always.
        top_p: Only the likeliest tokens that together have this probability can
            be drawn.
    """
    if temperature == 0:
        return lambda logits: mx.argmax(logits, -1)
    if top_p >= 1:
        return lambda logits: mx.random.categorical(logits * (1 / temperature))

    def sample(logits: mx.array) -> mx.array:
        probabilities = mx.softmax(logits.astype(mx.float32) * (1 / temperature), -1)
        order = mx.argsort(-probabilities, -1)
        ordered = mx.take_along_axis(probabilities, order, -1)
        # A token stays if those before it do not suffice.
        before = mx.cumsum(ordered, -1) - ordered
        kept = mx.where(before < top_p, mx.log(ordered), -mx.inf)
        drawn = mx.random.categorical(kept)
        return mx.take_along_axis(order, drawn[:, None], -1)[:, 0]

    return sample


def prefill(
    model: Llama, ids: list[int], cache: list[Cache], step: int = PREFILL_STEP
) -> mx.array:
    """Run all ids through the model; the logits (1, vocabulary) after the last."""
    logits = mx.array(0)
    for start in range(0, len(ids), step):
        logits = model(mx.array([ids[start : start + step]]), cache)
        mx.eval(logits)
    return logits


def plain_step(model: Llama, cache: list[Cache], sampler: Sampler) -> Step:
    """A step that builds its graph anew each time."""
    return lambda token: sampler(model(token[None], cache))


def compiled_step(model: Llama, cache: list[Cache], sampler: Sampler) -> Step:
    """A step that is traced once for each room that the cache has.

    Its state, the rows of the cache, the position and the random state, never
    leaves the device, and rows are written where they lie. Weights are constants
    of the trace.
    """
    place: dict[str, mx.array] = {}
    state = [[layer.rows for layer in cache], place, mx.random.state]
    known = -1  # what `place` says

    @partial(mx.compile, inputs=state, outputs=state)
    def step(token: mx.array) -> mx.array:
        position = place["position"]
        filled = mx.arange(cache[0].rows[0].shape[2]) <= position
        logits = model(
            token[None], [CacheAt(layer, position, filled) for layer in cache]
        )
        place["position"] = position + 1
        return sampler(logits)

    def run(token: mx.array) -> mx.array:
        nonlocal known
        length = cache[0].length
        if length != known:  # another question
            place["position"] = mx.array(length)
        known = length + 1
        for layer in cache:
            layer.make_room(known)
            layer.length = known
        return step(token)

    return run


def generate(
    model: Llama,
    ids: list[int],
    cache: list[Cache],
    sampler: Sampler,
    step: Step,
    max_tokens: int,
    statistics: Statistics,
) -> Iterator[int]:
    """Token ids that follow `ids`.

    The next token is being computed while the caller has the one before; the
    cache may therefore be one ahead of the ids that were given out.

    Args:
        model: The network.
        ids: What is not in the cache yet, at least one.
        cache: From `model.new_cache`; extended.
        sampler: From `make_sampler`.
        step: From `plain_step` or `compiled_step` with the three above.
        max_tokens: How many at most.
        statistics: Added to.
    """
    start = time.perf_counter()
    token = sampler(prefill(model, ids, cache))
    mx.eval(token)
    statistics.prompt_tokens += len(ids)
    statistics.prompt_seconds += time.perf_counter() - start
    last = time.perf_counter()
    for count in range(max_tokens):
        current = token
        if count + 1 < max_tokens:
            token = step(current)
            mx.async_eval(token)
        value = int(current.item())
        statistics.tokens += 1
        if count > 0:
            now = time.perf_counter()
            statistics.steps += 1
            statistics.seconds += now - last
            last = now
        yield value
