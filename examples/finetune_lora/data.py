"""Questions and answers from a text file, as token ids of conversations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx

from examples.chat.tokenizer import ChatTokenizer

OWN_TEXT = Path(__file__).with_name("orrendel.txt")
QUESTION, ANSWER = "Q:", "A:"


@dataclass(frozen=True)
class Batch:
    """Conversations, padded at their ends.

    Attributes:
        ids: Tokens (N, length) that are read.
        targets: Tokens (N, length) that should follow each.
        weights: 1 where the target belongs to an answer, else 0.
    """

    ids: mx.array
    targets: mx.array
    weights: mx.array


def read_pairs(file: Path) -> list[tuple[str, str]]:
    """Questions and answers of a file in which their lines take turns.

    Raises:
        ValueError: If a line is neither, or they do not take turns.
    """
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line]
    for place, (number, line) in enumerate(numbered):
        mark = ANSWER if place % 2 else QUESTION
        if not line.startswith(mark) or not line[len(mark) :].strip():
            raise ValueError(f"line {number} is not '{mark} ...': {line[:40]!r}")
    if not numbered or len(numbered) % 2:
        raise ValueError(
            f"it has {len(numbered)} lines, not pairs of '{QUESTION}' and '{ANSWER}'"
        )
    texts = [line[len(QUESTION) :].strip() for _, line in numbered]
    return list(zip(texts[::2], texts[1::2]))


def encode(
    pairs: list[tuple[str, str]], tokenizer: ChatTokenizer
) -> list[tuple[list[int], int]]:
    """Token ids of each conversation, and where its answer begins."""
    return [_encode_pair(question, answer, tokenizer) for question, answer in pairs]


def _encode_pair(
    question: str, answer: str, tokenizer: ChatTokenizer
) -> tuple[list[int], int]:
    asked = [{"role": "user", "content": question}]
    begin = tokenizer.encode_chat(asked)
    said = [*asked, {"role": "assistant", "content": answer}]
    whole = tokenizer.encode_chat(said, answered=True)
    if whole[: len(begin)] != begin:
        raise ValueError(f"the chat template changes the question {question!r}")
    # The answer goes up to the token that ends it.
    places = (i for i in range(len(begin), len(whole)) if whole[i] in tokenizer.end_ids)
    return whole[: next(places, len(whole) - 1) + 1], len(begin)


def make_batch(conversations: list[tuple[list[int], int]], length: int) -> Batch:
    """Conversations of at most `length` + 1 tokens side by side."""
    ids, targets, weights = [], [], []
    for tokens, begin in conversations:
        padding = [0] * (length + 1 - len(tokens))
        padded = tokens + padding
        ids.append(padded[:-1])
        targets.append(padded[1:])
        told = len(tokens) - begin
        weights.append([0.0] * (begin - 1) + [1.0] * told + [0.0] * len(padding))
    return Batch(mx.array(ids), mx.array(targets), mx.array(weights))


def batches(
    conversations: list[tuple[list[int], int]], size: int, seed: int, epoch: int
) -> Iterator[Batch]:
    """All conversations in an order of the epoch's own, in batches of one shape.

    The last batch is filled up with the first conversations of the order.
    """
    length = max(len(tokens) for tokens, _ in conversations) - 1
    key = mx.random.split(mx.random.key(seed), epoch + 1)[epoch]
    order: list[int] = mx.random.permutation(len(conversations), key=key).tolist()
    order += order[: -len(order) % size]
    for start in range(0, len(order), size):
        chosen = [conversations[i] for i in order[start : start + size]]
        yield make_batch(chosen, length)
