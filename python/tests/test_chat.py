"""examples/chat: arguments, files, tokens, and the network behind the answer.

Most tests use a tiny network with random weights that is written here. What
SmolLM2-135M-Instruct says is checked in test_smollm2.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from examples.chat.__main__ import Conversation, default_model, load, main
from examples.chat.cache import Cache
from examples.chat.generate import (
    Statistics,
    compiled_step,
    generate,
    make_sampler,
    plain_step,
    prefill,
)
from examples.chat.model import Llama
from examples.chat.tokenizer import ChatTokenizer

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "python/tests/data"
LAST_LINE = re.compile(
    r"prompt: (\d+) tokens, \d+\.\d tok/s; generation: (\d+) tokens, \d+\.\d tok/s; "
    r"peak memory \d+ MB"
)
WIDTH, HIDDEN, HEADS, KV_HEADS, LAYERS = 64, 96, 4, 2, 2
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)


def byte_words() -> list[str]:
    """The 256 characters that stand for bytes in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    shown = {b: chr(b) for b in plain}
    shown.update({b: chr(256 + i) for i, b in enumerate(others)})
    return [shown[b] for b in range(256)]


WORDS = [*byte_words(), "us", "er", "user", "<s>", "</s>"]
BEGIN, END = WORDS.index("<s>"), WORDS.index("</s>")


def tiny_metadata() -> dict[str, Any]:
    def number(value: int) -> mx.array:
        return mx.array(value, mx.uint32)

    return {
        "general.architecture": "llama",
        "llama.block_count": number(LAYERS),
        "llama.embedding_length": number(WIDTH),
        "llama.attention.head_count": number(HEADS),
        "llama.attention.head_count_kv": number(KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": mx.array(1e-5),
        "llama.rope.freq_base": mx.array(1000.0),
        "llama.context_length": number(300),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": WORDS,
        "tokenizer.ggml.token_type": mx.array([1] * 259 + [3, 3], mx.int32),
        "tokenizer.ggml.merges": ["u s", "e r", "us er"],
        "tokenizer.ggml.bos_token_id": number(BEGIN),
        "tokenizer.ggml.eos_token_id": number(END),
        "tokenizer.chat_template": TEMPLATE,
    }


def tiny_tensors() -> dict[str, mx.array]:
    rng = np.random.default_rng(0)
    kv_width = WIDTH // HEADS * KV_HEADS

    def matrix(rows: int, columns: int) -> mx.array:
        values = rng.normal(size=(rows, columns)) * columns**-0.5
        return mx.array(values.astype(np.float32))

    tensors = {
        "token_embd.weight": matrix(len(WORDS), WIDTH),
        "output_norm.weight": mx.ones((WIDTH,)),
    }
    for i in range(LAYERS):
        shapes = {
            "attn_q": (WIDTH, WIDTH),
            "attn_k": (kv_width, WIDTH),
            "attn_v": (kv_width, WIDTH),
            "attn_output": (WIDTH, WIDTH),
            "ffn_gate": (HIDDEN, WIDTH),
            "ffn_up": (HIDDEN, WIDTH),
            "ffn_down": (WIDTH, HIDDEN),
        }
        for name, shape in shapes.items():
            tensors[f"blk.{i}.{name}.weight"] = matrix(*shape)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = mx.ones((WIDTH,))
    return tensors


def quantized(tensors: dict[str, mx.array], bits: int) -> dict[str, mx.array]:
    """The matrices as blocks of 32, as `mx.load` gives them."""
    stored: dict[str, mx.array] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 1:
            stored[name] = tensor
            continue
        codes = mx.quantize(tensor.astype(mx.float16), group_size=32, bits=bits)
        base = name[: -len("weight")]
        stored.update(zip((name, f"{base}scales", f"{base}biases"), codes))
    return stored


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("chat") / "tiny.gguf"
    mx.save_gguf(str(file), tiny_tensors(), tiny_metadata())
    return file


@pytest.fixture
def tiny() -> Llama:
    return Llama(tiny_metadata(), quantized(tiny_tensors(), 8), mx.float32)


# The program


def test_program_answers_on_standard_output_only(tiny_file: Path) -> None:
    command = [sys.executable, "-m", "examples.chat", "--model", str(tiny_file)]
    command += ["--prompt", "user?", "--max-tokens", "6", "--device", "cpu"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    assert "loading" in done.stderr and "100%" in done.stderr
    assert LAST_LINE.fullmatch(done.stderr.split("\n")[-2])
    assert done.stderr.endswith("MB\n")
    assert "prompt:" not in done.stdout and "loading" not in done.stdout


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_last_line_counts_tokens(
    tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, errors = run(
        capsys, "--model", tiny_file, "--prompt", "hi", "--max-tokens", 5
    )
    found = LAST_LINE.fullmatch(errors.split("\n")[-2])
    assert status == 0 and found is not None
    # "user" is one token, the rest single bytes and the two control tokens.
    text = "<s>user: hi</s><s>assistant: "
    tokenizer = ChatTokenizer(tiny_metadata())
    ids = tokenizer.encode_chat([{"role": "user", "content": "hi"}])
    assert "".join(WORDS[i] for i in ids).replace("Ġ", " ") == text
    assert int(found[1]) == len(ids) == 19
    assert 1 <= int(found[2]) <= 5


def test_seed_and_sampling_options(
    tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--model", tiny_file, "--prompt", "hi", "--max-tokens", 12]
    drawn = [*common, "--temperature", 2, "--top-p", 0.9, "--seed"]
    answers = [run(capsys, *drawn, seed)[1] for seed in (1, 1, 2)]
    assert answers[0] == answers[1] != answers[2]
    best = run(capsys, *common)[1]
    assert best == run(capsys, *common, "--temperature", 1, "--top-p", 1e-6)[1]
    for dtype in ("bfloat16", "float16"):
        assert run(capsys, *common, "--dtype", dtype)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-tokens", "0"],
        ["--max-tokens", "many"],
        ["--temperature", "-1"],
        ["--temperature", "nan"],
        ["--top-p", "0"],
        ["--top-p", "1.5"],
        ["--seed", "-1"],
        ["--dtype", "int8"],
        ["--device", "tpu"],
        ["--colour"],
    ],
)
def test_wrong_arguments(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--prompt", "hi", *arguments])
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and arguments[0] in captured.err


def test_conversation_from_standard_input(
    tiny_file: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("hello\n\nuser\n")
    with lines.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        status, out, errors = run(capsys, "--model", tiny_file, "--max-tokens", 4)
    assert status == 0 and out.count("\n") >= 2
    assert ">" not in out and errors.count("> ") == 4
    found = LAST_LINE.fullmatch(errors.split("\n")[-2])
    assert found is not None and 2 <= int(found[2]) <= 8


def test_reader_that_goes_away(tiny_file: Path) -> None:
    command = f"'{sys.executable}' -m examples.chat --model '{tiny_file}' --prompt hi"
    done = subprocess.run(
        ["bash", "-c", f"{command} --max-tokens 200 | true; exit ${{PIPESTATUS[0]}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr


def test_device_that_is_not_here(
    tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--model", tiny_file, "--prompt", "hi", "--max-tokens", 2, "--device"]
    before = mx.default_device()
    try:
        status, out, errors = run(capsys, *common, "gpu")
        if mx.is_available(mx.gpu):
            assert status == 0
        else:
            assert (status, out, errors) == (1, "", "chat: no gpu here\n")
        assert run(capsys, *common, "cpu")[0] == 0
    finally:
        mx.set_default_device(before)


# Bad files


def refused(capsys: pytest.CaptureFixture[str], file: Path) -> str:
    """The one line that a file is refused with."""
    status, out, errors = run(capsys, "--model", file, "--prompt", "hi")
    assert status == 1 and out == ""
    assert errors.endswith("\n") and "Traceback" not in errors
    line = errors.split("\n")[-2].split("\r")[-1]
    assert line.startswith("chat: ") and str(file) in line
    return line


def test_missing_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no such file" in refused(capsys, tmp_path / "nothing.gguf")
    assert "no such file" in refused(capsys, tmp_path)


@pytest.mark.parametrize("part", [0, 3, 24, 100, 0.05, 0.3, 0.9, -1])
def test_cut_file(
    part: float, tiny_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole = tiny_file.read_bytes()
    length = int(part * len(whole)) if isinstance(part, float) else part
    file = tmp_path / "cut.gguf"
    file.write_bytes(whole[:length])
    refused(capsys, file)


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"GGML" + bytes(99), b"text\n" * 99]
)
def test_foreign_file(
    content: bytes, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "picture.gguf"
    file.write_bytes(content)
    refused(capsys, file)


CHANGES: dict[str, Any] = {
    "architecture is bert": lambda m, t: m.update({"general.architecture": "bert"}),
    "lacks llama.block_count": lambda m, t: m.pop("llama.block_count"),
    "lacks tokenizer.ggml.tokens": lambda m, t: m.pop("tokenizer.ggml.tokens"),
    "kind of vocabulary, bert": lambda m, t: m.update({"tokenizer.ggml.model": "bert"}),
    "vocabulary is not valid": lambda m, t: m.update(
        {"tokenizer.ggml.merges": ["not there"]}
    ),
    "it has 262 words, but 261 vectors": lambda m, t: m.update(
        {"tokenizer.ggml.tokens": [*WORDS, "more"]}
    ),
    "cannot use": lambda m, t: m.update({"tokenizer.ggml.tokens": mx.ones((3,))}),
    "cutting text, other": lambda m, t: m.update({"tokenizer.ggml.pre": "other"}),
    "chat template is not valid": lambda m, t: m.update(
        {"tokenizer.chat_template": "{% for %}"}
    ),
    "blk.1.ffn_up.weight is missing": lambda m, t: t.pop("blk.1.ffn_up.weight"),
    "of another network: blk.0.extra": lambda m, t: t.update(
        {"blk.0.extra.weight": mx.ones((2,))}
    ),
}


@pytest.mark.parametrize("reason", CHANGES)
def test_file_of_another_model(
    reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    metadata, tensors = tiny_metadata(), tiny_tensors()
    CHANGES[reason](metadata, tensors)
    file = tmp_path / "other.gguf"
    mx.save_gguf(str(file), tensors, metadata)
    assert reason in refused(capsys, file)


def test_conversation_beyond_the_context(
    tiny_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, errors = run(capsys, "--model", tiny_file, "--prompt", "x " * 300)
    assert status == 1 and out == ""
    assert errors.split("\n")[-2].startswith("chat: the conversation has 6")


# The network


def logits_in_pieces(model: Llama, ids: list[int], step: int) -> np.ndarray:
    return np.array(prefill(model, ids, model.new_cache(), step).astype(mx.float32))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-4), ("bfloat16", 0.2)])
def test_prefill_in_one_call_in_pieces_and_token_by_token(
    dtype: str, tolerance: float
) -> None:
    model = Llama(tiny_metadata(), quantized(tiny_tensors(), 4), getattr(mx, dtype))
    ids = np.random.default_rng(1).integers(0, len(WORDS), 290).tolist()
    whole = logits_in_pieces(model, ids, 512)
    for step in (100, 64, 1):
        pieces = logits_in_pieces(model, ids, step)
        np.testing.assert_allclose(pieces, whole, rtol=0, atol=tolerance)


def test_network_against_numpy() -> None:
    """Plain matrices here, so that every term can be written out."""
    tensors = tiny_tensors()
    plain = {name: np.array(tensor) for name, tensor in tensors.items()}
    model = Llama(tiny_metadata(), tensors, mx.float32)
    ids = [1, 50, 200, 7, 7]

    def norm(x: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def rope(x: np.ndarray) -> np.ndarray:
        depth = x.shape[-1]
        angles = np.arange(len(ids))[:, None] * 1000.0 ** (
            -np.arange(0, depth, 2) / depth
        )
        turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def heads(x: np.ndarray, count: int) -> np.ndarray:
        return x.reshape(len(ids), count, -1).transpose(1, 0, 2)

    x = plain["token_embd.weight"][ids]
    for i in range(LAYERS):
        w = {n: plain[f"blk.{i}.{n}.weight"].T for n in ("attn_q", "attn_k", "attn_v")}
        q, k, v = (norm(x) @ w[n] for n in w)
        q, k = rope(heads(q, HEADS)), rope(heads(k, KV_HEADS))
        k, v = (np.repeat(a, HEADS // KV_HEADS, 0) for a in (k, heads(v, KV_HEADS)))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        scores += np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (shares / shares.sum(-1, keepdims=True)) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
        x = x + mixed @ plain[f"blk.{i}.attn_output.weight"].T
        gate = norm(x) @ plain[f"blk.{i}.ffn_gate.weight"].T
        up = norm(x) @ plain[f"blk.{i}.ffn_up.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ plain[f"blk.{i}.ffn_down.weight"].T
    want = norm(x[-1:]) @ plain["token_embd.weight"].T
    got = np.array(model(mx.array([ids]), model.new_cache()))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)


def test_matrices_stored_differently_give_the_same_network(tiny: Llama) -> None:
    mixed = quantized(tiny_tensors(), 8)
    for i in range(LAYERS):
        name = f"blk.{i}.attn_v"
        codes = [mixed.pop(f"{name}.{kind}") for kind in ("weight", "scales", "biases")]
        codes = [code.astype(mx.float32) if i else code for i, code in enumerate(codes)]
        mixed[f"{name}.weight"] = mx.dequantize(*codes, group_size=32, bits=8)
    other = Llama(tiny_metadata(), mixed, mx.float32)
    ids = mx.array([[1, 2, 3]])
    want = np.array(tiny(ids, tiny.new_cache()))
    got = np.array(other(ids, other.new_cache()))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)


def test_separate_output_and_stretched_rope() -> None:
    tensors = tiny_tensors()
    tensors["output.weight"] = -tensors["token_embd.weight"]
    pairs = WIDTH // HEADS // 2
    tensors["rope_freqs.weight"] = mx.full((pairs,), 4.0)
    stretched = {"llama.rope.scaling.type": "linear"}
    stretched["llama.rope.scaling.factor"] = mx.array(4.0)
    ids = mx.array([[1, 2, 3, 4]])
    by_tensor = Llama(tiny_metadata(), tensors, mx.float32)
    got = np.array(by_tensor(ids, by_tensor.new_cache()))
    by_factor = Llama({**tiny_metadata(), **stretched}, tiny_tensors(), mx.float32)
    want = -np.array(by_factor(ids, by_factor.new_cache()))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)
    plain = Llama(tiny_metadata(), tiny_tensors(), mx.float32)
    assert np.abs(np.array(plain(ids, plain.new_cache())) + got).max() > 0.01


def test_cache_grows_and_forgets() -> None:
    cache = Cache()
    rows = mx.arange(600.0).reshape(1, 1, 600, 1)
    for start, end in ((0, 10), (10, 256), (256, 257), (257, 600)):
        keys, values = cache.extend(rows[..., start:end, :], -rows[..., start:end, :])
        assert keys.shape == values.shape == (1, 1, end, 1)
        assert mx.array_equal(keys, rows[..., :end, :]).item()
        assert mx.array_equal(values, -rows[..., :end, :]).item()
    cache.length = 5
    keys, _ = cache.extend(rows[..., :1, :], rows[..., :1, :])
    assert keys.reshape(-1).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]


# Generation


def test_sampling_from_the_likeliest() -> None:
    logits = mx.log(mx.array([[0.05, 0.5, 0.15, 0.3]]))
    assert make_sampler(0, 1)(logits).tolist() == [1]
    mx.random.seed(0)
    for top_p, allowed in (
        (0.4, {1}),
        (0.6, {1, 3}),
        (0.9, {1, 2, 3}),
        (1, {0, 1, 2, 3}),
    ):
        sampler = make_sampler(1.0, top_p)
        drawn = [sampler(logits).item() for _ in range(200)]
        assert set(drawn) == allowed
    hot = [make_sampler(100.0, 1)(logits).item() for _ in range(400)]
    assert min(hot.count(token) for token in range(4)) > 50


def test_generated_tokens_are_the_best_ones(tiny: Llama) -> None:
    statistics = Statistics()
    ids = [5, 6, 7]
    greedy = make_sampler(0, 1)
    cache = tiny.new_cache()
    step = plain_step(tiny, cache, greedy)
    tokens = list(generate(tiny, ids, cache, greedy, step, 8, statistics))
    for i, token in enumerate(tokens):
        logits = tiny(mx.array([ids + tokens[:i]]), tiny.new_cache())
        assert mx.argmax(logits, -1).item() == token
    assert len(tokens) == statistics.tokens == 8 and statistics.steps == 7
    assert statistics.prompt_tokens == 3 and statistics.seconds > 0


def test_second_question_reuses_the_cache(
    tiny: Llama, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = ChatTokenizer(tiny_metadata())
    talk = Conversation(tiny, tokenizer, make_sampler(0, 1), 5)
    talk.ask("one")
    first = talk.statistics.prompt_tokens
    talk.ask("two")
    second = talk.statistics.prompt_tokens - first
    messages = talk._messages
    ids = tokenizer.encode_chat(messages[:3])
    assert second < len(ids) - first + 10
    # The answer is that of a conversation read afresh.
    greedy, cache = make_sampler(0, 1), tiny.new_cache()
    step = plain_step(tiny, cache, greedy)
    tokens = generate(tiny, ids, cache, greedy, step, 5, Statistics())
    assert "".join(tokenizer.stream(tokens)).startswith(messages[3]["content"])


# Text


def test_text_streams_whole_characters() -> None:
    tokenizer = ChatTokenizer(tiny_metadata())
    text = "Grüße, 雪 😀!"
    ids = list(text.encode())
    pieces = list(tokenizer.stream(ids))
    assert "".join(pieces) == text
    assert all(len(piece) == 1 for piece in pieces) and len(pieces) == len(text)
    assert "".join(tokenizer.stream([*ids, END, *"a😀".encode()[:3]])) == text + "a"


def test_control_words_become_single_tokens() -> None:
    tokenizer = ChatTokenizer(tiny_metadata())
    ids = tokenizer.encode_chat([{"role": "user", "content": "17é"}])
    assert ids[:2] == [BEGIN, WORDS.index("user")]
    assert ids[4:9] == [*"17é".encode(), END]
    assert tokenizer.end_ids == {END}


def test_user_defined_words_are_shown() -> None:
    metadata = tiny_metadata()
    metadata["tokenizer.ggml.token_type"] = mx.array([1] * 258 + [4, 3, 3], mx.int32)
    tokenizer = ChatTokenizer(metadata)
    ids = tokenizer.encode_chat([{"role": "user", "content": "a"}])
    assert "".join(tokenizer.stream(ids)) == "user: aassistant: "


def test_template_that_refuses() -> None:
    metadata = tiny_metadata()
    metadata["tokenizer.chat_template"] = "{{ raise_exception('no') }}"
    with pytest.raises(ValueError, match="the chat template fails: no"):
        ChatTokenizer(metadata).encode_chat([])


def test_sentence_piece_vocabulary() -> None:
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    words += ["▁", "h", "i", "a", "hi", "▁hi", "ha"]
    scores = [0.0] * 259 + [-9.0, -8.0, -8.0, -8.0, -1.0, -2.0, -3.0]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": mx.array(scores),
        "tokenizer.ggml.token_type": mx.array([2, 3, 3] + [6] * 256 + [1] * 7),
        "tokenizer.ggml.bos_token_id": mx.array(1),
        "tokenizer.ggml.eos_token_id": mx.array(2),
        "tokenizer.ggml.unknown_token_id": mx.array(0),
        "tokenizer.ggml.add_bos_token": mx.array(True),
    }
    tokenizer = ChatTokenizer(metadata)
    ids = tokenizer.encode_chat([{"role": "user", "content": "hi hihi é"}])
    text = [words[i] for i in ids]
    assert text == ["<s>", "▁hi", "▁hi", "hi", "▁", "<0xC3>", "<0xA9>"]
    assert "".join(tokenizer.stream(ids)) == "hi hihi é"


# SmolLM2


@pytest.mark.slow
def test_smollm2_tokens_are_those_of_the_reference() -> None:
    model, tokenizer = load(default_model(), mx.float32)
    for case in json.loads((DATA / "smollm2_greedy.json").read_text())["cases"]:
        messages = [{"role": "user", "content": case["prompt"]}]
        assert tokenizer.encode_chat(messages) == case["ids"]
    greedy, cache = make_sampler(0, 1), model.new_cache()
    step = compiled_step(model, cache, greedy)
    tokens = generate(model, case["ids"], cache, greedy, step, 8, Statistics())
    assert list(tokens) == case["continuation"][:8]
