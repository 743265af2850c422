"""Text to token ids and back, as the metadata of a GGUF file describes it.

Two kinds of vocabulary are known: byte-level BPE ("gpt2") with its merges, and
SentencePiece BPE ("llama"), whose merges follow from the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jinja2
import jinja2.sandbox
import mlx.core as mx
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

Message = dict[str, str]

CONTROL, USER_DEFINED = 3, 4  # token types of ggml
# How text is cut before merging. The patterns are part of each model: they are
# published in its tokenizer.json.
SPLIT_PATTERNS = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
SPLIT_DIGITS = {"smollm", "refact", "codeshell", "exaone"}
SPLIT_WORDS = {"default", "gpt-2", "mpt", "olmo", "jais"}
END_TOKENS = ("eos", "eot", "eom")


class ChatTokenizer:
    """Encodes conversations and decodes answers.

    Args:
        metadata: Of the GGUF file.

    Raises:
        ValueError: If the file has no vocabulary of a known kind.
    """

    def __init__(self, metadata: dict[str, Any]) -> None:
        self._metadata = metadata
        self._words = words = list[str](self._entry("tokens"))
        kind = self._entry("model")
        build = {"gpt2": self._byte_level, "llama": self._sentence_piece}.get(kind)
        if build is None:
            raise ValueError(f"its kind of vocabulary, {kind}, is not known here")
        try:
            self._tokenizer = build(words)
        except (ValueError, TypeError):
            raise
        except Exception as error:  # tokenizers has no class of its own
            raise ValueError(f"its vocabulary is not valid: {error}") from None
        typed = list(zip(words, _plain(self._entry("token_type", []))))
        self._tokenizer.add_special_tokens([w for w, t in typed if t == CONTROL])
        self._tokenizer.add_tokens([w for w, t in typed if t == USER_DEFINED])
        ends = (self._entry(f"{name}_token_id", None) for name in END_TOKENS)
        self.end_ids: set[int] = {_plain(end) for end in ends if end is not None}
        self._template = self._chat_template()

    @property
    def size(self) -> int:
        """Number of words in the vocabulary."""
        return len(self._words)

    def _entry(self, name: str, *default: Any) -> Any:
        value = self._metadata.get(f"tokenizer.ggml.{name}", *default)
        if value is None and not default:
            raise ValueError(f"the metadata lacks tokenizer.ggml.{name}")
        return value

    def _byte_level(self, words: list[str]) -> Tokenizer:
        vocabulary = {word: index for index, word in enumerate(words)}
        merges = [tuple(pair.split(" ", 1)) for pair in self._entry("merges")]
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=True))
        tokenizer.pre_tokenizer = _splitter(self._entry("pre", "default"))
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    def _sentence_piece(self, words: list[str]) -> Tokenizer:
        vocabulary = {word: index for index, word in enumerate(words)}
        merges = _merges_by_score(vocabulary, _plain(self._entry("scores")))
        tokenizer = Tokenizer(
            models.BPE(
                vocabulary,
                merges,
                unk_token=self._word("unknown") or None,
                fuse_unk=True,
                byte_fallback=True,
            )
        )
        steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
        ends: list[decoders.Decoder] = [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
        ]
        if _plain(self._entry("add_space_prefix", True)):
            steps.insert(0, normalizers.Prepend("▁"))
            ends.append(decoders.Strip(" ", 1, 0))
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.decoder = decoders.Sequence(ends)
        return tokenizer

    def _chat_template(self) -> jinja2.Template | None:
        source = self._metadata.get("tokenizer.chat_template")
        if source is None:
            return None
        # Sandboxed: the template comes from the file.
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        environment.globals["raise_exception"] = _refuse
        try:
            return environment.from_string(source)
        except jinja2.TemplateError as error:
            raise ValueError(f"its chat template is not valid: {error}") from None

    def _word(self, name: str) -> str:
        index = self._entry(f"{name}_token_id", None)
        return "" if index is None else self._words[_plain(index)]

    def encode_chat(self, messages: list[Message], answered: bool = False) -> list[int]:
        """Token ids of a conversation, up to where the answer begins.

        Args:
            messages: Dictionaries with "role" (user or assistant) and "content".
            answered: Whether the last message is the answer, and no other follows.

        Raises:
            ValueError: If the template refuses the messages.
        """
        begin = self._word("bos")
        if self._template is None:
            text = "\n".join(message["content"] for message in messages)
        else:
            try:
                text = self._template.render(
                    messages=messages,
                    add_generation_prompt=not answered,
                    bos_token=begin,
                    eos_token=self._word("eos"),
                )
            except jinja2.TemplateError as error:
                raise ValueError(f"the chat template fails: {error}") from None
        if _plain(self._entry("add_bos_token", False)) and not text.startswith(begin):
            text = begin + text
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Text of token ids as they come, whole characters at a time.

        Control tokens give no text. Bytes of a character that never becomes
        whole are left out.
        """
        decoder = decoders.DecodeStream(skip_special_tokens=True)
        for token in ids:
            text = decoder.step(self._tokenizer, token)
            if text:
                yield text


def _plain(value: Any) -> Any:
    """Metadata as Python numbers."""
    return value.tolist() if isinstance(value, mx.array) else value


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _splitter(name: str) -> pre_tokenizers.PreTokenizer:
    if name in SPLIT_DIGITS:
        first = pre_tokenizers.Digits(individual_digits=True)
        second = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return pre_tokenizers.Sequence([first, second])
    if name in SPLIT_WORDS:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if name in SPLIT_PATTERNS:
        first = pre_tokenizers.Split(Regex(SPLIT_PATTERNS[name]), "isolated")
        second = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([first, second])
    raise ValueError(f"its way of cutting text, {name}, is not known here")


def _merges_by_score(
    vocabulary: dict[str, int], scores: list[float]
) -> list[tuple[str, str]]:
    """Pairs that make a word of the vocabulary, best word first."""
    merges: list[tuple[float, int, int, str, str]] = []
    for word, index in vocabulary.items():
        for cut in range(1, len(word)):
            left, right = word[:cut], word[cut:]
            if left in vocabulary and right in vocabulary:
                order = (-scores[index], vocabulary[left], vocabulary[right])
                merges.append((*order, left, right))
    merges.sort()
    return [(left, right) for *_, left, right in merges]
