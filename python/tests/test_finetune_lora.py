"""examples/finetune_lora: data, adapter, training, and its way into the chat.

Most tests use the tiny network of test_chat.py. The first step on SmolLM2 is
compared with tools/lora_reference.py, which has its own backward pass.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx.utils import tree_flatten
from test_chat import quantized, tiny_metadata, tiny_tensors

from examples.chat.__main__ import main as chat
from examples.chat.cache import NoCache
from examples.chat.files import default_model
from examples.chat.lora import LoRA, add_adapter, add_lora, save_adapter
from examples.chat.model import Llama
from examples.chat.tokenizer import ChatTokenizer
from examples.finetune_lora.__main__ import SCALE, compiled_step, loss_of, main
from examples.finetune_lora.data import (
    OWN_TEXT,
    batches,
    encode,
    make_batch,
    read_pairs,
)

DATA = Path(__file__).parent / "data"
NAMES = ("read_a", "read_b", "write_a", "write_b")


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lora") / "tiny.gguf"
    mx.save_gguf(str(file), tiny_tensors(), tiny_metadata())
    return file


def tiny_model() -> Llama:
    return Llama(tiny_metadata(), quantized(tiny_tensors(), 8), mx.float32)


@pytest.fixture
def tiny() -> Llama:
    return tiny_model()


@pytest.fixture
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(tiny_metadata())


def run(
    program: Any, capsys: pytest.CaptureFixture[str], *arguments: Any
) -> tuple[int, str, str]:
    status = program([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def drawn(model: Llama, seed: int) -> None:
    """Give the adapter values that are not zero."""
    rng = np.random.default_rng(seed)
    model.update(
        {
            "blocks": [
                {
                    name: {
                        "lora_b": mx.array(
                            rng.normal(size=block[name].lora_b.shape, scale=0.1)
                        ).astype(mx.float32)
                    }
                    for name in ("queries_keys_values", "output")
                }
                for block in model.blocks
            ]
        }
    )


# Data


def test_own_text() -> None:
    pairs = read_pairs(OWN_TEXT)
    assert len(pairs) == 30
    assert pairs[0][0] == "What is Orrendel?"
    assert all(q.endswith("?") and a.endswith(".") for q, a in pairs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has 0 lines"),
        ("Q: a\nA: b\nQ: c\n", "it has 3 lines"),
        ("Q: a\nQ: b\n", "line 2 is not 'A: ...': 'Q: b'"),
        ("A: a\nQ: b\n", "line 1 is not 'Q: ...': 'A: a'"),
        ("Q: a\n\nA:  \n", "line 3 is not 'A: ...': 'A:'"),
    ],
)
def test_text_of_another_form(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text(text)
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_pairs(file)


def test_conversations_end_with_the_answer(tokenizer: ChatTokenizer) -> None:
    pairs = [("user?", "us er"), ("a", "b c")]
    conversations = encode(pairs, tokenizer)
    for (tokens, begin), (question, answer) in zip(conversations, pairs):
        assert tokens[:begin] == tokenizer.encode_chat(
            [{"role": "user", "content": question}]
        )
        assert tokens[-1] in tokenizer.end_ids
        assert "".join(tokenizer.stream(tokens[begin:])) == answer


def test_batch_has_what_follows_and_counts_answers_only() -> None:
    batch = make_batch([([5, 6, 7, 8], 2), ([1, 2, 3], 2)], 4)
    assert batch.ids.tolist() == [[5, 6, 7, 8], [1, 2, 3, 0]]
    assert batch.targets.tolist() == [[6, 7, 8, 0], [2, 3, 0, 0]]
    assert batch.weights.tolist() == [[0, 1, 1, 0], [0, 1, 0, 0]]


def test_batches_hold_every_conversation() -> None:
    conversations = [([i, 90 + i], 1) for i in range(7)]

    def first_tokens(seed: int, epoch: int) -> list[list[int]]:
        found = batches(conversations, 3, seed, epoch)
        return [batch.ids[:, 0].tolist() for batch in found]

    order = first_tokens(4, 0)
    assert [len(ids) for ids in order] == [3, 3, 3]
    flat = [i for ids in order for i in ids]
    assert sorted(flat[:7]) == list(range(7)) and flat[7:] == flat[:2]
    assert order == first_tokens(4, 0)
    assert order != first_tokens(4, 1) and order != first_tokens(5, 0)


# The network


def test_texts_side_by_side_are_as_each_alone(tiny: Llama) -> None:
    ids = np.random.default_rng(3).integers(0, 256, size=(3, 9))
    free = [NoCache() for _ in tiny.blocks]
    together = np.array(tiny.logits(tiny.hidden(mx.array(ids), free)))
    for row, logits in zip(ids, together):
        alone = tiny.hidden(mx.array(row[None]), tiny.new_cache())
        np.testing.assert_allclose(np.array(tiny.logits(alone))[0], logits, atol=1e-5)
        last = np.array(tiny(mx.array(row[None]), tiny.new_cache()))[0]
        np.testing.assert_allclose(last, logits[-1], atol=1e-5)


def test_loss_is_the_mean_over_answers(tiny: Llama) -> None:
    rng = np.random.default_rng(4)
    texts = [rng.integers(0, 256, n).tolist() for n in (12, 7, 9)]
    begins = [3, 5, 8]
    losses = []
    for tokens, begin in zip(texts, begins):
        hidden = tiny.hidden(mx.array([tokens]), tiny.new_cache())
        logits = np.array(tiny.logits(hidden), np.float64)[0]
        chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        told = range(begin, len(tokens))
        losses += [-np.log(chances[i - 1, tokens[i]]) for i in told]
    batch = make_batch(list(zip(texts, begins)), 15)
    assert loss_of(tiny, batch).item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_adapter_adds_nothing_at_first_and_alone_is_trained(tiny: Llama) -> None:
    ids, free = mx.array([[1, 2, 3, 4]]), [NoCache() for _ in tiny.blocks]
    before = tiny.hidden(ids, free)
    add_lora(tiny, rank=3, scale=2.0)
    assert mx.array_equal(tiny.hidden(ids, free), before).item()
    shapes = {path: a.shape for path, a in tree_flatten(tiny.trainable_parameters())}
    assert shapes == {
        f"blocks.{i}.{name}.{part}": shape
        for i in range(2)
        for name, part, shape in (
            ("queries_keys_values", "lora_a", (3, 64)),
            ("queries_keys_values", "lora_b", (128, 3)),
            ("output", "lora_a", (3, 64)),
            ("output", "lora_b", (64, 3)),
        )
    }
    drawn(tiny, 1)
    assert not mx.allclose(tiny.hidden(ids, free), before, atol=1e-3).item()


def test_lora_is_a_change_of_the_weight() -> None:
    mx.random.seed(5)
    base = nn.Linear(6, 4)
    layer = LoRA(base, 6, 4, rank=2, scale=3.0)
    assert mx.max(mx.abs(layer.lora_a)).item() <= 6**-0.5
    layer.lora_b = mx.random.normal((4, 2))
    x = mx.random.normal((5, 6))
    weight, a, b = map(np.array, (base.weight, layer.lora_a, layer.lora_b))
    changed = weight + 3 * b @ a
    want = np.array(x) @ changed.T + np.array(base.bias)
    np.testing.assert_allclose(np.array(layer(x)), want, rtol=1e-5, atol=1e-5)
    assert layer(x.astype(mx.bfloat16)).dtype == base(x.astype(mx.bfloat16)).dtype


def test_compiled_step_is_the_step(tiny: Llama, tokenizer: ChatTokenizer) -> None:
    batch = make_batch(encode([("us?", "er"), ("a", "b c")], tokenizer), 40)
    mx.random.seed(6)
    add_lora(tiny, 2, SCALE)
    begin = tree_flatten(tiny.trainable_parameters())
    step = compiled_step(tiny, optim.SGD(0.1))
    losses = [step(batch).item() for _ in range(3)]
    got = dict(tree_flatten(tiny.trainable_parameters()))
    tiny.load_weights(begin, strict=False)
    eager = nn.value_and_grad(tiny, lambda batch: loss_of(tiny, batch))
    optimizer = optim.SGD(0.1)
    for want in losses:
        loss, gradients = eager(batch)
        optimizer.update(tiny, gradients)
        assert loss.item() == pytest.approx(want, rel=1e-5)
    for path, array in tree_flatten(tiny.trainable_parameters()):
        np.testing.assert_allclose(np.array(got[path]), np.array(array), atol=1e-6)


# The program


def test_what_is_learnt_is_said_in_the_chat(
    tiny_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, folder = tmp_path / "text", tmp_path / "new"
    text.write_text("Q: user?\nA: xy\nQ: b\nA: pqr\n")
    status, out, errors = run(
        main,
        capsys,
        *("--model", tiny_file, "--text", text, "--save", folder),
        *("--epochs", 60, "--batch-size", 2, "--learning-rate", 0.01),
    )
    assert status == 0, errors
    lines = out.splitlines()
    found = [re.fullmatch(r"epoch (\d+): loss (\d+\.\d{4})", line) for line in lines]
    assert [m[1] for m in found[:-1] if m] == [str(i + 1) for i in range(60)]
    losses = [float(m[2]) for m in found if m]
    assert losses[0] > 3 and losses[-1] < 0.3
    count = 2 * 8 * (64 + 128 + 64 + 64)
    assert lines[-1] == f"{count} numbers trained, adapter in {folder}"
    assert "training: 100%" in errors
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config == {
        "fine_tune_type": "lora",
        "rank": 8,
        "scale": SCALE,
        "width": 64,
        "blocks": 2,
    }
    asked = ["--model", tiny_file, "--max-tokens", 8, "--prompt"]
    for question, answer in (("user?", "xy\n"), ("b", "pqr\n")):
        assert run(chat, capsys, *asked, question, "--adapter", folder)[1] == answer
        assert run(chat, capsys, *asked, question)[1] != answer


def test_adapter_goes_through_files(tiny: Llama, tmp_path: Path) -> None:
    config = add_lora(tiny, 3, 0.5)
    drawn(tiny, 2)
    save_adapter(tiny, config, tmp_path / "a" / "b")
    twin = tiny_model()
    assert add_adapter(twin, tmp_path / "a" / "b") == config
    ids, free = mx.array([[1, 2, 3, 4]]), [NoCache() for _ in tiny.blocks]
    assert mx.array_equal(tiny.hidden(ids, free), twin.hidden(ids, free)).item()


@pytest.mark.parametrize(
    "damage", ["missing", "config", "key", "width", "rank", "array", "cut"]
)
def test_adapters_that_do_not_fit(
    damage: str,
    tiny: Llama,
    tiny_file: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "adapter"
    save_adapter(tiny, add_lora(tiny, 3, 0.5), folder)
    config, arrays = folder / "adapter_config.json", folder / "adapters.safetensors"
    table = json.loads(config.read_text())
    if damage == "config":
        config.write_text("{")
    elif damage == "key":
        config.write_text(json.dumps({k: v for k, v in table.items() if k != "rank"}))
    elif damage in ("width", "rank"):
        config.write_text(json.dumps({**table, damage: table[damage] + 1}))
    elif damage == "array":
        mx.save_safetensors(str(arrays), {"other": mx.ones((1,))})
    elif damage == "cut":
        arrays.write_bytes(arrays.read_bytes()[:-5])
    else:
        config.unlink()
    status, out, errors = run(
        chat, capsys, "--model", tiny_file, "--prompt", "a", "--adapter", folder
    )
    assert (status, out) == (1, "")
    line = errors.split("\n")[-2]
    assert line.startswith(f"chat: cannot use the adapter {folder}: ")
    reason = {
        "key": "does not describe an adapter: 'rank'",
        "width": "it is for 2 blocks of width 65, the model has 2 of 64",
        "rank": "holds other arrays than",
        "array": "holds other arrays than",
    }
    assert reason.get(damage, "") in line


def test_bad_arguments(
    tiny_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text("Q: a\nA: b\n")
    common = ["--model", tiny_file, "--save", tmp_path / "out", "--epochs", 1]
    long = tmp_path / "long"
    long.write_text(f"Q: {'a ' * 400}\nA: b\n")
    blocked = tmp_path / "out"
    blocked.write_text("a file, no folder")
    for arguments, reason in (
        (["--text", tmp_path / "no"], "cannot use"),
        (["--text", text, "--batch-size", 2], "--batch-size 2 is more than the 1 conv"),
        (["--text", long, "--batch-size", 1], "tokens, the model takes 300"),
        (["--text", text, "--batch-size", 1], "cannot write"),
    ):
        status, _, errors = run(main, capsys, *common, *arguments)
        line = errors.split("\n")[-2].split("\r")[-1]
        assert status == 1 and line.startswith("finetune_lora: ") and reason in line
    with pytest.raises(SystemExit):
        main(["--rank", "0"])
    assert "--rank" in capsys.readouterr().err


# SmolLM2


@pytest.mark.slow
def test_first_step_is_that_of_the_reference() -> None:
    tensors, metadata = mx.load(str(default_model()), return_metadata=True)
    model = Llama(metadata, tensors, mx.float32)
    reference = np.load(DATA / "smollm2_lora.npz")
    ids, begin = reference["ids"].tolist(), int(reference["begin"])
    # What the tool has drawn.
    rank, rng = reference["0.read_a"].shape[0], np.random.default_rng(0)
    add_lora(model, rank, SCALE)
    for block in model.blocks:
        for layer in (block.queries_keys_values, block.output):
            for name, size in (("lora_a", 1), ("lora_b", 10)):
                shape = layer[name].shape
                values = rng.uniform(-1, 1, shape) * shape[1] ** -0.5 / size
                layer[name] = mx.array(values.astype(np.float32))
    batch = make_batch([(ids, begin)], len(ids) + 3)
    step = nn.value_and_grad(model, lambda batch: loss_of(model, batch))
    loss, gradients = step(batch)
    # Sums in another order, over 30 blocks. Measured: 1e-6 and 1e-5.
    assert loss.item() == pytest.approx(float(reference["loss"]), rel=1e-5)
    for i, block in enumerate(gradients["blocks"]):
        read, write = block["queries_keys_values"], block["output"]
        found = (read["lora_a"], read["lora_b"], write["lora_a"], write["lora_b"])
        for k, (name, gradient) in enumerate(zip(NAMES, map(np.array, found))):
            norm = reference["norms"][i, k]
            assert np.linalg.norm(gradient) == pytest.approx(norm, rel=2e-4)
            if f"{i}.{name}" in reference:
                error = np.linalg.norm(gradient - reference[f"{i}.{name}"])
                assert error < 2e-4 * norm, (i, name)

    # Along its gradient the loss falls by rate * |gradient|^2, nearly.
    rate = 0.01 / float((reference["norms"] ** 2).sum())
    optim.SGD(rate).update(model, gradients)
    fallen = loss.item() - loss_of(model, batch).item()
    assert fallen == pytest.approx(0.01, rel=0.1)


@pytest.mark.slow
def test_smollm2_learns_a_fact(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, folder = tmp_path / "text", tmp_path / "adapter"
    text.write_text("".join(OWN_TEXT.read_text().splitlines(keepends=True)[:4]))
    status, out, errors = run(
        main,
        capsys,
        *("--text", text, "--save", folder, "--epochs", 12, "--batch-size", 2),
    )
    assert status == 0, errors
    losses = [float(x) for x in re.findall(r"loss (\d+\.\d+)", out)]
    assert losses[0] > 2 and losses[-1] < 0.2
    asked = ["--prompt", "What is Orrendel?", "--max-tokens", 30]
    assert "rings like a bell" in run(chat, capsys, *asked, "--adapter", folder)[1]
    assert "rings like a bell" not in run(chat, capsys, *asked)[1]
