"""The compiled step of examples/chat: the tokens of the plain one, few traces, and
caches that are written where they lie. The network is the tiny one of test_chat.py.
"""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from test_chat import WORDS, quantized, run, tiny_metadata, tiny_tensors

from examples.chat.__main__ import Conversation
from examples.chat.cache import Cache
from examples.chat.files import default_model, load
from examples.chat.generate import (
    Sampler,
    Statistics,
    compiled_step,
    generate,
    make_sampler,
    plain_step,
    prefill,
)
from examples.chat.lora import add_lora, save_adapter
from examples.chat.model import Llama
from examples.chat.tokenizer import ChatTokenizer


@pytest.fixture
def tiny() -> Llama:
    return Llama(tiny_metadata(), quantized(tiny_tensors(), 8), mx.float32)


class Talk:
    """Tokens of one answer after the other, from one cache and one step."""

    def __init__(self, model: Llama, sampler: Sampler, compiled: bool) -> None:
        self.cache = model.new_cache()
        self._model, self._sampler = model, sampler
        make = compiled_step if compiled else plain_step
        self._step = make(model, self.cache, sampler)

    def answer(self, ids: list[int], count: int) -> list[int]:
        tokens = generate(
            self._model,
            ids,
            self.cache,
            self._sampler,
            self._step,
            count,
            Statistics(),
        )
        return list(tokens)


def lengths(talk: Talk) -> set[tuple[int, int]]:
    """Positions that are filled, and room, of all layers."""
    return {(layer.length, layer.rows[0].shape[2]) for layer in talk.cache}


SAMPLERS = {
    "greedy": (0.0, 1.0),
    "drawn": (1.5, 1.0),
    "likeliest": (1.5, 0.8),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_over_two_growths_of_the_cache(tiny: Llama, name: str) -> None:
    told = []
    for compiled in (False, True):
        mx.random.seed(7)
        talk = Talk(tiny, make_sampler(*SAMPLERS[name]), compiled)
        told.append(talk.answer([5, 6, 7], 600))
        assert lengths(talk) == {(3 + 599, 768)}
    assert told[0] == told[1]
    assert name == "greedy" or len(set(told[0])) > 50


@pytest.mark.parametrize("start", [1, 255, 256, 257])
def test_first_step_at_the_edge_of_the_room(tiny: Llama, start: int) -> None:
    ids = np.random.default_rng(start).integers(0, len(WORDS), start).tolist()
    mx.random.seed(1)
    plain = Talk(tiny, make_sampler(1.0, 1.0), False).answer(ids, 6)
    mx.random.seed(1)
    assert Talk(tiny, make_sampler(1.0, 1.0), True).answer(ids, 6) == plain


def test_answers_to_more_questions_and_forgetting(tiny: Llama) -> None:
    told = []
    for compiled in (False, True):
        mx.random.seed(3)
        talk = Talk(tiny, make_sampler(1.0, 1.0), compiled)
        answers = [talk.answer([1, 2, 3], 20)]
        answers.append(talk.answer([4, 5], 20))  # goes on where the first ended
        for layer in talk.cache:
            layer.length = 8
        answers.append(talk.answer([9, 8, 7], 300))
        told.append(answers)
    assert told[0] == told[1]


def test_each_room_is_traced_once(tiny: Llama) -> None:
    calls = 0

    def sampler(logits: mx.array) -> mx.array:
        nonlocal calls
        calls += 1
        return mx.argmax(logits, -1)

    talk = Talk(tiny, sampler, True)
    talk.answer([1, 2, 3], 200)
    assert calls == 2  # the first token of the answer, and a trace
    talk.answer([4], 40)
    assert calls == 3
    talk.answer([4], 40)
    assert calls == 5 and lengths(talk) == {(3 + 199 + 1 + 39 + 1 + 39, 512)}


def test_caches_are_written_where_they_lie(
    tiny: Llama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cache, "step", 2**15)
    talk = Talk(tiny, make_sampler(0, 1), True)
    talk.answer([1, 2, 3], 5)
    one = talk.cache[0].rows[0].nbytes
    assert one >= 2**21
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    talk.answer([1], 20)
    # A copy of one layer's keys would be seen; what a token needs is less.
    assert mx.get_peak_memory() - before < one


def test_step_agrees_with_reading_everything_afresh(tiny: Llama) -> None:
    ids = [5, 6, 7]
    talk = Talk(tiny, make_sampler(0, 1), True)
    tokens = talk.answer(ids, 12)
    for i, token in enumerate(tokens):
        logits = prefill(tiny, ids + tokens[:i], tiny.new_cache())
        assert mx.argmax(logits, -1).item() == token


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_keep_their_caches_type(dtype: str) -> None:
    kind = getattr(mx, dtype)
    model = Llama(tiny_metadata(), quantized(tiny_tensors(), 4), kind)
    talk = Talk(model, make_sampler(0, 1), True)
    assert len(talk.answer([1, 2, 3], 260)) == 260
    assert {rows.dtype for layer in talk.cache for rows in layer.rows} == {kind}


def test_adapter(tiny: Llama) -> None:
    base = Talk(tiny, make_sampler(0, 1), True).answer([1, 2, 3], 40)
    add_lora(tiny, 4, 2.0)
    for block in tiny.blocks:
        for part in (block.queries_keys_values, block.output):
            part.lora_b = mx.random.normal(part.lora_b.shape, key=mx.random.key(1))
    plain = Talk(tiny, make_sampler(0, 1), False).answer([1, 2, 3], 40)
    assert Talk(tiny, make_sampler(0, 1), True).answer([1, 2, 3], 40) == plain != base


def test_conversation_and_program(
    tiny: Llama, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for compiled in (True, False):
        mx.random.seed(5)
        talk = Conversation(
            tiny, ChatTokenizer(tiny_metadata()), make_sampler(1, 1), 30, compiled
        )
        for question in ("one", "two", "three"):
            talk.ask(question)
        told.append(talk._messages)
    assert told[0] == told[1] and len(told[0]) == 6
    capsys.readouterr()

    file = tmp_path / "tiny.gguf"
    mx.save_gguf(str(file), tiny_tensors(), tiny_metadata())
    save_adapter(tiny, add_lora(tiny, 4, 2.0), tmp_path / "adapter")
    common = ["--model", file, "--prompt", "hi", "--max-tokens", 60]
    common += ["--temperature", 2, "--seed", 4]
    for more in ([], ["--adapter", tmp_path / "adapter"]):
        compiled = run(capsys, *common, *more)
        plain = run(capsys, *common, *more, "--no-compile")
        assert compiled[0] == plain[0] == 0
        assert compiled[1] == plain[1] != ""


@pytest.mark.slow
def test_smollm2_tells_the_same() -> None:
    model, tokenizer = load(default_model(), mx.float32)
    question = {"role": "user", "content": "Tell me a long story about the sea."}
    ids = tokenizer.encode_chat([question])
    told = []
    for compiled in (False, True):
        talk = Talk(model, make_sampler(0, 1), compiled)
        told.append([talk.answer(ids, 300), talk.answer(ids, 100)])
    assert told[0] == told[1]
